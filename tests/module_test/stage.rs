//! A folder with modules that a test writes, and the commands that are run there. No cluster is needed.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use testbed::find::Finder;
use testbed::part::Part;
use testbed::{files, process};

use crate::PROGRAM;

/// A hook with a binding of every kind that does what the value `do` says.
const HOOK: &str = r#"#!/usr/bin/env bash
set -euo pipefail
if [[ ${1-} == --config ]]; then
  echo asked >>"${ASKED:-/dev/null}"
  cat <<'YAML'
configVersion: v1
beforeHelm: 10
afterHelm: 10
schedule:
  - {name: hourly, crontab: "0 * * * *", includeSnapshotsFrom: [pods]}
kubernetes:
  - name: pods
    kind: Pod
    apiVersion: v1
    executeHookOnEvent: [Added, Deleted]
    labelSelector: {matchLabels: {app: web}}
    jqFilter: "{name: .metadata.name, node: .spec.nodeName}"
    keepFullObjectsInMemory: false
  - {name: quiet, kind: ConfigMap, executeHookOnSynchronization: false, namespace: {nameSelector: {matchNames: [shop]}}}
kubernetesValidating:
  - name: check.example.com
    rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods], scope: Namespaced}]
kubernetesMutating:
  - name: change.example.com
    rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods], scope: Namespaced}]
kubernetesCustomResourceConversion:
  - {name: convert, crdName: gadgets.example.com, conversions: [{fromVersion: example.com/v1, toVersion: example.com/v2}]}
YAML
  exit 0
fi
eval "$(jq -r '.demo.do // ""' "$VALUES_PATH")"
"#;

const CONFIG_SCHEMA: &str =
    "type: object\nadditionalProperties: false\nproperties: {do: {type: string}, size: {type: integer}}\n";
const VALUES_SCHEMA: &str = "x-extend: {schema: config-values.yaml}\ntype: object\nx-required-for-helm: [size]\nproperties: {\
     computed: {type: integer}, seen: {additionalProperties: true}}\n";
const TEMPLATE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: demo}\ndata:\n  size: {{ .Values.demo.size | quote }}\n  \
     text: |\n    first\n    second {{ .Values.demo.size }}\n{{ if gt (int .Values.demo.size) 100 }}{{ fail \"too large\" }}{{ end }}\n";

pub(super) struct Stage {
    pub(super) folder: TempDir,
}

/// The end of a command.
pub(super) struct Ran {
    pub(super) code: i32,
    pub(super) out: String,
    pub(super) err: String,
}

impl Stage {
    pub(super) fn empty() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// A module `demo` whose hook does what a case says.
    pub(super) fn with_demo() -> Self {
        let stage = Self::empty();
        for (path, text) in [
            ("Chart.yaml", "apiVersion: v2\nname: demo\nversion: 0.1.0\n"),
            ("values.yaml", "demo: {size: 1}\n"),
            ("openapi/config-values.yaml", CONFIG_SCHEMA),
            ("openapi/values.yaml", VALUES_SCHEMA),
            ("templates/config-map.yaml", TEMPLATE),
            ("hooks/do.sh", HOOK),
            (
                "enabled",
                "#!/bin/bash\necho false >\"$MODULE_ENABLED_RESULT\"; echo 'it is late' >\"$MODULE_ENABLED_REASON\"\n",
            ),
        ] {
            stage.put(&format!("modules/010-demo/{path}"), text);
        }
        stage
    }

    pub(super) fn put(&self, path: &str, text: &str) {
        files::put(self.folder.path(), path, text).unwrap();
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn run(&self, args: &[&str]) -> Ran {
        self.run_with(Part::Helm3, args)
    }

    pub(super) fn run_with(&self, helm: Part, args: &[&str]) -> Ran {
        let mut command = self.command(helm);
        let output = process::run(
            {
                command.args(args);
                command
            },
            None,
        );
        let output = output.unwrap();
        Ran {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn command(&self, helm: Part) -> Command {
        let tools = Finder::from_environment().find(&[helm]).unwrap();
        let frameworks = Path::new(env!("CARGO_MANIFEST_DIR")).join("frameworks/shell");
        let mut command = process::command(PROGRAM);
        command.current_dir(self.path()).env_clear();
        command
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("FRAMEWORK_DIR", frameworks)
            .env("KUBECONFIG", "/somewhere/else")
            .env("KUBERNETES_SERVICE_HOST", "10.0.0.1")
            .env("ASKED", self.path().join("asked"))
            .env("HELM_BIN", &tools[&helm].file);
        command
    }

    /// Plays cases of the module `demo`.
    pub(super) fn play(&self, cases: &str) -> Ran {
        self.put("modules/010-demo/tests/case.yaml", cases);
        self.run(&["module", "test", "modules"])
    }
}
