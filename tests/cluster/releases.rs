//! The life of a release: each step that is done, and each that is skipped because nothing has changed.

use addon_core::digest::Digest;
use addon_core::failure::Class;
use addon_core::operator::effect::Conversions;
use addon_core::operator::event::{SyncAction, Synced};
use addon_core::values::section::Maintenance;
use names::ModuleName;
use releases::revisions;
use releases::sync;
use serde_json::json;
use testbed::part::Part;

use super::world::{CHART, World, document, with_each_helm};

fn synced(action: SyncAction, revision: u32) -> Synced {
    Synced::plain(action, revision)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_is_made_kept_recorded_upgraded_and_removed() {
    with_each_helm(async |helm| {
        let mut world = World::with("life", helm).await;
        world.simple_module().await;
        let shown =
            |world: &World| world.kubectl("get configmap shown -o=jsonpath={.data.x}:{.metadata.labels.heritage}");

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
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_gone_or_disowned_is_restored() {
    with_each_helm(async |helm| {
        let mut world = World::with("absent", helm).await;
        world.simple_module().await;
        let values = || json!({"one": {"x": "a"}});
        world.sync(values()).await.unwrap();
        world.kubectl("delete configmap shown");
        assert_eq!(world.sync(values()).await, Ok(synced(SyncAction::Upgraded, 2)));
        assert_eq!(world.kubectl("get configmap shown -o=jsonpath={.data.x}"), "a");
        world.kubectl("label configmap shown heritage-");
        assert_eq!(world.sync(values()).await, Ok(synced(SyncAction::Upgraded, 3)));
        assert_eq!(world.sync(values()).await, Ok(synced(SyncAction::Unchanged, 3)));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_who_upgrades_by_hand_is_noticed() {
    with_each_helm(async |helm| {
        let mut world = World::with("hand", helm).await;
        world.simple_module().await;
        let values = || json!({"one": {"x": "a"}});
        world.sync(values()).await.unwrap();
        let dir = world.module_dir().display().to_string();
        world.helm_by_hand(&["upgrade", "one", &dir, "--set", "one.x=hand"]);
        assert_eq!(world.kubectl("get configmap shown -o=jsonpath={.data.x}"), "hand");
        assert_eq!(world.sync(values()).await, Ok(synced(SyncAction::Upgraded, 3)));
        assert_eq!(world.kubectl("get configmap shown -o=jsonpath={.data.x}"), "a");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chart_that_does_not_render_changes_nothing_and_recovers() {
    with_each_helm(async |helm| {
        let mut world = World::with("render", helm).await;
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
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_object_fails_the_release_and_its_repair_succeeds() {
    with_each_helm(async |helm| {
        let mut world = World::with("refused", helm).await;
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
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_without_a_chart_file_gets_a_chart_and_one_without_templates_none() {
    with_each_helm(async |helm| {
        let mut world = World::with("made", helm).await;
        world.module("one", &[("hooks/.keep", "")]).await;
        assert_eq!(world.sync(json!({})).await, Ok(synced(SyncAction::Unchanged, 0)));
        assert!(world.helm_calls().is_empty());
        let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shown}\ndata: {x: \"{{ .Chart.Name }}\"}\n";
        world.module("one", &[("templates/a.yaml", template)]).await;
        assert_eq!(world.sync(json!({})).await, Ok(synced(SyncAction::Upgraded, 1)));
        assert_eq!(world.kubectl("get configmap shown -o=jsonpath={.data.x}"), "one");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_release_is_refused_by_name_and_never_touched() {
    with_each_helm(async |helm| {
        let mut world = World::with("foreign", helm).await;
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
            revisions::list_releases(&world.tools.ground.cluster)
                .await
                .unwrap()
                .iter()
                .all(|release| !release.newest.ours)
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_of_the_original_is_adopted() {
    with_each_helm(async |helm| {
        let mut world = World::with("adopted", helm).await;
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
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_from_before_the_original_wrote_labels_is_adopted() {
    with_each_helm(async |helm| {
        let mut world = World::with("aged", helm).await;
        world.simple_module().await;
        let dir = world.module_dir().display().to_string();
        let values = "one.x=a,_addonOperatorModuleChecksum=0123456789abcdef0123456789abcdef";
        world.helm_by_hand(&["install", "one", &dir, "--set", values]);
        let values = || json!({"one": {"x": "a"}});
        assert_eq!(world.sync(values()).await, Ok(synced(SyncAction::Upgraded, 2)));
        assert_eq!(world.sync(values()).await, Ok(synced(SyncAction::Unchanged, 2)));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_get_our_labels_and_helm_hooks_do_not() {
    with_each_helm(async |helm| {
        let mut world = World::with("labels", helm).await;
        let hook =
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hooked, annotations: {helm.sh/hook: post-install}}\n";
        world.module("one", &[("templates/hook.yaml", hook)]).await;
        world.simple_module().await;
        world.sync(json!({"one": {"x": "a"}})).await.unwrap();
        let labelled = world.kubectl("get configmap -l heritage=addon-operator -o=name");
        assert_eq!(labelled, "configmap/shown\n");
        assert_eq!(applied_by(&world), "Update", "with every helm");
        assert_eq!(world.kubectl("get configmap hooked -o=name"), "configmap/hooked\n");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chart_that_makes_nothing_is_a_release_of_nothing() {
    with_each_helm(async |helm| {
        let mut world = World::with("nothing", helm).await;
        let template = "{{ if .Values.one.on }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: shown}\n{{ end }}\n";
        world
            .module("one", &[("Chart.yaml", CHART), ("templates/a.yaml", template)])
            .await;
        let values = |on: bool| json!({"one": {"on": on}});
        assert_eq!(world.sync(values(false)).await, Ok(synced(SyncAction::Upgraded, 1)));
        assert_eq!(world.sync(values(false)).await, Ok(synced(SyncAction::Unchanged, 1)));
        assert_eq!(world.sync(values(true)).await, Ok(synced(SyncAction::Upgraded, 2)));
        assert_eq!(world.kubectl("get configmap shown -o=name"), "configmap/shown\n");
        assert_eq!(world.sync(values(false)).await, Ok(synced(SyncAction::Upgraded, 3)));
        assert_eq!(world.kubectl("get configmap -l heritage=addon-operator -o=name"), "");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_our_post_renderer_refuses_is_told_in_its_words() {
    with_each_helm(async |helm| {
        let mut world = World::with("complaint", helm).await;
        let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shown, labels: [a]}\n";
        world
            .module("one", &[("Chart.yaml", CHART), ("templates/a.yaml", template)])
            .await;
        let failure = world.sync(json!({})).await.unwrap_err();
        assert_eq!(failure.class, Class::Invalid);
        let said = "ConfigMap/shown has metadata.labels that is not a map";
        assert!(failure.report.contains(said), "{failure}");
    })
    .await;
}

/// The operation in `managedFields` of helm: `Apply` (on the server's side) or `Update`.
fn applied_by(world: &World) -> String {
    world.kubectl(
        "get configmap shown --show-managed-fields -o=jsonpath={.metadata.managedFields[?(@.manager==\"helm\")].operation}",
    )
}

/// Another field manager takes over a field.
fn edit_by_hand(world: &World) {
    world.kubectl("patch configmap shown --field-manager=somebody --type=merge --patch={\"data\":{\"x\":\"hand\"}}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_helm_keeps_the_way_in_which_objects_are_applied() {
    let mut world = World::with("method", Part::Helm3).await;
    world.simple_module().await;
    let mut revision = 0;
    for (helm, x) in [
        (Part::Helm3, "a"),
        (Part::Helm4, "b"),
        (Part::Helm3, "c"),
        (Part::Helm4, "d"),
    ] {
        world.change_helm(helm).await;
        if revision > 0 {
            edit_by_hand(&world);
        }
        revision += 1;
        let outcome = world.sync(json!({"one": {"x": x}})).await;
        assert_eq!(outcome, Ok(synced(SyncAction::Upgraded, revision)), "{helm}");
        assert_eq!(world.kubectl("get configmap shown -o=jsonpath={.data.x}"), x, "{helm}");
        assert_eq!(applied_by(&world), "Update", "{helm}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_helm_or_another_comment_makes_no_revision() {
    let mut world = World::with("same-objects", Part::Helm3).await;
    world.simple_module().await;
    let more = "apiVersion: v1\nkind: Secret\nmetadata: {name: more}\n---\n# nothing here\n";
    world.module("one", &[("templates/b.yaml", more)]).await;
    let values = json!({"one": {"x": "a"}});
    assert_eq!(world.sync(values.clone()).await, Ok(synced(SyncAction::Upgraded, 1)));
    for helm in [Part::Helm4, Part::Helm3] {
        world.change_helm(helm).await;
        let outcome = world.sync(values.clone()).await;
        assert_eq!(outcome, Ok(synced(SyncAction::Recorded, 1)), "{helm}");
        let outcome = world.sync(values.clone()).await;
        assert_eq!(outcome, Ok(synced(SyncAction::Unchanged, 1)), "{helm}");
    }
    let commented = format!("# A comment.\n{more}");
    world.module("one", &[("templates/b.yaml", &commented)]).await;
    assert_eq!(world.sync(values).await, Ok(synced(SyncAction::Recorded, 1)));
    assert_eq!(world.history(), "1:deployed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_the_api_server_applied_stays_so_whoever_edited_it() {
    let mut world = World::with("server-side", Part::Helm4).await;
    world.simple_module().await;
    let dir = world.module_dir().display().to_string();
    world.helm_by_hand(&[
        "install",
        "one",
        &dir,
        "--set",
        "one.x=a",
        "--labels",
        "moduleChecksum=0123456789abcdef0123456789abcdef",
    ]);
    assert_eq!(applied_by(&world), "Apply");
    edit_by_hand(&world);
    let outcome = world.sync(json!({"one": {"x": "b"}})).await;
    assert_eq!(outcome, Ok(synced(SyncAction::Upgraded, 2)));
    assert_eq!(world.kubectl("get configmap shown -o=jsonpath={.data.x}"), "b");
    assert_eq!(applied_by(&world), "Apply");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_modules_that_render_one_object_the_second_is_refused_by_name() {
    with_each_helm(async |helm| {
        let mut world = World::with("claims", helm).await;
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

        // A restarted operator reads this from the cluster.
        world.restart().await;
        sync::list(world.releases()).await.unwrap();
        assert_eq!(world.sync_module(second, json!({})).await.unwrap_err().report, expected);

        // After the first release is removed, the second may create the object.
        world.delete_release(first).await.unwrap();
        assert!(world.sync_module(second, json!({})).await.is_ok());
        assert_eq!(world.kubectl("get configmap shared -o=jsonpath={.data.by}"), second);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_in_maintenance_is_marked_once_left_alone_and_taken_back() {
    Box::pin(with_each_helm(async |helm| {
        let mut world = World::with("hands", helm).await;
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
        assert_eq!(
            world.helm_calls(),
            ["upgrade", "template", "upgrade"],
            "nothing is done to it"
        );

        world.maintenance = Maintenance::Managed;
        let back = world.sync(json!({"one": {"x": "b"}})).await;
        assert_eq!(back, Ok(synced(SyncAction::Upgraded, 3)));
        assert_eq!(marked(&world, "secret sh.helm.release.v1.one.v3"), "false");
        let labels = world.kubectl("get configmap shown -o=jsonpath={.metadata.labels}");
        assert!(!labels.contains("no-resource-reconciliation"), "{labels}");
        let again = world.sync(json!({"one": {"x": "b"}})).await;
        assert_eq!(again, Ok(synced(SyncAction::Unchanged, 3)));
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_is_what_it_should_be_is_not_rendered_for_its_conversion_webhooks() {
    let mut world = World::new("no-conversions").await;
    world.simple_module().await;
    let values = json!({"one": {"x": "a"}});
    world.sync(values.clone()).await.unwrap();
    world.restart().await;
    let module = ModuleName::parse("one").unwrap();
    for (values, calls) in [
        (values, &["upgrade"][..]),
        (json!({"one": {"x": "b"}}), &["upgrade", "template"]),
    ] {
        let of = Conversions {
            module: module.clone(),
            values: document(&values),
            vetting: None,
        };
        let outcomes = Box::pin(sync::ensure_conversions(world.releases(), &[of], &world.cancel)).await;
        assert_eq!(outcomes.unwrap()[&module], Ok(()));
        assert_eq!(world.helm_calls(), calls);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_that_was_renamed_waits_by_name_for_the_removal_of_its_old_release() {
    let mut world = World::new("renamed").await;
    world.simple_module().await;
    let values = json!({"one": {"x": "a"}});
    world.sync(values.clone()).await.unwrap();
    fs_err::rename(world.module_dir(), world.module_dir().with_file_name("two")).unwrap();
    world.restart().await;
    sync::list(world.releases()).await.unwrap();
    let failure = world.sync_module("two", values.clone()).await.unwrap_err();
    assert!(
        failure
            .report
            .contains("belongs to the release 'one' until that is removed: its module is gone"),
        "{failure}"
    );
    assert!(failure.hints[0].contains("uninstall 'one' with helm"), "{failure}");
    world.delete_release("one").await.unwrap();
    assert!(world.sync_module("two", values).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_beyond_a_secret_is_told_with_its_largest_parts() {
    with_each_helm(async |helm| {
        let mut world = World::with("oversized", helm).await;
        // Digests of digests hardly compress.
        let mut noise = String::new();
        let mut digest = Digest::of_bytes(b"seed");
        while noise.len() < 2_500_000 {
            digest = Digest::of_bytes(digest.to_string().as_bytes());
            noise.push_str(&digest.to_string());
        }
        world.module("one", &[("images/dump.bin", &noise)]).await;
        world.simple_module().await;
        let failure = world.sync(json!({"one": {"x": "a"}})).await.unwrap_err();
        assert!(failure.report.contains("The largest: images/dump.bin "), "{failure}");
        assert!(
            failure.hints.iter().any(|hint| hint.contains(".helmignore")),
            "{:?}",
            failure.hints
        );
        world.module("one", &[(".helmignore", "images/\n")]).await;
        world.sync(json!({"one": {"x": "a"}})).await.unwrap();
    })
    .await;
}
