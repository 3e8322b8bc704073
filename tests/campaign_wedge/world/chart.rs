//! The chart of the module, and the section of the `ConfigMap` that decides which objects it renders.

use std::io;
use std::path::Path;

use serde_json::{Value, json};
use testbed::files;

use crate::plan::Kind;

/// The values of the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    /// Each object carries it as an annotation.
    pub(super) word: String,
    pub(super) kinds: Vec<Kind>,
    /// The kind whose fixed field has another value.
    pub(super) changed: Option<Kind>,
    /// The version of the custom resource.
    pub(super) version: &'static str,
}

impl Section {
    pub(super) fn new(word: &str, kinds: &[Kind], version: &'static str) -> Self {
        Self {
            word: word.to_owned(),
            kinds: kinds.to_vec(),
            changed: None,
            version,
        }
    }

    pub(super) fn to_value(&self) -> Value {
        let kinds: Vec<String> = self.kinds.iter().map(|kind| format!("{kind:?}")).collect();
        let changed = self.changed.map_or_else(String::new, |kind| format!("{kind:?}"));
        json!({ "word": self.word, "kinds": kinds, "changed": changed, "version": self.version })
    }
}

/// The name of a `ConfigMap` that only the revision with this word has.
pub(super) fn own_page(word: &str) -> String {
    format!("only-{word}")
}

/// The value of a fixed field, by whether it is changed.
const FIELD: &str = r#"{{ eq .Values.wedge.changed "KIND" | ternary "other" "first" }}"#;

/// The templates: kind, API version, and the fields beside the metadata.
const TEMPLATES: [(&str, &str, &str); 7] = [
    ("ConfigMap", "v1", ""),
    ("Secret", "v1", "stringData: {combination: \"1234\"}"),
    (
        "Deployment",
        "apps/v1",
        "spec:\n  replicas: 0\n  selector: {matchLabels: {x: FIELD}}\n  template:\n    metadata: {labels: {x: FIELD}}\n    \
         spec: {containers: [{name: c, image: i}]}",
    ),
    (
        "Job",
        "batch/v1",
        "spec:\n  parallelism: 0\n  template:\n    spec: {restartPolicy: Never, containers: [{name: c, image: i, args: [FIELD]}]}",
    ),
    (
        "RoleBinding",
        "rbac.authorization.k8s.io/v1",
        "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: FIELD}\nsubjects: [{kind: ServiceAccount, name: default}]",
    ),
    (
        "PersistentVolumeClaim",
        "v1",
        "spec:\n  storageClassName: FIELD\n  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1Mi}}",
    ),
    ("Widget", "GROUP/{{ .Values.wedge.version }}", ""),
];

/// Writes the modules directory.
pub(super) fn write(folder: &Path, group: &str) -> io::Result<()> {
    files::put(folder, "values.yaml", "wedgeEnabled: false\n")?;
    let chart = "apiVersion: v2\nname: wedge\nversion: 0.1.0\n";
    files::put(folder, "100-wedge/Chart.yaml", chart)?;
    let values = "wedge: {word: none, kinds: [], changed: '', version: v1}\n";
    files::put(folder, "100-wedge/values.yaml", values)?;
    let page = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'only-{{ .Values.wedge.word }}'}\n";
    files::put(folder, "100-wedge/templates/page.yaml", page)?;
    for (kind, version, rest) in TEMPLATES {
        let text = format!(
            "{{{{- if has \"{kind}\" .Values.wedge.kinds }}}}\napiVersion: {version}\nkind: {kind}\n\
             metadata: {{name: wedge, annotations: {{word: {{{{ .Values.wedge.word | quote }}}}}}}}\n{rest}\n{{{{- end }}}}\n"
        );
        let text = text
            .replace("FIELD", &FIELD.replace("KIND", kind))
            .replace("GROUP", group);
        let path = format!("100-wedge/templates/{}.yaml", kind.to_lowercase());
        files::put(folder, path, &text)?;
    }
    Ok(())
}
