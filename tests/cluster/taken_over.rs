//! Releases that the original operator has made, are taken over, and are given back to it. Their manifests were
//! recorded: helm 3 rendered them, and the library with which the original sets its label wrote them.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use addon_core::operator::event::SyncAction;
use fs_err as fs;
use serde_json::json;
use testbed::part::Part;
use testbed::plane::User;

use super::world::{World, with_each_helm};

/// The values of all releases.
const SET: &str = "one.x=a";
/// A template that renders to nothing with the recorded values.
const MORE: &str = "{{- if .Values.one.more }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n{{- end }}\n";

/// A module, and the manifest that the original stores for it.
struct Recorded {
    name: &'static str,
    /// A second template, beside the one with an object.
    template: Option<&'static str>,
    manifest: &'static str,
    /// The checksum of the manifest, as the original computes it.
    checksum: &'static str,
}

const RECORDED: [Recorded; 6] = [
    Recorded {
        name: "plain",
        template: None,
        manifest: include_str!("taken_over/plain.manifest"),
        checksum: "6df4679564df0fb2bff6ed3cbf9ed014",
    },
    Recorded {
        name: "blank",
        template: Some(""),
        manifest: include_str!("taken_over/blank.manifest"),
        checksum: "d0d91217985d73f0f69417a199430d08",
    },
    Recorded {
        name: "remark",
        template: Some("# Made for you\n"),
        manifest: include_str!("taken_over/remark.manifest"),
        checksum: "64eb09c43cc58665b069f0269b303a12",
    },
    Recorded {
        name: "marks",
        template: Some("---\n"),
        manifest: include_str!("taken_over/marks.manifest"),
        checksum: "034a88c0f863e1b82056cf4468bb6424",
    },
    Recorded {
        name: "mixed",
        template: Some("---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: mixed}\n---\n# none\n"),
        manifest: include_str!("taken_over/mixed.manifest"),
        checksum: "0772f32428cd737debbd11b2a0f711ce",
    },
    // The original's library leaves out an empty map of annotations.
    Recorded {
        name: "annotated",
        template: Some(
            "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: annotated\n  annotations:\n    \
             {{- if .Values.one.more }}\n    note: more\n    {{- end }}\n---\n",
        ),
        manifest: include_str!("taken_over/annotated.manifest"),
        checksum: "45a6c852ebc8298804a0d14defe101cf",
    },
];

impl Recorded {
    async fn write(&self, world: &mut World) {
        let chart = format!("apiVersion: v2\nname: {}\nversion: 0.1.0\n", self.name);
        let object = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {}\ndata:\n  x: {{{{ .Values.one.x | quote }}}}\n  \
             mode: \"0644\"\n  text: |\n    first\n      second\n",
            self.name
        );
        let mut files = vec![("Chart.yaml", chart.as_str()), ("templates/a.yaml", object.as_str())];
        let other = self.template.map(|text| format!("{text}{MORE}"));
        files.extend(other.as_deref().map(|text| ("templates/b.yaml", text)));
        world.module(self.name, &files).await;
    }

    /// Runs helm as the original does: with the original's labels, and with the recorded manifest as the result of a
    /// post-renderer.
    fn install(&self, world: &World, labels: &str, set: &str) {
        let dir = world.module_dir().with_file_name(self.name);
        let recorded = dir.with_extension("manifest");
        fs::write(&recorded, self.manifest).unwrap();
        let renderer = dir.with_extension("sh");
        fs::write(
            &renderer,
            format!("#!/bin/sh\ncat >/dev/null\ncat {}\n", recorded.display()),
        )
        .unwrap();
        fs::set_permissions(&renderer, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut arguments = vec!["upgrade", "--install", "--skip-crds", "--take-ownership", self.name];
        let (dir, renderer) = (dir.display().to_string(), renderer.display().to_string());
        arguments.extend([dir.as_str(), "--set", set, "--post-renderer", &renderer]);
        if !labels.is_empty() {
            arguments.extend(["--labels", labels]);
        }
        helm(world, &arguments);
    }

    fn labels(&self) -> String {
        format!(
            "moduleChecksum={},maintenance.deckhouse.io/no-resource-reconciliation=false",
            self.checksum
        )
    }

    /// The checksum that the original finds in the newest revision.
    fn found_by_the_original(&self, world: &World, revision: u32) -> String {
        world.kubectl(&format!(
            "get secret sh.helm.release.v1.{}.v{revision} -o=jsonpath={{.metadata.labels.moduleChecksum}}",
            self.name
        ))
    }
}

/// Runs helm 3, which the original has built in.
fn helm(world: &World, arguments: &[&str]) {
    let output = testbed::process::command(testbed::shared::program(Part::Helm3))
        .args(arguments)
        .env("HOME", Path::new("/nonexistent"))
        .args([
            "--kubeconfig".as_ref(),
            world.namespace.kubeconfig(User::Admin).as_os_str(),
        ])
        .args(["--namespace", world.namespace.name()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

async fn synced(world: &World, module: &Recorded, x: &str) -> (SyncAction, u32) {
    let values = json!({"one": {"x": x}});
    let synced = world.sync_module(module.name, values).await.unwrap();
    (synced.action, synced.revision)
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_objects_are_taken_over_without_a_revision_and_left_without_one() {
    with_each_helm(async |helm| {
        let mut world = World::with("taken", helm).await;
        for module in &RECORDED {
            module.write(&mut world).await;
            module.install(&world, &module.labels(), SET);
        }
        let mut told = Vec::new();
        for module in &RECORDED {
            for _ in 0..2 {
                let (action, revision) = synced(&world, module, "a").await;
                let found = module.found_by_the_original(&world, 1);
                told.push((module.name, action, revision, found));
            }
        }
        let row = |module: &Recorded, action| (module.name, action, 1, module.checksum.to_owned());
        let both = [SyncAction::Recorded, SyncAction::Unchanged];
        let rows = RECORDED
            .iter()
            .flat_map(|module| both.map(|action| row(module, action)));
        assert_eq!(told, rows.collect::<Vec<_>>());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revision_that_the_original_makes_after_ours_is_taken_over_again() {
    with_each_helm(async |helm| {
        let mut world = World::with("again", helm).await;
        let module = &RECORDED[5];
        module.write(&mut world).await;
        module.install(&world, &module.labels(), SET);
        assert_eq!(synced(&world, module, "b").await, (SyncAction::Upgraded, 2));
        assert_ne!(module.found_by_the_original(&world, 2), module.checksum);
        module.install(&world, &module.labels(), SET);
        assert_eq!(synced(&world, module, "a").await, (SyncAction::Recorded, 3));
        assert_eq!(module.found_by_the_original(&world, 3), module.checksum);
        assert_eq!(synced(&world, module, "a").await, (SyncAction::Unchanged, 3));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checksum_among_the_values_becomes_the_label_that_the_original_reads_first() {
    with_each_helm(async |helm| {
        let mut world = World::with("values", helm).await;
        let module = &RECORDED[1];
        module.write(&mut world).await;
        let set = format!("{SET},_addonOperatorModuleChecksum={}", module.checksum);
        module.install(&world, "", &set);
        assert_eq!(synced(&world, module, "a").await, (SyncAction::Recorded, 1));
        assert_eq!(module.found_by_the_original(&world, 1), module.checksum);
        assert_eq!(synced(&world, module, "a").await, (SyncAction::Unchanged, 1));
    })
    .await;
}
