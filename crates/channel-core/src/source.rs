//! The sources of modules: the registry from which each module comes, the wanted version, and the rules for taking it.
//!
//! Must never use one entry of a text if another entry has a mistake.

use std::collections::{BTreeMap, BTreeSet};

use helm_yaml::yaml::{self, YamlError};
use names::ModuleName;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

use super::channel::Channel;
use super::policy::Policy;
use super::reference::{ImageDigest, Repository};
use super::settings::{self, Settings};

const FIELDS: [&str; 9] = [
    "repository",
    "version",
    "order",
    "auth",
    "values",
    "env",
    "policy",
    "approved",
    "pin",
];
const ENTRY: &str =
    "a map with the fields repository and version, as {repository: r.example.com/ingress, version: 1.4.x}";
const REPOSITORY: &str = "a repository with its registry, as r.example.com/modules/ingress";
const VERSION: &str = "a tag, a range of versions in quotes, or a digest, as '1.4.x'";
const ORDER: &str = "a whole number, as 100";
const NAME: &str = "the name of an object in the operator's namespace";
const ENV: &str = "a map of names and texts, as {HTTP_PROXY: http://proxy.example:3128}";

/// The sources of modules, by the name of the module.
pub type ModuleSources = BTreeMap<ModuleName, ModuleSource>;

/// The registry from which a module comes, and the rules for taking its versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleSource {
    /// The repository with the module.
    pub repository: Repository,
    /// The wanted version.
    pub version: Channel,
    /// The version that a person holds, in the place of the wanted one.
    pub pin: Option<ImageDigest>,
    /// The order number of the module; `None`: the order number of directories whose names have no number.
    pub order: Option<u32>,
    /// The name of the Secret with the login for the registry; without it the logins of the operator's pod count.
    pub auth: Option<String>,
    /// The name of the ConfigMap whose keys are values files of the module.
    pub values: Option<String>,
    /// Variables for the module's hooks and for helm.
    pub env: BTreeMap<String, String>,
    /// The policy by which a version is taken.
    pub policy: Policy,
    /// Digests that a person has approved.
    pub approved: BTreeSet<ImageDigest>,
}

impl ModuleSource {
    /// The settings by which the version is chosen.
    pub fn settings(&self) -> Settings {
        let pin = self.pin.clone().map(Channel::Digest);
        Settings {
            channel: Some(pin.unwrap_or_else(|| self.version.clone())),
            policy: self.policy.clone(),
            approved: self.allowed(),
        }
    }

    /// The digests that a person has approved, or holds.
    pub fn allowed(&self) -> BTreeSet<ImageDigest> {
        self.approved.iter().chain(&self.pin).cloned().collect()
    }
}

/// The error for a text that names no sources of modules.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SourcesError {
    /// The text is not YAML.
    #[error("bad yaml: {0}")]
    Yaml(YamlError),
    /// A part of the text is invalid.
    #[error("'{field}' {problem}")]
    Field {
        /// The path of the field: the module, a dot, and the field.
        field: String,
        /// The mistake, and the remedy.
        problem: String,
    },
    /// The text as a whole is no map.
    #[error("should be a map of modules, each {ENTRY}")]
    Kind,
}

/// Reads the sources of modules. An empty text names none.
pub fn parse(text: &str) -> Result<ModuleSources, SourcesError> {
    let entries = match yaml::only_v3(text).map_err(SourcesError::Yaml)? {
        Value::Null => Map::new(),
        Value::Object(entries) => entries,
        _ => return Err(SourcesError::Kind),
    };
    entries.iter().map(|(name, entry)| source(name, entry)).collect()
}

fn source(name: &str, entry: &Value) -> Result<(ModuleName, ModuleSource), SourcesError> {
    let module = ModuleName::parse(name).map_err(|error| wrong(name, &error))?;
    let fields = entry.as_object().ok_or_else(|| unlike(name, entry, ENTRY))?;
    if let Some(field) = fields.keys().find(|field| !FIELDS.contains(&field.as_str())) {
        return Err(wrong(
            &format!("{name}.{field}"),
            &format!("is unknown: known here are {}", FIELDS.join(", ")),
        ));
    }
    let entry = Entry { name, fields };
    let source = ModuleSource {
        repository: entry
            .needed("repository", REPOSITORY)
            .and_then(|text| entry.read("repository", Repository::parse(text)))?,
        version: entry.needed("version", VERSION).and_then(|text| {
            let read = Channel::parse(text);
            entry.read(
                "version",
                read.map_err(|error| format!("is '{text}': write {VERSION} ({})", error.fault)),
            )
        })?,
        pin: match entry.text("pin", "a digest")? {
            Some(text) => Some(entry.read("pin", ImageDigest::parse(text))?),
            None => None,
        },
        order: match entry.value("order") {
            Some(value) => {
                let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
                Some(number.ok_or_else(|| entry.unlike("order", value, ORDER))?)
            }
            None => None,
        },
        auth: entry.object("auth")?,
        values: entry.object("values")?,
        env: entry.env()?,
        policy: match entry.value("policy") {
            Some(value) => entry.read("policy", Policy::read(value))?,
            None => Policy::default(),
        },
        approved: match entry.value("approved") {
            Some(value) => entry.read("approved", settings::approved_in(value))?,
            None => BTreeSet::new(),
        },
    };
    Ok((module, source))
}

/// One entry of the text.
#[derive(Debug, Clone, Copy)]
struct Entry<'a> {
    name: &'a str,
    fields: &'a Map<String, Value>,
}

impl<'a> Entry<'a> {
    /// The value of a field; `None` if it is absent or null.
    fn value(self, field: &str) -> Option<&'a Value> {
        self.fields.get(field).filter(|value| !value.is_null())
    }

    fn text(self, field: &str, wanted: &str) -> Result<Option<&'a str>, SourcesError> {
        let Some(value) = self.value(field) else {
            return Ok(None);
        };
        let text = value.as_str().ok_or_else(|| self.unlike(field, value, wanted))?;
        Ok(Some(text.trim()))
    }

    fn needed(self, field: &str, wanted: &str) -> Result<&'a str, SourcesError> {
        let text = self.text(field, wanted)?;
        text.ok_or_else(|| self.wrong(field, format!("is missing: write {wanted}")))
    }

    /// The name of an object in the operator's namespace.
    fn object(self, field: &str) -> Result<Option<String>, SourcesError> {
        let Some(text) = self.text(field, NAME)? else {
            return Ok(None);
        };
        let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let is_name = !text.is_empty() && text.bytes().all(|byte| is_word(byte) || b".-".contains(&byte));
        if is_name {
            return Ok(Some(text.to_owned()));
        }
        Err(self.wrong(field, format!("is '{text}': write {NAME}")))
    }

    fn env(self) -> Result<BTreeMap<String, String>, SourcesError> {
        let Some(value) = self.value("env") else {
            return Ok(BTreeMap::new());
        };
        let fields = value.as_object().ok_or_else(|| self.unlike("env", value, ENV))?;
        let variable = |(name, value): (&String, &Value)| {
            let place = format!("env.{name}");
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(self.wrong(&place, "is no name of a variable".to_owned()));
            }
            let text = value.as_str().filter(|text| !text.contains('\0'));
            let text = text.ok_or_else(|| self.unlike(&place, value, "a text, in quotes if it looks like a number"))?;
            Ok((name.clone(), text.to_owned()))
        };
        fields.iter().map(variable).collect()
    }

    fn read<T, E: ToString>(self, field: &str, read: Result<T, E>) -> Result<T, SourcesError> {
        read.map_err(|error| self.wrong(field, error.to_string()))
    }

    fn wrong(self, field: &str, problem: impl Into<String>) -> SourcesError {
        wrong(&format!("{}.{field}", self.name), &problem.into())
    }

    fn unlike(self, field: &str, value: &Value, wanted: &str) -> SourcesError {
        unlike(&format!("{}.{field}", self.name), value, wanted)
    }
}

fn wrong(field: &str, problem: &impl ToString) -> SourcesError {
    SourcesError::Field {
        field: field.to_owned(),
        problem: problem.to_string(),
    }
}

fn unlike(field: &str, value: &Value, wanted: &str) -> SourcesError {
    wrong(field, &format!("is {value}: write {wanted}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_names_repository_and_version_and_more_if_it_likes() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let text = format!(
            "ingress: {{repository: r.example.com/ingress, version: 1.4.x, order: 100, auth: a-secret, values: a-config-map, \
             env: {{A: b}}, policy: {{mode: manual}}, approved: ['{digest}'], pin: '{digest}'}}\n\
             cert-manager: {{repository: 'r.example.com:5000/cert', version: stable}}\n"
        );
        let sources = parse(&text).unwrap();
        let source = |name: &str| &sources[&ModuleName::parse(name).unwrap()];
        let ingress = source("ingress");
        assert_eq!(ingress.repository.to_string(), "r.example.com/ingress");
        assert_eq!((ingress.order, ingress.auth.as_deref()), (Some(100), Some("a-secret")));
        assert_eq!(
            (ingress.values.as_deref(), ingress.env["A"].as_str()),
            (Some("a-config-map"), "b")
        );
        assert_eq!(ingress.settings().channel.unwrap().to_string(), digest);
        let plain = source("cert-manager");
        assert_eq!(plain.settings().channel.unwrap().to_string(), "stable");
        assert_eq!((plain.order, &plain.policy), (None, &Policy::default()));
        for text in ["", "{}", "# none\n"] {
            assert_eq!(parse(text), Ok(ModuleSources::new()), "{text}");
        }
    }

    #[test]
    fn a_mistake_is_told_with_its_place() {
        let entry = |rest: &str| format!("ingress: {{repository: r.example.com/ingress, version: 1.4.x{rest}}}");
        for (text, told) in [
            ("[a]".to_owned(), "should be a map of modules"),
            ("a: {".to_owned(), "bad yaml: "),
            (
                "Ingress: {}".to_owned(),
                "'Ingress' 'Ingress' name should be in kebab-case",
            ),
            (
                "ingress: r.example.com/ingress".to_owned(),
                "'ingress' is \"r.example.com/ingress\": write a map",
            ),
            (
                "ingress: {version: 1.x}".to_owned(),
                "'ingress.repository' is missing: write a repository",
            ),
            (
                "ingress: {repository: A, version: 1.x}".to_owned(),
                "'ingress.repository' ",
            ),
            (
                "ingress: {repository: a/b}".to_owned(),
                "'ingress.version' is missing: write a tag",
            ),
            (
                "ingress: {repository: a/b, version: 1.4}".to_owned(),
                "'ingress.version' is 1.4: write a tag",
            ),
            (
                "ingress: {repository: a/b, version: '>=1<2'}".to_owned(),
                "'ingress.version' is '>=1<2': write a tag",
            ),
            (
                entry(", tag: a"),
                "'ingress.tag' is unknown: known here are repository, version",
            ),
            (entry(", order: -1"), "'ingress.order' is -1: write a whole number"),
            (
                entry(", auth: A/b"),
                "'ingress.auth' is 'A/b': write the name of an object",
            ),
            (entry(", env: [a]"), "'ingress.env' is [\"a\"]: write a map"),
            (entry(", env: {A: 1}"), "'ingress.env.A' is 1: write a text"),
            (
                entry(", policy: {mode: x}"),
                "'ingress.policy' 'mode' is \"x\": write auto, patch or manual",
            ),
            (entry(", approved: x"), "'ingress.approved' 'x' should be a digest"),
            (entry(", pin: x"), "'ingress.pin' 'x' should be a digest"),
        ] {
            let error = parse(&text).unwrap_err().to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
