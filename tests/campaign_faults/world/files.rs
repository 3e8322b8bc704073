//! The modules of a world and their hooks.

use std::io;
use std::path::Path;

use fs_err as fs;
use testbed::files;

/// The module with a PersistentVolumeClaim, which people do not edit.
pub(super) const CELLAR: &str = "cellar";
/// The cellar's page (a ConfigMap), which people delete and change.
pub(super) const CELLAR_PAGE: &str = "cellar-page";
/// The module that is edited and switched on and off.
pub(super) const VAULT: &str = "vault";
/// The number of the vault's pages.
pub(super) const PAGES: usize = 3;
/// The module with hooks.
pub(super) const WATCHER: &str = "watcher";
/// The object that the hook writes from the objects that it watches.
pub(super) const MIRROR: &str = "mirror";

const FILES: [(&str, &str); 13] = [
    (
        "modules/values.yaml",
        "cellarEnabled: true\nwatcherEnabled: true\nvaultEnabled: false\n",
    ),
    (
        "modules/100-cellar/Chart.yaml",
        "apiVersion: v2\nname: cellar\nversion: 0.1.0\n",
    ),
    (
        "modules/100-cellar/templates/claim.yaml",
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: cellar}\n\
         spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}\n",
    ),
    (
        "modules/100-cellar/templates/page.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cellar-page}\ndata: {word: here}\n",
    ),
    (
        "modules/200-vault/Chart.yaml",
        "apiVersion: v2\nname: vault\nversion: 0.1.0\n",
    ),
    ("modules/200-vault/values.yaml", "vault: {word: none}\n"),
    (
        "modules/200-vault/templates/claim.yaml",
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: vault}\n\
         spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}\n",
    ),
    (
        "modules/200-vault/templates/secret.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: vault}\nstringData: {combination: \"1234\"}\n",
    ),
    // Charts may ask for served APIs in two ways, and this template uses both.
    (
        "modules/200-vault/templates/role.yaml",
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: vault}\nrules: []\n",
    ),
    (
        "modules/200-vault/templates/pages.yaml",
        "{{- range until 3 }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: vault-{{ . }}}\n\
         data:\n  word: {{ $.Values.vault.word | quote }}\n\
         \x20 roles: {{ $.Capabilities.APIVersions.Has \"rbac.authorization.k8s.io/v1/Role\" | quote }}\n{{- end }}\n",
    ),
    (
        "modules/300-watcher/Chart.yaml",
        "apiVersion: v2\nname: watcher\nversion: 0.1.0\n",
    ),
    (
        "modules/300-watcher/templates/page.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: watcher}\n",
    ),
    ("modules/300-watcher/hooks/mirror.sh", HOOK),
];

const HOOK: &str = r#"#!/usr/bin/env bash
set -euo pipefail
if [[ ${1-} == --config ]]; then
  cat <<'YAML'
configVersion: v1
kubernetes:
  - name: notes
    apiVersion: v1
    kind: ConfigMap
    namespace: {nameSelector: {matchNames: ["@NAMESPACE@"]}}
    labelSelector: {matchLabels: {campaign: note}}
    jqFilter: "{name: .metadata.name, text: .data.text}"
    includeSnapshotsFrom: [notes]
    queue: notes
schedule:
  - name: tick
    crontab: "*/2 * * * * *"
    queue: ticks
YAML
  exit 0
fi
if jq --exit-status 'all(.[]; .binding == "tick")' "$BINDING_CONTEXT_PATH" >/dev/null; then
  echo tick >>"@NOTES@/ticks"
  exit 0
fi
jq '{
  operation: "CreateOrUpdate",
  object: {
    apiVersion: "v1", kind: "ConfigMap", metadata: {name: "mirror", namespace: "@NAMESPACE@"},
    data: {seen: ([.[-1].snapshots.notes[].filterResult | {(.name): .text}] | add // {} | tojson)}
  }
}' "$BINDING_CONTEXT_PATH" >"$KUBERNETES_PATCH_PATH"
"#;

/// Writes all modules; the hooks append their notes to files in `notes`.
pub(super) fn write(folder: &Path, namespace: &str, notes: &Path) -> io::Result<()> {
    for (path, text) in FILES {
        let text = text.replace("@NAMESPACE@", namespace);
        files::put(folder, path, &text.replace("@NOTES@", &notes.display().to_string()))?;
    }
    fs::create_dir(folder.join("no-hooks"))
}
