//! The data of the `ConfigMap`: a broken key affects its owner alone, and a section that the operator saves is read
//! back unchanged.

use std::collections::BTreeMap;

use addon_core::values::Store;
use addon_core::values::section::{ConfigDocument, Entry, Section, SectionProblem, to_text};
use helm_yaml::yaml;
use names::{ENABLED_SUFFIX, GLOBAL_KEY, ModuleName, Owner};
use serde_json::Value;

const KEY: &str = "==";

/// A line that begins with `==` holds a key. The lines up to the next one are its text.
pub(crate) fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut keys = BTreeMap::new();
    for part in text.strip_prefix(KEY).unwrap_or(text).split("\n==") {
        let (key, text) = part.split_once('\n').unwrap_or((part, ""));
        keys.insert(key.to_owned(), text.to_owned());
    }
    let document = ConfigDocument::parse(&keys);
    each_key_alone(&keys, &document);
    for problem in &document.problems {
        told(problem, &keys, &document);
    }
    if let Entry::Good(global) = &document.global {
        assert!(global.is_object());
        saved(&Owner::Global, global);
    }
    for (module, section) in &document.sections {
        if let Entry::Good(values) = &section.values {
            assert!(values.is_object() || values.is_array());
            saved(&module.clone().into(), values);
        }
        let mentioned = [module.values_key(), module.enabled_key(), module.maintenance_key()];
        assert!(
            mentioned.iter().any(|key| keys.contains_key(key)),
            "{module} is not there"
        );
        assert!(section.layer() != Entry::Absent, "{module} is mentioned");
    }
}

/// The result for one key does not depend on the other keys.
fn each_key_alone(keys: &BTreeMap<String, String>, document: &ConfigDocument) {
    let mut sum = ConfigDocument::default();
    for (key, text) in keys {
        let alone = ConfigDocument::parse(&BTreeMap::from([(key.clone(), text.clone())]));
        if key == GLOBAL_KEY {
            sum.global = alone.global;
        }
        sum.problems.extend(alone.problems);
        for (module, section) in alone.sections {
            let Section {
                values,
                enabled,
                maintenance,
            } = section;
            let whole = sum.sections.entry(module).or_default();
            if values.is_present() {
                whole.values = values;
            }
            if enabled.is_present() {
                assert!(key.ends_with(ENABLED_SUFFIX), "{key}");
                whole.enabled = enabled;
            }
            if maintenance.is_present() {
                whole.maintenance = maintenance;
            }
        }
    }
    assert_eq!(sum, *document);
}

/// A mistake names its key and leaves its owner without values from it. Its position lies within the text.
fn told(problem: &SectionProblem, keys: &BTreeMap<String, String>, document: &ConfigDocument) {
    let text = keys.get(&problem.key).expect("a key that is there");
    assert!(!problem.message.is_empty());
    let is_bad = match &problem.owner {
        None => ModuleName::from_values_key(&problem.key).is_err() || problem.key.ends_with(ENABLED_SUFFIX),
        Some(Owner::Global) => document.global == Entry::Bad,
        Some(Owner::Module(name)) => {
            let section = &document.sections[name];
            [
                (name.values_key(), section.values == Entry::Bad),
                (name.enabled_key(), section.enabled == Entry::Bad),
                (name.maintenance_key(), section.maintenance == Entry::Bad),
            ]
            .contains(&(problem.key.clone(), true))
        }
    };
    assert!(is_bad || problem.owner.is_none(), "{problem:?}");
    let message = problem.message.trim_start_matches("ConfigMap: ");
    if let Some(place) = message.strip_prefix(&format!("bad yaml at key '{}': line ", problem.key)) {
        let line: Option<usize> = place.split(',').next().and_then(|line| line.parse().ok());
        let lines = 1 + text.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).count();
        assert!(line.is_some_and(|line| (1..=lines).contains(&line)), "{problem:?}");
    }
}

/// The store either takes a section or stays as it was. A saved section means the same when it is read again.
fn saved(owner: &Owner, section: &Value) {
    let mut store = Store::new();
    let before = store.clone();
    if store.set_config(owner, Some(section.clone())).is_err() {
        return assert!(store == before, "what was refused has left traces");
    }
    assert_eq!(
        store.set_config(owner, Some(section.clone())),
        Ok(false),
        "nothing is new"
    );
    let kept = store.config_section(owner).expect("a section that was taken");
    let text = to_text(&kept);
    assert_eq!(yaml::from_str_v3(&text).as_ref(), Ok(&*kept), "{text}");
    // Helm reads its files in the other dialect of YAML.
    assert_eq!(yaml::from_str_v2_strict(&text).as_ref(), Ok(&*kept), "{text}");
}
