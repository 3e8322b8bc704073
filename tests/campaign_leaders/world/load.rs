//! The load: people edit sections and a flag of the ConfigMap, and objects that a hook watches. The wishes are
//! remembered.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use testbed::draw::Draw;
use testbed::files;
use testbed::namespace::Namespace;

use crate::cluster;

/// Modules that are never switched off.
const LASTING: [&str; 3] = ["mail", "news", "shop"];
/// The module that is switched on and off.
pub(super) const FAIR: &str = "fair";
/// The number of pages in the release of each module.
pub(super) const PAGES: usize = 3;
/// The objects that the hook copies.
const ORIGINALS: [&str; 4] = ["one", "two", "three", "four"];
pub(super) const COPY: &str = "copy-of-";
/// The pause between two edits while a change is under way.
const PAUSE: Duration = Duration::from_millis(700);

const CLAIM: &str = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: @MODULE@}\n\
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}\n";
const PAGE: &str = "{{- range until 3 }}\n---\napiVersion: v1\nkind: ConfigMap\n\
    metadata: {name: @MODULE@-{{ . }}, labels: {campaign: page}}\ndata: {word: {{ $.Values.@MODULE@.word | quote }}}\n{{- end }}\n";
const HOOK: &str = r#"#!/bin/bash
if [[ ${1-} == --config ]]; then
  cat <<END
configVersion: v1
kubernetes:
- name: seen
  group: copy
  kind: ConfigMap
  labelSelector: {matchLabels: {campaign: original}}
  jqFilter: '{name: .metadata.name, word: .data.word}'
  namespace: {nameSelector: {matchNames: [$IN]}}
END
  exit 0
fi
jq --compact-output --arg in "$IN" '.[-1].snapshots.seen[].filterResult | {operation: "CreateOrUpdate", object: {apiVersion: "v1",
  kind: "ConfigMap", metadata: {namespace: $in, name: ("copy-of-" + .name), labels: {campaign: "copy"}}, data: {word: .word}}}' \
  "$BINDING_CONTEXT_PATH" >"$KUBERNETES_PATCH_PATH"
"#;

#[derive(Debug)]
pub(crate) struct Load {
    draw: Draw,
    /// The wanted value of each module that is on.
    words: BTreeMap<&'static str, String>,
    originals: BTreeMap<&'static str, String>,
    /// Modules that were switched off at least once in this round.
    switched_off: BTreeSet<&'static str>,
    edits: usize,
    last: Instant,
}

impl Load {
    /// Writes the modules and the hook, and creates the first objects.
    pub(super) fn furnish(namespace: &Namespace<'_>, folder: &Path, draw: Draw) -> anyhow::Result<Self> {
        let write = |path: String, text: &str| files::put(folder, path, text);
        let mut data = serde_json::Map::new();
        for (place, module) in LASTING.into_iter().chain([FAIR]).enumerate() {
            let at = format!("modules/{}00-{module}", place + 1);
            write(
                format!("{at}/Chart.yaml"),
                &format!("apiVersion: v2\nname: {module}\nversion: 0.1.0\n"),
            )?;
            write(format!("{at}/values.yaml"), &format!("{module}: {{word: none}}\n"))?;
            write(format!("{at}/templates/claim.yaml"), &CLAIM.replace("@MODULE@", module))?;
            write(format!("{at}/templates/pages.yaml"), &PAGE.replace("@MODULE@", module))?;
            data.insert(format!("{module}Enabled"), json!("true"));
        }
        write("global-hooks/copy.sh".to_owned(), HOOK)?;
        let config =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": cluster::CONFIG}, "data": data});
        let admin = namespace.kubectl_as(testbed::plane::User::Admin);
        admin.feed(["create", "--filename=-"], &config.to_string())?;
        for original in ORIGINALS {
            let labels = json!({"campaign": "original"});
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": original, "labels": labels}, "data": {"word": "none"}});
            admin.feed(["create", "--filename=-"], &object.to_string())?;
        }
        let none = |names: &[&'static str]| names.iter().map(|name| (*name, "none".to_owned())).collect();
        let mut words: BTreeMap<_, _> = none(&LASTING);
        words.insert(FAIR, "none".to_owned());
        Ok(Self {
            draw,
            words,
            originals: none(&ORIGINALS),
            switched_off: BTreeSet::new(),
            edits: 0,
            last: Instant::now(),
        })
    }

    pub(super) fn edits(&self) -> usize {
        self.edits
    }

    pub(super) fn words(&self) -> &BTreeMap<&'static str, String> {
        &self.words
    }

    pub(super) fn originals(&self) -> &BTreeMap<&'static str, String> {
        &self.originals
    }

    pub(super) fn begin_round(&mut self) {
        self.switched_off.clear();
    }

    /// Whether an edit of this round has switched the module off.
    pub(super) fn was_switched_off(&self, module: &str) -> bool {
        self.switched_off.contains(module)
    }

    /// Makes one edit as a person would, unless the last one was a moment ago.
    pub(super) fn edit_now_and_then(&mut self, namespace: &Namespace<'_>) -> anyhow::Result<()> {
        if self.last.elapsed() < PAUSE {
            return Ok(());
        }
        self.edit(namespace)
    }

    pub(super) fn edit(&mut self, namespace: &Namespace<'_>) -> anyhow::Result<()> {
        self.edits += 1;
        let word = format!("word {}", self.edits);
        match self.draw.below(10) {
            0 => {
                let is_there = self.words.remove(FAIR).is_some();
                if is_there {
                    self.switched_off.insert(FAIR);
                    cluster::edit(namespace, &json!({"fairEnabled": "false"}))?;
                } else {
                    let data = json!({"fairEnabled": "true", "fair": json!({"word": word}).to_string()});
                    self.words.insert(FAIR, word);
                    cluster::edit(namespace, &data)?;
                }
            }
            1..=6 => {
                let module = self.draw.pick(&LASTING);
                cluster::edit(namespace, &json!({ module: json!({"word": word}).to_string() }))?;
                self.words.insert(module, word);
            }
            _ => {
                let original = self.draw.pick(&ORIGINALS);
                let patch = json!({"data": {"word": word}}).to_string();
                namespace.kubectl(["patch", "configmap", original, "--type=merge", "--patch", &patch])?;
                self.originals.insert(original, word);
            }
        }
        self.last = Instant::now();
        Ok(())
    }
}
