//! CRDs that a webhook without a server keeps from being created.

use std::convert::Infallible;

use serde_json::json;
use testbed::wait::wait_until;

use super::world::PATIENCE;
use super::{STORED, Stage, version};

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_refuses_a_crd_is_named() {
    let mut stage = Stage::new("crd-webhook").await;
    let (group, namespace) = (stage.group.clone(), stage.world.namespace.name().to_owned());
    let webhook = format!("dead.{group}");
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": webhook},
        "webhooks": [{
            "name": webhook,
            "clientConfig": {"service": {"namespace": namespace, "name": "nobody"}},
            "rules": [{"apiGroups": ["apiextensions.k8s.io"], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["customresourcedefinitions"]}],
            "objectSelector": {"matchLabels": {"guarded": namespace}},
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "timeoutSeconds": 2,
            "admissionReviewVersions": ["v1"],
        }],
    });
    let guarded = format!("annotations: {{made: here}}\n  labels: {{guarded: {namespace}}}");
    let crd = stage
        .widgets(&[version("v1", STORED)])
        .replace("annotations: {made: here}", &guarded);
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name).display().to_string();
    fs_err::write(place("webhook"), configuration.to_string()).unwrap();
    fs_err::write(place("crd"), &crd).unwrap();
    stage.world.kubectl(&format!("create --filename={}", place("webhook")));
    let probe = ["create", "--dry-run=server", &format!("--filename={}", place("crd"))];
    let refuses = |stage: &Stage| stage.world.namespace.kubectl(probe).is_err();
    let is_refused = || Ok::<_, Infallible>(refuses(&stage).then_some(()));
    wait_until(PATIENCE, "the webhook refuses the CRD", is_refused).unwrap();

    stage.files(&[("crds/widgets.yaml", &crd)]).await;
    let failure = stage.ensure().await.unwrap_err();
    assert!(failure.report.contains("failed calling webhook"), "{failure}");
    let said = format!(
        "webhook '{webhook}' is in ValidatingWebhookConfiguration '{webhook}' of no release; its Service \
         '{namespace}/nobody' has no endpoints"
    );
    assert!(failure.hints.iter().any(|hint| hint.starts_with(&said)), "{failure:?}");
    stage
        .world
        .kubectl(&format!("delete validatingwebhookconfiguration {webhook}"));
    let is_taken = || Ok::<_, Infallible>((!refuses(&stage)).then_some(()));
    wait_until(PATIENCE, "the API server forgets the webhook", is_taken).unwrap();
    stage.ensure().await.unwrap();
}
