//! The rights that an operator needs to follow its channel, and their limits; and the Service that leads to the replica
//! that asks the registry.
#![expect(clippy::unwrap_used, reason = "a test may")]

use std::collections::BTreeSet;

use serde_json::{Value, json};
use testbed::part::Part;
use testbed::plane::User;
use testbed::wait::wait_until;

use super::stage::{PATIENCE, Stage, name_of};
use super::tool::{HELMS, objects, rendered};

/// All rights of the chart's roles, one a line: kind of role, group/resource, name, verb.
fn granted(values: &[&str]) -> BTreeSet<String> {
    let texts = |value: &Value| -> Vec<String> {
        let items = value.as_array().into_iter().flatten();
        items.map(|item| item.as_str().unwrap().to_owned()).collect()
    };
    let mut granted = BTreeSet::new();
    for role in objects(&rendered(HELMS[0], values)) {
        for rule in role["rules"].as_array().into_iter().flatten() {
            let mut names = texts(&rule["resourceNames"]);
            if names.is_empty() {
                names.push("(any)".to_owned());
            }
            for resource in texts(&rule["resources"]) {
                for (name, verb) in names
                    .iter()
                    .flat_map(|name| texts(&rule["verbs"]).into_iter().map(move |verb| (name, verb)))
                {
                    let (kind, group) = (role["kind"].as_str().unwrap(), &texts(&rule["apiGroups"])[0]);
                    granted.insert(format!("{kind} {group}/{resource} {name} {verb}"));
                }
            }
        }
    }
    granted
}

/// The documentation lists these rights and explains what they allow.
#[test]
fn the_channel_adds_these_rights_and_no_other() {
    let (off, on) = (granted(&[]), granted(&["--set=channel.enabled=true"]));
    assert!(off.is_subset(&on));
    let added: Vec<&str> = on.difference(&off).map(String::as_str).collect();
    assert_eq!(
        added,
        [
            "ClusterRole /nodes (any) get",
            "Role /pods (any) list",
            "Role apps/deployments ao-addon-operator get",
            "Role apps/deployments ao-addon-operator list",
            "Role apps/deployments ao-addon-operator patch",
            "Role apps/deployments ao-addon-operator watch",
            "Role apps/replicasets (any) create",
            "Role apps/replicasets (any) get",
            "Role apps/replicasets ao-addon-operator-trial delete",
        ]
    );
    let alone = granted(&["--set=channel.enabled=true,webhooks.enabled=false"]);
    assert!(added.iter().all(|right| alone.contains(*right)), "without webhooks");
}

/// Whether the operator's account has the right to do this verb on this object.
fn may(stage: &Stage, verb: &str, group: &str, resource: &str, name: &str) -> bool {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": stage.account(),
            "resourceAttributes": {
                "namespace": stage.namespace.name(), "verb": verb, "group": group, "resource": resource, "name": name,
            },
        },
    });
    let admin = stage.namespace.kubectl_as(User::Admin);
    let said = admin.feed(["create", "--filename=-", "--output=json"], &review.to_string());
    let answer: Value = serde_json::from_str(&said.unwrap()).unwrap();
    answer["status"]["allowed"].as_bool().unwrap()
}

#[test]
fn the_operator_may_change_its_own_deployment_and_nobody_may_sign_by_its_hand() {
    let key = fs_err::read_to_string(super::tool::root().join("tests/chart/values/most.yaml")).unwrap();
    let key = helm_yaml::yaml::documents_v2(&key).unwrap().remove(0)["verification"].clone();
    let stage = Stage::build("may", Part::Helm3);
    stage.write("keys.yaml", &json!({"verification": key}).to_string());
    let keys = format!("--values={}", stage.path("keys.yaml").display());
    stage.chart("install", &["--set=channel.enabled=true", &keys]);
    let (own, held) = ("ao-addon-operator", "ao-addon-operator-verification-keys");
    for (verb, group, resource, name, expected) in [
        ("patch", "apps", "deployments", own, true),
        ("list", "apps", "deployments", own, true),
        ("watch", "apps", "deployments", own, true),
        ("create", "apps", "replicasets", "", true),
        ("get", "apps", "replicasets", "ao-addon-operator-1234567890", true),
        ("delete", "apps", "replicasets", "ao-addon-operator-trial", true),
        ("list", "", "pods", "", true),
        ("watch", "", "pods", "", true),
        ("get", "", "nodes", "one", true),
        ("patch", "apps", "deployments", "another", false),
        ("update", "apps", "deployments", own, false),
        ("delete", "apps", "deployments", own, false),
        ("create", "apps", "deployments", "", false),
        ("list", "apps", "deployments", "", false),
        ("delete", "apps", "replicasets", "ao-addon-operator-1234567890", false),
        ("patch", "apps", "replicasets", "ao-addon-operator-trial", false),
        ("list", "apps", "replicasets", "", false),
        ("create", "", "pods", "", false),
        ("delete", "", "pods", "", false),
        ("list", "", "nodes", "", false),
        ("get", "", "serviceaccounts", own, false),
        ("get", "", "configmaps", held, true),
        ("update", "", "configmaps", held, false),
        ("patch", "", "configmaps", held, false),
        ("delete", "", "configmaps", held, false),
    ] {
        let allowed = may(&stage, verb, group, resource, name);
        assert_eq!(allowed, expected, "{verb} {group}/{resource} {name}");
    }
    let written = stage.kubectl(&format!("get configmap {held} --output=json"));
    let written: Value = serde_json::from_str(&written).unwrap();
    let texts: Vec<&Value> = written["data"].as_object().unwrap().values().collect();
    let given: Vec<&Value> = key["keys"].as_array().unwrap().iter().collect();
    assert_eq!(texts, given);
}

/// A program that has pushed a version notifies one address, whichever pod leads.
#[test]
fn the_service_for_notes_of_new_versions_leads_to_the_leader_and_nothing_is_lacking() {
    let stage = Stage::build("notified", Part::Helm4);
    stage.write("modules/values.yaml", "");
    stage.write("global-hooks/README.md", "None.");
    let on = "--set=channel.enabled=true,channel.notifyTokenSecret.name=channel";
    stage.chart("install", &[on]);
    let beginning = stage.namespace.plane().audit().mark().unwrap();
    let pods = stage.pods();
    let leader = stage.start_unreached(&pods[0]);
    for side in ["notify", "validating", "conversion"] {
        let led = || Ok::<_, String>((stage.led_to(side) == [name_of(&pods[0])]).then_some(()));
        wait_until(PATIENCE, "the Service leads to the leader", led).unwrap();
    }
    let port = "--output=jsonpath={.items[*].ports[*].port}";
    let slices = "get endpointslices --selector=kubernetes.io/service-name=ao-addon-operator-notify-svc";
    assert_eq!(stage.kubectl(&format!("{slices} {port}")), "9650");
    leader.wait_until_ready();
    leader.stop();
    let refused = stage.requests(beginning).that(|record| record.code == 403);
    assert!(refused.is_empty(), "{refused}");
}
