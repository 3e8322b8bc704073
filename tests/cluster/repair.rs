//! A helm that was killed in the middle of its work.
#![expect(clippy::unwrap_used, reason = "a test may")]

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use addon_core::failure::Class;
use addon_core::operator::event::{SyncAction, Synced};
use addon_core::release::{ConfigTrace, Intent, IntentKind};
use addon_core::values::section::Maintenance;
use names::ModuleName;
use releases::sync::{self, Wanted};
use serde_json::{Value, json};
use testbed::wait::wait_until;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::world::{CHART, PATIENCE, TEMPLATE, World, config, document, with_each_helm};

/// A helm hook that never ends, because there is no node for its pod.
const ENDLESS: &str = "apiVersion: batch/v1
kind: Job
metadata:
  name: endless
  annotations: {helm.sh/hook: 'pre-install,pre-upgrade', helm.sh/hook-delete-policy: before-hook-creation}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: c, image: c}]}
";

/// Syncs until helm waits for its hook, and kills it then.
async fn kill_in_the_middle(world: &mut World, values: Value, history: &str) {
    let module = ModuleName::parse("one").unwrap();
    let tools = Arc::clone(&world.tools);
    let mut sync = JoinSet::new();
    sync.spawn(async move {
        let (values, asked) = (document(&values), config(None));
        let wanted = Wanted {
            values: &values,
            asked: &asked,
            maintenance: Maintenance::Managed,
            config: ConfigTrace::Nothing,
            unhealthy: None,
        };
        let cancel = CancellationToken::new();
        Box::pin(sync::sync(
            tools.releases.as_ref().unwrap(),
            &module,
            wanted,
            None,
            &cancel,
        ))
        .await
    });
    wait_until(PATIENCE, "helm to be in the middle", || {
        let seen = world.history();
        if seen == history { Ok(Some(())) } else { Err(seen) }
    })
    .unwrap();
    wait_until(PATIENCE, "the helm hook", || {
        world.namespace.kubectl(["get", "job", "endless"]).map(Some)
    })
    .unwrap();
    let killed = testbed::process::command("kill")
        .args(["-KILL", &world.last_helm()])
        .status()
        .unwrap();
    assert!(killed.success());
    let failure = sync.join_next().await.unwrap().unwrap().unwrap_err();
    assert!(failure.report.contains("killed"), "{failure}");
    assert_eq!(world.history(), history);
}

async fn endless_module(world: &mut World) {
    world
        .module(
            "one",
            &[
                ("Chart.yaml", CHART),
                ("templates/a.yaml", TEMPLATE),
                ("templates/hook.yaml", ENDLESS),
            ],
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_install_that_was_killed_is_repaired_by_the_next_start() {
    with_each_helm(async |helm| {
        let mut world = World::with("pending-install", helm).await;
        endless_module(&mut world).await;
        kill_in_the_middle(&mut world, json!({"one": {"x": "a"}}), "1:pending-install").await;
        world.module("one", &[("templates/hook.yaml", "")]).await;
        let synced = world.sync(json!({"one": {"x": "a"}})).await;
        assert_eq!(synced, Ok(Synced::plain(SyncAction::Upgraded, 2)));
        assert_eq!(world.history(), "1:superseded 2:deployed");
        assert!(!world.helm_calls().contains(&"uninstall".to_owned()));
        assert_eq!(
            saved_state::intent(&world.tools.ground.cluster, "one").await.unwrap(),
            None
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_that_was_killed_is_repaired_without_touching_what_runs() {
    with_each_helm(async |helm| {
        let mut world = World::with("pending-upgrade", helm).await;
        world.simple_module().await;
        world.sync(json!({"one": {"x": "a"}})).await.unwrap();
        let uid = world.kubectl("get configmap shown -o=jsonpath={.metadata.uid}");
        endless_module(&mut world).await;
        kill_in_the_middle(&mut world, json!({"one": {"x": "b"}}), "1:deployed 2:pending-upgrade").await;
        world.module("one", &[("templates/hook.yaml", "")]).await;
        let synced = world.sync(json!({"one": {"x": "c"}})).await;
        assert_eq!(synced, Ok(Synced::plain(SyncAction::Upgraded, 3)));
        assert_eq!(world.history(), "1:superseded 2:failed 3:deployed");
        let now = world.kubectl("get configmap shown -o=jsonpath={.metadata.uid}:{.data.x}");
        assert_eq!(now, format!("{uid}:c"), "the object is still the same one");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_install_can_be_removed() {
    with_each_helm(async |helm| {
        let mut world = World::with("pending-delete", helm).await;
        endless_module(&mut world).await;
        kill_in_the_middle(&mut world, json!({"one": {"x": "a"}}), "1:pending-install").await;
        world.restart().await;
        world.delete().await.unwrap();
        assert_eq!(world.history(), "");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_removal_noted_that_was_killed_after_helm_is_forgotten() {
    let world = World::new("noted").await;
    let intent = Intent {
        kind: IntentKind::Uninstall,
        revision_before: 1,
        digest: String::new(),
        started: 1,
        marks: true,
        holder: None,
    };
    saved_state::record_intent(&world.tools.ground.cluster, "one", &intent)
        .await
        .unwrap();
    world.delete().await.unwrap();
    assert_eq!(
        saved_state::intent(&world.tools.ground.cluster, "one").await.unwrap(),
        None
    );
    assert!(world.helm_calls().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_be_anothers_work_is_waited_for_until_its_time_is_over() {
    with_each_helm(async |helm| {
        let mut world = World::with("anothers", helm).await;
        endless_module(&mut world).await;
        kill_in_the_middle(&mut world, json!({"one": {"x": "a"}}), "1:pending-install").await;
        saved_state::clear_intent(&world.tools.ground.cluster, "one")
            .await
            .unwrap();
        world.module("one", &[("templates/hook.yaml", "")]).await;
        let failure = world.sync(json!({"one": {"x": "a"}})).await.unwrap_err();
        assert_eq!(failure.class, Class::Unavailable);
        assert!(failure.report.contains("another helm"), "{failure}");
        assert_eq!(world.delete().await.unwrap_err().class, Class::Unavailable);
        assert_eq!(world.history(), "1:pending-install");

        // Helm writes whole seconds. At least one second has passed when the clock shows another.
        world.allow_helm(Duration::from_secs(1)).await;
        let runtime = tokio::runtime::Handle::current();
        let synced = tokio::task::block_in_place(|| {
            wait_until(PATIENCE, "the helm timeout to pass", || {
                runtime.block_on(world.sync(json!({"one": {"x": "a"}}))).map(Some)
            })
        });
        assert_eq!(synced.unwrap(), Synced::plain(SyncAction::Upgraded, 2));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_clock_but_our_own_says_how_long_another_helm_was_at_work() {
    let mut world = World::new("clocks").await;
    endless_module(&mut world).await;
    let values = || json!({"one": {"x": "a"}});
    kill_in_the_middle(&mut world, values(), "1:pending-install").await;
    saved_state::clear_intent(&world.tools.ground.cluster, "one")
        .await
        .unwrap();
    world.module("one", &[("templates/hook.yaml", "")]).await;
    world.allow_helm(Duration::from_secs(1)).await;
    let wall = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let begin = wall();
    // By the wall clock helm's time is over, as after a jump of the clock. But the operator itself has not waited for
    // that long.
    wait_until(PATIENCE, "two more seconds", || {
        Ok::<_, String>((wall() > begin + 2).then_some(()))
    })
    .unwrap();
    let failure = world.sync(values()).await.unwrap_err();
    assert!(failure.report.contains("another helm"), "{failure}");
    assert_eq!(world.history(), "1:pending-install");

    // The writer of this revision has a clock that is an hour ahead of ours.
    let label = format!("modifiedAt={}", wall() + 3600);
    let secret = "sh.helm.release.v1.one.v1";
    world
        .namespace
        .kubectl(["label", "--overwrite", "secret", secret, &label])
        .unwrap();
    let failure = world.sync(values()).await.unwrap_err();
    assert!(failure.report.contains("for 0 s"), "it is watched anew: {failure}");
    let runtime = tokio::runtime::Handle::current();
    let synced = tokio::task::block_in_place(|| {
        wait_until(PATIENCE, "the helm timeout to pass", || {
            runtime.block_on(world.sync(values())).map(Some)
        })
    });
    assert_eq!(synced.unwrap().action, SyncAction::Upgraded);
    assert_eq!(world.history(), "1:superseded 2:deployed");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_began_after_our_helm_was_killed_is_not_marked_as_failed() {
    let mut world = World::new("persons").await;
    world.simple_module().await;
    world.sync(json!({"one": {"x": "a"}})).await.unwrap();
    endless_module(&mut world).await;
    kill_in_the_middle(&mut world, json!({"one": {"x": "b"}}), "1:deployed 2:pending-upgrade").await;
    // Helm copies this label from the revision before.
    let earlier =
        world.kubectl("get secret sh.helm.release.v1.one.v1 -o=jsonpath={.metadata.labels.addon-operator/begun}");
    let label = format!("addon-operator/begun={}", earlier.parse::<u64>().unwrap() - 1);
    let secret = "sh.helm.release.v1.one.v2";
    world
        .namespace
        .kubectl(["label", "--overwrite", "secret", secret, &label])
        .unwrap();
    let failure = world.sync(json!({"one": {"x": "c"}})).await.unwrap_err();
    assert!(failure.report.contains("another helm"), "{failure}");
    assert_eq!(world.history(), "1:deployed 2:pending-upgrade");
}

/// A chart whose webhook, behind which nobody listens, refuses every later write of a Secret in the namespace.
fn refusing_chart(world: &World) -> (String, String) {
    let name = format!("refuses.{}.example.com", world.namespace.name());
    let webhook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{
            "name": name,
            // A Service without endpoints would be waited for.
            "clientConfig": {"url": "https://127.0.0.1:9"},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["secrets"]}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": world.namespace.name()}},
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }],
    });
    (name, webhook.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_whose_last_write_was_refused_is_not_taken_for_deployed() {
    with_each_helm(async |helm| {
        let mut world = World::with("unwritten", helm).await;
        let (name, webhook) = refusing_chart(&world);
        world
            .module(
                "one",
                &[
                    ("Chart.yaml", CHART),
                    ("templates/a.yaml", TEMPLATE),
                    ("templates/w.yaml", &webhook),
                ],
            )
            .await;
        let values = json!({"one": {"x": "a"}});
        let mut late = 0;
        let failure = loop {
            if let Err(failure) = world.sync(values.clone()).await {
                break failure;
            }
            // The API server has taken up the webhook only after helm's last write.
            late += 1;
            assert!(late < 10, "the webhook refuses nothing");
            world.kubectl(&format!("delete validatingwebhookconfiguration {name}"));
            world.kubectl("delete secrets --selector=owner=helm");
            world.kubectl("delete configmap shown");
        };
        assert_eq!(world.history(), "1:pending-install", "{failure}");
        let remedy = format!("kubernetes.io/metadata.name NotIn [{}]", world.namespace.name());
        let is_remedy = |hint: &String| hint.contains(&name) && hint.contains(&remedy);
        assert!(failure.hints.iter().any(is_remedy), "{:?}", failure.hints);
        let failure = world.sync(values.clone()).await.unwrap_err();
        assert!(failure.report.contains(&name), "{failure}");
        world.kubectl(&format!("delete validatingwebhookconfiguration {name}"));
        world.module("one", &[("templates/w.yaml", "")]).await;
        world.sync(values).await.unwrap();
        assert_eq!(world.history(), "1:superseded 2:deployed");
        assert_eq!(world.kubectl("get configmap/shown -o=jsonpath={.data.x}"), "a");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_in_the_way_of_the_operator_is_told_also_after_a_restart() {
    with_each_helm(async |helm| {
        let mut world = World::with("warned", helm).await;
        let (name, webhook) = refusing_chart(&world);
        // It takes in Leases, which nobody writes in this namespace.
        let webhook = webhook
            .replace("\"secrets\"", "\"leases\"")
            .replace("\"apiGroups\":[\"\"]", "\"apiGroups\":[\"coordination.k8s.io\"]");
        world
            .module("one", &[("Chart.yaml", CHART), ("templates/w.yaml", &webhook)])
            .await;
        let values = json!({"one": {"x": "a"}});
        for action in [SyncAction::Upgraded, SyncAction::Unchanged, SyncAction::Recorded] {
            let values = if action == SyncAction::Recorded {
                json!({"one": {"x": "b"}})
            } else {
                values.clone()
            };
            let synced = world.sync(values).await.unwrap();
            assert_eq!(synced.action, action);
            assert!(
                synced.remarks.len() == 1 && synced.remarks[0].contains(&name),
                "{:?}",
                synced.remarks
            );
            world.restart().await;
        }
        world.kubectl(&format!("delete validatingwebhookconfiguration {name}"));
    })
    .await;
}
