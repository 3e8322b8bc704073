mod conversions;
mod registrations;

use std::collections::BTreeMap;

use names::{HookId, HookName, ModuleName, Owner};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::chain::{Chain, matches};
use super::registration::{Address, CaBundle, conversions, edit_webhooks, webhooks};
use super::reply::{NoAnswer, Reply};
use super::request::{AdmissionRequest, BadRequest, ConversionRequest, ReviewRequest};
use super::response::{AdmissionResponse, HookResponse};
use super::routes::{AdmissionKind, Opened, Routes, safe};
use super::{Ended, Progress, Review, Run};
use crate::hook::config::{ConfigVersion, ConversionRule, HookConfig, HookKind};
use crate::hook::context::{self, Snapshots};

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

/// The paths, with the hooks behind them.
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
        Opened::Edit(request) => unreachable!("no hook is asked: {request:?}"),
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

/// The documents that the hook of a run reads.
fn told(run: &Run) -> Value {
    let mut file = Vec::new();
    let contexts = std::slice::from_ref(&run.context);
    context::write_file(&mut file, contexts, ConfigVersion::V1, &Snapshots::new()).unwrap();
    serde_json::from_slice::<Value>(&file).unwrap()[0].take()
}

/// A run of a hook that converts every object of its `fromVersion`.
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

/// All steps of a conversion whose hooks succeed, and the reply.
fn convert(routes: &Routes, request: ReviewRequest) -> (Vec<String>, Value) {
    let mut steps = Vec::new();
    let (mut review, mut run) = match routes.open(&format!("/{CRD}"), request) {
        Opened::Running(review, run) => (review, run),
        Opened::Answered(reply) => return (steps, body(&reply)),
        Opened::Edit(request) => unreachable!("no hook is asked: {request:?}"),
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
        clashes
            .iter()
            .map(|clash| clash.told(HookKind::Global))
            .collect::<Vec<_>>(),
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
    let Progress::Answered(Reply::NoAnswer(late)) = review.resume(Ended::Late(HookKind::Global)) else {
        unreachable!()
    };
    assert_eq!(late, NoAnswer::Late(hook("one"), HookKind::Global));
    assert_eq!(late.to_string(), "global hook 'one' has not answered in time");
}

#[test]
fn an_unknown_path_is_denied_and_named() {
    let routes = routes(&[("one", json!({"kubernetesValidating": [binding("a.b.c")]}))]);
    assert!(routes.admits_at("/hooks/a-b-c"));
    for (path, named) in [
        ("/hooks/unknown", "'hooks' 'unknown'"),
        ("/other/a-b-c", "'other' 'a-b-c'"),
        ("/", "'' ''"),
    ] {
        assert!(!routes.admits_at(path));
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
            "got bad validating response: it is not JSON: it holds nothing but space",
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
    assert!(read("yes please").starts_with("got bad validating response: it is not JSON: expected value"));
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

/// JSON documents that are often nearly reviews.
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
