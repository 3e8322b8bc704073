//! `module.yaml`: any text names modules, has mistakes with their places, or is invalid YAML at a place.

use addon_core::module::description::{DEPENDS_ON, DRIFT, Description, Mistake, REPLACE, SERVICE_ACCOUNT};
use helm_yaml::yaml;
use names::ModuleName;
use serde_json::Value;

/// Longer keys are left out: in YAML a key written as in JSON has at most 1024 characters.
const LONGEST: usize = 1000;

/// The text is the file.
pub(crate) fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    // YAML knows more than one kind of line break.
    let lines = 1 + text.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).count();
    let description = match Description::parse(text) {
        Ok(description) => description,
        Err(error) => {
            assert!((1..=lines).contains(&error.line) && error.column > 0, "{error}");
            return assert!(!error.message.is_empty(), "{error}");
        }
    };
    for mistake in &description.mistakes {
        let line = match mistake {
            Mistake::NoMap(_) => 1,
            Mistake::Misspelt { line, .. }
            | Mistake::Wrong { line, .. }
            | Mistake::Name { line, .. }
            | Mistake::SecondDocument { line }
            | Mistake::Replace { line, .. }
            | Mistake::Rule { line, .. }
            | Mistake::NoField { line, .. }
            | Mistake::Duration { line, .. }
            | Mistake::Drift { line }
            | Mistake::Account { line } => *line,
        };
        assert!((1..=lines).contains(&line), "{mistake}");
    }
    for field in &description.unknown {
        assert!((1..=lines).contains(&field.line), "{field}");
    }
    let value = yaml::from_str_v3(text).expect("all of its documents can be read");
    told(&value, &description);
    // The description means the same when it is written anew; only the line numbers differ.
    if text.len() <= LONGEST {
        let again = Description::parse(&yaml::to_string(&value)).expect("what we write can be read");
        assert_eq!(
            (&again.depends_on, again.drift),
            (&description.depends_on, description.drift)
        );
        // A second document is not written.
        let written = |mistake: &&Mistake| !matches!(mistake, Mistake::SecondDocument { .. });
        let mistakes = description.mistakes.iter().filter(written).count();
        assert_eq!(
            (again.mistakes.len(), again.unknown.len()),
            (mistakes, description.unknown.len())
        );
    }
}

/// Each field and each name in it has led to a dependency, a mistake or an unknown name.
fn told(value: &Value, description: &Description) {
    let mut names: Vec<&ModuleName> = Vec::new();
    for name in &description.depends_on {
        assert!(!names.contains(&name), "{name} is there twice");
        names.push(name);
    }
    // A second document is not in the value, and entries of `replace` have rules of their own.
    let is_counted = |mistake: &&Mistake| !matches!(mistake, Mistake::SecondDocument { .. } | Mistake::Replace { .. });
    let told = description.mistakes.iter().filter(is_counted).count();
    let unknown = description.unknown.len();
    let Some(fields) = value.as_object() else {
        let expected = usize::from(!value.is_null());
        return assert_eq!((names.len(), told, unknown), (0, expected, 0));
    };
    let is_misspelt = |field: &&String| {
        let small = field.to_lowercase();
        let is_ours = [DEPENDS_ON, SERVICE_ACCOUNT, REPLACE].contains(&field.as_str());
        let is_like = small.starts_with("depend") || small.starts_with("replac");
        !is_ours && (is_like || small.replace(['-', '_'], "").starts_with("serviceaccount"))
    };
    let misspelt = fields.keys().filter(is_misspelt).count();
    let (good, bad) = match fields.get(DEPENDS_ON) {
        None => (Vec::new(), 0),
        Some(Value::Array(items)) => {
            let read = |item: &Value| item.as_str().and_then(|text| ModuleName::parse(text).ok());
            let good: Vec<ModuleName> = items.iter().filter_map(read).collect();
            let bad = items.len() - good.len();
            (good, bad)
        }
        Some(_) => (Vec::new(), 1),
    };
    let bad_drift = usize::from(fields.contains_key(DRIFT) && description.drift.is_none());
    let bad_account = usize::from(fields.contains_key(SERVICE_ACCOUNT) && description.service_account.is_none());
    let bad_replace = usize::from(fields.get(REPLACE).is_some_and(|value| !value.is_array()));
    assert_eq!(told, misspelt + bad + bad_drift + bad_account + bad_replace, "{value}");
    assert!(good.iter().all(|name| names.contains(&name)), "{value}");
    assert!(names.iter().all(|name| good.contains(name)), "{value}");
    assert!(unknown + misspelt <= fields.len(), "{value}");
}
