//! Patches of one finalizer.

use addon_core::failure::Class;
use serde_json::{Value, json};

use super::{Stage, config_map};

fn finalizer(operation: &str, name: &str, finalizer: &str) -> String {
    format!(
        "---\noperation: {operation}\nkind: ConfigMap\nnamespace: NS\nname: {name}\nfinalizer: example.com/{finalizer}\n"
    )
}

impl Stage {
    fn finalizers(&self, name: &str) -> Value {
        self.object(&format!("configmap {name}"))["metadata"]["finalizers"].clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_finalizer_comes_and_goes_and_those_of_others_stay() {
    let stage = Stage::new("finalizer").await;
    let mut map = config_map("held", &json!({"a": "b"}));
    map["metadata"]["finalizers"] = json!(["example.com/other"]);
    stage.given(&[map]);
    let add = finalizer("AddFinalizer", "held", "ours");
    stage.apply(&[&*add, &*add].concat()).await.unwrap();
    assert_eq!(
        stage.finalizers("held"),
        json!(["example.com/other", "example.com/ours"])
    );
    stage.world.kubectl("delete configmap held --wait=false");
    // The API server accepts no further finalizer now.
    stage.apply(&finalizer("AddFinalizer", "held", "late")).await.unwrap();
    let remove = |one: &str| finalizer("RemoveFinalizer", "held", one);
    stage.apply(&[remove("ours"), remove("ours")].concat()).await.unwrap();
    assert_eq!(stage.finalizers("held"), json!(["example.com/other"]));
    stage.apply(&remove("other")).await.unwrap();
    assert_eq!(stage.object("configmap held"), Value::Null, "nothing holds it any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_of_different_finalizers_undo_nothing_of_each_other() {
    let stage = Stage::new("finalizer-race").await;
    for round in 0..4 {
        let name = format!("held-{round}");
        let mut map = config_map(&name, &json!({}));
        map["metadata"]["finalizers"] = json!(["example.com/a"]);
        stage.given(&[map]);
        let [remove, b, c] = [
            finalizer("RemoveFinalizer", &name, "a"),
            finalizer("AddFinalizer", &name, "b"),
            finalizer("AddFinalizer", &name, "c"),
        ];
        let all = tokio::join!(stage.apply(&remove), stage.apply(&b), stage.apply(&c));
        assert_eq!(all, (Ok(()), Ok(()), Ok(())));
        let mut left: Vec<String> = serde_json::from_value(stage.finalizers(&name)).unwrap();
        left.sort();
        assert_eq!(left, ["example.com/b", "example.com/c"], "round {round}");
        let free = ["b", "c"].map(|one| finalizer("RemoveFinalizer", &name, one)).concat();
        stage.apply(&free).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_object_is_an_error_unless_the_patch_allows_it() {
    let stage = Stage::new("finalizer-missing").await;
    for operation in ["AddFinalizer", "RemoveFinalizer"] {
        let text = finalizer(operation, "nowhere", "ours");
        let failure = stage.apply(&text).await.unwrap_err();
        assert_eq!(failure.class, Class::Refused);
        assert!(failure.report.contains(operation), "{failure}");
        stage
            .apply(&format!("{text}ignoreMissingObject: true\n"))
            .await
            .unwrap();
    }
}
