//! Reads Applications of Argo CD: the chart, the values, the order and the objects of each.
//!
//! Argo CD renders a chart as `helm template` does and keeps no record of helm. An Application that is not one chart of
//! this cluster, or whose values are elsewhere, is refused with the reason.

use std::collections::BTreeSet;

use helm_yaml::yaml;
use serde_json::{Map, Value};

use crate::flux::{place_of, text};
use crate::outline::{Application, ChartName, Facts, Outline};
use crate::values::{lay_over, typed};

/// The group of Applications.
pub const GROUP: &str = "argoproj.io";
/// The kind of Applications.
pub const KIND: &str = "Application";
const WAVE: &str = "argocd.argoproj.io/sync-wave";
/// The addresses and names that Argo CD uses for the cluster in which it runs.
const HERE: [&str; 2] = ["https://kubernetes.default.svc", "in-cluster"];

/// The outline of an Application, or the reason for which it is not taken over.
pub fn outline(object: &Value) -> Result<Outline, String> {
    let (spec, place) = (&object["spec"], place_of(object));
    if let Some(owner) = object["metadata"]["ownerReferences"].get(0) {
        let told = |field: &str| owner[field].as_str().unwrap_or("?").to_owned();
        return Err(format!(
            "{} '{}' makes it, and would make it again: take it out there first",
            told("kind"),
            told("name")
        ));
    }
    let destination = &spec["destination"];
    for field in ["server", "name"] {
        if let Some(found) = text(&destination[field])
            && !HERE.contains(&found.trim_end_matches('/'))
        {
            return Err(format!(
                "spec.destination.{field}: its objects are in another cluster, {found}"
            ));
        }
    }
    let source = source(spec)?;
    let helm = &source["helm"];
    let namespace = text(&helm["namespace"]).or_else(|| text(&destination["namespace"]));
    let Some(namespace) = namespace else {
        return Err("spec.destination.namespace: it names no namespace".to_owned());
    };
    let application = Application {
        chart: Some(chart(object, source)?),
        files: files(helm)?,
        ignores_missing_files: helm["ignoreMissingValueFiles"] == true,
        values: values(helm)?,
        parameters: parameters(helm)?,
        objects: objects(&object["status"]["resources"]),
    };
    let wave = object["metadata"]["annotations"][WAVE].as_str();
    Ok(Outline {
        release: text(&helm["releaseName"]).unwrap_or(&place.name).to_owned(),
        namespace: namespace.to_owned(),
        record: None,
        needs: BTreeSet::new(),
        wave: wave.and_then(|wave| wave.trim().parse().ok()).unwrap_or_default(),
        facts: Facts::Argocd(Box::new(application)),
        remarks: remarks(object),
        place,
    })
}

/// The one source that renders objects.
fn source(spec: &Value) -> Result<&Value, String> {
    let source = match spec["sources"].as_array().map(Vec::as_slice) {
        None | Some([]) => &spec["source"],
        Some(sources) => {
            let mut rendering = sources.iter().filter(|source| {
                // A source with a name alone only gives files to the others.
                text(&source["chart"]).is_some() || text(&source["path"]).is_some() || text(&source["ref"]).is_none()
            });
            match (rendering.next(), rendering.next()) {
                (Some(one), None) => one,
                _ => return Err("spec.sources: several of them render objects, and a module has one chart".to_owned()),
            }
        }
    };
    for (field, kind) in [
        ("kustomize", "a directory for kustomize"),
        ("plugin", "a plugin"),
        ("directory", "a directory of manifests"),
    ] {
        if source[field].as_object().is_some_and(|field| !field.is_empty()) {
            return Err(format!("its source is {kind}, and no helm chart"));
        }
    }
    let is_helm = text(&source["chart"]).is_some() || source["helm"].is_object() || text(&source["path"]).is_some();
    if is_helm {
        Ok(source)
    } else {
        Err("spec.source names no helm chart".to_owned())
    }
}

fn chart(object: &Value, source: &Value) -> Result<ChartName, String> {
    let source_type = object["status"]["sourceType"].as_str();
    if text(&source["chart"]).is_none()
        && !source["helm"].is_object()
        && let Some(other) = source_type.filter(|kind| *kind != "Helm")
    {
        return Err(format!("its source is of the type {other}, and no helm chart"));
    }
    let repository = text(&source["repoURL"]).unwrap_or_default().to_owned();
    let wanted = text(&source["targetRevision"]).unwrap_or_default();
    match (text(&source["chart"]), text(&source["path"])) {
        (Some(chart), _) => {
            // A range of versions is settled at each sync.
            let sync = &object["status"]["sync"];
            let mut sources = object["spec"]["sources"].as_array().into_iter().flatten();
            let at = sources.position(|one| std::ptr::eq(one, source));
            let synced = text(at.map_or(&sync["revision"], |at| &sync["revisions"][at]));
            Ok(ChartName {
                name: chart.rsplit('/').next().unwrap_or(chart).to_owned(),
                version: synced.unwrap_or(wanted).to_owned(),
                repository,
            })
        }
        (None, Some(path)) => Ok(ChartName {
            name: path.trim_end_matches('/').rsplit('/').next().unwrap_or(path).to_owned(),
            version: String::new(),
            repository: format!("{repository} ({path} at {wanted})"),
        }),
        (None, None) => Err("spec.source names no helm chart".to_owned()),
    }
}

fn files(helm: &Value) -> Result<Vec<String>, String> {
    if helm["fileParameters"].as_array().is_some_and(|all| !all.is_empty()) {
        return Err("spec.source.helm.fileParameters: its values are files that are not in the cluster".to_owned());
    }
    let mut files = Vec::new();
    for file in helm["valueFiles"].as_array().into_iter().flatten() {
        let file = file.as_str().unwrap_or_default();
        if file.starts_with('$') || file.contains("://") {
            return Err(format!(
                "spec.source.helm.valueFiles: '{file}' is not in the cluster; write its values into valuesObject first"
            ));
        }
        files.push(file.to_owned());
    }
    Ok(files)
}

fn values(helm: &Value) -> Result<Value, String> {
    let mut values = Value::Object(Map::new());
    match (&helm["valuesObject"], text(&helm["values"])) {
        (own @ Value::Object(_), _) => lay_over(&mut values, own.clone()),
        (_, Some(own)) => {
            let own =
                yaml::from_str_v2(own).map_err(|error| format!("spec.source.helm.values is not YAML: {error}"))?;
            if own.is_object() {
                lay_over(&mut values, own);
            }
        }
        (_, None) => {}
    }
    Ok(values)
}

fn parameters(helm: &Value) -> Result<Vec<(String, Value)>, String> {
    let mut parameters = Vec::new();
    for parameter in helm["parameters"].as_array().into_iter().flatten() {
        let (name, said) = (
            text(&parameter["name"]).unwrap_or_default(),
            parameter["value"].as_str().unwrap_or_default(),
        );
        if said.contains("$ARGOCD_") || said.contains("${ARGOCD_") {
            return Err(format!(
                "spec.source.helm.parameters: '{name}' has a variable of Argo CD; write its value"
            ));
        }
        let is_text = parameter["forceString"] == true;
        if !is_text && said.starts_with('{') {
            return Err(format!(
                "spec.source.helm.parameters: '{name}' is a list in braces; write it into valuesObject"
            ));
        }
        let value = if is_text {
            Value::from(said)
        } else {
            typed(&said.replace("\\,", ","))
        };
        parameters.push((name.to_owned(), value));
    }
    Ok(parameters)
}

fn objects(resources: &Value) -> BTreeSet<String> {
    let each = resources.as_array().into_iter().flatten();
    each.filter(|object| object["hook"] != true)
        .map(|object| {
            let field = |field: &str| object[field].as_str().unwrap_or_default();
            [field("group"), field("kind"), field("namespace"), field("name")].join("/")
        })
        .collect()
}

fn remarks(object: &Value) -> Vec<String> {
    let (spec, mut remarks) = (&object["spec"], Vec::new());
    if object["metadata"]["labels"]["app.kubernetes.io/instance"].is_string()
        || object["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"].is_string()
    {
        remarks.push("another Application may make it: take it out there first, or it comes back".to_owned());
    }
    if spec["ignoreDifferences"].as_array().is_some_and(|all| !all.is_empty()) {
        remarks.push(
            "spec.ignoreDifferences is left out: `drift: absent` in module.yaml, the default, leaves altered fields alone".to_owned(),
        );
    }
    if spec["syncPolicy"]["managedNamespaceMetadata"].is_object() {
        remarks.push("spec.syncPolicy.managedNamespaceMetadata is left out: the namespace stays as it is".to_owned());
    }
    remarks
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn application(source: &Value) -> Value {
        json!({
            "metadata": {"namespace": "argocd", "name": "web", "annotations": {WAVE: "-3"}},
            "spec": {
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"},
                "source": source,
            },
        })
    }

    #[test]
    fn a_chart_with_its_values_is_read() {
        let mut object = application(&json!({
            "repoURL": "https://charts.example", "chart": "podinfo", "targetRevision": "6.*",
            "helm": {
                "values": "replicas: 2\n",
                "parameters": [
                    {"name": "image.tag", "value": "1", "forceString": true}, {"name": "replicas", "value": "3"}],
                "releaseName": "front",
            },
        }));
        object["status"] = json!({
            "sync": {"revision": "6.1.0"},
            "resources": [
                {"group": "apps", "kind": "Deployment", "namespace": "shop", "name": "front"},
                {"kind": "Job", "group": "batch", "name": "x", "hook": true}],
        });
        let outline = outline(&object).unwrap();
        assert_eq!(
            (outline.release.as_str(), outline.namespace.as_str()),
            ("front", "shop")
        );
        assert_eq!(outline.wave, -3);
        let Facts::Argocd(facts) = outline.facts else {
            panic!("it is an Application");
        };
        assert_eq!(facts.chart.unwrap().version, "6.1.0");
        assert_eq!(facts.values, json!({"replicas": 2}));
        assert_eq!(
            facts.parameters,
            [("image.tag".to_owned(), json!("1")), ("replicas".to_owned(), json!(3))]
        );
        let objects: Vec<&String> = facts.objects.iter().collect();
        assert_eq!(objects, ["apps/Deployment/shop/front"]);
    }

    #[test]
    fn applications_that_cannot_be_kept_are_named() {
        let helm = |helm: Value| json!({"repoURL": "r", "chart": "c", "targetRevision": "1", "helm": helm});
        let rows = [
            (
                json!({"repoURL": "r", "path": "p", "kustomize": {"namePrefix": "a"}}),
                "kustomize",
            ),
            (
                json!({"repoURL": "r", "path": "p", "directory": {"recurse": true}}),
                "manifests",
            ),
            (json!({"repoURL": "r", "path": "p", "plugin": {"name": "x"}}), "plugin"),
            (json!({"repoURL": "r"}), "no helm chart"),
            (
                helm(json!({"valueFiles": ["$other/values.yaml"]})),
                "'$other/values.yaml'",
            ),
            (helm(json!({"fileParameters": [{"name": "a"}]})), "fileParameters"),
            (
                helm(json!({"parameters": [{"name": "a", "value": "$ARGOCD_APP_NAME"}]})),
                "variable",
            ),
            (helm(json!({"parameters": [{"name": "a", "value": "{b,c}"}]})), "braces"),
            (helm(json!({"values": "a: ["})), "not YAML"),
        ];
        for (source, expected) in rows {
            let reason = outline(&application(&source)).unwrap_err();
            assert!(reason.contains(expected), "{reason}");
        }
        let mut elsewhere = application(&helm(json!({})));
        elsewhere["spec"]["destination"]["server"] = json!("https://1.2.3.4");
        assert!(outline(&elsewhere).unwrap_err().contains("https://1.2.3.4"));
        let mut owned = application(&helm(json!({})));
        owned["metadata"]["ownerReferences"] = json!([{"kind": "ApplicationSet", "name": "all"}]);
        assert!(outline(&owned).unwrap_err().contains("ApplicationSet 'all'"));
        let mut typed = application(&json!({"repoURL": "r", "path": "p"}));
        typed["status"] = json!({"sourceType": "Kustomize"});
        assert!(outline(&typed).unwrap_err().contains("Kustomize"));
    }

    #[test]
    fn a_source_of_files_beside_the_chart_renders_nothing() {
        let chart = json!({"repoURL": "r", "chart": "c", "targetRevision": "1"});
        let mut object = application(&json!(null));
        object["spec"]["sources"] = json!([chart, {"repoURL": "g", "ref": "values"}]);
        object["status"] = json!({"sync": {"revisions": ["v1.2.3", "abc"]}});
        let Facts::Argocd(facts) = outline(&object).unwrap().facts else {
            panic!("it is an Application");
        };
        assert_eq!(facts.chart.unwrap().version, "v1.2.3");
        object["spec"]["sources"] = json!([chart, chart]);
        assert!(outline(&object).unwrap_err().contains("several"));
    }
}
