use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::chain::{Chain, matches};
use super::registration::{Address, CaBundle, conversions, webhooks};
use super::reply::{NoAnswer, Reply};
use super::request::{AdmissionRequest, BadRequest, ConversionRequest, ReviewRequest};
use super::response::{AdmissionResponse, HookResponse};
use super::routes::{AdmissionKind, Opened, Routes, safe};
use super::{Ended, Progress, Review, Run};
use crate::hook::config::{ConfigVersion, ConversionRule, HookConfig, HookKind};
use crate::hook::context::{self, Snapshots};
use crate::name::{HookId, HookName, ModuleName, Owner};

const CRD: &str = "widgets.example.com";

fn hook(name: &str) -> HookId {
    HookId {
        owner: Owner::Global,
        name: HookName::parse(name).unwrap(),
    }
}

fn config(fields: &Value) -> HookConfig {
    let mut text = fields.clone();
    text["configVersion"] = json!("v1");
    HookConfig::parse(&text.to_string(), HookKind::Global).unwrap()
}

fn binding(name: &str) -> Value {
    json!({"name": name, "rules": [
        {"apiVersions": ["v1"], "apiGroups": [""], "resources": ["configmaps"], "operations": ["CREATE"]}]})
}

fn routes(hooks: &[(&str, Value)]) -> Routes {
    let hooks: Vec<_> = hooks
        .iter()
        .map(|(name, fields)| (hook(name), config(fields)))
        .collect();
    let (routes, clashes) = Routes::of(hooks.iter().map(|(id, config)| (id, config)));
    assert_eq!(clashes, []);
    routes
}

/// Paths with the hooks behind them.
fn table(routes: &Routes) -> Vec<String> {
    let rows = routes.admissions();
    rows.map(|(path, route)| format!("{path} {:?} {}", route.kind, route.hook.name))
        .collect()
}

fn converter(rules: &[(&str, &str)]) -> Value {
    let rules: Vec<_> = rules
        .iter()
        .map(|(from, to)| json!({"fromVersion": from, "toVersion": to}))
        .collect();
    json!({"kubernetesCustomResourceConversion": [{"name": "widgets", "crdName": CRD, "conversions": rules}]})
}

fn body(reply: &Reply) -> Value {
    match reply {
        Reply::Review(json) => json.to_value(),
        Reply::NoAnswer(why) => json!(why.to_string()),
    }
}

fn admission(uid: &str) -> ReviewRequest {
    let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": uid}});
    ReviewRequest::Admission(AdmissionRequest::parse(body.to_string().as_bytes()).unwrap())
}

fn conversion(desired: &str, objects: &[(&str, &str)]) -> ReviewRequest {
    let objects: Vec<_> = objects.iter().map(|(version, name)| widget(version, name)).collect();
    let body = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {"uid": "1", "desiredAPIVersion": desired, "objects": objects}});
    ReviewRequest::Conversion(ConversionRequest::parse(body.to_string().as_bytes()).unwrap())
}

fn widget(version: &str, name: &str) -> Value {
    json!({"apiVersion": version, "kind": "Widget", "metadata": {"name": name, "namespace": "ns", "uid": name}})
}

fn running(opened: Opened) -> (Review, Box<Run>) {
    match opened {
        Opened::Running(review, run) => (review, run),
        Opened::Answered(reply) => unreachable!("answered at once: {reply:?}"),
    }
}

fn answered(progress: Progress) -> Value {
    match progress {
        Progress::Answered(reply) => body(&reply),
        Progress::Run(run) => unreachable!("another run: {run:?}"),
    }
}

fn wrote(admission: &str, conversion: &str) -> Ended {
    Ended::Well(HookResponse::parse(admission, conversion).unwrap())
}

/// What the hook of a run reads.
fn told(run: &Run) -> Value {
    let mut file = Vec::new();
    let contexts = std::slice::from_ref(&run.context);
    context::write_file(&mut file, contexts, ConfigVersion::V1, &Snapshots::new()).unwrap();
    serde_json::from_slice::<Value>(&file).unwrap()[0].take()
}

/// A hook that converts every object of its `fromVersion`, as hooks do.
fn converted_by(run: &Run) -> (String, Ended) {
    let context = told(run);
    let text = |key: &str| context[key].as_str().unwrap().to_owned();
    let (from, to) = (text("fromVersion"), text("toVersion"));
    let mut objects = context["review"]["request"]["objects"].as_array().unwrap().clone();
    for object in &mut objects {
        if object["apiVersion"]
            .as_str()
            .is_some_and(|version| matches(version, &from))
        {
            let full = if to.contains('/') {
                to.clone()
            } else {
                format!("g/{to}")
            };
            object["apiVersion"] = json!(full);
        }
    }
    let step = format!("{} {from}->{to}", run.hook.name);
    (step, wrote("", &json!({"convertedObjects": objects}).to_string()))
}

/// All steps of a conversion with good hooks, and the answer.
fn convert(routes: &Routes, request: ReviewRequest) -> (Vec<String>, Value) {
    let mut steps = Vec::new();
    let (mut review, mut run) = match routes.open(&format!("/{CRD}"), request) {
        Opened::Running(review, run) => (review, run),
        Opened::Answered(reply) => return (steps, body(&reply)),
    };
    loop {
        let (step, ended) = converted_by(&run);
        steps.push(step);
        match review.resume(ended) {
            Progress::Run(next) => run = next,
            Progress::Answered(reply) => return (steps, body(&reply)),
        }
    }
}

#[test]
fn names_become_parts_of_addresses() {
    for (name, wanted) in [
        ("my.Hook.io", "my-hook-io"),
        ("My.hook.io", "-my-hook-io"),
        ("a--b..c", "a-b-c"),
        ("a/B", "a/-b"),
        ("ABC", "-a-b-c"),
        ("ä.b.c1", "-b-c1"),
        ("a_b c", "a-b-c"),
    ] {
        assert_eq!(safe(name), wanted, "{name}");
    }
}

#[test]
fn bindings_that_want_one_path_all_have_one() {
    let both = json!({"kubernetesValidating": [binding("a.b.c"), binding("a-b.b.c")], "kubernetesMutating": [binding("a.b.c")]});
    let routes = routes(&[
        ("one", both),
        (
            "two",
            json!({"kubernetesValidating": [binding("a.b-c.x"), binding("a.b.c-2")]}),
        ),
        (
            "three",
            json!({"kubernetesMutating": [binding("a.b.C"), binding("A.b.c")]}),
        ),
    ]);
    assert_eq!(
        table(&routes),
        [
            "/hooks/-a-b-c Mutating three",
            "/hooks/a-b-b-c Validating one",
            "/hooks/a-b-c Validating one",
            "/hooks/a-b-c-2 Validating two",
            "/hooks/a-b-c-3 Mutating one",
            "/hooks/a-b-c-4 Mutating three",
            "/hooks/a-b-c-x Validating two",
        ]
    );
}

#[test]
fn two_bindings_of_one_name_are_told_apart_from_one() {
    let first = (
        hook("one"),
        config(&json!({"kubernetesValidating": [binding("a.b.c")]})),
    );
    let second = HookId {
        owner: Owner::Module(ModuleName::parse("mod").unwrap()),
        name: HookName::parse("hook.sh").unwrap(),
    };
    let second = (second, first.1.clone());
    let (routes, clashes) = Routes::of([&first, &second].map(|(id, config)| (id, config)));
    assert_eq!(table(&routes), ["/hooks/a-b-c Validating one"]);
    assert_eq!(
        clashes.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "kubernetesValidating 'a.b.c' of hook 'hook.sh' of module 'mod' is not served: \
          global hook 'one' has a binding of that name"
        ]
    );
}

#[test]
fn an_admission_request_reaches_its_hook_with_all_its_fields() {
    let routes = routes(&[("one", json!({"kubernetesMutating": [binding("a.b.c")]}))]);
    for path in ["/hooks/a-b-c", "//hooks//a-b-c/"] {
        let (_, run) = running(routes.open(path, admission("7")));
        assert_eq!((run.hook.name.as_str(), run.timeout.as_secs()), ("one", 10));
        let context = told(&run);
        assert_eq!(
            (&context["type"], &context["binding"]),
            (&json!("Mutating"), &json!("a.b.c"))
        );
        assert_eq!(
            context["review"],
            json!({"request": {"uid": "7", "kind": {"group": "", "version": "", "kind": ""}, "operation": "",
                "resource": {"group": "", "version": "", "resource": ""}, "userInfo": {},
                "object": null, "oldObject": null, "options": null}})
        );
    }
}

#[test]
fn every_end_of_an_admission_run_has_its_answer() {
    let routes = routes(&[("one", json!({"kubernetesValidating": [binding("a.b.c")]}))]);
    let failed =
        json!({"uid": "7", "allowed": false, "status": {"code": 403, "message": "Hook failed", "metadata": {}}});
    let nothing = json!({"uid": "7", "allowed": false, "status":
        {"code": 500, "message": "handle AdmissionReview: hook task prop error", "metadata": {}}});
    let rows = [
        (
            wrote(r#"{"allowed": true, "message": "dropped"}"#, ""),
            json!({"uid": "7", "allowed": true}),
        ),
        (
            wrote(r#"{"allowed": true, "warnings": ["a", "b"], "patch": "W10="}"#, ""),
            json!({"uid": "7", "allowed": true, "warnings": ["a", "b"], "patch": "W10=", "patchType": "JSONPatch"}),
        ),
        (
            wrote(
                r#"{"allowed": false, "message": "no", "warnings": ["a"], "patch": "W10="}"#,
                "",
            ),
            json!({"uid": "7", "allowed": false, "warnings": ["a"], "status": {"code": 403, "message": "no", "metadata": {}}}),
        ),
        (
            wrote("{}", ""),
            json!({"uid": "7", "allowed": false, "status": {"code": 403, "metadata": {}}}),
        ),
        (wrote("", r#"{"failedMessage": "x"}"#), nothing),
        (Ended::Failed, failed),
    ];
    for (ended, wanted) in rows {
        let (mut review, _) = running(routes.open("/hooks/a-b-c", admission("7")));
        let answer = answered(review.resume(ended.clone()));
        assert_eq!(
            answer,
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": wanted}),
            "{ended:?}"
        );
    }
    let (mut review, _) = running(routes.open("/hooks/a-b-c", admission("7")));
    let Progress::Answered(Reply::NoAnswer(late)) = review.resume(Ended::Late) else {
        unreachable!()
    };
    assert_eq!(late, NoAnswer::Late(hook("one")));
    assert_eq!(late.to_string(), "global hook 'one' has not answered in time");
}

#[test]
fn an_unknown_path_is_denied_and_named() {
    let routes = routes(&[("one", json!({"kubernetesValidating": [binding("a.b.c")]}))]);
    assert!(routes.answer("/hooks/a-b-c", &admission("2")));
    for (path, named) in [
        ("/hooks/unknown", "'hooks' 'unknown'"),
        ("/other/a-b-c", "'other' 'a-b-c'"),
        ("/", "'' ''"),
    ] {
        assert!(!routes.answer(path, &admission("2")));
        let Opened::Answered(reply) = routes.open(path, admission("2")) else {
            unreachable!()
        };
        let response = &body(&reply)["response"];
        let message = format!("handle AdmissionReview: no hook found for {named}");
        assert_eq!(
            response["status"],
            json!({"code": 500, "message": message, "metadata": {}})
        );
        assert_eq!((&response["allowed"], &response["uid"]), (&json!(false), &json!("2")));
    }
}

#[test]
fn bodies_that_are_no_requests_are_refused() {
    for (body, wanted) in [
        ("no json", BadRequest::NoReview),
        ("[]", BadRequest::NoReview),
        ("{}", BadRequest::NoRequest),
        (r#"{"request": null}"#, BadRequest::NoRequest),
        (r#"{"request": []}"#, BadRequest::NoReview),
        (r#"{"request": {"uid": 1}}"#, BadRequest::NoReview),
        (r#"{"kind": 1, "request": {}}"#, BadRequest::NoReview),
        (r#"{"request": {}} and more"#, BadRequest::NoReview),
    ] {
        assert_eq!(AdmissionRequest::parse(body.as_bytes()), Err(wanted), "{body}");
        assert_eq!(ConversionRequest::parse(body.as_bytes()), Err(wanted), "{body}");
    }
    for (body, parsed) in [
        (r#"{"request": {"kind": "Pod"}}"#, false),
        (r#"{"request": {"new": [1]}}"#, true),
    ] {
        assert_eq!(AdmissionRequest::parse(body.as_bytes()).is_ok(), parsed, "{body}");
    }
    for objects in ["1", "[1]", "{}"] {
        let body = format!(r#"{{"request": {{"objects": {objects}}}}}"#);
        assert_eq!(
            ConversionRequest::parse(body.as_bytes()),
            Err(BadRequest::NoReview),
            "{body}"
        );
    }
}

#[test]
fn response_files_are_read_as_the_contract_says() {
    let read = |text| match AdmissionResponse::parse(text) {
        Ok(Some(response)) => response.dump(),
        Ok(None) => "nothing".to_owned(),
        Err(error) => error.to_string(),
    };
    for (text, wanted) in [
        ("", "nothing"),
        ("null", "AdmissionResponse(allowed=false)"),
        (
            r#"{"allowed": true} {"allowed": false}"#,
            "AdmissionResponse(allowed=true)",
        ),
        (r#"{"Allowed": true, "extra": 1}"#, "AdmissionResponse(allowed=true)"),
        (
            "{\"allowed\": true, \"patch\": \"W\\n10=\\n\", \"message\": \"m\", \"warnings\": [\"a\", \"b\"]}",
            "AdmissionResponse(allowed=true,patch=[],msg=m,warn=a,warn=b)",
        ),
        (
            "\n",
            "got bad validating response: it is no JSON: it holds nothing but space",
        ),
        (
            "[1]",
            "got bad validating response: it should be an object, and is a list",
        ),
        (
            r#"{"allowed": "true"}"#,
            "got bad validating response: 'allowed' should be true or false, and is a string",
        ),
        (
            r#"{"patch": [{"op": "remove"}]}"#,
            "got bad validating response: 'patch' should be a string, and is a list",
        ),
        (
            r#"{"warnings": ["a", 1]}"#,
            "got bad validating response: 'warnings[1]' should be a string, and is a number",
        ),
    ] {
        assert_eq!(read(text), wanted, "{text}");
    }
    assert!(read("yes please").starts_with("got bad validating response: it is no JSON: expected value"));
    assert!(
        read(r#"{"patch": "[]"}"#).starts_with("got bad validating response: 'patch' should be a JSON patch in base64")
    );
    let converted = |text| HookResponse::parse("", text).unwrap_err().to_string();
    assert_eq!(
        converted(r#"{"convertedObjects": [{"kind": "A"}, {}]}"#),
        "got bad conversion response: 'convertedObjects[1]' has no kind"
    );
    assert_eq!(
        converted(r#"{"failedMessage": 1}"#),
        "got bad conversion response: 'failedMessage' should be a string, and is a number"
    );
}

#[test]
fn versions_match_with_and_without_their_group() {
    for (one, other, wanted) in [
        ("v1beta1", "v1beta1", true),
        ("a/v1beta1", "v1beta1", true),
        ("a/v1beta1", "a/v1beta1", true),
        ("v1beta1", "a/v1beta1", true),
        ("b/v1beta1", "a/v1beta1", false),
        ("v1", "v1beta1", false),
        ("a/v1", "v1beta1", false),
        ("a", "a/v1", false),
    ] {
        assert_eq!(matches(one, other), wanted, "{one} {other}");
        assert_eq!(matches(other, one), wanted, "{other} {one}");
    }
}

#[test]
fn the_way_is_the_shortest_then_the_most_exact_then_the_first() {
    let way = |rules: &[(&str, &str)], from: &str, to: &str| {
        let mut chain = Chain::default();
        for (number, (from, to)) in rules.iter().enumerate() {
            let (from_version, to_version) = ((*from).to_owned(), (*to).to_owned());
            chain.add(
                ConversionRule {
                    from_version,
                    to_version,
                },
                number,
            );
        }
        let path = chain.path(from, to);
        path.map(|steps| steps.iter().map(|(_, number)| *number).collect::<Vec<_>>())
    };
    let line = [("v1", "v2"), ("v2", "v3"), ("v3", "v4")];
    assert_eq!(way(&line, "g/v1", "g/v4"), Some(vec![0, 1, 2]));
    assert_eq!(way(&line, "g/v2", "g/v4"), Some(vec![1, 2]));
    assert_eq!(way(&line, "g/v4", "g/v1"), None);
    assert_eq!(way(&line, "g/v1", "g/v9"), None);
    // A version that only begins like another one is another one.
    assert_eq!(
        way(&[("v1alpha1", "v1"), ("v1beta1", "v2")], "g/v1alpha1", "g/v2"),
        None
    );
    // Groups are kept apart.
    assert_eq!(way(&[("a/v1", "v2")], "b/v1", "b/v2"), None);
    assert_eq!(way(&[("v1", "a/v2"), ("b/v2", "v3")], "b/v1", "b/v3"), None);
    // Shorter before earlier.
    let shortcut = [("v1", "v2"), ("v2", "v3"), ("v1", "v3")];
    assert_eq!(way(&shortcut, "g/v1", "g/v3"), Some(vec![2]));
    // Of equal ones the first declared.
    let diamond = [("v1", "b"), ("v1", "a"), ("a", "v9"), ("b", "v9")];
    assert_eq!(way(&diamond, "g/v1", "g/v9"), Some(vec![0, 3]));
    // Exactly as asked, then its end, then its start.
    let spelled = [("v1", "v2"), ("g/v1", "v2"), ("v1", "g/v2"), ("g/v1", "g/v2")];
    assert_eq!(way(&spelled, "g/v1", "g/v2"), Some(vec![3]));
    assert_eq!(way(&spelled[..3], "g/v1", "g/v2"), Some(vec![2]));
    assert_eq!(way(&spelled[..2], "g/v1", "g/v2"), Some(vec![1]));
    // Circles end.
    assert_eq!(way(&[("v1", "v2"), ("v2", "v1"), ("v2", "v2")], "g/v1", "g/v3"), None);
    assert_eq!(way(&[("v1", "v1")], "g/v1", "g/v2"), None);
}

#[test]
fn a_pair_belongs_to_whoever_declared_it_first() {
    let routes = routes(&[
        ("one", converter(&[("v1", "v2")])),
        ("two", converter(&[("v1", "v2"), ("v2", "v3")])),
    ]);
    let (steps, answer) = convert(&routes, conversion("g/v3", &[("g/v1", "a")]));
    assert_eq!(steps, ["one v1->v2", "two v2->v3"]);
    assert_eq!(answer["response"]["result"]["status"], json!("Success"));
    assert_eq!(answer["response"]["convertedObjects"], json!([widget("g/v3", "a")]));
}

#[test]
fn several_source_versions_are_converted_in_the_order_in_which_they_are_seen() {
    let rules = [("g/v1beta1", "g/v1"), ("g/v1alpha1", "g/v1")];
    let routes = routes(&[("one", converter(&rules))]);
    let request = conversion(
        "g/v1",
        &[
            ("g/v1alpha1", "a"),
            ("g/v1beta1", "b"),
            ("g/v1", "c"),
            ("g/v1alpha1", "d"),
        ],
    );
    let (steps, answer) = convert(&routes, request);
    assert_eq!(steps, ["one g/v1alpha1->g/v1", "one g/v1beta1->g/v1"]);
    let names = answer["response"]["convertedObjects"].as_array().unwrap().iter();
    let names: Vec<_> = names
        .map(|object| object["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["a", "b", "c", "d"]);
}

#[test]
fn a_version_that_an_earlier_way_has_converted_needs_no_run() {
    let routes = routes(&[("one", converter(&[("g/v1", "g/v2"), ("g/v2", "g/v3")]))]);
    let request = conversion("g/v3", &[("g/v1", "a"), ("g/v2", "b")]);
    assert_eq!(convert(&routes, request).0, ["one g/v1->g/v2", "one g/v2->g/v3"]);
}

#[test]
fn every_step_is_told_the_last_version_and_its_own() {
    let routes = routes(&[("one", converter(&[("v1", "v2"), ("v2", "v3")]))]);
    let (mut review, run) = running(routes.open("/widgets.example.com", conversion("g/v3", &[("g/v1", "a")])));
    let Progress::Run(second) = review.resume(converted_by(&run).1) else {
        unreachable!()
    };
    let context = told(&second);
    let request = &context["review"]["request"];
    assert_eq!(
        (&context["fromVersion"], &context["toVersion"]),
        (&json!("v2"), &json!("v3"))
    );
    assert_eq!(request["desiredAPIVersion"], json!("g/v3"));
    assert_eq!(request["objects"], json!([widget("g/v2", "a")]));
    assert_eq!((&request["uid"], second.timeout.as_secs()), (&json!("1"), 30));
}

#[test]
fn a_conversion_with_nothing_to_do_succeeds() {
    let empty = Routes::default();
    for objects in [&[("g/v1", "a")][..], &[]] {
        let (steps, answer) = convert(&empty, conversion("g/v1", objects));
        assert_eq!(
            (steps, &answer["response"]["result"]["status"]),
            (vec![], &json!("Success"))
        );
    }
}

#[test]
fn every_failure_of_a_conversion_has_its_message() {
    let routes = routes(&[("one", converter(&[("g/v1", "g/v2")]))]);
    let two = [("g/v1", "a"), ("g/v1", "b")];
    let objects = |objects: &[Value]| wrote("", &json!({"convertedObjects": objects}).to_string());
    let mut other_kind = widget("g/v2", "a");
    other_kind["kind"] = json!("Gadget");
    let unsuccessful = "Conversion widgets.example.com to g/v2 was not successful";
    let rows = [
        (Ended::Failed, "Hook failed to convert to g/v2"),
        (
            Ended::Late,
            "Hook failed to convert to g/v2: global hook 'one' has not answered in time",
        ),
        (wrote("{}", ""), "handle ConversionReview: hook task prop error"),
        (wrote("", "{}"), unsuccessful),
        (wrote("", r#"{"failedMessage": "size is missing"}"#), "size is missing"),
        (objects(&[widget("g/v1", "a"), widget("g/v2", "b")]), unsuccessful),
        (objects(&[widget("g/v2", "a")]), "hook returned 1 objects instead of 2"),
        (
            objects(&[widget("g/v2", "b"), widget("g/v2", "a")]),
            "hook changed metadata.name of object 0, Widget ns/a",
        ),
        (
            objects(&[other_kind, widget("g/v2", "b")]),
            "hook changed kind of object 0, Widget ns/a",
        ),
    ];
    for (ended, wanted) in rows {
        assert!(routes.answer("/widgets.example.com", &conversion("g/v2", &two)));
        let (mut review, _) = running(routes.open("/widgets.example.com", conversion("g/v2", &two)));
        let answer = answered(review.resume(ended.clone()));
        assert_eq!(
            answer["response"],
            json!({"uid": "1", "convertedObjects": null,
                "result": {"status": "Failure", "message": wanted, "metadata": {}}}),
            "{ended:?}"
        );
    }
    for (path, request, wanted) in [
        (
            "/widgets.example.com",
            conversion("g/v9", &two),
            "Conversion widgets.example.com to g/v9 was not successful",
        ),
        (
            "/others.example.com",
            conversion("g/v2", &two),
            "Conversion others.example.com to g/v2 was not successful",
        ),
    ] {
        let Opened::Answered(reply) = routes.open(path, request) else {
            unreachable!()
        };
        assert_eq!(body(&reply)["response"]["result"]["message"], json!(wanted));
    }
}

fn address() -> Address {
    Address {
        namespace: "ns".to_owned(),
        service: "svc".to_owned(),
        ca: CaBundle::new("-----BEGIN CERTIFICATE-----\n").unwrap(),
    }
}

#[test]
fn a_webhook_says_everything_that_the_binding_says() {
    let mut full = binding("A.b.c");
    let selector = json!({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "k", "operator": "Exists"}]});
    full["labelSelector"] = selector.clone();
    full["namespace"] = json!({"labelSelector": {"matchLabels": {"n": "m"}}});
    full["failurePolicy"] = json!("Ignore");
    full["sideEffects"] = json!("NoneOnDryRun");
    full["timeoutSeconds"] = json!(3);
    full["matchConditions"] = json!([{"name": "c", "expression": "true"}]);
    full["rules"][0]["scope"] = json!("Namespaced");
    let routes = routes(&[(
        "one",
        json!({"kubernetesMutating": [full], "kubernetesValidating": [binding("x.y.z")]}),
    )]);
    let client = |path: &str| {
        json!({"caBundle": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==",
            "service": {"namespace": "ns", "name": "svc", "port": 443, "path": path}})
    };
    let rule = |scope: &str| {
        json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": ["configmaps"], "scope": scope}])
    };
    assert_eq!(
        Value::Array(webhooks(&routes, AdmissionKind::Mutating, &address())),
        json!([{
            "name": "A.b.c", "clientConfig": client("/hooks/-a-b-c"), "rules": rule("Namespaced"),
            "failurePolicy": "Ignore", "matchPolicy": "Equivalent", "sideEffects": "NoneOnDryRun",
            "namespaceSelector": {"matchLabels": {"n": "m"}}, "objectSelector": selector,
            "timeoutSeconds": 3, "admissionReviewVersions": ["v1", "v1beta1"], "reinvocationPolicy": "Never",
            "matchConditions": [{"name": "c", "expression": "true"}],
        }])
    );
    assert_eq!(
        Value::Array(webhooks(&routes, AdmissionKind::Validating, &address())),
        json!([{
            "name": "x.y.z", "clientConfig": client("/hooks/x-y-z"), "rules": rule("*"), "failurePolicy": "Fail",
            "matchPolicy": "Equivalent", "sideEffects": "None", "namespaceSelector": {}, "objectSelector": {},
            "timeoutSeconds": 10, "admissionReviewVersions": ["v1", "v1beta1"],
        }])
    );
}

#[test]
fn a_converted_resource_leads_to_us() {
    let routes = routes(&[("one", converter(&[("v1", "v2")]))]);
    let wanted = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1", "v1beta1"],
        "clientConfig": {"caBundle": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==",
            "service": {"namespace": "ns", "name": "svc", "port": 443, "path": "/widgets.example.com"}}}});
    assert_eq!(
        conversions(&routes, &address()),
        BTreeMap::from([(CRD.to_owned(), wanted)])
    );
}

#[test]
fn a_bundle_without_a_certificate_is_none() {
    for pem in ["", "\n", "-----BEGIN PRIVATE KEY-----\n"] {
        assert!(CaBundle::new(pem).is_err(), "{pem}");
    }
}

/// JSON that is often nearly a review.
fn documents() -> impl Strategy<Value = Value> {
    let keys = prop::sample::select(vec![
        "request",
        "uid",
        "kind",
        "apiVersion",
        "objects",
        "desiredAPIVersion",
        "metadata",
        "name",
        "object",
        "userInfo",
        "resource",
        "allowed",
        "patch",
        "warnings",
        "convertedObjects",
        "failedMessage",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z/0-9=]{0,6}".prop_map(Value::from),
        Just(json!("g/v1")),
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(keys.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_body_panics(body in prop_oneof![
        documents().prop_map(|document| document.to_string().into_bytes()),
        documents().prop_map(|document| json!({"request": document}).to_string().into_bytes()),
        vec(any::<u8>(), 0..64),
    ], path in "[/a-z.]{0,24}") {
        let routes = routes(&[("one", converter(&[("v1", "v2")])), ("two", json!({"kubernetesMutating": [binding("a.b.c")]}))]);
        if let Ok(request) = AdmissionRequest::parse(&body) {
            routes.open(&path, ReviewRequest::Admission(request.clone()));
            prop_assert!(matches!(routes.open("/hooks/a-b-c", ReviewRequest::Admission(request)), Opened::Running(..)));
        }
        if let Ok(request) = ConversionRequest::parse(&body) {
            routes.open(&path, ReviewRequest::Conversion(request.clone()));
            convert(&routes, ReviewRequest::Conversion(request));
        }
    }

    #[test]
    fn no_response_panics_and_only_what_says_so_allows(text in prop_oneof![
        documents().prop_map(|document| document.to_string()),
        "\\PC{0,40}",
    ]) {
        if let Ok(response) = HookResponse::parse(&text, &text) {
            let routes = routes(&[("one", json!({"kubernetesValidating": [binding("a.b.c")]}))]);
            let (mut review, _) = running(routes.open("/hooks/a-b-c", admission("7")));
            let says_so = response.admission.as_ref().is_some_and(|response| response.allowed);
            let answer = answered(review.resume(Ended::Well(response)));
            prop_assert_eq!(answer["response"]["allowed"].as_bool(), Some(says_so));
        }
    }

    #[test]
    fn a_way_is_a_chain_without_circles(
        rules in vec((0_u8..6, 0_u8..6, any::<bool>(), any::<bool>()), 0..12), from in 0_u8..6, to in 0_u8..6,
    ) {
        let spell = |version: u8, full: bool| format!("{}v{version}", if full { "g/" } else { "" });
        let mut chain = Chain::default();
        for (from, to, short, long) in rules {
            let rule = ConversionRule { from_version: spell(from, short), to_version: spell(to, long) };
            chain.add(rule, ());
        }
        let (from, to) = (spell(from, true), spell(to, true));
        if let Some(path) = chain.path(&from, &to) {
            let ends: Vec<_> = path.iter().map(|(rule, ())| rule).collect();
            prop_assert!(matches(&ends[0].from_version, &from));
            prop_assert!(matches(&ends[ends.len() - 1].to_version, &to));
            prop_assert!(ends.windows(2).all(|two| matches(&two[0].to_version, &two[1].from_version)));
            prop_assert!(ends.len() <= 6, "each version at most once");
        }
    }
}
