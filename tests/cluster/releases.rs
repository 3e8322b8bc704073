//! The life of a release: what is done, and what is not done because nothing changed.

use addon_core::failure::Class;
use addon_core::operator::effect::Job;
use addon_core::operator::event::{SyncAction, Synced};
use addon_core::values::section::Maintenance;
use serde_json::json;

use super::world::{CHART, World};

fn synced(action: SyncAction, revision: u32) -> Synced {
    Synced { action, revision }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_is_made_kept_recorded_upgraded_and_removed() {
    let mut world = World::new("life").await;
    world.simple_module().await;
    let shown = |world: &World| world.kubectl("get configmap shown -o=jsonpath={.data.x}:{.metadata.labels.heritage}");

    assert_eq!(
        world.sync(json!({"one": {"x": "a"}})).await,
        Ok(synced(SyncAction::Upgraded, 1))
    );
    assert_eq!(shown(&world), "a:addon-operator");
    assert_eq!(world.helm_calls(), ["upgrade"]);

    assert_eq!(
        world.sync(json!({"one": {"x": "a"}})).await,
        Ok(synced(SyncAction::Unchanged, 1))
    );
    world.restart().await;
    assert_eq!(
        world.sync(json!({"one": {"x": "a"}})).await,
        Ok(synced(SyncAction::Unchanged, 1))
    );
    assert_eq!(world.helm_calls(), ["upgrade"], "nothing changed costs nothing");

    assert_eq!(
        world.sync(json!({"one": {"x": "a", "y": 1}})).await,
        Ok(synced(SyncAction::Recorded, 1))
    );
    assert_eq!(
        world.sync(json!({"one": {"x": "a", "y": 1}})).await,
        Ok(synced(SyncAction::Unchanged, 1))
    );
    assert_eq!(world.helm_calls(), ["upgrade", "template"]);
    assert_eq!(world.history(), "1:deployed");

    assert_eq!(
        world.sync(json!({"one": {"x": "b"}})).await,
        Ok(synced(SyncAction::Upgraded, 2))
    );
    assert_eq!(shown(&world), "b:addon-operator");
    assert_eq!(world.history(), "1:superseded 2:deployed");
    assert_eq!(
        world.sync(json!({"one": {"x": "b"}})).await,
        Ok(synced(SyncAction::Unchanged, 2))
    );

    world.delete().await.unwrap();
    assert_eq!(world.history(), "");
    assert_eq!(world.kubectl("get configmap -l heritage=addon-operator -o=name"), "");
    let calls = world.helm_calls().len();
    world.delete().await.unwrap();
    assert_eq!(world.helm_calls().len(), calls, "an absent release needs no helm");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_gone_or_disowned_is_restored() {
    let mut world = World::new("absent").await;
    world.simple_module().await;
    let values = || json!({"one": {"x": "a"}});
    world.sync(values()).await.unwrap();
    world.kubectl("delete configmap shown");
    assert_eq!(world.sync(values()).await, Ok(synced(SyncAction::Upgraded, 2)));
    assert_eq!(world.kubectl("get configmap shown -o=jsonpath={.data.x}"), "a");
    world.kubectl("label configmap shown heritage-");
    assert_eq!(world.sync(values()).await, Ok(synced(SyncAction::Upgraded, 3)));
    assert_eq!(world.sync(values()).await, Ok(synced(SyncAction::Unchanged, 3)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_who_upgrades_by_hand_is_noticed() {
    let mut world = World::new("hand").await;
    world.simple_module().await;
    let values = || json!({"one": {"x": "a"}});
    world.sync(values()).await.unwrap();
    let dir = world.module_dir().display().to_string();
    world.helm_by_hand(&["upgrade", "one", &dir, "--set", "one.x=hand"]);
    assert_eq!(world.kubectl("get configmap shown -o=jsonpath={.data.x}"), "hand");
    assert_eq!(world.sync(values()).await, Ok(synced(SyncAction::Upgraded, 3)));
    assert_eq!(world.kubectl("get configmap shown -o=jsonpath={.data.x}"), "a");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chart_that_does_not_render_changes_nothing_and_recovers() {
    let mut world = World::new("render").await;
    world.simple_module().await;
    let values = || json!({"one": {"x": "a"}});
    world.sync(values()).await.unwrap();
    world
        .module("one", &[("templates/b.yaml", "{{ fail \"no way\" }}")])
        .await;
    let failure = world.sync(values()).await.unwrap_err();
    assert_eq!(failure.class, Class::Invalid);
    assert!(
        failure.report.contains("'one'") && failure.report.contains("no way"),
        "{failure}"
    );
    assert_eq!(world.history(), "1:deployed");
    world.module("one", &[("templates/b.yaml", "")]).await;
    assert_eq!(world.sync(values()).await, Ok(synced(SyncAction::Recorded, 1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_object_fails_the_release_and_its_repair_succeeds() {
    let mut world = World::new("refused").await;
    let bad = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Bad_Name}\n";
    world
        .module("one", &[("Chart.yaml", CHART), ("templates/a.yaml", bad)])
        .await;
    let failure = world.sync(json!({})).await.unwrap_err();
    assert_eq!(failure.class, Class::Refused, "{failure}");
    assert!(failure.report.contains("Bad_Name"), "{failure}");
    assert_eq!(world.history(), "1:failed");
    world.simple_module().await;
    assert_eq!(
        world.sync(json!({"one": {"x": "a"}})).await,
        Ok(synced(SyncAction::Upgraded, 2))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_without_a_chart_file_gets_a_chart_and_one_without_templates_none() {
    let mut world = World::new("made").await;
    world.module("one", &[("hooks/.keep", "")]).await;
    assert_eq!(world.sync(json!({})).await, Ok(synced(SyncAction::Unchanged, 0)));
    assert!(world.helm_calls().is_empty());
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shown}\ndata: {x: \"{{ .Chart.Name }}\"}\n";
    world.module("one", &[("templates/a.yaml", template)]).await;
    assert_eq!(world.sync(json!({})).await, Ok(synced(SyncAction::Upgraded, 1)));
    assert_eq!(world.kubectl("get configmap shown -o=jsonpath={.data.x}"), "one");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_release_is_refused_by_name_and_never_touched() {
    let mut world = World::new("foreign").await;
    world.simple_module().await;
    let dir = world.module_dir().display().to_string();
    world.helm_by_hand(&["install", "one", &dir, "--set", "one.x=theirs"]);
    let before = world.kubectl("get secret sh.helm.release.v1.one.v1 -o=jsonpath={.metadata.resourceVersion}");
    for failure in [
        world.sync(json!({"one": {"x": "a"}})).await.unwrap_err(),
        world.delete().await.unwrap_err(),
    ] {
        assert_eq!(failure.class, Class::Refused);
        assert!(failure.report.contains("'one'"), "{failure}");
    }
    assert!(world.helm_calls().is_empty());
    let after = world.kubectl("get secret sh.helm.release.v1.one.v1 -o=jsonpath={.metadata.resourceVersion}");
    assert_eq!(before, after);
    assert!(
        world
            .tools
            .cluster
            .list_releases()
            .await
            .unwrap()
            .iter()
            .all(|release| !release.newest.ours)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_of_the_original_is_adopted() {
    let mut world = World::new("adopted").await;
    world.simple_module().await;
    let dir = world.module_dir().display().to_string();
    let labels =
        "moduleChecksum=0123456789abcdef0123456789abcdef,maintenance.deckhouse.io/no-resource-reconciliation=false";
    world.helm_by_hand(&["install", "one", &dir, "--set", "one.x=a", "--labels", labels]);
    assert_eq!(
        world.sync(json!({"one": {"x": "a"}})).await,
        Ok(synced(SyncAction::Upgraded, 2))
    );
    assert_eq!(
        world.sync(json!({"one": {"x": "a"}})).await,
        Ok(synced(SyncAction::Unchanged, 2))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_modules_that_render_one_object_the_second_is_refused_by_name() {
    let mut world = World::new("claims").await;
    let map = |name: &str, by: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{by: {by}}}\n")
    };
    for name in ["one", "two"] {
        let text = format!("{}---\n{}", map(name, name), map("shared", name));
        let chart = format!("apiVersion: v2\nname: {name}\nversion: 0.1.0\n");
        world
            .module(name, &[("Chart.yaml", &chart), ("templates/a.yaml", &text)])
            .await;
    }
    let sync = |name| Box::pin(world.sync_module(name, json!({})));
    let (one, two) = tokio::join!(sync("one"), sync("two"));
    let (first, second, failure) = match (one, two) {
        (Ok(_), Err(failure)) => ("one", "two", failure),
        (Err(failure), Ok(_)) => ("two", "one", failure),
        other => panic!("{other:?}"),
    };
    let namespace = world.namespace.name().to_owned();
    let expected = format!(
        "module '{second}' renders ConfigMap 'shared' of namespace '{namespace}', which belongs to module '{first}'"
    );
    assert_eq!(
        (failure.class, failure.report.as_str()),
        (Class::Invalid, expected.as_str())
    );
    assert_eq!(world.kubectl("get configmap shared -o=jsonpath={.data.by}"), first);
    let maps = world.kubectl("get configmap -o=jsonpath={.items[*].metadata.name}");
    assert!(!maps.contains(second), "nothing of it was applied: {maps}");

    // A restart knows it from the cluster.
    world.restart().await;
    world.run(Job::ListReleases).await.unwrap();
    assert_eq!(world.sync_module(second, json!({})).await.unwrap_err().report, expected);

    // With the first one gone the second may have it.
    world.delete_release(first).await.unwrap();
    assert!(world.sync_module(second, json!({})).await.is_ok());
    assert_eq!(world.kubectl("get configmap shared -o=jsonpath={.data.by}"), second);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_in_maintenance_is_marked_once_left_alone_and_taken_back() {
    let mut world = World::new("hands").await;
    world.simple_module().await;
    world.sync(json!({"one": {"x": "a"}})).await.unwrap();
    let label = "{.metadata.labels['maintenance\\.deckhouse\\.io/no-resource-reconciliation']}";
    let marked = |world: &World, what: &str| world.kubectl(&format!("get {what} -o=jsonpath={label}"));

    world.maintenance = Maintenance::NoResourceReconciliation;
    let yielded = world.sync(json!({"one": {"x": "a"}})).await;
    assert_eq!(yielded, Ok(synced(SyncAction::Upgraded, 2)));
    assert_eq!(marked(&world, "secret sh.helm.release.v1.one.v2"), "true");
    let labels = world.kubectl("get configmap shown -o=jsonpath={.metadata.labels}");
    assert!(labels.contains("no-resource-reconciliation\":\"\""), "{labels}");

    world.kubectl("delete configmap shown");
    for x in ["a", "b"] {
        world.restart().await;
        let kept = world.sync(json!({"one": {"x": x}})).await;
        assert_eq!(kept, Ok(synced(SyncAction::Unchanged, 2)));
    }
    assert_eq!(world.helm_calls(), ["upgrade", "upgrade"], "nothing is done to it");

    world.maintenance = Maintenance::Managed;
    let back = world.sync(json!({"one": {"x": "b"}})).await;
    assert_eq!(back, Ok(synced(SyncAction::Upgraded, 3)));
    assert_eq!(marked(&world, "secret sh.helm.release.v1.one.v3"), "false");
    let labels = world.kubectl("get configmap shown -o=jsonpath={.metadata.labels}");
    assert!(!labels.contains("no-resource-reconciliation"), "{labels}");
    let again = world.sync(json!({"one": {"x": "b"}})).await;
    assert_eq!(again, Ok(synced(SyncAction::Unchanged, 3)));
}
