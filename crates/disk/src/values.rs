//! Values files: the common one of a modules directory and the one of each module. An unreadable file must never be
//! replaced by defaults: without a common file the flags are unknown, not off.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use addon_core::module::outline::ValuesFile;
use addon_core::values::merge::merge;
use helm_yaml::yaml;
use helm_yaml::yaml::document::Kind;
use names::{ENABLED_SUFFIX, GLOBAL_KEY, ModuleName};
use serde_json::{Map, Value};
use settings::MissingValues;

use super::{Fault, Problem, Severity, chart};

pub(super) const FILE: &str = "values.yaml";

/// The common values file of a modules directory.
#[derive(Debug, Default)]
pub(super) struct Common {
    pub(super) path: PathBuf,
    document: Map<String, Value>,
    pub(super) flags: BTreeMap<ModuleName, bool>,
    /// The outline to remember; `None` if the file is missing or empty.
    pub(super) said: Option<ValuesFile>,
    /// Invalid flags, with their modules.
    pub(super) bad_flags: Vec<(ModuleName, Problem)>,
}

impl Common {
    /// Merges the file's global section over the values.
    pub(super) fn lay_global(&self, values: Value, problems: &mut Vec<Problem>) -> Value {
        let section = self.document.get(GLOBAL_KEY).unwrap_or(&Value::Null);
        lay_section(values, GLOBAL_KEY, section, &self.path, problems)
    }
}

impl Common {
    /// Whether the file has values of the module.
    pub(super) fn speaks_of(&self, module: &ModuleName) -> bool {
        self.document.contains_key(&module.values_key())
    }
}

/// Values of a module from elsewhere than its directory, in the form of a values file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// The place of the values, for errors.
    pub place: String,
    /// The text of the file.
    pub text: String,
}

impl Layer {
    /// Merges the layer over the values. If the layer has no section of the module, all of it counts as the section.
    pub(super) fn lay(&self, values: Value, module: &ModuleName, problems: &mut Vec<Problem>) -> Value {
        let key = module.values_key();
        let place = Path::new(&self.place);
        let document = match yaml::from_str_v2(&self.text) {
            Ok(document) => document,
            Err(error) => {
                problems.push(Problem::new(Severity::Fatal, place, Fault::NotYaml(error)));
                return values;
            }
        };
        let section = match document.get(&key).filter(|section| section.is_object()) {
            Some(section) => section,
            None => &document,
        };
        lay_section(values, &key, section, place, problems)
    }
}

/// Reads the common file of a modules directory. If the file exists but is invalid, all flags are unknown.
pub(super) fn read_common(path: &Path, missing: MissingValues, problems: &mut Vec<Problem>) -> Common {
    let mut common = Common {
        path: path.to_owned(),
        ..Common::default()
    };
    match read_file(path, missing, problems) {
        Ok(document) => {
            common.said = document.as_ref().map(|_| ValuesFile::default());
            common.document = document.unwrap_or_default();
        }
        Err(fault) => problems.push(Problem::new(Severity::Fatal, path, fault)),
    }
    for (key, value) in &common.document {
        let Some(module_key) = key.strip_suffix(ENABLED_SUFFIX) else {
            if let Some(said) = &mut common.said {
                said.sections.insert(key.clone());
            }
            continue;
        };
        match (ModuleName::from_values_key(module_key), value) {
            (Ok(name), Value::Bool(flag)) => {
                if let Some(said) = &mut common.said {
                    said.flags.insert(name.clone(), *flag);
                }
                common.flags.insert(name, *flag);
            }
            (Ok(name), other) => {
                let fault = Fault::FlagNotBoolean {
                    key: key.clone(),
                    found: Kind::of(other),
                };
                common
                    .bad_flags
                    .push((name, Problem::new(Severity::Fatal, path, fault)));
            }
            (Err(_), _) => problems.push(Problem::warning(path, Fault::FlagOfNobody { key: key.clone() })),
        }
    }
    common
}

/// The static values of a module: its section of the common file, with its own file's section merged over.
pub(super) fn of_module(
    name: &ModuleName,
    path: &Path,
    common: &Common,
    missing: MissingValues,
    faults: &mut Vec<Problem>,
    warnings: &mut Vec<Problem>,
) -> Value {
    let key = name.values_key();
    let own = read_file(path, missing, warnings).unwrap_or_else(|fault| {
        faults.push(Problem::new(Severity::Fatal, path, fault));
        None
    });
    let own = own.unwrap_or_default();
    let flags = own.keys().filter(|key| key.ends_with(ENABLED_SUFFIX));
    warnings.extend(flags.map(|key| Problem::warning(path, Fault::FlagOfModule { key: key.clone() })));
    let module = path.parent().unwrap_or(path);
    let is_taken = |name: &str| name == key || name == GLOBAL_KEY || name.ends_with(ENABLED_SUFFIX);
    let unread = own.keys().filter(|name| !is_taken(name) && !chart::reads(module, name));
    warnings.extend(unread.map(|name| {
        let fault = Fault::OutsideOfSection {
            key: name.clone(),
            section: key.clone(),
        };
        Problem::warning(path, fault)
    }));
    let mut values = Value::Object(Map::new());
    for (document, file) in [(&common.document, common.path.as_path()), (&own, path)] {
        let section = document.get(&key).unwrap_or(&Value::Null);
        values = lay_section(values, &key, section, file, faults);
    }
    values
}

fn lay_section(values: Value, key: &str, section: &Value, file: &Path, problems: &mut Vec<Problem>) -> Value {
    let key = key.to_owned();
    let fault = match section {
        Value::Null => return values,
        Value::Object(_) => match merge(values.clone(), section) {
            Ok(merged) => return merged,
            Err(source) => Fault::TooDeep { key, source },
        },
        other => Fault::SectionNotAMap {
            key,
            found: Kind::of(other),
        },
    };
    problems.push(Problem::new(Severity::Fatal, file, fault));
    values
}

/// The map in a values file; `None` if the file is missing or empty.
fn read_file(
    path: &Path,
    missing: MissingValues,
    warnings: &mut Vec<Problem>,
) -> Result<Option<Map<String, Value>>, Fault> {
    let text = match fs_err::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {
            return match missing {
                MissingValues::NoValues => Ok(None),
                MissingValues::Refused => Err(Fault::MissingValues),
            };
        }
        Err(error) => return Err(Fault::Unreadable(error)),
    };
    let document = yaml::from_str_v2(&text).map_err(Fault::NotYaml)?;
    // Helm and the original drop a second document. To refuse it could change the values of a running module.
    let second = yaml::second_document(&text).map(Fault::SecondDocument);
    warnings.extend(second.map(|fault| Problem::warning(path, fault)));
    match document {
        Value::Null => Ok(None),
        Value::Object(document) => Ok(Some(document)),
        other => Err(Fault::NotAMap {
            found: Kind::of(&other),
        }),
    }
}
