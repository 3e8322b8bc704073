//! The module copyrator on a real API server, with an operator. Its cases show the operations of each situation; here the API
//! server judges them.

use serde_json::{Value, json};
use testbed::shared;
use testbed::wait::wait_until;

use super::life::apply;
use super::world::{PATIENCE, Places, RULE, config_map, copies, operator, wait_for, wait_until_gone};

fn says(key: &str, value: &str) -> impl Fn(&Value) -> bool {
    let (key, value) = (key.to_owned(), json!(value));
    move |object| object["data"][&key] == value
}

#[test]
fn a_published_rule_works_unchanged() {
    let _turn = operator().share();
    let places = Places::new();
    // The name is unique, because this rule copies into the namespaces of all tests.
    let name = places.home.name();
    let earlier = shared::plane().namespace("target").unwrap();
    places.apply(&config_map(name, &json!({"a": "one"})));
    places.apply(
        &json!({"apiVersion": "flant.com/v1", "kind": "CopyratorRule", "metadata": {"name": "published"},
        "ruleType": "configmap", "selector": {"copy": "yes"}, "namespace": name}),
    );
    let copy = wait_for(&earlier, "configmap", name, says("a", "one"));
    assert_eq!(copy["metadata"]["labels"]["copy"], "yes");
    assert_eq!(copy["metadata"]["annotations"][RULE], format!("{name}/published"));
    // A namespace that appears later gets its copy, and an edit of the source reaches both.
    let later = shared::plane().namespace("target").unwrap();
    wait_for(&later, "configmap", name, says("a", "one"));
    places.apply(&config_map(name, &json!({"a": "two"})));
    for namespace in [&earlier, &later] {
        wait_for(namespace, "configmap", name, says("a", "two"));
    }
    let short = places.home.kubectl(["get", "copyr", "--no-headers"]).unwrap();
    assert!(short.starts_with("published   configmap   1"), "{short}");
    places.home.kubectl(["delete", "copyrator", "published"]).unwrap();
    for namespace in [&earlier, &later] {
        wait_until_gone(namespace, "configmap", name);
    }
    wait_for(&places.home, "configmap", name, |object| {
        object["metadata"]["annotations"]["copyrator.flant.com/source-of-copies"].is_null()
    });
}

#[test]
fn a_source_of_another_namespace_is_refused_and_told() {
    let _turn = operator().share();
    let (places, vault) = (Places::new(), shared::plane().namespace("vault").unwrap());
    let target = places.target();
    places.apply(&config_map("mine", &json!({"a": "one"})));
    apply(&vault, &config_map("theirs", &json!({"a": "one"}))).unwrap();
    let rule = places.rule("rule", &json!({"namespaces": [places.home.name(), vault.name()]}));
    places.apply(&rule);
    wait_for(&target, "configmap", "mine", says("a", "one"));
    let status = places.wait_for_status("rule", &json!({"sources": 1, "copies": 1, "refused": 1}));
    assert_eq!(status["refusals"][0]["namespace"], vault.name());
    assert_eq!(status["conditions"][0]["reason"], "SourceRefused");
    // The rule of another test may copy into this namespace, too.
    assert!(!copies(&target).contains(&"theirs".to_owned()));
}

#[test]
fn keys_stay_at_home_and_labels_and_annotations_follow_rules() {
    let _turn = operator().share();
    let (places, key) = (Places::new(), "c2VjcmV0");
    let target = places.target();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": {"name": "web", "labels": {"copy": "yes", "app": "web"}, "annotations": {"docs/page": "a", "docs/draft": "b"}},
        "data": {"tls.crt": "Yw==", "tls.key": key}});
    places.apply(&secret);
    let rule = json!({"ruleType": "secret", "excludeKeys": ["tls.key"],
        "copyLabels": {"exclude": ["app"], "set": {"from": "here"}},
        "copyAnnotations": {"include": ["docs/*", "kubectl.kubernetes.io/*"], "exclude": ["docs/draft"]}});
    places.apply(&places.rule("rule", &rule));
    let copy = wait_for(&target, "secret", "web", |_| true);
    assert_eq!(
        (&copy["type"], &copy["data"]),
        (&json!("Opaque"), &json!({"tls.crt": "Yw=="}))
    );
    assert_eq!(
        copy["metadata"]["labels"],
        json!({"copy": "yes", "from": "here", "copyrator.flant.com/copy": "true"})
    );
    assert_eq!(copy["metadata"]["annotations"]["docs/page"], "a");
    // `kubectl apply` has left the whole source, with the key, in an annotation.
    assert!(!copy.to_string().contains(key), "{copy}");
    // With all keys it is a copy of another type, which takes a new object.
    places.apply(&places.rule("rule", &json!({"ruleType": "secret"})));
    let copy = wait_for(&target, "secret", "web", |object| object["type"] == "kubernetes.io/tls");
    assert_eq!(copy["data"]["tls.key"], key);
    assert!(copy["metadata"]["annotations"]["docs/page"].is_null(), "{copy}");
}

#[test]
fn namespaces_are_chosen_and_refuse() {
    let _turn = operator().share();
    let places = Places::new();
    let (first, second) = (places.target(), places.target());
    let set = |verb: &str, namespace: &str, text: &str| {
        places
            .home
            .kubectl([verb, "namespace", namespace, text, "--overwrite"])
            .unwrap();
    };
    places.apply(&config_map("settings", &json!({"a": "one"})));
    places.apply(&places.rule("rule", &json!({})));
    places.wait_for_status("rule", &json!({"sources": 1, "wanted": 2, "copies": 2, "refused": 0}));
    set("annotate", first.name(), "copyrator.flant.com/refuse=*");
    wait_until_gone(&first, "configmap", "settings");
    let status = places.wait_for_status("rule", &json!({"wanted": 1, "copies": 1, "refused": 1}));
    assert_eq!(status["refusals"][0]["namespace"], first.name());
    // Another rule may be refused as well.
    set("annotate", first.name(), "copyrator.flant.com/refuse=other/rule");
    wait_for(&first, "configmap", "settings", |_| true);
    set("label", second.name(), "copies-");
    wait_until_gone(&second, "configmap", "settings");
    assert_eq!(
        places.wait_for_status("rule", &json!({"wanted": 1, "copies": 1, "refused": 0}))["refusals"],
        json!([])
    );
}

#[test]
fn an_object_of_another_owner_is_left_alone_until_it_is_gone() {
    let _turn = operator().share();
    let places = Places::new();
    let target = places.target();
    target
        .kubectl(["create", "configmap", "settings", "--from-literal=mine=yes"])
        .unwrap();
    places.apply(&config_map("settings", &json!({"a": "one"})));
    places.apply(&places.rule("rule", &json!({})));
    let status = places.wait_for_status("rule", &json!({"wanted": 0, "refused": 1}));
    assert_eq!(
        status["refusals"],
        json!([{"namespace": target.name(), "name": "settings", "reason": "an object of this name is there, and is no copy"}])
    );
    places.home.kubectl(["delete", "copyrator", "rule"]).unwrap();
    places.apply(&places.rule("next", &json!({})));
    places.wait_for_status("next", &json!({"refused": 1}));
    let theirs = target
        .object("configmap", "settings")
        .unwrap()
        .expect("it was never deleted");
    assert_eq!(
        (&theirs["data"], &theirs["metadata"]["labels"]),
        (&json!({"mine": "yes"}), &Value::Null)
    );
    let writes = places.writes_in(&target).that(|record| record.name == "settings");
    let writes = writes.that(|record| record.verb != "create" || record.succeeded());
    assert!(writes.is_empty(), "{writes}");
    target.kubectl(["delete", "configmap", "settings"]).unwrap();
    wait_for(&target, "configmap", "settings", says("a", "one"));
}

#[test]
fn of_two_rules_the_older_has_the_copy_and_the_other_takes_it_over() {
    let _turn = operator().share();
    let places = Places::new();
    let target = places.target();
    places.apply(&config_map("settings", &json!({"a": "one", "b": "two"})));
    // Rules of one second have the order of their names.
    places.apply(&places.rule("a", &json!({"keys": ["a"]})));
    places.apply(&places.rule("b", &json!({"keys": ["b"]})));
    let status = places.wait_for_status("b", &json!({"refused": 1}));
    assert_eq!(
        status["refusals"][0]["reason"],
        format!(
            "rule {}/a copies an object of this name, and comes first",
            places.home.name()
        )
    );
    wait_for(&target, "configmap", "settings", |object| {
        object["data"] == json!({"a": "one"})
    });
    places.home.kubectl(["delete", "copyrator", "a"]).unwrap();
    let copy = wait_for(&target, "configmap", "settings", |object| {
        object["data"] == json!({"b": "two"})
    });
    assert_eq!(
        copy["metadata"]["annotations"][RULE],
        format!("{}/b", places.home.name())
    );
    places.wait_for_status("b", &json!({"copies": 1, "refused": 0}));
}

#[test]
fn a_copy_that_a_person_edits_or_deletes_is_put_right() {
    let _turn = operator().share();
    let places = Places::new();
    let target = places.target();
    let long = "x".repeat(3000);
    places.apply(&config_map("settings", &json!({"a": "one", "long": long})));
    places.apply(&places.rule("rule", &json!({})));
    let right = |object: &Value| object["data"] == json!({"a": "one", "long": long});
    wait_for(&target, "configmap", "settings", right);
    let patch = |patch: &Value| {
        let patch = format!("--patch={patch}");
        target
            .kubectl(["patch", "configmap", "settings", "--type=merge", &patch])
            .unwrap();
    };
    patch(&json!({"data": {"a": "two", "b": "three"}}));
    wait_for(&target, "configmap", "settings", right);
    patch(
        &json!({"data": {"long": format!("{}y", &long[1..])}, "metadata": {"labels": {"copy": null, "theirs": "yes"}}}),
    );
    let copy = wait_for(&target, "configmap", "settings", |object| {
        right(object) && object["metadata"]["labels"]["copy"] == "yes"
    });
    assert_eq!(copy["metadata"]["labels"]["theirs"], "yes");
    target.kubectl(["delete", "configmap", "settings"]).unwrap();
    wait_for(&target, "configmap", "settings", right);
    // An immutable copy cannot be changed.
    patch(&json!({"immutable": true}));
    places.apply(&config_map("settings", &json!({"a": "two"})));
    let copy = wait_for(&target, "configmap", "settings", |object| {
        object["data"] == json!({"a": "two"})
    });
    assert!(copy["immutable"].is_null(), "{copy}");
}

#[test]
fn an_immutable_source_that_is_replaced_has_new_copies() {
    let _turn = operator().share();
    let places = Places::new();
    let target = places.target();
    let source = |value: &str| {
        let mut source = config_map("settings", &json!({"a": value}));
        source["immutable"] = json!(true);
        source
    };
    places.apply(&source("one"));
    places.apply(&places.rule("rule", &json!({})));
    wait_for(&target, "configmap", "settings", says("a", "one"));
    places.home.kubectl(["delete", "configmap", "settings"]).unwrap();
    places.apply(&source("two"));
    wait_for(&target, "configmap", "settings", says("a", "two"));
}

#[test]
fn a_namespace_that_is_being_deleted_is_skipped() {
    let _turn = operator().share();
    let places = Places::new();
    let (going, staying) = (places.target(), places.target());
    let held = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "held", "namespace": going.name(), "finalizers": ["copies.example.com/held"]}});
    places.apply(&held);
    places
        .home
        .kubectl(["delete", "namespace", going.name(), "--wait=false"])
        .unwrap();
    let look = || {
        let phase = places
            .home
            .kubectl(["get", "namespace", going.name(), "--output=jsonpath={.status.phase}"]);
        let phase = phase.map_err(|error| error.to_string())?;
        if phase == "Terminating" {
            Ok(Some(()))
        } else {
            Err(phase)
        }
    };
    wait_until(PATIENCE, "a namespace that is being deleted", look).unwrap();
    places.apply(&config_map("settings", &json!({"a": "one"})));
    places.apply(&places.rule("rule", &json!({})));
    wait_for(&staying, "configmap", "settings", says("a", "one"));
    places.wait_for_status("rule", &json!({"wanted": 1, "copies": 1, "refused": 0}));
    // The rule of another test may have copied before.
    let writes = places
        .writes_in(&going)
        .that(|record| record.uri.contains("settings") || record.name == "settings");
    going
        .kubectl([
            "patch",
            "configmap",
            "held",
            "--type=merge",
            "--patch={\"metadata\":{\"finalizers\":null}}",
        ])
        .unwrap();
    assert!(writes.is_empty(), "{writes}");
}

#[test]
fn mistakes_are_refused_with_the_field() {
    let _turn = operator().share();
    let places = Places::new();
    let rows = [
        (json!({"ruleType": "pod"}), "ruleType: Unsupported value: \"pod\""),
        (json!({"selector": null}), "selector: Required value"),
        (
            json!({"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}),
            "In and NotIn need values",
        ),
        (json!({"copyLabels": {"set": {"a": "b c"}}}), "copyLabels.set.a"),
        (
            json!({"copyLabels": {"set": {"a b": "c"}}}),
            "a key is a name of at most 63 letters",
        ),
        (
            json!({"copyAnnotations": {"set": {RULE: "x"}}}),
            "keys with copyrator.flant.com/ belong to the module",
        ),
    ];
    for (fields, complaint) in rows {
        let said = places.try_apply(&places.rule("rule", &fields)).unwrap_err().to_string();
        assert!(said.contains(complaint), "{fields}: {said}");
    }
}

#[test]
fn a_status_comes_to_rest() {
    let _turn = operator().share();
    let places = Places::new();
    let target = places.target();
    places.apply(&config_map("settings", &json!({"a": "one"})));
    places.apply(&places.rule("first", &json!({})));
    wait_for(&target, "configmap", "settings", says("a", "one"));
    places.wait_for_status("first", &json!({"copies": 1}));
    let written = || {
        let writes = places.writes_in(&places.home);
        writes
            .that(|record| record.subresource == "status" && record.name == "first")
            .len()
    };
    let before = written();
    // Each status of another rule proves a run since then.
    for name in ["one", "two", "three"] {
        places.apply(&places.rule(name, &json!({"selector": {"copy": "no"}})));
        places.wait_for_status(name, &json!({"sources": 0}));
    }
    assert!(written() <= before + 1, "{before} and then {}", written());
}

#[test]
fn a_crash_in_between_changes_nothing_at_the_end() {
    let operator = operator();
    let _turn = operator.alone();
    let places = Places::new();
    let (first, second) = (places.target(), places.target());
    for name in ["kept", "gone", "unwanted"] {
        places.apply(&config_map(name, &json!({"a": "one"})));
    }
    places.apply(&places.rule("rule", &json!({})));
    places.wait_for_status("rule", &json!({"copies": 6}));
    operator.kill();
    places.home.kubectl(["delete", "configmap", "gone"]).unwrap();
    places
        .home
        .kubectl(["label", "configmap", "unwanted", "copy-"])
        .unwrap();
    places.apply(&config_map("kept", &json!({"a": "two"})));
    second.kubectl(["delete", "configmap", "kept"]).unwrap();
    operator.start();
    for namespace in [&first, &second] {
        wait_for(namespace, "configmap", "kept", says("a", "two"));
        let look = || match copies(namespace) {
            found if found == ["kept"] => Ok(Some(())),
            found => Err(found.join(" ")),
        };
        wait_until(PATIENCE, "one copy", look).unwrap();
    }
    places.wait_for_status("rule", &json!({"copies": 2}));
    operator.kill();
    places.home.kubectl(["delete", "copyrator", "rule"]).unwrap();
    operator.start();
    for namespace in [&first, &second] {
        wait_until_gone(namespace, "configmap", "kept");
    }
}

#[test]
fn switched_off_it_removes_copies_and_keeps_rules() {
    let operator = operator();
    let _turn = operator.alone();
    let places = Places::new();
    let target = places.target();
    places.apply(&config_map("settings", &json!({"a": "one"})));
    places.apply(&places.rule("rule", &json!({})));
    wait_for(&target, "configmap", "settings", says("a", "one"));
    // The first status has no copies either.
    places.wait_for_status("rule", &json!({"copies": 1}));
    operator.switch("false");
    wait_until_gone(&target, "configmap", "settings");
    let status = places.wait_for_status("rule", &json!({"copies": 0}));
    assert_eq!(status["conditions"][0]["reason"], "Off");
    wait_for(&places.home, "configmap", "settings", |object| {
        object["metadata"]["annotations"]["copyrator.flant.com/source-of-copies"].is_null()
    });
    operator.switch("true");
    wait_for(&target, "configmap", "settings", says("a", "one"));
}
