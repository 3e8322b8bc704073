//! Objects that existed before a release that renders them stay when the release is removed, with either helm.

use addon_core::operator::event::SyncAction;
use serde_json::json;
use testbed::plane::User;
use testbed::wait::wait_until;

use super::world::{CHART, PATIENCE, TEMPLATE, World, with_each_helm};

const CLAIM: &str = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec:\n  accessModes: [ReadWriteOnce]\n  \
                     storageClassName: none\n  resources: {requests: {storage: 1Mi}}\n";

fn namespace(name: &str) -> String {
    format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_that_goes_leaves_what_was_there_before_it_and_nothing_else() {
    with_each_helm(async |helm| {
        let mut world = World::with("adopted", helm).await;
        let theirs = format!("{}-theirs", world.namespace.name());
        let ours = format!("{}-ours", world.namespace.name());
        let admin = world.namespace.kubectl_as(User::Admin);
        for manifest in [namespace(&theirs), CLAIM.to_owned()] {
            admin.feed(["apply", "--filename=-"], &manifest).unwrap();
        }
        let uids = |world: &World| {
            let of = |what: String| {
                world.kubectl(&format!(
                    "get {what} --ignore-not-found -o=jsonpath={{.metadata.uid}}{{.metadata.deletionTimestamp}}"
                ))
            };
            [of(format!("namespace {theirs}")), of("pvc data".to_owned())]
        };
        let before = uids(&world);
        let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: plain}\n";
        let files = [
            ("Chart.yaml", CHART.to_owned()),
            ("templates/a.yaml", TEMPLATE.to_owned()),
            ("templates/b.yaml", secret.to_owned()),
            ("templates/claim.yaml", CLAIM.to_owned()),
            ("templates/theirs.yaml", namespace(&theirs)),
            ("templates/ours.yaml", namespace(&ours)),
        ];
        let files: Vec<_> = files.iter().map(|(file, text)| (*file, text.as_str())).collect();
        // Created by another program, but of a kind that holds no data and no other objects, so it is not protected.
        admin.feed(["apply", "--filename=-"], secret).unwrap();
        world.module("one", &files).await;
        let synced = world.sync(json!({"one": {"x": "a"}})).await.unwrap();
        assert_eq!(
            synced.adopted,
            [format!("Namespace/{theirs}"), "PersistentVolumeClaim/data".to_owned()]
        );

        // Helm has labelled the objects as its own by now. The operator must still remember that they existed before,
        // and must not run helm without a change.
        world.restart().await;
        assert_eq!(
            world.sync(json!({"one": {"x": "a"}})).await.unwrap().action,
            SyncAction::Unchanged
        );
        let synced = world.sync(json!({"one": {"x": "b"}})).await.unwrap();
        assert_eq!((synced.revision, synced.adopted.len()), (2, 2));
        assert_eq!(
            world.sync(json!({"one": {"x": "b"}})).await.unwrap().action,
            SyncAction::Unchanged
        );

        world.delete().await.unwrap();
        assert_eq!(world.history(), "");
        assert_eq!(uids(&world), before);
        let look = || {
            let left = world.kubectl("get configmap,secret -l heritage=addon-operator -o=name");
            let phase = world.kubectl(&format!(
                "get namespace {ours} --ignore-not-found -o=jsonpath={{.status.phase}}"
            ));
            if left.is_empty() && phase != "Active" {
                Ok(Some(()))
            } else {
                Err(format!("{left} {phase}"))
            }
        };
        wait_until(PATIENCE, "the rest to go", look).unwrap();
        assert_eq!(uids(&world), before);
        admin.run(["delete", "namespace", &theirs, "--wait=false"]).unwrap();
    })
    .await;
}
