//! Parses `module.yaml`: the modules that a module depends on, which drift of its release is repaired, its service
//! account, the objects that may be replaced, and the settings for the health of its objects.
//!
//! Programs that embed the original have other fields in this file, which are accepted. A field of no known program gives
//! a warning. Must never ignore a misspelt field of ours.

mod health;
mod mistake;
#[cfg(test)]
mod tests;

use std::fmt;

use helm_yaml::yaml::YamlError;
use helm_yaml::yaml::document::{self, Document, Kind};
use serde_json::Value;

pub use self::mistake::{Mistake, UnknownField};
use names::ModuleName;
use names::replaceable::Replaceable;

use self::health::{Until, need};
use super::health::HealthSettings;

/// The field with the modules that the module depends on.
pub const DEPENDS_ON: &str = "dependsOn";
/// The field that says which drift is repaired.
pub const DRIFT: &str = "drift";
/// The field with the service account of the module's hooks and of its release.
pub const SERVICE_ACCOUNT: &str = "serviceAccount";
/// The field with the objects that may be deleted and made anew if an upgrade cannot change them.
pub const REPLACE: &str = "replace";
/// The field with the settings for the health of the module's objects.
pub const HEALTH: &str = "health";
/// The largest length of an object's name that the API server accepts.
const LONGEST_NAME: usize = 253;

/// The field with rights that cannot be found in the chart or the hooks. `rbac generate` reads it; the running operator
/// ignores it.
pub const RIGHTS: &str = "rights";

/// Fields of programs that embed the original. The operator ignores them.
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

/// The drift of a release that is repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restoring {
    /// Nothing is repaired before the next run of the module.
    Off,
    /// Absent objects are created again.
    Absent,
    /// Absent objects are created again, and altered fields of existing objects are restored.
    Changed,
}

impl Restoring {
    /// The valid values, for people.
    pub const WORDS: &str = "off, absent, changed";

    /// Reads a value.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "off" => Some(Self::Off),
            "absent" => Some(Self::Absent),
            "changed" => Some(Self::Changed),
            _ => None,
        }
    }
}

/// The name of a service account.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AccountName(String);

impl AccountName {
    /// Parses a name that an API server accepts: parts of lower-case letters, digits and dashes with dots between them.
    pub fn parse(text: &str) -> Option<Self> {
        let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let inside = |byte: u8| letter(byte) || byte == b'-';
        let is_part = |part: &[u8]| match part {
            [] => false,
            [first, .., last] => letter(*first) && letter(*last) && part.iter().all(|byte| inside(*byte)),
            [only] => letter(*only),
        };
        let is_name = text.len() <= LONGEST_NAME && text.as_bytes().split(|byte| *byte == b'.').all(is_part);
        is_name.then(|| Self(text.to_owned()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AccountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The contents of `module.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Description {
    /// The modules that have to succeed first, each once, in the order of the file.
    pub depends_on: Vec<ModuleName>,
    /// The drift that is repaired; `None`: the common setting decides.
    pub drift: Option<Restoring>,
    /// The service account of the module's hooks and release; `None`: the operator's own account.
    pub service_account: Option<AccountName>,
    /// The objects that may be made anew if an upgrade cannot change them.
    pub replace: Vec<Replaceable>,
    /// The settings for the health of the module's objects.
    pub health: HealthSettings,
    /// The mistakes for which the module cannot be used.
    pub mistakes: Vec<Mistake>,
    /// Fields that no known program has.
    pub unknown: Vec<UnknownField>,
}

impl Description {
    /// Parses a text. An empty text has no settings.
    pub fn parse(text: &str) -> Result<Self, YamlError> {
        let mut documents = document::documents_v3(text)?.into_iter();
        let first = documents.next();
        let mut description = first.map_or_else(Self::default, |document| Self::read(&document));
        if let Some(second) = documents.find(|document| !document.value.is_null()) {
            description.mistakes.push(Mistake::SecondDocument { line: second.line });
        }
        Ok(description)
    }

    fn read(document: &Document) -> Self {
        let mut description = Self::default();
        match &document.value {
            Value::Null => {}
            Value::Object(fields) => {
                for (field, value) in fields {
                    description.take(document.line_of(field), field, value);
                }
            }
            other => description.mistakes.push(Mistake::NoMap(Kind::of(other))),
        }
        description
    }

    fn take(&mut self, line: usize, field: &str, value: &Value) {
        let name = || field.to_owned();
        if field == DEPENDS_ON {
            self.take_names(line, value);
        } else if field == DRIFT {
            self.take_drift(line, value);
        } else if field == SERVICE_ACCOUNT {
            self.service_account = value.as_str().and_then(AccountName::parse);
            if self.service_account.is_none() {
                self.mistakes.push(Mistake::Account { line });
            }
        } else if field == REPLACE {
            self.take_replaceable(line, value);
        } else if field == HEALTH {
            self.take_health(line, value);
        } else if let Some(meant) = nearly_ours(field) {
            let field = name();
            self.mistakes.push(Mistake::Misspelt { line, field, meant });
        } else if field != RIGHTS && !OF_OTHERS.contains(&field) {
            self.unknown.push(UnknownField { line, field: name() });
        }
    }

    fn take_drift(&mut self, line: usize, value: &Value) {
        // YAML reads `off` without quotes as a boolean.
        let word = if *value == Value::Bool(false) {
            Some("off")
        } else {
            value.as_str()
        };
        self.drift = word.and_then(Restoring::parse);
        if self.drift.is_none() {
            self.mistakes.push(Mistake::Drift { line });
        }
    }

    fn take_names(&mut self, line: usize, value: &Value) {
        for (field, item) in self.items(DEPENDS_ON, "a list of module names", line, value) {
            let Some((name, until)) = need(item) else {
                self.wrong(line, field, "the name of a module, or {name: …, until: ready}", item);
                continue;
            };
            match ModuleName::parse(name) {
                Ok(name) => {
                    if until == Until::Ready {
                        self.health.until_ready.insert(name.clone());
                    }
                    if !self.depends_on.contains(&name) {
                        self.depends_on.push(name);
                    }
                }
                Err(source) => self.mistakes.push(Mistake::Name { line, field, source }),
            }
        }
    }

    fn take_replaceable(&mut self, line: usize, value: &Value) {
        for (field, item) in self.items(REPLACE, "a list of objects as KIND/NAME", line, value) {
            match item.as_str().map(Replaceable::parse) {
                Some(Ok(object)) => self.replace.push(object),
                Some(Err(source)) => self.mistakes.push(Mistake::Replace { line, field, source }),
                None => self.wrong(line, field, "an object as KIND/NAME", item),
            }
        }
    }

    /// The items of a list, each with its path. A value that is no list is a mistake and has no items.
    fn items<'a>(
        &mut self,
        field: &str,
        expected: &'static str,
        line: usize,
        value: &'a Value,
    ) -> Vec<(String, &'a Value)> {
        let Value::Array(items) = value else {
            self.wrong(line, field.to_owned(), expected, value);
            return Vec::new();
        };
        let items = items.iter().enumerate();
        items.map(|(at, item)| (format!("{field}[{at}]"), item)).collect()
    }

    fn wrong(&mut self, line: usize, field: String, expected: &'static str, value: &Value) {
        self.mistakes.push(Mistake::Wrong {
            line,
            field,
            expected,
            found: Kind::of(value),
        });
    }
}

/// Our field that another spelling probably means: `dependOn`, `depends-on`, `dependencies`; `serviceAccountName`,
/// `service-account`; `replaces`.
fn nearly_ours(field: &str) -> Option<&'static str> {
    let small = field.to_ascii_lowercase();
    if small.starts_with("depend") {
        Some(DEPENDS_ON)
    } else if small.replace(['-', '_'], "").starts_with("serviceaccount") {
        Some(SERVICE_ACCOUNT)
    } else if small.starts_with("replac") {
        Some(REPLACE)
    } else {
        None
    }
}
