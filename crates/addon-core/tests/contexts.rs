//! Every document under `tests/corpus/contexts` with the file that its hook reads, byte for byte.
//!
//! `UPDATE=1` writes the files anew.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]
#![expect(clippy::disallowed_methods, reason = "the corpus is a folder of files")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use addon_core::digest::Digest;
use addon_core::hook::config::{HookConfig, HookKind, KubernetesBinding, Stage, WatchEvent};
use addon_core::hook::context::{self, Ask, BindingContext, Snapshots, Told};
use addon_core::object::json::Json;
use addon_core::object::snapshot::{Order, PartId, Sighting, Snapshot};
use addon_core::object::{ObjectName, ObjectView};
use gojq::filter::Filter;
use names::BindingName;
use serde::Deserialize;
use serde_json::Value;

/// What happened, and to which hook.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Document {
    config: Value,
    happened: Vec<Happened>,
    /// What is in the cluster, by the names of the bindings that watch it.
    #[serde(default)]
    objects: BTreeMap<BindingName, Vec<Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Happened {
    Stage(Stage),
    Schedule(BindingName),
    Synchronization(BindingName),
    Event(BindingName, WatchEvent, Value),
    Review(BindingName, Ask, Value),
}

impl Document {
    fn config(&self) -> HookConfig {
        HookConfig::parse(&self.config.to_string(), HookKind::Module).unwrap()
    }

    fn file(&self) -> Vec<u8> {
        let config = self.config();
        let contexts = context::combined(self.happened.iter().map(|happened| happened.context(&config)));
        let wanted = contexts.iter().flat_map(BindingContext::wanted_snapshots);
        let snapshots: Snapshots = wanted
            .map(|name| {
                let objects = self.objects.get(name).map(Vec::as_slice).unwrap_or_default();
                (name.clone(), snapshot(watching(&config, name), objects))
            })
            .collect();
        let mut file = Vec::new();
        context::write_file(&mut file, &contexts, config.version, &snapshots).unwrap();
        file
    }
}

impl Happened {
    fn context(&self, config: &HookConfig) -> BindingContext {
        match self {
            Self::Stage(stage) => BindingContext::stage(*stage, config),
            Self::Schedule(name) => {
                let mut schedules = config.schedules.iter();
                BindingContext::schedule(schedules.find(|binding| binding.name == *name).unwrap())
            }
            Self::Synchronization(name) => BindingContext::Synchronization(watching(config, name).into()),
            Self::Event(name, event, object) => {
                let binding = watching(config, name);
                BindingContext::Event {
                    told: binding.into(),
                    event: *event,
                    name: ObjectName::of(object),
                    object: view(binding, object),
                }
            }
            Self::Review(name, ask, review) => BindingContext::Review {
                told: asked(config, name),
                ask: ask.clone(),
                review: Json::from(review),
            },
        }
    }
}

fn watching<'a>(config: &'a HookConfig, name: &BindingName) -> &'a KubernetesBinding {
    config.kubernetes.iter().find(|binding| binding.name == *name).unwrap()
}

fn asked(config: &HookConfig, name: &BindingName) -> Told {
    let admissions = config.validating.iter().chain(&config.mutating);
    let mut admissions = admissions.filter(|binding| binding.name == *name).map(Told::from);
    let conversions = || config.conversions.iter().find(|binding| binding.name == *name);
    admissions.next().unwrap_or_else(|| conversions().unwrap().into())
}

fn view(binding: &KubernetesBinding, object: &Value) -> ObjectView {
    let filter = binding.jq_filter.as_deref().map(|text| Filter::compile(text).unwrap());
    ObjectView {
        object: binding.keep_full_objects.then(|| Json::from(object)),
        filter_result: filter.map(|filter| Json::from(&filter.apply(object).unwrap())),
    }
}

fn snapshot(binding: &KubernetesBinding, objects: &[Value]) -> Vec<ObjectView> {
    let order = if binding.keep_full_objects {
        Order::ByName
    } else {
        Order::ByText
    };
    let (mut snapshot, part) = (Snapshot::new(order), PartId(1));
    snapshot.add_part(part);
    for object in objects {
        let sighting = Sighting {
            name: Arc::new(ObjectName::of(object)),
            view: view(binding, object),
            digest: Digest::of(object),
        };
        snapshot.fill(part, sighting);
    }
    snapshot.objects()
}

fn documents(extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/contexts");
    let mut paths: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    paths.sort();
    paths
}

#[test]
fn every_hook_reads_what_it_should() {
    let files = documents("json");
    let mut wrong = String::new();
    for path in &files {
        let document: Document = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let now = document.file();
        let lines = str::from_utf8(&now).unwrap().matches('\n').count();
        assert_eq!(lines, 1, "{}", path.display());
        serde_json::from_slice::<Vec<Value>>(&now).unwrap();
        let expected = path.with_extension("written");
        if std::env::var("UPDATE").is_ok() {
            std::fs::write(&expected, &now).unwrap();
        }
        if std::fs::read(&expected).ok().as_ref() != Some(&now) {
            writeln!(wrong, "{}:\n{}", path.display(), String::from_utf8_lossy(&now)).unwrap();
        }
    }
    for path in documents("written") {
        if !path.with_extension("json").exists() {
            writeln!(wrong, "{}: written for nobody", path.display()).unwrap();
        }
    }
    assert_eq!(wrong, "", "files differ; UPDATE=1 writes them anew");
    assert!(files.len() >= 15, "documents were lost: {}", files.len());
}
