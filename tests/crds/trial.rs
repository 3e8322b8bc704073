//! A version on trial: existing CRDs stay as they are, and new ones are created.

use addon_core::operator::event::CrdObstacle;
use addon_core::operator::policy::OnTrial;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn on_trial_a_crd_is_made_but_not_changed() {
    let mut stage = Stage::new("crd-trial").await;
    let first = stage.widgets(&[version("v1", STORED)]);
    stage.files(&[("crds/widgets.yaml", &first)]).await;
    let mark = stage.mark();
    assert_eq!(stage.ensure_as(OnTrial::Yes).await, None);
    assert_eq!(stage.writes(mark), ["create"]);

    // The fields that the API server fills in do not count as a change.
    assert_eq!(stage.ensure_as(OnTrial::Yes).await, None);

    // A version is added, and then one is removed. A second CRD is new and does not exist yet.
    let gadgets = stage.crd("gadgets", "Gadget", &[version("v1", STORED)]);
    for versions in [
        vec![version("v1", STORED), version("v2", SERVED)],
        vec![version("v2", STORED)],
    ] {
        let changed = stage.widgets(&versions);
        stage
            .files(&[("crds/gadgets.yaml", &gadgets), ("crds/widgets.yaml", &changed)])
            .await;
        let before = stage.found();
        let held = stage.ensure_as(OnTrial::Yes).await;
        assert_eq!(held, Some(CrdObstacle::Held(vec![format!("CRD '{}'", stage.name())])));
        assert_eq!(stage.found(), before);
    }
    let made = stage.world.kubectl(&format!("get crd gadgets.{} -o=name", stage.group));
    assert!(made.contains("gadgets"), "{made}");

    // After the trial has passed, the CRD is changed.
    let changed = stage.widgets(&[version("v1", STORED), version("v2", SERVED)]);
    stage.files(&[("crds/widgets.yaml", &changed)]).await;
    stage.ensure().await.unwrap();
    assert_eq!(stage.found()["spec"]["versions"].as_array().unwrap().len(), 2);
}
