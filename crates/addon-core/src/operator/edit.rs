//! The answer to the API server's question whether a person may make an edit of the ConfigMap.
//!
//! The question holds everything that its answer depends on, so that a job can work it out while other work goes on. Must
//! never refuse an edit because of a mistake that was there before and stays unchanged, nor because of a section that
//! cannot be judged: a mistake in one section must not block an edit of another.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::name::{ModuleName, Owner};
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
    /// Texts that were checked and are good, and texts that the operator itself is writing.
    pub(super) known: Data,
    /// The modules that are removed if the ConfigMap does not switch them on.
    pub(super) omissible: BTreeSet<ModuleName>,
    /// The number of releases that are ours: those that the operator or the original installed.
    pub(super) ours: usize,
    /// How the ConfigMap was made, if a program made it, and the keys that are applied.
    pub(super) origin: (Option<Made>, BTreeSet<String>),
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
        let document = ConfigDocument::parse(&after);
        let nothing = Section::default();
        let modules = self.modules.iter().map(|name| {
            let section = document.sections.get(name).unwrap_or(&nothing);
            (Owner::from(name.clone()), &section.values)
        });
        let all = std::iter::once((Owner::Global, &document.global)).chain(modules);
        let changed = all.filter(|(owner, _)| {
            let key = owner.values_key();
            after.get(&key) != before.get(&key)
        });
        let settings = changed.filter_map(|(owner, entry)| {
            let section = match entry {
                Entry::Absent => Value::Object(Map::new()),
                Entry::Good(section) => section.clone(),
                Entry::Bad => return None,
            };
            let settings = self.values.with_defaults(&owner, &section);
            Some((owner, settings))
        });
        settings.collect()
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

/// The error text: the modules that would be removed, and the annotation that confirms it.
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
mod tests {
    use serde_json::json;
    use values_schema::schema::{Files, Schemas};

    use super::*;
    use crate::operator::provenance::{MADE_WITH, digest};

    fn edit(operation: &str, before: &Value, after: &Value) -> Edit {
        let mut files = Files::default();
        files.insert("c", "properties: {size: {type: integer}}");
        let one = ModuleName::parse("one").unwrap();
        let mut values = Store::new();
        let schemas = Schemas::load(&files, Some("c"), None).unwrap();
        values.set_schemas(&one.clone().into(), schemas).unwrap();
        let object = |data: &Value| match data {
            Value::Null => Value::Null,
            data => json!({"metadata": {"name": "config"}, "data": data}),
        };
        let request = json!({"operation": operation, "object": object(after), "oldObject": object(before)});
        Edit {
            review: Json::from(&json!({ "request": request })),
            config_map: "config".to_owned(),
            values,
            modules: BTreeSet::from([one]),
            known: Data::new(),
            omissible: BTreeSet::new(),
            ours: 0,
            origin: (None, BTreeSet::new()),
        }
    }

    #[test]
    fn a_bad_key_is_refused_with_its_module_and_its_field() {
        let data = json!({"one": "size: big", "oneEnabled": "yes"});
        for operation in ["CREATE", "UPDATE"] {
            let said = edit(operation, &json!({}), &data).judge();
            assert_eq!(
                (said.allowed, said.message.as_str()),
                (
                    false,
                    "key 'oneEnabled' of module 'one': module enabled key 'oneEnabled' should have a boolean value, got \
                     'yes'\nkey 'one' of module 'one': 1 error occurred:\n\t* one.size in body must be of type integer: \
                     \"string\""
                )
            );
        }
        let known = Edit {
            known: Data::from([("one".to_owned(), "size: big".to_owned())]),
            ..edit("CREATE", &Value::Null, &json!({"one": "size: big"}))
        };
        assert!(known.judge().allowed, "what we write ourselves has been judged before");
    }

    #[test]
    fn the_changed_sections_are_named_with_their_defaults() {
        let sections = |before: &Value, after: &Value| {
            let mut edit = edit("UPDATE", before, after);
            let mut files = Files::default();
            files.insert(
                "c",
                "properties: {size: {type: integer, default: 3}, name: {type: string}}",
            );
            let schemas = Schemas::load(&files, Some("c"), None).unwrap();
            let one = ModuleName::parse("one").unwrap();
            edit.values.set_schemas(&one.into(), schemas).unwrap();
            let sections = edit.sections().into_iter();
            sections
                .map(|(owner, settings)| format!("{}: {settings}", owner.values_key()))
                .collect::<Vec<_>>()
        };
        let before = json!({"one": "name: a", "global": "x: 1"});
        assert_eq!(sections(&before, &before), [""; 0]);
        let rows = [
            (
                json!({"one": "name: b", "global": "x: 1"}),
                r#"one: {"name":"b","size":3}"#,
            ),
            (json!({"global": "x: 1"}), r#"one: {"size":3}"#),
            (json!({"one": "name: a", "global": "x: 2"}), r#"global: {"x":2}"#),
        ];
        for (after, expected) in rows {
            assert_eq!(sections(&before, &after), [expected], "{after}");
        }
        let unread = json!({"one": "name: [", "global": "x: 1", "oneEnabled": "true"});
        assert_eq!(sections(&before, &unread), [""; 0]);
    }

    #[test]
    fn what_was_wrong_before_holds_up_no_other_edit() {
        let before = json!({"one": "size: big"});
        let said = edit("UPDATE", &before, &json!({"one": "size: big", "oneEnabled": "true"})).judge();
        assert!(said.allowed, "{said:?}");
        assert_eq!(
            said.warnings,
            [
                "still wrong: key 'one' of module 'one': 1 error occurred: * one.size in body must be of type integer: \"string\""
            ]
        );
        let worse = edit("UPDATE", &before, &json!({"one": "size: bigger"})).judge();
        assert!(!worse.allowed && worse.warnings.is_empty(), "{worse:?}");
        let mended = edit("UPDATE", &before, &json!({"one": "size: 5"})).judge();
        assert!(mended.allowed && mended.warnings.is_empty(), "{mended:?}");
        assert!(edit("UPDATE", &before, &json!({})).judge().allowed);
    }

    #[test]
    fn what_says_nothing_or_takes_nothing_back_is_a_warning() {
        let said = edit("UPDATE", &json!({}), &json!({"two": "{}"})).judge();
        assert_eq!(
            said.warnings,
            ["key 'two': there is no module 'two', so it says nothing"]
        );
        assert!(said.allowed);
        let said = edit("DELETE", &json!({"one": "size: 5"}), &Value::Null).judge();
        assert_eq!((said.allowed, said.warnings), (true, vec![DELETED.to_owned()]));
        let many: BTreeMap<String, &str> = (10..30).map(|n| (format!("m{n}"), "{}")).collect();
        let said = edit("CREATE", &Value::Null, &json!(many)).judge();
        assert!(said.allowed && said.warnings.len() == MOST_WARNINGS + 1, "{said:?}");
        assert!(said.warnings[MOST_WARNINGS].starts_with("and 10 more keys"));
        assert_eq!(on_one_line(&"ä".repeat(300)).chars().count(), LONGEST_WARNING + 1);
    }

    #[test]
    fn what_cannot_be_judged_is_allowed() {
        let other = Edit {
            config_map: "other".to_owned(),
            ..edit("CREATE", &Value::Null, &json!({"oneEnabled": "yes"}))
        };
        assert!(other.judge().allowed);
        for data in [json!([]), json!({"one": 5}), json!("text")] {
            assert!(edit("UPDATE", &json!({}), &data).judge().allowed, "{data}");
        }
        let empty = Edit {
            review: Json::from(&json!({})),
            ..edit("UPDATE", &json!({}), &json!({}))
        };
        assert!(empty.judge().allowed);
    }

    /// An edit of a ConfigMap that names four of six releases. `before` and `after` are its annotations before and after
    /// the edit.
    fn omitting(data: &Value, [before, after]: [Value; 2]) -> Edit {
        let object = |data: &Value, annotations: &Value| json!({"metadata": {"name": "config", "uid": "u", "annotations": annotations}, "data": data});
        let all = json!({"aEnabled": "true", "bEnabled": "true", "cEnabled": "true", "dEnabled": "true"});
        let request =
            json!({"operation": "UPDATE", "object": object(data, &after), "oldObject": object(&all, &before)});
        Edit {
            review: Json::from(&json!({ "request": request })),
            omissible: ["a", "b", "c", "d"].map(|name| ModuleName::parse(name).unwrap()).into(),
            ours: 6,
            ..edit("UPDATE", &all, data)
        }
    }

    #[test]
    fn an_edit_that_removes_many_by_what_it_leaves_out_is_refused_unless_it_counts_them() {
        let none = json!(null);
        let said = omitting(&json!({"aEnabled": "true"}), [none.clone(), none.clone()]).judge();
        assert_eq!(
            (said.allowed, said.message.as_str()),
            (
                false,
                "with this edit nothing switches on these 3 modules any more, and their releases would be removed: 'b', \
                 'c', 'd'. To remove a module say so, as in 'bEnabled: \"false\"'; to keep it write 'bEnabled: \"true\"'. To \
                 remove all 3, write this annotation in the same edit: 'addon-operator/confirm-removals: \"3\"'"
            )
        );
        let confirms = |text: &str| json!({CONFIRM_REMOVALS: text});
        let made = |data: &Value| json!({MADE_WITH: digest(&data_of(&json!({ "data": data })).unwrap())});
        let (one, two) = (
            json!({"aEnabled": "true"}),
            json!({"aEnabled": "true", "bEnabled": "true"}),
        );
        let rows = [
            // An explicit flag counts as a decision. A few omissions pass without a confirmation.
            (
                json!({"aEnabled": "false", "bEnabled": "false", "cEnabled": "false", "dEnabled": "false"}),
                none.clone(),
                none.clone(),
                true,
            ),
            (two.clone(), none.clone(), none.clone(), true),
            (json!({}), none.clone(), none.clone(), false),
            (none.clone(), none.clone(), none.clone(), false),
            // An edit with the right number confirms the omissions.
            (one.clone(), none.clone(), confirms("3"), true),
            (one.clone(), none.clone(), confirms("4"), false),
            (json!({}), none.clone(), confirms("4"), true),
            // A number confirms one edit only: here it was there before.
            (one.clone(), confirms("3"), confirms("3"), false),
            (one.clone(), confirms("3"), confirms("3, again"), true),
            // A ConfigMap that a program made removes nothing by omission.
            (one.clone(), none.clone(), made(&one), true),
            (one.clone(), none.clone(), made(&two), false),
        ];
        for (data, before, after, allowed) in rows {
            let said = omitting(&data, [before.clone(), after.clone()]).judge();
            assert_eq!(said.allowed, allowed, "{data} {before} {after}: {said:?}");
        }
        let known = |edited, unsaid: &[&str]| Edit {
            origin: (
                Some(Made {
                    uid: "u".to_owned(),
                    edited,
                    unsaid: unsaid.iter().map(|key| (*key).to_owned()).collect(),
                }),
                BTreeSet::new(),
            ),
            ..omitting(&one, [none.clone(), made(&one)])
        };
        assert!(known(false, &[]).judge().allowed);
        assert!(
            !known(true, &[]).judge().allowed,
            "people have spoken in it since it was made"
        );
        assert!(
            known(true, &["bEnabled"]).judge().allowed,
            "nobody has ever said anything of one of them"
        );
        let again = omitting(&one, [confirms("3"), confirms("3")]).judge();
        assert!(again.message.contains("confirm-removals: \"3, again\""), "{again:?}");
        let warned = omitting(&two, [none.clone(), none]).judge();
        assert_eq!(
            warned.warnings[0],
            "nothing switches on module 'c' any more, so that its release is removed"
        );
    }
}
