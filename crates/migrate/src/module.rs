//! The files of a module that takes over a release: the release's chart, unchanged, inside of a chart of the module, and
//! one template that lets it see its old names.
//!
//! Charts put the release's name and namespace, and their own name, into names and selectors of objects. The module's
//! release may have other ones. Helm hands all templates one map with the facts of the release, and renders the deepest
//! path first; so a template with a long path changes the map before any other reads it.

use std::collections::{BTreeMap, BTreeSet};

use helm_yaml::yaml;
use names::ModuleName;
use serde_json::{Map, Value, json};

use crate::chart::Chart;
use crate::values::ValuePath;

/// The version of the module's own chart.
const VERSION: &str = "0.1.0";
/// The directories above the template, one more than any chart is likely to have.
const DEPTH: usize = 20;
const VALUES: &str =
    "# Values laid over those of charts/@CHART@/values.yaml. The ConfigMap overrides them, under the same key.\n";
const NAMES: &str = "\
{{- /* The chart keeps the names that it had before the operator took it over. This file has a long path because helm
       renders the longest paths first, so that all templates see these names. */ -}}
";

/// The names that a chart saw before it became a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldNames<'a> {
    pub release: &'a str,
    pub namespace: &'a str,
}

/// The contents of a module.
#[derive(Debug, Clone)]
pub struct Draft<'a> {
    pub module: &'a ModuleName,
    pub chart: &'a Chart,
    pub old: OldNames<'a>,
    /// Whether helm installs the release anew, over objects that are there.
    pub installs: bool,
    /// The namespace of the operator and its releases.
    pub operator: &'a str,
    pub needs: &'a [ModuleName],
    pub corrects_drift: bool,
    /// The values that a person has to add before the module runs.
    pub required: &'a BTreeSet<ValuePath>,
}

impl Draft<'_> {
    /// All files by their path in the module's directory.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut add = |path: &str, text: String| drop(files.insert(path.to_owned(), text.into_bytes()));
        add("Chart.yaml", self.description());
        let key = self.module.values_key();
        add(
            "values.yaml",
            VALUES.replace("@CHART@", &self.chart.name) + &yaml::to_string(&json!({key: {}})),
        );
        if let Some(text) = self.names() {
            add(&format!("templates{}/names.yaml", "/first".repeat(DEPTH)), text);
        }
        if let Some(text) = self.settings() {
            add("module.yaml", text);
        }
        if !self.required.is_empty() {
            add("openapi/config-values.yaml", yaml::to_string(&schema(self.required)));
        }
        for (path, bytes) in &self.chart.files {
            files.insert(format!("charts/{}/{path}", self.chart.name), bytes.clone());
        }
        files
    }

    fn description(&self) -> String {
        let mut dependency = json!({"name": self.chart.name, "version": ">=0.0.0-0"});
        if self.has_alias() {
            dependency["alias"] = Value::from(self.module.values_key());
        }
        let app_version = self.chart.metadata["appVersion"].as_str();
        let mut description = json!({
            "apiVersion": "v2",
            "name": self.module.as_str(),
            "description": format!("Installs the chart {} {}", self.chart.name, self.chart.version),
            "version": VERSION,
            "dependencies": [dependency],
        });
        if let Some(version) = app_version {
            description["appVersion"] = Value::from(version);
        }
        yaml::to_string(&description)
    }

    fn has_alias(&self) -> bool {
        self.module.values_key() != self.chart.name
    }

    /// The template that sets the old names; none if nothing differs.
    fn names(&self) -> Option<String> {
        let OldNames { release, namespace } = self.old;
        let mut lines = Vec::new();
        for (field, now, old) in [
            ("Name", self.module.as_str(), release),
            ("Namespace", self.operator, namespace),
        ] {
            if now != old {
                lines.push(format!(
                    "{{{{- $_ := set .Release {} {} -}}}}",
                    quoted(field),
                    quoted(old)
                ));
            }
        }
        if self.installs {
            // The objects are there already, and so are those that a chart makes at its installation alone.
            for (field, now) in [("IsInstall", false), ("IsUpgrade", true)] {
                lines.push(format!("{{{{- $_ := set .Release {} {now} -}}}}", quoted(field)));
            }
        }
        if self.has_alias() || self.tells_its_root() {
            let (key, chart) = (
                self.module.values_key(),
                quoted(&described(&self.chart.metadata).to_string()),
            );
            lines.push(format!(
                "{{{{- $_ := set (index .Subcharts {}) \"Chart\" (fromJson {chart}) -}}}}",
                quoted(&key)
            ));
        }
        (!lines.is_empty()).then(|| format!("{NAMES}{}\n", lines.join("\n")))
    }

    /// Whether a template asks if its chart is the outermost one.
    fn tells_its_root(&self) -> bool {
        let asks = |bytes: &[u8]| bytes.windows(6).any(|part| part == b"IsRoot");
        self.chart.files.values().any(|bytes| asks(bytes))
    }

    fn settings(&self) -> Option<String> {
        let mut settings = Map::new();
        if !self.needs.is_empty() {
            let needs: Vec<&str> = self.needs.iter().map(ModuleName::as_str).collect();
            settings.insert("dependsOn".to_owned(), json!(needs));
        }
        if self.corrects_drift {
            settings.insert("drift".to_owned(), json!("changed"));
        }
        (!settings.is_empty()).then(|| yaml::to_string(&Value::Object(settings)))
    }
}

/// The path and text of a template that lets the others see the revision to come. It serves to compare, and is no part of
/// a module.
pub fn revision(number: u32) -> (String, Vec<u8>) {
    let text = format!("{{{{- $_ := set .Release \"Revision\" {number} -}}}}\n");
    let path = format!("templates{}/revision.yaml", "/first".repeat(DEPTH));
    (path, text.into_bytes())
}

/// A text in the form of Go templates, which read the escapes of JSON.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The description as templates see it: with all fields, and with their names in Go.
fn described(metadata: &Value) -> Value {
    let rows = [
        ("Name", "name"),
        ("Home", "home"),
        ("Version", "version"),
        ("Description", "description"),
        ("Icon", "icon"),
        ("APIVersion", "apiVersion"),
        ("Condition", "condition"),
        ("Tags", "tags"),
        ("AppVersion", "appVersion"),
        ("KubeVersion", "kubeVersion"),
        ("Type", "type"),
    ];
    let mut described = Map::new();
    for (name, field) in rows {
        let text = metadata[field].as_str().unwrap_or_default();
        described.insert(name.to_owned(), Value::from(text));
    }
    let of = |field: &str| metadata.get(field).cloned().unwrap_or_default();
    described.insert("Annotations".to_owned(), of("annotations"));
    described.insert("Keywords".to_owned(), of("keywords"));
    described.insert("Sources".to_owned(), of("sources"));
    described.insert("Deprecated".to_owned(), Value::from(metadata["deprecated"] == true));
    described.insert("IsRoot".to_owned(), Value::from(true));
    Value::Object(described)
}

/// A schema that refuses a section without the values at these paths.
fn schema(required: &BTreeSet<ValuePath>) -> Value {
    let mut root = json!({"type": "object"});
    for ValuePath(path) in required {
        let mut place = &mut root;
        for (at, key) in path.iter().enumerate() {
            let Some(fields) = place.as_object_mut() else { break };
            let names = fields.entry("required").or_insert_with(|| json!([]));
            if let Some(names) = names.as_array_mut()
                && !names.iter().any(|name| name == key)
            {
                names.push(Value::from(key.as_str()));
            }
            let properties = fields.entry("properties").or_insert_with(|| json!({}));
            let Some(properties) = properties.as_object_mut() else {
                break;
            };
            let fresh = if at + 1 == path.len() {
                json!({"x-secret": true})
            } else {
                json!({"type": "object"})
            };
            place = properties.entry(key.as_str()).or_insert(fresh);
        }
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(name: &str) -> Chart {
        Chart {
            name: name.to_owned(),
            version: "1.2.3".to_owned(),
            metadata: json!({"name": name, "version": "1.2.3", "appVersion": "v\"9"}),
            files: [("templates/a.yaml".to_owned(), b"kind: A".to_vec())].into(),
        }
    }

    fn texts(draft: &Draft<'_>) -> BTreeMap<String, String> {
        let text = |(path, bytes): (String, Vec<u8>)| (path, String::from_utf8(bytes).unwrap());
        draft.files().into_iter().map(text).collect()
    }

    fn draft<'a>(module: &'a ModuleName, chart: &'a Chart, required: &'a BTreeSet<ValuePath>) -> Draft<'a> {
        Draft {
            module,
            chart,
            old: OldNames {
                release: "web",
                namespace: "op",
            },
            installs: false,
            operator: "op",
            needs: &[],
            corrects_drift: false,
            required,
        }
    }

    #[test]
    fn a_chart_with_the_names_of_its_module_stays_alone() {
        let (module, chart, none) = (ModuleName::parse("web").unwrap(), chart("web"), BTreeSet::new());
        let files = texts(&draft(&module, &chart, &none));
        let paths: Vec<&str> = files.keys().map(String::as_str).collect();
        assert_eq!(paths, ["Chart.yaml", "charts/web/templates/a.yaml", "values.yaml"]);
        assert!(!files["Chart.yaml"].contains("alias"), "{}", files["Chart.yaml"]);
    }

    #[test]
    fn other_names_are_set_before_all_else_is_rendered() {
        let (module, chart, none) = (ModuleName::parse("my-web").unwrap(), chart("nginx"), BTreeSet::new());
        let mut draft = draft(&module, &chart, &none);
        draft.old.namespace = "shop";
        draft.installs = true;
        let needs = [ModuleName::parse("db").unwrap()];
        draft.needs = &needs;
        let files = texts(&draft);
        assert!(files["Chart.yaml"].contains("alias: myWeb"), "{}", files["Chart.yaml"]);
        assert_eq!(files["module.yaml"], "dependsOn:\n- db\n");
        let names = files.iter().find(|(path, _)| path.ends_with("/names.yaml")).unwrap();
        assert!(names.0.split('/').count() > DEPTH);
        for expected in [
            r#"set .Release "Name" "web""#,
            r#"set .Release "Namespace" "shop""#,
            r#"set .Release "IsInstall" false"#,
            r#"set .Release "IsUpgrade" true"#,
            r#"set (index .Subcharts "myWeb") "Chart" (fromJson "{\"APIVersion\""#,
            r#"\"AppVersion\":\"v\\\"9\""#,
        ] {
            assert!(names.1.contains(expected), "{expected}: {}", names.1);
        }
    }

    #[test]
    fn a_section_without_its_secrets_is_refused_by_the_schema() {
        let path = |text: &str| ValuePath(text.split('.').map(str::to_owned).collect());
        let required = [path("auth.password"), path("auth.token"), path("key")].into();
        assert_eq!(
            schema(&required),
            json!({
                "type": "object",
                "required": ["auth", "key"],
                "properties": {
                    "auth": {
                        "type": "object",
                        "required": ["password", "token"],
                        "properties": {"password": {"x-secret": true}, "token": {"x-secret": true}},
                    },
                    "key": {"x-secret": true},
                },
            })
        );
    }
}
