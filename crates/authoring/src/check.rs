//! `config check`: judges a ConfigMap as the operator would, before it is in the cluster. Never asks a cluster.

mod settings_check;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use addon_core::operator::provenance::CONFIRM_REMOVALS;
use addon_core::values::Store;
use disk::{Fault, Found, Layout, Severity};
use helm_yaml::yaml;
use names::{ENABLED_SUFFIX, MAINTENANCE_SUFFIX, ModuleName, Owner};
use report::{Chain, plural};
use serde_json::Value;
use settings::{Environment, MissingValues};

use crate::findings::{Checked, Finding};

/// A directory in which nothing is found.
const NOWHERE: &str = "/dev/null";

/// The directories with the schemas for sections. Without directories of modules no module name counts as unknown.
#[derive(Debug, Clone, Default)]
pub struct Places {
    pub modules_dirs: Vec<PathBuf>,
    pub global_hooks_dir: Option<PathBuf>,
}

/// Judges the text of a file: the manifest of a ConfigMap, or only its data. With an environment, executables of modules
/// that check settings are asked, too.
pub fn check(path: &Path, text: &str, places: &Places, environment: Option<&Environment>) -> Checked {
    let data = match read_data(path, text) {
        Ok(data) => data,
        Err(finding) => {
            return Checked {
                findings: vec![finding],
                looked_at: String::new(),
            };
        }
    };
    let flags = data
        .keys()
        .filter(|key| key.ends_with(ENABLED_SUFFIX) || key.ends_with(MAINTENANCE_SUFFIX))
        .count();
    let looked_at = [plural(data.len() - flags, "section"), plural(flags, "flag")].join(", ");
    let findings = judge(path, text, &data, places, environment);
    Checked { findings, looked_at }
}

/// The data of the ConfigMap in a file: its keys with their texts.
pub fn read_data(path: &Path, text: &str) -> Result<BTreeMap<String, String>, Finding> {
    let document = yaml::from_str_v2_strict(text);
    let document = document.map_err(|error| Finding::error(path, &error.message).at(error.line))?;
    data_of(document).map_err(|problem| Finding::error(path, problem))
}

/// The annotation of the ConfigMap in a file that confirms removals, if there is one.
pub fn read_confirmation(text: &str) -> Option<String> {
    let document = yaml::from_str_v2_strict(text).ok()?;
    let annotations = document.get("metadata")?.get("annotations")?;
    annotations.get(CONFIRM_REMOVALS)?.as_str().map(str::to_owned)
}

fn judge(
    path: &Path,
    text: &str,
    data: &BTreeMap<String, String>,
    places: &Places,
    environment: Option<&Environment>,
) -> Vec<Finding> {
    let place = |key: &str| text.lines().position(|line| is_key(line, key)).map(|at| at + 1);
    let with_place = |finding: Finding, key: &str| match place(key) {
        Some(line) => finding.at(line),
        None => finding,
    };
    let (found, mut findings) = read(places);
    let names: BTreeSet<ModuleName> = found.modules.iter().map(|module| module.name.clone()).collect();
    let modules = Some(&names).filter(|_| !places.modules_dirs.is_empty());
    let store = store(&found);
    let judgement = store.judge(data, modules, &BTreeMap::new());
    let problems = judgement.problems.iter();
    findings.extend(problems.map(|problem| with_place(Finding::error(path, problem), &problem.key)));
    let idle = judgement.idle.iter();
    findings.extend(idle.map(|idle| with_place(Finding::warning(path, idle), &idle.key)));
    if let Some(environment) = environment.filter(|_| judgement.problems.is_empty()) {
        let opinions = settings_check::opinions(path, data, &found, &store, environment).into_iter();
        findings.extend(opinions.map(|(key, finding)| with_place(finding, &key)));
    }
    let second = yaml::second_document(text);
    findings.extend(second.map(|second| Finding::warning(path, "only the first document is checked").at(second.line)));
    findings.sort_by_key(|finding| finding.line);
    findings
}

/// The modules and global hooks in the directories, and the faults that prevent a judgement of sections.
fn read(places: &Places) -> (Found, Vec<Finding>) {
    let global_hooks_dir = places.global_hooks_dir.clone();
    let found = disk::read(&Layout {
        modules_dirs: places.modules_dirs.clone(),
        global_hooks_dir: global_hooks_dir.unwrap_or_else(|| NOWHERE.into()),
        unnumbered_order: 1,
        missing_values: MissingValues::NoValues,
        crd_filters: Vec::new(),
    });
    let of_modules = found.modules.iter().flat_map(|module| &module.faults);
    let of_modules = of_modules.filter(|problem| matches!(problem.fault, Fault::Schema(_)));
    let problems = found.problems.iter();
    let problems = problems.filter(|problem| problem.severity == Severity::Fatal && !problem.path.starts_with(NOWHERE));
    let findings = problems.chain(of_modules);
    let findings = findings.map(|problem| Finding::error(&problem.path, Chain(&problem.fault)));
    let findings = findings.collect();
    (found, findings)
}

/// The values and schemas of the files. Invalid files are left out, because the checks of modules report them.
fn store(found: &Found) -> Store {
    let mut store = Store::new();
    let global = (Owner::Global, &found.global_schemas, &found.global_values);
    let modules = found.modules.iter();
    let modules = modules.map(|module| (Owner::from(module.name.clone()), &module.schemas, &module.values));
    for (owner, schemas, values) in std::iter::once(global).chain(modules) {
        let schemas = store.set_schemas(&owner, schemas.clone());
        drop(schemas.and_then(|_| store.set_static(&owner, values.clone())));
    }
    store
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

/// Whether a line of the file defines this key. A `ConfigMap` is not nested so deeply that a line with another meaning
/// could look like the definition of a key.
fn is_key(line: &str, key: &str) -> bool {
    let line = line.trim_start().trim_start_matches(['"', '\'']);
    let rest = line.strip_prefix(key).map(|rest| rest.trim_start_matches(['"', '\'']));
    rest.is_some_and(|rest| rest.trim_start().starts_with(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> Vec<String> {
        let findings = check(Path::new("f"), text, &Places::default(), None).findings;
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
            alone[1].starts_with("f:4: key 'one' of module 'one': bad yaml at key 'one': "),
            "{alone:?}"
        );
        assert_eq!(
            alone[0],
            "f:1: key 'oneEnabled' of module 'one': module enabled key 'oneEnabled' should have a boolean value, got 'yes'"
        );
        assert!(whole[0].starts_with("f:4: key 'oneEnabled'"), "{whole:?}");
        assert_eq!(checked("global: |\n  a: 1\n"), Vec::<String>::new());
        assert_eq!(checked("kind: ConfigMap\n"), Vec::<String>::new());
    }

    #[test]
    fn a_second_document_is_told_by_section_and_line() {
        let section = "one: |\n  a: 1\n  ---\n  b: 2\nglobal: |\n  a: 1\n  ---\n";
        let [told] = &checked(section)[..] else {
            panic!("{:?}", checked(section));
        };
        assert!(
            told.starts_with(
                "f:1: key 'one' of module 'one': bad yaml at key 'one': line 3, column 1: a second document"
            ),
            "{told}"
        );
        assert_eq!(
            checked("oneEnabled: 'true'\n---\nkind: Secret\n"),
            ["f:3: warning: only the first document is checked"]
        );
        // A byte order mark in front of a file or a section does no harm.
        assert_eq!(checked("\u{feff}one: \"\\uFEFFa: 1\"\n"), Vec::<String>::new());
    }

    #[test]
    fn sections_and_flags_are_counted() {
        let looked_at = |text| check(Path::new("f"), text, &Places::default(), None).looked_at;
        let text = "global: |\n  a: 1\none: |\n  a: 1\noneEnabled: \"true\"\n";
        assert_eq!(looked_at(text), "2 sections, 1 flag");
        assert_eq!(looked_at("kind: ConfigMap\n"), "0 sections, 0 flags");
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

    /// Directories with a module `one` and global hooks, which have these schemas.
    fn places(dir: &Path, one: &str, global: &str) -> Places {
        let places = Places {
            modules_dirs: vec![dir.join("modules")],
            global_hooks_dir: Some(dir.join("global-hooks")),
        };
        for (folder, schema) in [("modules/010-one", one), ("global-hooks", global)] {
            let openapi = dir.join(folder).join("openapi");
            fs_err::create_dir_all(&openapi).unwrap();
            fs_err::write(openapi.join("config-values.yaml"), schema).unwrap();
        }
        places
    }

    fn judged(text: &str, places: &Places) -> String {
        let findings = check(Path::new("f"), text, places, None).findings;
        findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }

    const SIZE: &str = "type: object\nproperties: {size: {type: integer}}\n";

    #[test]
    fn keys_of_modules_that_are_not_there_are_remarked_on() {
        let dir = tempfile::tempdir().unwrap();
        let places = places(dir.path(), SIZE, SIZE);
        assert_eq!(
            judged("oneEnabled: \"true\"\ntwoEnabled: \"true\"\n", &places),
            "f:2: warning: key 'twoEnabled': there is no module 'two', so it says nothing"
        );
    }

    #[test]
    fn sections_are_held_against_the_schemas_of_their_owners() {
        let dir = tempfile::tempdir().unwrap();
        let places = places(dir.path(), SIZE, SIZE);
        assert_eq!(judged("one: 'size: 5'\nglobal: 'size: 5'\n", &places), "");
        let told = judged("two: '{}'\none: 'size: s3cr3t'\nglobal: 'size: s3cr3t'\n", &places);
        for said in [
            "f:2: key 'one' of module 'one': ",
            "one.size in body must be of type integer",
            "f:3: key 'global': ",
            "global.size in body must be of type integer",
            "there is no module 'two'",
        ] {
            assert!(told.contains(said), "{said}: {told}");
        }
        assert!(!told.contains("s3cr3t"), "{told}");
        let without = Places {
            global_hooks_dir: None,
            ..places
        };
        assert_eq!(judged("global: 'size: s3cr3t'\n", &without), "");
    }

    #[test]
    fn what_keeps_sections_from_being_judged_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let places = places(dir.path(), "properties: 5\n", "properties: 5\n");
        let told = judged("one: '{}'\n", &places);
        assert_eq!(told.matches("holds a schema that cannot be used").count(), 2, "{told}");
        let missing = Places {
            modules_dirs: vec![dir.path().join("nowhere")],
            global_hooks_dir: None,
        };
        assert!(judged("global: '{}'\n", &missing).ends_with("nowhere: does not exist"));
    }
}
