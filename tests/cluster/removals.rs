//! Removals of releases during which helm is interrupted or refused, or after upgrades that failed.

use addon_core::operator::event::{SyncAction, Synced};
use serde_json::json;
use testbed::proxy::{Aimed, Fault, Of, On, What};

use super::world::{CHART, World, with_each_helm};

#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_helm_cannot_read_is_not_taken_for_removed() {
    with_each_helm(async |helm| {
        let mut world = World::with("unread", helm).await;
        world.simple_module().await;
        let synced = world.sync(json!({"one": {"x": "a"}})).await.unwrap();
        assert!(
            matches!(
                synced,
                Synced {
                    action: SyncAction::Upgraded,
                    ..
                }
            ),
            "{synced:?}"
        );
        let proxy = world.restart_behind_a_proxy().await;

        let what = What::Status(504, None);
        let fault = Fault { on: On::Lists, what };
        proxy.aim(vec![Aimed {
            of: Of::Agent("Helm/"),
            every: 1,
            fault,
        }]);
        let failure = world.delete().await.unwrap_err();
        assert!(failure.report.contains("cannot uninstall release 'one'"), "{failure}");
        assert_eq!(world.history(), "1:deployed");

        proxy.heal();
        world.delete().await.unwrap();
        assert_eq!(world.history(), "");
        assert_eq!(world.kubectl("get configmap -l heritage=addon-operator -o=name"), "");
    })
    .await;
}

/// Objects that only the revision with this value has: two that helm deletes, one that it keeps, and one that another
/// release takes over. The selector of the Deployment cannot be changed.
const OWN: &str = r"
{{- $x := .Values.one.x }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: only-{{ $x }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: taken-{{ $x }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kept-{{ $x }}, annotations: {helm.sh/resource-policy: keep}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: spared-{{ $x }}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: {{ $x }}.{{ .Release.Namespace }}.example.com}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  replicas: 0
  selector: {matchLabels: {x: {{ $x }}}}
  template:
    metadata: {labels: {x: {{ $x }}}}
    spec: {containers: [{name: c, image: i}]}
";

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_after_refused_upgrades_takes_what_only_other_revisions_have() {
    with_each_helm(async |helm| {
        let mut world = World::with("refused", helm).await;
        world
            .module("one", &[("Chart.yaml", CHART), ("templates/a.yaml", OWN)])
            .await;
        world.sync(json!({"one": {"x": "a"}})).await.unwrap();
        for x in ["b", "c"] {
            // Otherwise the upgrade is held, because it deletes most objects.
            world.section = Some(json!({"x": x}));
            world.sync(json!({"one": {"x": x}})).await.unwrap_err();
        }
        assert_eq!(world.history(), "1:deployed 2:failed 3:failed");
        // Another release has taken this over, and a person keeps the other.
        world.kubectl("annotate configmap taken-a --overwrite meta.helm.sh/release-name=two");
        world.kubectl("annotate configmap spared-a helm.sh/resource-policy=keep");

        world.delete().await.unwrap();
        assert_eq!(world.history(), "");
        let namespace = world.namespace.name();
        let objects = "get configmap,deployment,validatingwebhookconfiguration -l heritage=addon-operator -o=name";
        let left = world.kubectl(objects);
        let of_others = left
            .lines()
            .filter(|line| line.contains("example.com") && !line.contains(namespace));
        let left: Vec<&str> = left
            .lines()
            .filter(|line| !of_others.clone().any(|other| other == *line))
            .collect();
        assert_eq!(
            left,
            ["kept-a", "kept-b", "kept-c", "spared-a", "taken-a"].map(|name| format!("configmap/{name}"))
        );
        let before = "get secret --field-selector type=addon-operator/release-before -o=name";
        assert_eq!(world.kubectl(before), "");
    })
    .await;
}
