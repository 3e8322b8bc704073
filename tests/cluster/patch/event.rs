//! Patches that tell people about an object by Events.

use addon_core::failure::Class;
use serde_json::{Value, json};

use super::{Stage, config_map};

const TOLD: &str = "---\noperation: Event\nkind: ConfigMap\nnamespace: NS\nname: told\n";

impl Stage {
    /// The Events about an object of the namespace, sorted by their reasons.
    fn events(&self, object: &str) -> Vec<Value> {
        let selector = format!("events --field-selector=involvedObject.name={object} --sort-by=.reason");
        let found = self.object(&selector);
        found["items"].as_array().unwrap().clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_event_is_counted_and_another_one_is_written_beside_it() {
    let stage = Stage::new("event").await;
    stage.given(&[config_map("told", &json!({}))]);
    let failed = format!("{TOLD}type: Warning\nreason: BackupFailed\nmessage: the disk is full\n");
    let done = format!("{TOLD}reason: Done\nmessage: all is well\n");
    stage.apply(&[&*failed, &*done, &*failed].concat()).await.unwrap();
    stage.apply(&failed).await.unwrap();
    let events = stage.events("told");
    let seen: Vec<_> = events
        .iter()
        .map(|event| {
            (
                event["type"].as_str().unwrap(),
                event["reason"].as_str().unwrap(),
                event["message"].as_str().unwrap(),
                event["count"].as_i64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("Warning", "BackupFailed", "the disk is full", 3),
            ("Normal", "Done", "all is well", 1)
        ]
    );
    // Kubectl finds Events of an object by its UID.
    let uid = stage.object("configmap told")["metadata"]["uid"].clone();
    assert_eq!(events[0]["involvedObject"]["uid"], uid);
    assert_eq!(events[0]["involvedObject"]["apiVersion"], "v1");
    let described = stage.world.kubectl("describe configmap told");
    assert!(
        described.contains("BackupFailed") && described.contains("(x3 over"),
        "{described}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_uid_an_object_that_is_gone_is_told_of() {
    let stage = Stage::new("event-gone").await;
    let gone = TOLD.replace("told", "gone");
    let failure = stage.apply(&format!("{gone}reason: Gone\nmessage: it went\n")).await;
    let failure = failure.unwrap_err();
    assert_eq!(failure.class, Class::Refused, "{failure}");
    assert!(failure.report.contains("Event of object ConfigMap/"), "{failure}");
    let known = format!("{gone}uid: 0b1d7b1c-5f1b-4a53-93c4-5a0f3a5c1d11\nreason: Gone\nmessage: it went\n");
    stage.apply(&known).await.unwrap();
    assert_eq!(stage.events("gone").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_without_a_namespace_is_told_of_in_the_default_one() {
    let stage = Stage::new("event-cluster").await;
    let name = stage.namespace().to_owned();
    let text = "operation: Event\napiVersion: v1\nkind: Namespace\nname: NS\nreason: Looked\nmessage: a namespace";
    stage.apply(text).await.unwrap();
    let selector = format!("events --namespace=default --field-selector=involvedObject.name={name}");
    let found = stage.object(&selector);
    assert_eq!(found["items"][0]["reason"], "Looked", "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_namespace_that_is_being_deleted_an_event_is_no_failure() {
    let stage = Stage::new("event-ending").await;
    let ending = format!("{}-ending", stage.namespace());
    stage.world.kubectl(&format!("create namespace {ending}"));
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "told", "namespace": ending}});
    stage.given(&[map]);
    // No controller of the testbed ends the deletion.
    stage.world.kubectl(&format!("delete namespace {ending} --wait=false"));
    let text = format!("{TOLD}reason: Late\nmessage: nobody reads it\n");
    stage.apply(&text.replace("NS", &ending)).await.unwrap();
    let found = stage.object(&format!("events --namespace={ending}"));
    assert_eq!(found, Value::Null, "no Event is there");
}
