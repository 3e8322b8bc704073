//! Upgrades that would delete objects that no one wanted to lose, with each helm.
#![expect(clippy::unwrap_used, reason = "a test has no better way to end")]

use addon_core::failure::{Class, Failure};
use addon_core::operator::event::SyncAction;
use fs_err as fs;
use releases::revisions::{self, upgrades};
use serde_json::json;
use testbed::wait::wait_until;

use super::world::{CHART, PATIENCE, TEMPLATE, World, with_each_helm};

const CLAIM: &str = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec:\n  accessModes: [ReadWriteOnce]\n  \
                     storageClassName: none\n  resources: {requests: {storage: 1Mi}}\n";

fn small(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n")
}

fn held(outcome: Result<impl std::fmt::Debug, Failure>) -> String {
    let failure = outcome.unwrap_err();
    assert_eq!(failure.class, Class::Held, "{failure}");
    failure.report
}

impl World {
    async fn without(&mut self, file: &str) {
        fs::remove_file(self.module_dir().join(file)).unwrap();
        self.restart().await;
    }

    async fn confirm(&self) {
        let cluster = &self.tools.ground.cluster;
        let newest = revisions::newest_revision(cluster, "one").await.unwrap().unwrap();
        upgrades::allow(cluster, &newest, newest.newest.held.as_ref().unwrap())
            .await
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_whose_file_is_missing_stays_until_somebody_confirms() {
    with_each_helm(async |helm| {
        let mut world = World::with("brake-claim", helm).await;
        let values = || json!({"one": {"x": "a"}});
        world.simple_module().await;
        world.module("one", &[("templates/claim.yaml", CLAIM)]).await;
        world.sync(values()).await.unwrap();
        let claim = |world: &World| {
            world.kubectl("get pvc --ignore-not-found data -o=jsonpath={.metadata.uid}{.metadata.deletionTimestamp}")
        };
        let uid = claim(&world);

        world.without("templates/claim.yaml").await;
        let report = held(world.sync(values()).await);
        assert!(report.contains("PersistentVolumeClaim/data"), "{report}");
        assert_eq!(world.helm_calls(), ["template", "upgrade", "template"]);
        // Without a change, the restarted operator runs no upgrade.
        world.restart().await;
        assert_eq!(held(world.sync(values()).await), report);
        assert_eq!(world.helm_calls(), ["template", "upgrade", "template"]);

        world.module("one", &[("templates/claim.yaml", CLAIM)]).await;
        assert_eq!(world.sync(values()).await.unwrap().action, SyncAction::Unchanged);
        assert_eq!(world.history(), "1:deployed");
        assert_eq!(claim(&world), uid);

        world.without("templates/claim.yaml").await;
        held(world.sync(values()).await);
        world.confirm().await;
        let synced = world.sync(values()).await.unwrap();
        assert_eq!((synced.action, synced.revision), (SyncAction::Upgraded, 2));
        let look = || match claim(&world) {
            gone if gone != uid => Ok(Some(())),
            there => Err(there),
        };
        wait_until(PATIENCE, "the claim to go", look).unwrap();
        assert_eq!(world.sync(values()).await.unwrap().action, SyncAction::Unchanged);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn most_of_a_release_goes_only_with_its_section_or_its_version() {
    with_each_helm(async |helm| {
        let mut world = World::with("brake-most", helm).await;
        let values = || json!({"one": {"x": "a"}});
        let files: Vec<_> = ["b", "c", "d", "e"]
            .map(|name| (format!("templates/{name}.yaml"), small(name)))
            .into();
        let files: Vec<_> = files
            .iter()
            .map(|(file, text)| (file.as_str(), text.as_str()))
            .collect();
        let names = |world: &World| world.kubectl("get configmaps -l heritage -o=jsonpath={.items[*].metadata.name}");
        world.simple_module().await;
        world.module("one", &files).await;
        world.sync(values()).await.unwrap();
        assert_eq!(names(&world), "b c d e shown");

        // First two of five objects disappear from the chart, then three more of the remaining three. Of these only two
        // may be deleted at once.
        world.without("templates/b.yaml").await;
        world.without("templates/c.yaml").await;
        assert_eq!(world.sync(values()).await.unwrap().revision, 2);
        assert_eq!(names(&world), "d e shown");
        world.module("one", &files).await;
        assert_eq!(world.sync(values()).await.unwrap().revision, 3);

        for file in ["b", "c", "d"] {
            world.without(&format!("templates/{file}.yaml")).await;
        }
        let report = held(world.sync(values()).await);
        assert!(report.contains("3 of 5 objects"), "{report}");
        assert_eq!(names(&world), "b c d e shown");

        world.section = Some(json!({"new": 1}));
        assert_eq!(world.sync(values()).await.unwrap().revision, 4);
        assert_eq!(names(&world), "e shown");

        world.module("one", &files).await;
        assert_eq!(world.sync(values()).await.unwrap().revision, 5);
        for file in ["b", "c", "d"] {
            world.without(&format!("templates/{file}.yaml")).await;
        }
        held(world.sync(values()).await);
        let newer = CHART.replace("0.1.0", "0.2.0");
        world.module("one", &[("Chart.yaml", &newer)]).await;
        assert_eq!(world.sync(values()).await.unwrap().revision, 6);
        assert_eq!(names(&world), "e shown");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_helm_keeps_and_what_a_failed_attempt_would_take_away() {
    with_each_helm(async |helm| {
        let mut world = World::with("brake-keep", helm).await;
        let kept = CLAIM.replace(
            "{name: data}",
            "{name: data, annotations: {helm.sh/resource-policy: keep}}",
        );
        let values = || json!({"one": {"x": "a"}});
        let claim = |world: &World| world.kubectl("get pvc --ignore-not-found data -o=jsonpath={.metadata.uid}");
        world.simple_module().await;
        world.module("one", &[("templates/claim.yaml", &kept)]).await;
        world.sync(values()).await.unwrap();
        let uid = claim(&world);
        world.without("templates/claim.yaml").await;
        assert_eq!(world.sync(values()).await.unwrap().revision, 2);
        assert_eq!(claim(&world), uid, "helm has kept it");

        world.module("one", &[("templates/claim.yaml", CLAIM)]).await;
        assert_eq!(world.sync(values()).await.unwrap().revision, 3);
        // The comparison is with the deployed revision, even if a failed one is newer.
        let broken = TEMPLATE.replace("name: shown", "name: Bad_Name");
        world.module("one", &[("templates/a.yaml", &broken)]).await;
        assert_eq!(world.sync(values()).await.unwrap_err().class, Class::Refused);
        assert_eq!(world.history(), "1:superseded 2:superseded 3:deployed 4:failed");
        world.module("one", &[("templates/a.yaml", TEMPLATE)]).await;
        world.without("templates/claim.yaml").await;
        held(world.sync(values()).await);
        assert_eq!(claim(&world), uid);
        world.module("one", &[("templates/claim.yaml", CLAIM)]).await;
        assert_eq!(world.sync(values()).await.unwrap().revision, 5);
        assert_eq!(claim(&world), uid);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_release_loses_all_by_its_values_and_not_by_half_a_copy() {
    with_each_helm(async |helm| {
        let mut world = World::with("brake-small", helm).await;
        let switched = format!("{{{{- if .Values.one.x }}}}\n{TEMPLATE}{{{{- end }}}}\n");
        let there = || json!({"one": {"x": "a"}});
        world.simple_module().await;
        world.module("one", &[("templates/a.yaml", &switched)]).await;
        world.sync(there()).await.unwrap();
        let uid = |world: &World| world.kubectl("get configmap --ignore-not-found shown -o=jsonpath={.metadata.uid}");
        let before = uid(&world);

        world.without("templates/a.yaml").await;
        let report = held(world.sync(there()).await);
        assert!(report.contains("1 of 1 objects (ConfigMap/shown)"), "{report}");
        for half in ["", "{{- if .Values.one.x }}\n{{- end }}\n"] {
            world.module("one", &[("templates/a.yaml", half)]).await;
            held(world.sync(there()).await);
        }
        assert_eq!(uid(&world), before);

        world.module("one", &[("templates/a.yaml", &switched)]).await;
        assert_eq!(world.sync(there()).await.unwrap().action, SyncAction::Unchanged);
        let synced = world.sync(json!({"one": {"x": ""}})).await.unwrap();
        assert_eq!((synced.action, synced.revision), (SyncAction::Upgraded, 2));
        assert_eq!(uid(&world), "", "its values have switched it off");
    })
    .await;
}
