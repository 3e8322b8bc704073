//! `module.yaml`: what a module says of itself. Today that is which modules it needs.
//! Never guesses: a field that is not known is an error, because it may be one that matters and is misspelt.

use std::io;
use std::path::Path;

use addon_core::name::ModuleName;
use addon_core::yaml;
use serde_json::Value;

use super::{Fault, Kind, Problem, Severity};

pub(super) const FILE: &str = "module.yaml";
pub(super) const DEPENDS_ON: &str = "dependsOn";

/// The modules that have to succeed first, in the order of the file.
pub(super) fn read(path: &Path, faults: &mut Vec<Problem>) -> Vec<ModuleName> {
    let mut names = Vec::new();
    let mut found = Vec::new();
    match read_document(path) {
        Ok(Value::Null) => {}
        Ok(Value::Object(fields)) => {
            for (field, value) in fields {
                if field == DEPENDS_ON {
                    read_names(&value, &mut names, &mut found);
                } else {
                    found.push(Fault::UnknownField { field });
                }
            }
        }
        Ok(other) => found.push(Fault::NotAMap {
            found: Kind::of(&other),
        }),
        Err(fault) => found.push(fault),
    }
    faults.extend(
        found
            .into_iter()
            .map(|fault| Problem::new(Severity::Fatal, path, fault)),
    );
    names
}

fn read_document(path: &Path) -> Result<Value, Fault> {
    match fs_err::read_to_string(path) {
        Ok(text) => yaml::from_str_v2_strict(&text).map_err(Fault::NotYaml),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => Ok(Value::Null),
        Err(error) => Err(Fault::Unreadable(error)),
    }
}

fn read_names(value: &Value, names: &mut Vec<ModuleName>, faults: &mut Vec<Fault>) {
    let wrong = |field: String, expected, value| Fault::WrongField {
        field,
        expected,
        found: Kind::of(value),
    };
    let Value::Array(items) = value else {
        return faults.push(wrong(DEPENDS_ON.to_owned(), "a list of module names", value));
    };
    for (at, item) in items.iter().enumerate() {
        let field = format!("{DEPENDS_ON}[{at}]");
        match item.as_str().map(ModuleName::parse) {
            Some(Ok(name)) if names.contains(&name) => {}
            Some(Ok(name)) => names.push(name),
            Some(Err(source)) => faults.push(Fault::FieldName { field, source }),
            None => faults.push(wrong(field, "the name of a module", item)),
        }
    }
}
