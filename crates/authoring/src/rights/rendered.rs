//! The objects of a module's chart: rendered, or, if the chart needs values of hooks, as far as the text of its
//! templates names them. A chart that is skipped must always be reported.

use std::path::Path;

use addon_core::failure::Failure;
use disk::{Chart, FoundModule};
use helm::{HelmError, Verbosity};
use helm_yaml::yaml;
use serde_json::{Value, json};
use walkdir::WalkDir;

use crate::findings::Finding;
use crate::lint::rendered::said;
use crate::offline::{Offline, Rendering, is_about_values};

/// All objects of the chart, and remarks about it.
pub(super) async fn render(
    offline: &Offline<'_>,
    module: &FoundModule,
    chart: Chart,
    namespace: &str,
    values: &Value,
) -> (Vec<Value>, Option<Finding>) {
    let enabled: Vec<&str> = offline
        .found
        .modules
        .iter()
        .map(|module| module.name.as_str())
        .collect();
    let rendering = Rendering {
        namespace,
        enabled: Some(&enabled),
        values,
        verbosity: Verbosity::Whole,
    };
    let told = |what: &str| format!("module '{}': {what}", module.name);
    match offline.render(module, chart, rendering).await {
        Ok(Ok(manifest)) => match yaml::documents_v2(&manifest) {
            Ok(documents) => (flat(documents), None),
            Err(error) => {
                let message = told(&format!("the chart renders a document that is not YAML: {error}"));
                (Vec::new(), Some(Finding::error(&module.path, message)))
            }
        },
        Ok(Err(HelmError::Failed { message, .. })) if is_about_values(&message) => {
            let (named, place) = (named(&module.path), said(&module.path, &message));
            let message = told(&format!(
                "the chart cannot be rendered with the values of its files: kinds are taken from its templates, and rights \
                 that its roles give away are missing; --values gives it more: {message}"
            ));
            let finding = Finding { message, ..place };
            (named, Some(finding))
        }
        Ok(Err(HelmError::Failed { message, .. })) => {
            let place = said(&module.path, &message);
            let message = told(&place.message);
            (Vec::new(), Some(Finding { message, ..place }))
        }
        Ok(Err(error)) => {
            let failure = Failure::from(error);
            let message = told(&format!("the chart cannot be rendered: {failure}"));
            (Vec::new(), Some(Finding::error(&module.path, message)))
        }
        Err(error) => {
            let message = told(&format!("the chart cannot be prepared: {error}"));
            (Vec::new(), Some(Finding::error(&module.path, message)))
        }
    }
}

/// The objects, with the items of a list as objects of their own.
fn flat(documents: Vec<Value>) -> Vec<Value> {
    let mut objects = Vec::new();
    for mut document in documents {
        match document.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) if document["kind"] == "List" => objects.extend(flat(items)),
            Some(items) => {
                document["items"] = items;
                objects.push(document);
            }
            None => objects.push(document),
        }
    }
    objects
}

/// The objects that the templates' text names, without their namespaces.
fn named(module: &Path) -> Vec<Value> {
    let walk = WalkDir::new(module.join("templates")).sort_by_file_name();
    let files = walk.into_iter().filter_map(Result::ok);
    let texts = files.filter_map(|entry| fs_err::read_to_string(entry.path()).ok());
    texts.flat_map(|text| named_in(&text)).collect()
}

fn named_in(template: &str) -> Vec<Value> {
    let mut objects = Vec::new();
    let mut api_version = None;
    let mut kind = None;
    for line in template.lines().chain(["---"]) {
        let word = |key: &str| {
            let word = line.strip_prefix(key)?.trim().trim_matches(['"', '\'']);
            (!word.is_empty() && !word.contains("{{")).then(|| word.to_owned())
        };
        api_version = word("apiVersion:").or(api_version);
        kind = word("kind:").or(kind);
        if line.starts_with("---")
            && let (Some(api_version), Some(kind)) = (api_version.take(), kind.take())
        {
            objects.push(json!({"apiVersion": api_version, "kind": kind}));
        }
    }
    objects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_name_their_kinds() {
        let template = "{{- if .Values.a }}\napiVersion: v1\nkind: Secret\nmetadata: {{ x }}\n{{- end }}\n---\n\
                        kind: \"Deployment\"\napiVersion: apps/v1\nspec:\n  kind: Other\n---\nkind: {{ .Values.kind }}\n";
        assert_eq!(
            named_in(template),
            [
                json!({"apiVersion": "v1", "kind": "Secret"}),
                json!({"apiVersion": "apps/v1", "kind": "Deployment"}),
            ]
        );
    }

    #[test]
    fn lists_are_what_they_hold() {
        let one = json!({"kind": "ConfigMap"});
        let list = json!({"kind": "List", "items": [{"kind": "List", "items": [one]}]});
        let other = json!({"kind": "Other", "items": [one]});
        assert_eq!(flat(vec![list, other.clone()]), [one, other]);
    }
}
