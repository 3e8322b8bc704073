//! Edits of the `ConfigMap` that the API server asks about.

use std::collections::BTreeMap;

use addon_core::operator::effect::Job;
use addon_core::operator::event::Asked;
use addon_core::review::request::{AdmissionRequest, ReviewRequest};
use serde_json::{Value, json};

/// The name of our `ConfigMap`.
pub const CONFIG_MAP: &str = "config";
/// The path for questions about edits of our `ConfigMap`.
pub const EDITS: &str = "/config-map";
/// Texts that are valid for no section and no flag.
pub const UNSOUND: [&str; 3] = ["- a", "just a text", "perhaps"];

type Data = BTreeMap<String, String>;

/// The question about a key that is to hold a text, known again by its number.
pub fn wanted_edit(number: u64, before: Option<&Data>, key: &str, text: &str) -> ReviewRequest {
    let object = |data: &Data| json!({"metadata": {"name": CONFIG_MAP}, "data": data});
    let mut after = before.cloned().unwrap_or_default();
    after.insert(key.to_owned(), text.to_owned());
    let request = json!({
        "uid": number.to_string(),
        "operation": if before.is_some() { "UPDATE" } else { "CREATE" },
        "oldObject": before.map_or(Value::Null, object),
        "object": object(&after),
    });
    let body = json!({"apiVersion": "v1", "kind": "Review", "request": request}).to_string();
    let request = AdmissionRequest::parse(body.as_bytes());
    ReviewRequest::Admission(request.expect("simulated requests are sound"))
}

/// The facts about an edit that a check needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The number of the question.
    pub number: u64,
    /// Whether all keys that the edit changed can be used.
    pub sound: bool,
}

impl Wanted {
    /// The facts about a question of the API server, if it is about an edit.
    pub fn of_question(asked: &Asked) -> Option<Self> {
        match &asked.request {
            ReviewRequest::Admission(request) if asked.path == EDITS => Self::read(&request.review.to_value()),
            ReviewRequest::Admission(_) | ReviewRequest::Conversion(_) => None,
        }
    }

    /// The facts about the edit that a job judges, if it judges one.
    pub fn of_job(job: &Job) -> Option<Self> {
        match job {
            Job::JudgeEdit(edit, _) => Self::read(&edit.review().to_value()),
            _ => None,
        }
    }

    fn read(review: &Value) -> Option<Self> {
        let request = &review["request"];
        let (before, after) = (&request["oldObject"]["data"], request["object"]["data"].as_object()?);
        let mut new = after.iter().filter(|(key, text)| before[key.as_str()] != **text);
        Some(Self {
            number: request["uid"].as_str()?.parse().ok()?,
            sound: new.all(|(_, text)| text.as_str().is_some_and(|text| !UNSOUND.contains(&text))),
        })
    }
}
