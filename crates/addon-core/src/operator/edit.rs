//! The answer to the API server's question whether a person may make an edit of the ConfigMap.
//!
//! The question holds everything that its answer depends on, so that a job can work it out while other work goes on. Must
//! never refuse an edit because of a mistake that was there before and stays unchanged, nor because of a section that
//! cannot be judged: a mistake in one section must not block an edit of another.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use names::{ModuleName, Owner};
use serde_json::{Map, Value};

use crate::object::json::Json;
use crate::review::response::AdmissionResponse;
use crate::values::Store;
use crate::values::section::{ConfigDocument, Entry, Section};

use super::config::omissions::omitted;
use super::provenance::{CONFIRM_REMOVALS, Made, Provenance};
use super::removal::brake;

/// The number of warnings up to which all are shown.
const MOST_WARNINGS: usize = 10;
/// The length of a warning in characters that every API server passes on.
const LONGEST_WARNING: usize = 250;
const DELETED: &str = "modules keep the flags and values that this ConfigMap said last; to take them back, leave an \
                       empty ConfigMap here";

/// The keys of a ConfigMap, each with its text.
type Data = BTreeMap<String, String>;

/// An edit of the ConfigMap that the API server asks about.
#[derive(Debug, Clone)]
pub struct Edit {
    /// The request in the form in which hooks get it.
    pub(super) review: Json,
    /// The name of the ConfigMap.
    pub(super) config_map: String,
    /// The values and schemas at the moment of the edit.
    pub(super) values: Store,
    /// The names of all modules on disk.
    pub(super) modules: BTreeSet<ModuleName>,
    /// Contents of the ConfigMap that passed all checks before, and contents that the operator itself is writing.
    pub(super) known: Data,
    /// The modules that are removed if the ConfigMap does not switch them on.
    pub(super) omissible: BTreeSet<ModuleName>,
    /// The number of our releases, which this operator or the original operator installed.
    pub(super) ours: usize,
    /// How the ConfigMap was made, if a program made it, and the keys that are applied.
    pub(super) origin: (Option<Made>, BTreeSet<String>),
    /// The time for which the API server still waits; none while other edits wait, too.
    pub(super) spare: Option<Duration>,
}

/// The ConfigMap after an edit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edited {
    /// The keys with their texts.
    pub data: BTreeMap<String, String>,
    /// The annotation that confirms a number of removals, if the edit brings it.
    pub confirms: Option<String>,
}

impl Edit {
    /// The request in the form in which hooks get it.
    pub fn review(&self) -> &Json {
        &self.review
    }

    /// The answer to the API server: whether the edit is allowed.
    pub fn judge(&self) -> AdmissionResponse {
        let review = self.review.to_value();
        let request = &review["request"];
        let allowed = AdmissionResponse {
            allowed: true,
            ..AdmissionResponse::default()
        };
        let (after, before) = (&request["object"], &request["oldObject"]);
        let name = [after, before].map(|object| object["metadata"]["name"].as_str());
        if !name.contains(&Some(self.config_map.as_str())) {
            // An API server that does not know match conditions asks about all ConfigMaps.
            return allowed;
        }
        if request["operation"] == "DELETE" {
            return AdmissionResponse {
                warnings: vec![DELETED.to_owned()],
                ..allowed
            };
        }
        match data_of(after) {
            Some(data) => {
                let origins = [after, before].map(provenance_of);
                let before = data_of(before).unwrap_or_default();
                self.verdict(&data, &before, self.omissions(&data, &origins))
            }
            None => allowed,
        }
    }

    /// Our ConfigMap after the edit. None for another ConfigMap, for a deletion, and if the edit brings no text that is new: texts
    /// of the operator's own writes are known.
    pub fn edited(&self) -> Option<Edited> {
        let review = self.review.to_value();
        let request = &review["request"];
        let (object, old) = (&request["object"], &request["oldObject"]);
        let after = data_of(object).filter(|_| request["operation"] != "DELETE")?;
        let before = data_of(old).unwrap_or_default();
        let is_ours = object["metadata"]["name"] == self.config_map.as_str();
        let is_gone = before.keys().any(|key| !after.contains_key(key));
        let mut new = after.iter().filter(|(key, text)| before.get(*key) != Some(*text));
        let is_news = is_gone || new.any(|(key, text)| self.known.get(key) != Some(text));
        let [confirms, confirmed] = [object, old].map(|object| provenance_of(object).confirms);
        (is_ours && is_news).then(|| Edited {
            data: after,
            confirms: confirms.filter(|text| confirmed.as_ref() != Some(text)),
        })
    }

    /// The time for which the API server still waits. None while other edits wait for their judgement, too.
    pub fn spare(&self) -> Option<Duration> {
        self.spare
    }

    /// The answer with the first lines of a plan after its own warnings.
    pub fn foretold(mut answer: AdmissionResponse, lines: &[String]) -> AdmissionResponse {
        answer.warnings.extend(lines.iter().map(|line| on_one_line(line)));
        answer
    }

    /// The sections that the edit changes, by owner, with the defaults of their schemas. Sections that cannot be read are
    /// left out.
    pub fn sections(&self) -> Vec<(Owner, Value)> {
        let review = self.review.to_value();
        let request = &review["request"];
        let [after, before] = ["object", "oldObject"].map(|object| data_of(&request[object]));
        let is_ours = request["object"]["metadata"]["name"] == self.config_map.as_str();
        let (Some(after), true) = (after, is_ours) else {
            return Vec::new();
        };
        let before = before.unwrap_or_default();
        let mut sections = sections(&self.values, &self.modules, &after);
        sections.retain(|(owner, _)| {
            let key = owner.values_key();
            after.get(&key) != before.get(&key)
        });
        sections
    }

    /// The answer to an edit that the schemas allow, with the refusals and warnings of executables that check settings.
    pub fn checked(answer: AdmissionResponse, refusals: &[String], more: Vec<String>) -> AdmissionResponse {
        AdmissionResponse {
            allowed: answer.allowed && refusals.is_empty(),
            message: refusals.join("\n"),
            warnings: warnings(answer.warnings.into_iter().chain(more).collect()),
            patch: answer.patch,
        }
    }

    /// Returns a warning for each module that the edit removes by omission. Refuses an edit that removes many modules,
    /// unless its annotation confirms their number.
    fn omissions(&self, data: &Data, [after, before]: &[Provenance; 2]) -> Result<Vec<String>, String> {
        let (known, in_force) = &self.origin;
        let omitted = match after.made(data, known.as_ref(), in_force.iter()) {
            Some(made) if !made.edited => Vec::new(),
            made => {
                let unsaid = made.map(|made| made.unsaid).unwrap_or_default();
                let mut omitted = omitted(&self.omissible, data);
                omitted.retain(|name| !unsaid.contains(&name.enabled_key()));
                omitted
            }
        };
        let confirmed = after.confirmation_since(before.confirms.as_deref());
        if brake::too_many(omitted.len(), self.ours) && confirmed != Some(omitted.len()) {
            return Err(refusal(&omitted, before.confirms.as_deref()));
        }
        let removed = |name| format!("nothing switches on module '{name}' any more, so that its release is removed");
        Ok(omitted.iter().map(removed).collect())
    }

    fn verdict(&self, data: &Data, before: &Data, omissions: Result<Vec<String>, String>) -> AdmissionResponse {
        let judgement = self.values.judge(data, Some(&self.modules), &self.known);
        let is_new = |key: &String| before.get(key) != data.get(key);
        let (refused, old): (Vec<_>, Vec<_>) = judgement.problems.into_iter().partition(|problem| is_new(&problem.key));
        let (removed, too_many) = match omissions {
            Ok(removed) => (removed, None),
            Err(refusal) => (Vec::new(), Some(refusal)),
        };
        let message: Vec<String> = refused.iter().map(ToString::to_string).chain(too_many).collect();
        let old = old.iter().map(|problem| format!("still wrong: {problem}"));
        let idle = judgement.idle.iter().map(ToString::to_string);
        AdmissionResponse {
            allowed: message.is_empty(),
            message: message.join("\n"),
            warnings: warnings(removed.into_iter().chain(old).chain(idle).collect()),
            patch: String::new(),
        }
    }
}

/// The error text: the modules that would be removed, and the annotation that confirms their removal.
fn refusal(omitted: &[ModuleName], before: Option<&str>) -> String {
    let names: Vec<String> = omitted.iter().map(|name| format!("'{name}'")).collect();
    let number = omitted.len();
    let flag = omitted.first().map(ModuleName::enabled_key).unwrap_or_default();
    // An annotation that was there before has counted already. Repeating the same text confirms nothing.
    let confirmation = match before {
        Some(before) if before == number.to_string() => format!("{number}, again"),
        Some(_) | None => number.to_string(),
    };
    format!(
        "with this edit nothing switches on these {number} modules any more, and their releases would be removed: {}. To \
         remove a module say so, as in '{flag}: \"false\"'; to keep it write '{flag}: \"true\"'. To remove all {number}, \
         write this annotation in the same edit: '{CONFIRM_REMOVALS}: \"{confirmation}\"'",
        names.join(", ")
    )
}

/// The annotations of a ConfigMap that tell how it was made.
fn provenance_of(object: &Value) -> Provenance {
    let metadata = &object["metadata"];
    let annotations = serde_json::from_value(metadata["annotations"].clone()).ok();
    Provenance::read(metadata["uid"].as_str(), annotations.as_ref())
}

/// The sections of a ConfigMap by owner, with the defaults of their schemas. Those that cannot be read are left out.
pub(super) fn sections(values: &Store, modules: &BTreeSet<ModuleName>, data: &Data) -> Vec<(Owner, Value)> {
    let document = ConfigDocument::parse(data);
    let nothing = Section::default();
    let of_modules = modules.iter().map(|name| {
        let section = document.sections.get(name).unwrap_or(&nothing);
        (Owner::from(name.clone()), &section.values)
    });
    let all = std::iter::once((Owner::Global, &document.global)).chain(of_modules);
    let settings = all.filter_map(|(owner, entry)| {
        let section = match entry {
            Entry::Absent => Value::Object(Map::new()),
            Entry::Good(section) => section.clone(),
            Entry::Bad => return None,
        };
        let settings = values.with_defaults(&owner, &section);
        Some((owner, settings))
    });
    settings.collect()
}

/// The data of a ConfigMap; `None` if the object cannot be understood.
fn data_of(object: &Value) -> Option<Data> {
    match &object["data"] {
        Value::Null => object.is_object().then(Data::new),
        data => serde_json::from_value(data.clone()).ok(),
    }
}

/// Makes a single line of each warning, and cuts the list to a readable length.
fn warnings(mut all: Vec<String>) -> Vec<String> {
    let hidden = all.len().saturating_sub(MOST_WARNINGS);
    all.truncate(MOST_WARNINGS);
    let mut shown: Vec<String> = all.iter().map(|warning| on_one_line(warning)).collect();
    if hidden > 0 {
        shown.push(format!(
            "and {hidden} more keys; `addon-operator config check` names them all"
        ));
    }
    shown
}

fn on_one_line(warning: &str) -> String {
    let line = warning.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST_WARNING) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests;
