//! `module.yaml`: what a module says of itself. Today that is which modules it needs.
//!
//! The file is older than us: programs that embed the original keep other things in it, which are let pass. What nobody
//! is known to write there is told. Must never pass over a field that could be ours and is misspelt.

use std::io;
use std::path::Path;

use addon_core::name::ModuleName;
use addon_core::yaml::document::{self, Document};
use serde_json::Value;

use super::{Fault, Kind, Problem, Severity};

pub(super) const FILE: &str = "module.yaml";
pub(super) const DEPENDS_ON: &str = "dependsOn";

/// What programs that embed the original read from it. To us it means nothing.
const OF_OTHERS: [&str; 14] = [
    "accessibility",
    "critical",
    "description",
    "descriptions",
    "disable",
    "exclusiveGroup",
    "name",
    "namespace",
    "requirements",
    "stage",
    "subsystems",
    "tags",
    "update",
    "weight",
];

/// The modules that have to succeed first, in the order of the file.
pub(super) fn read(path: &Path, faults: &mut Vec<Problem>, warnings: &mut Vec<Problem>) -> Vec<ModuleName> {
    let mut names = Vec::new();
    let fatal = |fault| Problem::new(Severity::Fatal, path, fault);
    let document = match read_document(path) {
        Ok(document) => document,
        Err(fault) => {
            faults.push(fatal(fault));
            return names;
        }
    };
    let mut found = Vec::new();
    match &document.value {
        Value::Null => {}
        Value::Object(fields) => {
            for (field, value) in fields {
                let (line, field) = (document.line_of(field), field.clone());
                if field == DEPENDS_ON {
                    read_names(line, value, &mut names, &mut found);
                } else if is_nearly_ours(&field) {
                    found.push(Fault::MisspeltField { line, field });
                } else if !OF_OTHERS.contains(&field.as_str()) {
                    warnings.push(Problem::warning(path, Fault::UnknownField { line, field }));
                }
            }
        }
        other => found.push(Fault::NotAMap { found: Kind::of(other) }),
    }
    faults.extend(found.into_iter().map(fatal));
    names
}

/// It speaks of dependencies in other words: `dependOn`, `depends-on`, `dependencies`.
fn is_nearly_ours(field: &str) -> bool {
    field.to_ascii_lowercase().starts_with("depend")
}

fn read_document(path: &Path) -> Result<Document, Fault> {
    let nothing = Document::at(1, Value::Null);
    match fs_err::read_to_string(path) {
        Ok(text) => {
            let documents = document::documents_v3(&text).map_err(Fault::NotYaml)?;
            Ok(documents.into_iter().next().unwrap_or(nothing))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => Ok(nothing),
        Err(error) => Err(Fault::Unreadable(error)),
    }
}

fn read_names(line: usize, value: &Value, names: &mut Vec<ModuleName>, faults: &mut Vec<Fault>) {
    let wrong = |field: String, expected, value| Fault::WrongField {
        line,
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
            Some(Err(source)) => faults.push(Fault::FieldName { line, field, source }),
            None => faults.push(wrong(field, "the name of a module", item)),
        }
    }
}
