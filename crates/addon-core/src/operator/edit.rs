//! What whoever edits the ConfigMap is told before the edit counts.
//!
//! A question holds all that its answer depends on, so that it can be worked out where nobody else waits. Must never
//! refuse what was wrong before and is left as it is, nor what it cannot judge: the edit of one section is not to be
//! held up by the mistake in another.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::name::ModuleName;
use crate::object::json::Json;
use crate::review::response::AdmissionResponse;
use crate::values::Store;

/// How many warnings are worth reading.
const MOST_WARNINGS: usize = 10;
/// What an API server passes on of a warning in any case.
const LONGEST_WARNING: usize = 250;
const DELETED: &str = "modules keep the flags and values that this ConfigMap said last; to take them back, leave an \
                       empty ConfigMap here";

/// The keys of a ConfigMap with their texts.
type Data = BTreeMap<String, String>;

/// Somebody wants to edit the ConfigMap.
#[derive(Debug, Clone)]
pub struct Edit {
    /// The request, as hooks would be told of it.
    pub(super) review: Json,
    /// The name of the ConfigMap.
    pub(super) config_map: String,
    /// The values and schemas that are in force.
    pub(super) values: Store,
    /// All modules that there are.
    pub(super) modules: BTreeSet<ModuleName>,
    /// Texts that have been found good, and those that we are writing ourselves.
    pub(super) known: Data,
}

impl Edit {
    /// The request, as hooks would be told of it.
    pub fn review(&self) -> &Json {
        &self.review
    }

    /// The answer.
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
            // An API server that knows no conditions asks about all ConfigMaps.
            return allowed;
        }
        if request["operation"] == "DELETE" {
            return AdmissionResponse {
                warnings: vec![DELETED.to_owned()],
                ..allowed
            };
        }
        match data_of(after) {
            Some(data) => self.verdict(&data, &data_of(before).unwrap_or_default()),
            None => allowed,
        }
    }

    fn verdict(&self, data: &Data, before: &Data) -> AdmissionResponse {
        let judgement = self.values.judge(data, Some(&self.modules), &self.known);
        let is_new = |key: &String| before.get(key) != data.get(key);
        let (refused, old): (Vec<_>, Vec<_>) = judgement.problems.into_iter().partition(|problem| is_new(&problem.key));
        let message: Vec<String> = refused.iter().map(ToString::to_string).collect();
        let old = old.iter().map(|problem| format!("still wrong: {problem}"));
        let idle = judgement.idle.iter().map(ToString::to_string);
        AdmissionResponse {
            allowed: message.is_empty(),
            message: message.join("\n"),
            warnings: warnings(old.chain(idle).collect()),
            patch: String::new(),
        }
    }
}

/// The data of a ConfigMap; `None` if it is none that we understand.
fn data_of(object: &Value) -> Option<Data> {
    match &object["data"] {
        Value::Null => object.is_object().then(Data::new),
        data => serde_json::from_value(data.clone()).ok(),
    }
}

/// Each on a line of its own, and no more than somebody reads.
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

    use super::*;
    use crate::values::schema::{Files, Schemas};

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
}
