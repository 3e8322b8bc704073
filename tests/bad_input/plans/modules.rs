//! The modules of the campaign: objects of several kinds, an immutable field, a hook that computes, a script that decides.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use testbed::draw::Draw;

use super::super::stage::Stage;
use super::kinds::{CRD, GADGET};

const APP: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  replicas: {{ .Values.app.replicas }}
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec:
      containers:
      - name: main
        image: {{ .Values.app.image | quote }}
        env:
        {{- range $name, $value := .Values.app.env }}
        - {name: {{ $name }}, value: {{ $value | quote }}}
        {{- else }} []{{- end }}
      {{- if .Values.app.helper }}
      - {name: helper, image: helper}
      {{- end }}
---
apiVersion: v1
kind: Service
metadata: {name: app}
spec: {selector: {app: app}, ports: [{name: http, port: {{ .Values.app.port }}}]}
---
apiVersion: v1
kind: Secret
metadata: {name: app}
stringData: {image: {{ .Values.app.image | quote }}}
";
const MANY: &str = "\
{{- range $name, $value := .Values.many.entries }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: many-{{ $name }}
  labels: {value: {{ $value | quote }}}
data: {value: {{ $value | quote }}}
{{- end }}
";
const FIXED: &str = "\
apiVersion: batch/v1
kind: Job
metadata: {name: fixed}
spec:
  suspend: true
  template:
    spec: {restartPolicy: Never, containers: [{name: c, image: i, args: [{{ .Values.fixed.word | quote }}]}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: fixed}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ .Values.fixed.word | quote }}}
subjects: [{kind: ServiceAccount, name: default}]
";
const MADE: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: made}
data: {size: {{ .Values.made.size | quote }}, on: {{ has \"guarded\" .Values.global.enabledModules | quote }}}
";
const HOOK: &str = r#"#!/bin/bash
if [[ $1 == --config ]]; then echo '{configVersion: v1, dryRun: true, beforeHelm: 1}'; exit; fi
echo '{"op": "add", "path": "/made/size", "value": "'"$(jq -r '.made.base + .global.suffix' "$VALUES_PATH")"'"}' >"$VALUES_JSON_PATCH_PATH"
"#;
const GUARDED: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: guarded}\ndata: {size: {{ .Values.guarded.size | quote }}}\n";
const ENABLED: &str = "#!/bin/bash\njq '.guarded.wanted' \"$VALUES_PATH\" >\"$MODULE_ENABLED_RESULT\"\n";
const SCHEMA: &str =
    "type: object\nproperties: {size: {type: string, enum: [small, large]}, wanted: {type: boolean}}\n";

/// Writes the modules, and returns the ConfigMap that switches all of them on.
pub(super) fn write(stage: &Stage) -> BTreeMap<String, String> {
    let modules = [
        (
            "100-app",
            APP,
            json!({"app": {"replicas": 1, "image": "one", "env": {}, "helper": false, "port": 80}}),
        ),
        ("110-many", MANY, json!({"many": {"entries": {"a": "1"}}})),
        ("120-fixed", FIXED, json!({"fixed": {"word": "a"}})),
        ("130-made", MADE, json!({"made": {"base": "small", "size": "none"}})),
        (
            "140-guarded",
            GUARDED,
            json!({"guarded": {"size": "small", "wanted": true}}),
        ),
    ];
    let mut data = BTreeMap::from([("global".to_owned(), "suffix: x".to_owned())]);
    for (dir, template, values) in modules {
        stage.add_module(dir);
        stage.write(&format!("modules/{dir}/templates/a.yaml"), template);
        stage.write(&format!("modules/{dir}/values.yaml"), &values.to_string());
        data.insert(flag(dir), "true".to_owned());
    }
    let group = group(stage);
    stage.add_module("150-kinds");
    stage.write("modules/150-kinds/crds/gadget.yaml", &CRD.replace("GROUP", &group));
    stage.write("modules/150-kinds/templates/a.yaml", &GADGET.replace("GROUP", &group));
    stage.write("modules/130-made/hooks/compute.sh", HOOK);
    stage.write("modules/140-guarded/enabled", ENABLED);
    stage.write("modules/140-guarded/openapi/config-values.yaml", SCHEMA);
    data
}

/// The group of the module's kind, which no other test has.
pub(super) fn group(stage: &Stage) -> String {
    format!("{}.example", stage.namespace().name())
}

fn flag(dir: &str) -> String {
    format!("{}Enabled", &dir[4..])
}

/// Changes one to three keys by lot, and names them.
pub(super) fn edit(data: &mut BTreeMap<String, String>, draw: &mut Draw) -> String {
    let mut edits = Vec::new();
    for _ in 0..=draw.below(3) {
        let (key, text) = drawn(draw);
        edits.push(format!("{key} = {text}"));
        if text.is_empty() {
            data.remove(&key);
        } else {
            data.insert(key, text);
        }
    }
    edits.join(", ")
}

fn drawn(draw: &mut Draw) -> (String, String) {
    let section = |key: &str, value: Value| (key.to_owned(), value.to_string());
    match draw.below(10) {
        0 | 1 => {
            let mut env = serde_json::Map::new();
            for name in ["A", "B", "C", "PASSWORD"] {
                if draw.below(2) == 0 {
                    env.insert(name.to_owned(), json!(draw.below(3).to_string()));
                }
            }
            let (replicas, image) = (draw.below(3), draw.pick(&["one", "two", "three"]));
            let (helper, port) = (draw.below(2) == 0, 80 + draw.below(2));
            section(
                "app",
                json!({"replicas": replicas, "image": image, "env": env, "helper": helper, "port": port}),
            )
        }
        2 | 3 => {
            let mut entries = serde_json::Map::new();
            for name in ["a", "b", "c", "d"] {
                if draw.below(2) == 0 {
                    entries.insert(name.to_owned(), json!(draw.below(3).to_string()));
                }
            }
            section("many", json!({"entries": entries}))
        }
        4 => section("fixed", json!({"word": draw.pick(&["a", "b", "c"])})),
        5 => section("made", json!({"base": draw.pick(&["small", "large", "wide"])})),
        6 => {
            let (size, wanted) = (draw.pick(&["small", "large", "wrong"]), draw.below(3) > 0);
            section("guarded", json!({"size": size, "wanted": wanted}))
        }
        7 => section("global", json!({"suffix": draw.pick(&["x", "y"])})),
        8 => ("kindsEnabled".to_owned(), draw.pick(&["true", "false"]).to_owned()),
        _ => {
            let key = draw.pick(&["app", "many", "fixed", "made", "guarded", "good", "victim"]);
            (format!("{key}Enabled"), draw.pick(&["true", "false", ""]).to_owned())
        }
    }
}
