//! The operator finds, watches and changes its own installation, and the cluster's controllers react to a trial.
//!
//! No kubelet runs: the test writes the status of pods.

mod helm;
mod sights;
pub(crate) mod stage;
mod trial_set;

use addon_core::failure::Failure;
use addon_core::module::description::AccountName;
use channel::installation;
use channel::installation::patching::{self, FIELD_MANAGER, Outcome};
use channel::installation::{CHART_IMAGE, CHART_IMAGE_THEN, FORMER_IMAGE, Found, PATCHED_IMAGE};
use serde_json::json;
use std::time::Duration;

use self::stage::{Stage, digest, image, loose_set};

#[tokio::test(flavor = "multi_thread")]
async fn an_installation_is_found_from_its_pod() {
    let stage = Stage::new("found", 1).await;
    let pod = stage.pods().remove(0);
    let found = stage.installation(&pod).await;
    assert_eq!((found.pod.as_str(), found.deployment.as_str()), (pod.as_str(), "ao"));
    assert_eq!(
        (found.container.as_str(), found.selector.as_str()),
        ("addon-operator", "app=ao")
    );
    assert_eq!(found.image, image(1));
    assert_eq!(found.digests, [digest(1)].into());
    assert_eq!(found.pull_secrets, ["mine"]);
    assert_eq!(found.service_account.as_deref(), Some("default"));
    assert!(!found.is_on_trial);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_no_deployment_is_no_installation() {
    let stage = Stage::new("elsewhere", 0).await;
    stage.kubectl("run alone --image=x");
    stage.apply(&loose_set("loose"));
    let of_set = stage.pod_of("app=loose");
    stage.tell_running(&of_set, 1);
    stage.tell_running("alone", 1);
    for (pod, why) in [
        ("alone", "our pod belongs to nothing, and so to no Deployment"),
        ("absent", "there is no pod 'absent' in namespace"),
        (
            &of_set,
            "the ReplicaSet 'loose' of our pod belongs to nothing, and so to no Deployment",
        ),
    ] {
        match installation::installation(stage.cluster(), pod).await.unwrap() {
            Found::Elsewhere(said) => assert!(said.starts_with(why), "{said}"),
            Found::In(found) => unreachable!("{found:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_is_missing_is_named() {
    let stage = Stage::new("forbidden", 1).await;
    let pod = stage.pods().remove(0);
    stage.kubectl("create serviceaccount small");
    stage.kubectl("create role small --verb=get --resource=pods");
    let account = format!("--serviceaccount={}:small", stage.world.namespace.name());
    stage.kubectl(&format!("create rolebinding small --role=small {account}"));
    let account = AccountName::parse("small").unwrap();
    let small = stage
        .cluster()
        .acting_as(&account, Duration::from_mins(1))
        .await
        .unwrap();
    let error = installation::installation(&small.cluster, &pod).await.unwrap_err();
    assert!(error.is_forbidden(), "{error}");
    let failure = Failure::from(error);
    let (said, hint) = (failure.report, &failure.hints[0]);
    assert!(said.contains("cannot get replicasets.apps 'ao-"), "{said}");
    assert!(hint.contains("allow the verb 'get' on 'replicasets.apps'"), "{hint}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_replaced_only_over_the_one_that_was_seen() {
    let stage = Stage::new("patch", 1).await;
    let found = stage.installation(&stage.pods()[0]).await;
    let cluster = stage.cluster();
    let (old, new) = (image(1), image(2));
    assert_eq!(
        patching::patch_image(cluster, &found, &old, &new).await.unwrap(),
        Outcome::Done
    );
    let made = stage.deployment();
    let annotations = &made["metadata"]["annotations"];
    assert_eq!(stage.image(), new);
    let noted = [FORMER_IMAGE, PATCHED_IMAGE, CHART_IMAGE_THEN].map(|key| &annotations[key]);
    assert_eq!(noted, [&json!(old), &json!(new), &json!(null)]);
    let cause = annotations["kubernetes.io/change-cause"].as_str().unwrap();
    assert!(cause.contains(&old) && cause.contains(&new), "{cause}");
    assert!(
        !made["metadata"]["managedFields"].to_string().contains(FIELD_MANAGER),
        "{made}"
    );

    let again = patching::patch_image(cluster, &found, &old, &new).await.unwrap();
    assert_eq!(again, Outcome::Done, "an answer that was lost");
    stage.kubectl(&format!("annotate deployment ao {CHART_IMAGE}=chart:1"));
    assert_eq!(
        patching::patch_image(cluster, &found, &new, &new).await.unwrap(),
        Outcome::Done
    );
    let annotations = &stage.deployment()["metadata"]["annotations"];
    let noted = [FORMER_IMAGE, PATCHED_IMAGE, CHART_IMAGE_THEN].map(|key| &annotations[key]);
    assert_eq!(
        noted,
        [&json!(old), &json!(new), &json!("chart:1")],
        "nothing was replaced"
    );
    stage.kubectl("set image deployment/ao addon-operator=elsewhere:9");
    let now = "elsewhere:9".to_owned();
    let changed = patching::patch_image(cluster, &found, &new, &old).await.unwrap();
    assert_eq!(changed, Outcome::Changed { now });
    assert_eq!(stage.image(), "elsewhere:9");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_an_interrupted_patch_has_left_goes_with_the_next() {
    let stage = Stage::new("entry", 1).await;
    let found = stage.installation(&stage.pods()[0]).await;
    let set = format!(
        "set image deployment/ao addon-operator={} --field-manager={FIELD_MANAGER}",
        image(2)
    );
    stage.kubectl(&set);
    stage.kubectl(&format!(
        "annotate deployment ao {PATCHED_IMAGE}={} --field-manager={FIELD_MANAGER}",
        image(2)
    ));
    assert!(stage.managers().contains(&FIELD_MANAGER.to_owned()));
    let done = patching::patch_image(stage.cluster(), &found, &image(1), &image(2))
        .await
        .unwrap();
    assert_eq!(done, Outcome::Done);
    assert!(!stage.managers().contains(&FIELD_MANAGER.to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_the_server_refuses_is_an_error_of_its_own() {
    let stage = Stage::new("refused", 1).await;
    let found = stage.installation(&stage.pods()[0]).await;
    let refused = patching::patch_image(stage.cluster(), &found, &image(1), "")
        .await
        .unwrap_err();
    let told = Failure::from(refused).report;
    assert!(told.contains("image"), "{told}");
    assert_eq!(stage.image(), image(1));
}
