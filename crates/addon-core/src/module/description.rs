//! Parses `module.yaml`: the modules that a module depends on, which drift of its release is repaired, its service
//! account, and the objects that may be replaced.
//!
//! Programs that embed the original have other fields in this file, which are accepted. A field of no known program gives
//! a warning. Must never ignore a misspelt field of ours.

mod mistake;

use std::fmt;

use helm_yaml::yaml::YamlError;
use helm_yaml::yaml::document::{self, Document, Kind};
use serde_json::Value;

pub use self::mistake::{Mistake, UnknownField};
use names::ModuleName;
use names::replaceable::Replaceable;

/// The field with the modules that the module depends on.
pub const DEPENDS_ON: &str = "dependsOn";
/// The field that says which drift is repaired.
pub const DRIFT: &str = "drift";
/// The field with the service account of the module's hooks and of its release.
pub const SERVICE_ACCOUNT: &str = "serviceAccount";
/// The field with the objects that may be deleted and made anew if an upgrade cannot change them.
pub const REPLACE: &str = "replace";
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
            match item.as_str().map(ModuleName::parse) {
                Some(Ok(name)) if self.depends_on.contains(&name) => {}
                Some(Ok(name)) => self.depends_on.push(name),
                Some(Err(source)) => self.mistakes.push(Mistake::Name { line, field, source }),
                None => self.wrong(line, field, "the name of a module", item),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_account_has_a_name_that_an_api_server_takes() {
        let said = |text: &str| Description::parse(text).unwrap();
        let name = said("serviceAccount: small.rights-2").service_account;
        assert_eq!(name.unwrap().as_str(), "small.rights-2");
        let long = format!("serviceAccount: {}", "a".repeat(254));
        for text in [
            "serviceAccount: ''",
            "serviceAccount: ../a",
            "serviceAccount: a..b",
            "serviceAccount: A",
            &long,
        ] {
            assert_eq!(said(text).mistakes, [Mistake::Account { line: 1 }], "{text}");
        }
        assert_eq!(
            said("serviceAccountName: a").mistakes[0].to_string(),
            "line 1: unknown field serviceAccountName, is serviceAccount meant?"
        );
    }

    #[test]
    fn what_is_put_right_is_one_of_three_words() {
        for (text, expected) in [
            ("drift: off", Some(Restoring::Off)),
            ("drift: 'off'", Some(Restoring::Off)),
            ("drift: absent", Some(Restoring::Absent)),
            ("drift: changed\ndependsOn: [a]", Some(Restoring::Changed)),
            ("dependsOn: [a]", None),
        ] {
            let description = Description::parse(text).unwrap();
            assert_eq!(
                (description.drift, description.mistakes),
                (expected, Vec::new()),
                "{text}"
            );
        }
        for text in ["drift: all", "drift: true", "drift: [off]", "drift:"] {
            let told = Description::parse(text).unwrap().mistakes;
            assert_eq!(told, [Mistake::Drift { line: 1 }], "{text}");
            assert_eq!(
                told[0].to_string(),
                "line 1: drift should be one of off, absent, changed"
            );
        }
    }
    #[test]
    fn a_second_document_is_refused_and_a_mark_of_byte_order_is_not() {
        let said = |text: &str| Description::parse(text).unwrap();
        let second = Mistake::SecondDocument { line: 3 };
        assert_eq!(said("drift: off\n---\ndependsOn: [a]\n").mistakes, [second]);
        for text in ["---\ndrift: off\n---\n", "\u{feff}drift: off\n...\n"] {
            let one = said(text);
            assert_eq!((one.drift, one.mistakes), (Some(Restoring::Off), Vec::new()), "{text}");
        }
    }

    #[test]
    fn what_may_be_replaced_is_named_by_kind_and_name_and_never_holds_data() {
        let said = |text: &str| Description::parse(text).unwrap();
        let right = said("replace: [Deployment/web, 'Service/*']");
        let named: Vec<_> = right.replace.iter().map(ToString::to_string).collect();
        assert_eq!(
            (named, right.mistakes),
            (vec!["Deployment/web".to_owned(), "Service/*".to_owned()], Vec::new())
        );
        for (text, expected) in [
            (
                "replace: Deployment/web",
                "line 1: replace should be a list of objects as KIND/NAME, but is a text",
            ),
            (
                "\nreplace: [1]",
                "line 2: replace[0] should be an object as KIND/NAME, but is a number",
            ),
            ("replaces: []", "line 1: unknown field replaces, is replace meant?"),
            (
                "replace:\n- Deployment/web\n- web",
                "line 1: replace[1] names no object that may be replaced: 'web' should be KIND/NAME, as in Deployment/web; \
                 KIND/* names all objects of the kind",
            ),
            (
                "replace: [PersistentVolumeClaim/data]",
                "line 1: replace[0] names no object that may be replaced: 'PersistentVolumeClaim/data': a \
                 PersistentVolumeClaim holds data or other objects and is never replaced; leave it out",
            ),
        ] {
            let mistakes = said(text).mistakes;
            let [mistake] = mistakes.as_slice() else {
                panic!("{text}: {mistakes:?}");
            };
            let cause = std::error::Error::source(mistake).map_or_else(String::new, |cause| format!(": {cause}"));
            assert_eq!(format!("{mistake}{cause}"), expected);
        }
    }
}
