//! What the operator would say of a ConfigMap, before it is in the cluster. Never asks a cluster.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use addon_core::name::Owner;
use addon_core::values::Store;
use addon_core::values::section::{ConfigDocument, SectionProblem};
use addon_core::yaml;
use serde_json::Value;

use super::findings::Finding;
use crate::disk::{self, Found, Layout};
use crate::settings::MissingValues;

/// Judges the text of a file: a manifest of a ConfigMap, or what would be its data. Modules that are in none of the
/// directories are remarked on; without directories nobody is missed.
pub fn check(path: &Path, text: &str, modules_dirs: &[PathBuf]) -> Vec<Finding> {
    let document = match yaml::from_str_v2_strict(text) {
        Ok(document) => document,
        Err(error) => return vec![Finding::error(path, &error.message).at(error.line)],
    };
    let data = match data_of(document) {
        Ok(data) => data,
        Err(problem) => return vec![Finding::error(path, problem)],
    };
    let place = |key: &str| text.lines().position(|line| is_key(line, key)).map(|at| at + 1);
    let with_place = |finding: Finding, key: &str| match place(key) {
        Some(line) => finding.at(line),
        None => finding,
    };
    let document = ConfigDocument::parse(&data);
    let mut problems = document.problems.clone();
    let mut strange = Vec::new();
    if !modules_dirs.is_empty() {
        let found = read(modules_dirs);
        problems.extend(unfit(&document, &found));
        strange = strangers(document, &data, &found);
    }
    let problems = problems.into_iter().map(|problem| {
        let SectionProblem { key, message, owner: _ } = problem;
        with_place(Finding::error(path, format!("key '{key}': {message}")), &key)
    });
    let mut findings: Vec<Finding> = problems.collect();
    let strange = strange.into_iter();
    findings.extend(strange.map(|(key, message)| with_place(Finding::warning(path, message), &key)));
    findings.sort_by_key(|finding| finding.line);
    findings
}

fn read(modules_dirs: &[PathBuf]) -> Found {
    disk::read(&Layout {
        modules_dirs: modules_dirs.to_vec(),
        // Nobody asks for global hooks here.
        global_hooks_dir: PathBuf::from("/dev/null"),
        unnumbered_order: 1,
        missing_values: MissingValues::NoValues,
        crd_filters: Vec::new(),
    })
}

/// The sections that break the schema of their module, in the words in which the operator refuses them.
fn unfit(document: &ConfigDocument, found: &Found) -> Vec<SectionProblem> {
    let mut problems = Vec::new();
    for module in &found.modules {
        let section = document.sections.get(&module.name);
        let Some(values) = section.and_then(|section| section.values.good()) else {
            continue;
        };
        let owner = Owner::from(module.name.clone());
        let mut store = Store::new();
        let taken = store.set_schemas(&owner, module.schemas.clone());
        if let Err(rejected) = taken.and_then(|_| store.vet_section(&owner, values)) {
            problems.push(SectionProblem {
                key: owner.values_key(),
                owner: Some(owner),
                message: rejected.reason.to_string(),
            });
        }
    }
    problems
}

/// The keys that speak of modules which are not there.
fn strangers(document: ConfigDocument, data: &BTreeMap<String, String>, found: &Found) -> Vec<(String, String)> {
    let strange = document
        .sections
        .into_keys()
        .filter(|name| found.modules.iter().all(|module| module.name != *name));
    let told = strange.flat_map(|name| {
        let keys = [name.values_key(), name.enabled_key(), name.maintenance_key()];
        keys.map(|key| {
            let message = format!("key '{key}': there is no module '{name}', so it says nothing");
            (key, message)
        })
    });
    told.filter(|(key, _)| data.contains_key(key)).collect()
}

/// The keys of a ConfigMap with their texts.
fn data_of(document: Value) -> Result<BTreeMap<String, String>, String> {
    let Value::Object(mut map) = document else {
        return Err("should be a ConfigMap, or a map of its keys".to_owned());
    };
    let data = match map.get("kind").and_then(Value::as_str) {
        Some("ConfigMap") => map.remove("data").unwrap_or_default(),
        Some(kind) if map.contains_key("apiVersion") => return Err(format!("should be a ConfigMap, but is a {kind}")),
        Some(_) | None => Value::Object(map),
    };
    let entries = match data {
        Value::Null => return Ok(BTreeMap::new()),
        Value::Object(entries) => entries,
        _ => return Err("'data' should be a map".to_owned()),
    };
    let texts = entries.into_iter().map(|(key, value)| match value {
        Value::String(text) => Ok((key, text)),
        _ => Err(format!(
            "key '{key}' should hold a text, as everything in a ConfigMap: put its value in quotes, or below '{key}: |'"
        )),
    });
    texts.collect()
}

/// Whether the line is the one of that key. A `ConfigMap` is not so deep that another could look like it.
fn is_key(line: &str, key: &str) -> bool {
    let line = line.trim_start().trim_start_matches(['"', '\'']);
    let rest = line.strip_prefix(key).map(|rest| rest.trim_start_matches(['"', '\'']));
    rest.is_some_and(|rest| rest.trim_start().starts_with(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> Vec<String> {
        let findings = check(Path::new("f"), text, &[]);
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_config_map_and_its_data_alone_are_judged_alike() {
        let data = "oneEnabled: \"yes\"\nglobal: |\n  a: 1\none: |\n  - [\n";
        let indented = data.trim_end().replace('\n', "\n  ");
        let manifest = format!("apiVersion: v1\nkind: ConfigMap\ndata:\n  {indented}\n");
        let (alone, whole) = (checked(data), checked(&manifest));
        assert_eq!(alone.len(), 2, "{alone:?}");
        assert!(
            alone[1].starts_with("f:4: key 'one': bad yaml at key 'one': "),
            "{alone:?}"
        );
        assert_eq!(
            alone[0],
            "f:1: key 'oneEnabled': module enabled key 'oneEnabled' should have a boolean value, got 'yes'"
        );
        assert!(whole[0].starts_with("f:4: key 'oneEnabled'"), "{whole:?}");
        assert_eq!(checked("global: |\n  a: 1\n"), Vec::<String>::new());
        assert_eq!(checked("kind: ConfigMap\n"), Vec::<String>::new());
    }

    #[test]
    fn what_is_no_config_map_is_told_so() {
        for (text, said) in [
            ("a: [", "f:1: "),
            ("- a\n", "f: should be a ConfigMap, or a map of its keys"),
            (
                "apiVersion: v1\nkind: Secret\n",
                "f: should be a ConfigMap, but is a Secret",
            ),
            ("kind: ConfigMap\ndata: []\n", "f: 'data' should be a map"),
            ("oneEnabled: true\n", "f: key 'oneEnabled' should hold a text"),
        ] {
            let findings = checked(text);
            assert!(
                findings.len() == 1 && findings[0].starts_with(said),
                "{text}: {findings:?}"
            );
        }
    }

    #[test]
    fn keys_of_modules_that_are_not_there_are_remarked_on() {
        let dir = tempfile::tempdir().unwrap();
        fs_err::create_dir(dir.path().join("010-one")).unwrap();
        let findings = check(
            Path::new("f"),
            "oneEnabled: \"true\"\ntwoEnabled: \"true\"\n",
            &[dir.path().to_owned()],
        );
        assert_eq!(findings.len(), 1);
        assert_eq!(
            findings[0].to_string(),
            "f:2: warning: key 'twoEnabled': there is no module 'two', so it says nothing"
        );
    }

    #[test]
    fn sections_are_held_against_the_schemas_of_their_modules() {
        let dir = tempfile::tempdir().unwrap();
        let openapi = dir.path().join("modules/010-one/openapi");
        fs_err::create_dir_all(&openapi).unwrap();
        let schema = "type: object\nproperties: {size: {type: integer}}\n";
        fs_err::write(openapi.join("config-values.yaml"), schema).unwrap();
        let dirs = [dir.path().join("modules")];
        let checked = |text: &str| {
            let findings = check(Path::new("f"), text, &dirs);
            findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(checked("one: 'size: 5'\n"), "");
        let told = checked("two: '{}'\none: 'size: s3cr3t'\n");
        assert!(
            told.contains("f:2: key 'one': ") && told.contains("one.size in body must be of type integer"),
            "{told}"
        );
        assert!(
            told.contains("there is no module 'two'") && !told.contains("s3cr3t"),
            "{told}"
        );
    }
}
