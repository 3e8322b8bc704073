//! Patches that delete objects.

use addon_core::failure::{Class, Failure};
use addon_core::object::patch;
use serde_json::{Value, json};
use testbed::wait::wait_until;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::super::world::PATIENCE;
use super::{Stage, config_map};

const FINALIZER: &str = "example.com/held";

fn delete(operation: &str, name: &str) -> String {
    format!("operation: {operation}\nkind: ConfigMap\nnamespace: NS\nname: {name}\n")
}

fn held(name: &str) -> Value {
    let mut object = config_map(name, &json!({}));
    object["metadata"]["finalizers"] = json!([FINALIZER]);
    object
}

impl Stage {
    fn wait(&self, what: &str, object: &str, is_so: impl Fn(&Value) -> bool) {
        let look = || Ok::<_, String>(is_so(&self.object(object)).then_some(()));
        wait_until(PATIENCE, what, look).unwrap();
    }

    fn release(&self, name: &str) {
        self.world.kubectl(&format!(
            r#"patch configmap {name} --type=merge --patch={{"metadata":{{"finalizers":null}}}}"#
        ));
    }

    /// Does something after the deletion of a ConfigMap has begun, and returns the result of the deletion.
    fn delete_and_meanwhile(
        &self,
        name: &str,
        cancel: &CancellationToken,
        then: impl FnOnce() + Send,
    ) -> Result<(), Failure> {
        let operations = patch::parse(&delete("Delete", name).replace("NS", self.namespace())).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let object = format!("configmap {name}");
                self.wait("the deletion", &object, |found| {
                    found["metadata"]["deletionTimestamp"].is_string()
                });
                then();
            });
            tokio::task::block_in_place(|| Handle::current().block_on(self.patcher.apply(&operations, cancel)))
        })
    }

    /// Creates an object and another one that it owns.
    fn family(&self) {
        self.given(&[config_map("owner", &json!({}))]);
        let uid = self.object("configmap owner")["metadata"]["uid"].clone();
        let mut child = config_map("child", &json!({}));
        child["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "blockOwnerDeletion": true}]);
        self.given(&[child]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_not_there_is_deleted_already() {
    let stage = Stage::new("delete-none").await;
    for operation in ["Delete", "DeleteInBackground", "DeleteNonCascading"] {
        stage.apply(&delete(operation, "none")).await.unwrap();
        let elsewhere = delete(operation, "none").replace("NS", "nowhere-to-be-found");
        stage.apply(&elsewhere).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn delete_lasts_until_the_object_and_what_it_owns_are_gone() {
    let stage = Stage::new("delete").await;
    stage.family();
    stage.apply(&delete("Delete", "owner")).await.unwrap();
    assert_eq!(stage.object("configmap owner"), Value::Null);
    assert_eq!(stage.object("configmap child"), Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn delete_waits_for_finalizers_that_others_take_away() {
    let stage = Stage::new("delete-held").await;
    stage.given(&[held("slow")]);
    let outcome = stage.delete_and_meanwhile("slow", &CancellationToken::new(), || stage.release("slow"));
    outcome.unwrap();
    assert_eq!(stage.object("configmap slow"), Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_object_of_the_same_name_is_not_waited_for() {
    let stage = Stage::new("delete-again").await;
    stage.given(&[held("again")]);
    let outcome = stage.delete_and_meanwhile("again", &CancellationToken::new(), || {
        stage.release("again");
        stage.given(&[config_map("again", &json!({"life": "second"}))]);
    });
    outcome.unwrap();
    assert_eq!(stage.data("again"), json!({"life": "second"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_does_not_go_is_told_with_what_holds_it() {
    let stage = Stage::new("delete-stuck").await;
    stage.given(&[held("stuck"), config_map("next", &json!({}))]);
    let text = format!("{}---\n{}", delete("Delete", "stuck"), delete("Delete", "next"));
    let failure = stage.apply(&text).await.unwrap_err();
    let expected = format!(
        "Delete object ConfigMap/{}/stuck: the object is still there after 20s, held by its finalizers: {FINALIZER}",
        stage.namespace()
    );
    assert_eq!((failure.class, failure.report), (Class::TimedOut, expected));
    assert_eq!(stage.object("configmap next"), Value::Null);
    stage.release("stuck");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wait_for_an_object_ends_when_everything_ends() {
    let stage = Stage::new("delete-stop").await;
    stage.given(&[held("stuck")]);
    let cancel = CancellationToken::new();
    let failure = stage
        .delete_and_meanwhile("stuck", &cancel, || cancel.cancel())
        .unwrap_err();
    assert_eq!(failure.class, Class::Cancelled, "{failure}");
    stage.release("stuck");
}

#[tokio::test(flavor = "multi_thread")]
async fn in_the_background_nobody_waits() {
    let stage = Stage::new("delete-later").await;
    stage.given(&[held("slow")]);
    stage.apply(&delete("DeleteInBackground", "slow")).await.unwrap();
    let found = stage.object("configmap slow");
    assert!(found["metadata"]["deletionTimestamp"].is_string(), "{found}");
    assert_eq!(found["metadata"]["finalizers"], json!([FINALIZER]));
    stage.release("slow");
    stage.family();
    stage.apply(&delete("DeleteInBackground", "owner")).await.unwrap();
    stage.wait("the end of the child", "configmap child", Value::is_null);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_cascade_what_the_object_owned_stays() {
    let stage = Stage::new("delete-orphan").await;
    stage.family();
    stage.apply(&delete("DeleteNonCascading", "owner")).await.unwrap();
    stage.wait("the end of the owner", "configmap owner", Value::is_null);
    let child = stage.object("configmap child");
    assert_eq!(child["metadata"]["ownerReferences"], Value::Null);
    assert!(child["metadata"]["deletionTimestamp"].is_null() && child["metadata"]["name"] == "child");
}
