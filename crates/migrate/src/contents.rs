//! The contents of a release: its chart, its values, which of them are secret, and the objects that it has now.
//!
//! Never guesses: a chart or a value that is missing is an error with the way to supply it.

use std::collections::BTreeSet;
use std::path::Path;

use helm_yaml::yaml;
use releases::revisions::contents::Content;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::chart::{Chart, ChartError};
use crate::manifest::{OF_FLUX, Rendering};
use crate::outline::{Application, ChartName, ValuesSource};
use crate::values::{ValuePath, lay_over, leaves, set, typed};

/// The name of the operator's own chart.
pub const OPERATOR_CHART: &str = "addon-operator";

/// The contents of a release.
#[derive(Debug)]
pub struct Contents {
    pub chart: Chart,
    /// All values that people have set, secret ones, too.
    pub values: Value,
    /// The values that come from Secrets.
    pub secret: BTreeSet<ValuePath>,
    /// The objects of the release; none for Argo CD.
    pub release: Option<Rendering>,
}

/// The contents of a record, whose fields are not parsed yet.
pub fn of_record(record: &Content, charts: Option<&Path>) -> Result<Contents, String> {
    let chart: Value = field(record, "chart")?;
    let manifest: String = field(record, "manifest")?;
    let release = Rendering::read(&manifest).map_err(|error| format!("the manifest in its record: {error}"))?;
    let (name, version) = (&chart["metadata"]["name"], &chart["metadata"]["version"]);
    let pulled = match (charts, name.as_str(), version.as_str()) {
        (Some(charts), Some(name), Some(version)) => pulled(charts, name, version)?,
        _ => None,
    };
    let chart = match pulled {
        Some(chart) => chart,
        None => Chart::of_record(&chart).map_err(|error| told(&error))?,
    };
    // Helm writes `null`, or nothing, for a release without values.
    let values: Option<Map<String, Value>> = match record.get("config") {
        Some(_) => field(record, "config")?,
        None => None,
    };
    Ok(Contents {
        chart,
        values: Value::Object(values.unwrap_or_default()),
        secret: BTreeSet::new(),
        release: Some(release),
    })
}

fn field<T: DeserializeOwned>(record: &Content, field: &str) -> Result<T, String> {
    let raw = record
        .get(field)
        .ok_or_else(|| format!("its record has no field '{field}'"))?;
    serde_json::from_str(raw.get())
        .map_err(|error| format!("the field '{field}' of its record cannot be read: {error}"))
}

fn told(error: &ChartError) -> String {
    report::Chain(error).to_string()
}

/// The HelmRelease that looks after the objects of a release of helm.
pub fn flux_owner(release: &Rendering) -> Option<String> {
    release.objects.iter().find_map(|rendered| {
        let label = |key| rendered.object["metadata"]["labels"][key].as_str();
        Some(format!("{}/{}", label(OF_FLUX[1])?, label(OF_FLUX[0])?))
    })
}

/// The chart in a directory of pulled charts; none if the directory does not have it in this version. An empty version
/// fits all.
pub fn pulled(charts: &Path, name: &str, version: &str) -> Result<Option<Chart>, String> {
    let is_plain = |text: &str| !text.contains(['/', '\\']) && !text.starts_with('.');
    if !is_plain(name) || (!version.is_empty() && !is_plain(version)) {
        return Err(format!("'{name}' in version '{version}' is no name of a chart"));
    }
    let number = version.trim_start_matches('v');
    let archives = [version.to_owned(), number.to_owned(), format!("v{number}")];
    let mut archives = archives
        .map(|version| charts.join(format!("{name}-{version}.tgz")))
        .into_iter();
    let read = if let Some(archive) = archives.find(|archive| archive.is_file()) {
        fs_err::File::open(&archive)
            .map_err(ChartError::Read)
            .and_then(Chart::of_archive)
    } else if charts.join(name).join("Chart.yaml").is_file() {
        Chart::of_dir(&charts.join(name))
    } else {
        return Ok(None);
    };
    let chart = read.map_err(|error| told(&error))?;
    let fits = version.is_empty() || chart.version.trim_start_matches('v') == number;
    Ok(fits.then_some(chart))
}

/// The contents of an Application.
pub fn of_application(application: &Application, charts: Option<&Path>) -> Result<Contents, String> {
    let named = application.chart.as_ref().ok_or("it names no chart")?;
    let found = match charts {
        Some(charts) => pulled(charts, &named.name, &named.version)?,
        None => None,
    };
    let chart = found.ok_or_else(|| pull_it(named))?;
    let mut values = Value::Object(Map::new());
    for file in &application.files {
        match chart.text(file) {
            Some(text) => {
                let read = yaml::from_str_v2(&text).map_err(|error| format!("the values file '{file}': {error}"))?;
                if read.is_object() {
                    lay_over(&mut values, read);
                }
            }
            None if application.ignores_missing_files => {}
            None => return Err(format!("the chart has no values file '{file}'")),
        }
    }
    lay_over(&mut values, application.values.clone());
    for (path, value) in &application.parameters {
        set(&mut values, path, value.clone()).ok_or_else(|| format!("the parameter '{path}' is no path of helm"))?;
    }
    Ok(Contents {
        chart,
        values,
        secret: BTreeSet::new(),
        release: None,
    })
}

fn pull_it(chart: &ChartName) -> String {
    let ChartName {
        name,
        version,
        repository,
    } = chart;
    let command = if version.is_empty() {
        format!("copy the directory '{name}' of {repository}")
    } else if repository.contains("://") && !repository.starts_with("oci://") {
        format!("`helm pull {name} --repo {repository} --version {version}`")
    } else {
        let repository = repository.trim_start_matches("oci://").trim_end_matches('/');
        format!("`helm pull oci://{repository}/{name} --version {version}`")
    };
    format!(
        "its chart '{name}' {version} is not in the cluster: {command} into a directory, and name that with --charts"
    )
}

/// Adds the text of a ConfigMap to the values that anybody may read.
pub fn add_public(public: &mut Value, source: &ValuesSource, text: &str) -> Result<(), String> {
    if let Some(target) = &source.target {
        let added = set(public, target, typed(text));
        return added.ok_or_else(|| format!("spec.valuesFrom: '{target}' is no path of helm"));
    }
    let (place, key) = (&source.place, &source.key);
    let values = yaml::from_str_v2(text).map_err(|error| format!("key '{key}' of '{place}' is not YAML: {error}"))?;
    if values.is_object() {
        lay_over(public, values);
    }
    Ok(())
}

/// The values that are not the same in `public`: they come from Secrets, as these are now or were before.
pub fn not_public(values: &Value, public: &Value) -> BTreeSet<ValuePath> {
    let at = |values: &Value, path: &ValuePath| {
        path.0
            .iter()
            .try_fold(values.clone(), |value, key| value.get(key).cloned())
    };
    let mut paths = leaves(values);
    paths.retain(|path| at(values, path) != at(public, path));
    paths
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::RawValue;

    use super::*;
    use crate::outline::Place;

    fn record(fields: &Value) -> Content {
        serde_json::from_str(&fields.to_string()).unwrap()
    }

    #[test]
    fn a_record_gives_chart_values_and_objects() {
        let object = "---\n# Source: web/templates/a.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  \
                      labels: {helm.toolkit.fluxcd.io/name: web, helm.toolkit.fluxcd.io/namespace: ns}\n";
        let fields = json!({
            "chart": {"metadata": {"name": "web", "version": "1"}}, "config": {"a": 1}, "manifest": object});
        let contents = of_record(&record(&fields), None).unwrap();
        assert_eq!(contents.values, json!({"a": 1}));
        let release = contents.release.unwrap();
        assert_eq!(release.objects[0].template, "web/templates/a.yaml");
        assert_eq!(flux_owner(&release).unwrap(), "ns/web");
    }

    #[test]
    fn broken_records_are_named() {
        let deep = "[".repeat(500) + &"]".repeat(500);
        let mut nested = record(&json!({"manifest": ""}));
        let chart = format!(r#"{{"metadata": {{"name": "a", "version": "1"}}, "values": {deep}}}"#);
        nested.insert("chart".to_owned(), RawValue::from_string(chart).unwrap());
        assert!(of_record(&nested, None).unwrap_err().contains("'chart'"));
        for (fields, expected) in [
            (json!({}), "no field 'chart'"),
            (json!({"chart": {}, "manifest": "a: ["}), "manifest"),
            (json!({"chart": {}, "manifest": ""}), "no field 'name'"),
            (
                json!({"chart": {"metadata": {"name": "a", "version": "1"}}, "manifest": "", "config": [1]}),
                "'config'",
            ),
        ] {
            let error = of_record(&record(&fields), None).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn an_application_without_its_chart_names_the_command_for_it() {
        let mut application = Application {
            chart: Some(ChartName {
                name: "podinfo".to_owned(),
                version: "1.0.0".to_owned(),
                repository: "https://charts.example".to_owned(),
            }),
            ..Application::default()
        };
        let error = of_application(&application, None).unwrap_err();
        assert!(
            error.contains("`helm pull podinfo --repo https://charts.example --version 1.0.0`"),
            "{error}"
        );
        "ghcr.io/charts".clone_into(&mut application.chart.as_mut().unwrap().repository);
        let error = of_application(&application, None).unwrap_err();
        assert!(
            error.contains("`helm pull oci://ghcr.io/charts/podinfo --version 1.0.0`"),
            "{error}"
        );
        "../up".clone_into(&mut application.chart.as_mut().unwrap().name);
        assert!(
            of_application(&application, Some(Path::new("/tmp")))
                .unwrap_err()
                .contains("no name")
        );
    }

    #[test]
    fn values_of_files_objects_and_parameters_are_laid_over_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let chart = dir.path().join("web");
        fs_err::create_dir(&chart).unwrap();
        fs_err::write(chart.join("Chart.yaml"), "{name: web, version: 1.0.0}").unwrap();
        fs_err::write(chart.join("prod.yaml"), "{a: 1, b: 1, c: 1}").unwrap();
        let application = Application {
            chart: Some(ChartName {
                name: "web".to_owned(),
                version: "1.0.0".to_owned(),
                repository: String::new(),
            }),
            files: vec!["prod.yaml".to_owned()],
            values: json!({"b": 2, "c": 2}),
            parameters: vec![("c".to_owned(), json!(3))],
            ..Application::default()
        };
        let contents = of_application(&application, Some(dir.path())).unwrap();
        assert_eq!(contents.values, json!({"a": 1, "b": 2, "c": 3}));
    }

    #[test]
    fn only_values_that_anybody_may_read_are_no_secrets() {
        let source = |target: Option<&str>| ValuesSource {
            is_secret: false,
            place: Place::new("a", "c"),
            key: "values.yaml".to_owned(),
            target: target.map(str::to_owned),
        };
        let mut public = json!({"size": 1});
        add_public(&mut public, &source(None), "{auth: {user: ada}, size: 2}").unwrap();
        add_public(&mut public, &source(Some("port")), "80").unwrap();
        assert!(
            add_public(&mut public, &source(None), "a: [")
                .unwrap_err()
                .contains("'values.yaml' of 'a/c'")
        );
        let values = json!({"size": 2, "port": 80, "auth": {"user": "ada", "pin": 7}, "list": [1]});
        let secret: Vec<String> = not_public(&values, &public).iter().map(ToString::to_string).collect();
        assert_eq!(secret, ["auth.pin", "list"]);
    }
}
