//! The answer to the API server, in the form of its review objects.
//!
//! The API server gets a review with a verdict, or no answer at all. Without an answer it applies the failure policy of
//! its own configuration, which may be newer than ours. Must never allow a request that no hook allowed.

use std::fmt;

use names::HookId;
use serde_json::{Map, Value, json};

use super::request::Head;
use super::response::AdmissionResponse;
use crate::hook::config::HookKind;
use crate::hook::in_text::HookInText;
use crate::object::json::Json;

/// The message if a hook succeeds and has written no response.
pub(super) const NO_RESPONSE: &str = "hook task prop error";

/// The operator's reply to a review request of the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// A review object with its response.
    Review(Json),
    /// No answer, so that the failure policy decides.
    NoAnswer(NoAnswer),
}

/// The reason why the operator gives no review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoAnswer {
    /// The hook has not ended in time.
    Late(HookId, HookKind),
    /// The hook cannot be run yet.
    NotStarted(HookId, HookKind),
    /// The hooks are not known yet.
    NotReady,
    /// An edit of the ConfigMap could not be judged, or not in time.
    Unjudged,
    /// The operator is shutting down.
    Stopping,
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late(hook, kind) => write!(f, "{} has not answered in time", HookInText::of(hook, *kind)),
            Self::NotStarted(hook, kind) => write!(f, "{} has not started yet", HookInText::of(hook, *kind)),
            Self::Unjudged => f.write_str("the edit of the ConfigMap could not be judged in time"),
            Self::NotReady => f.write_str("hooks are still being configured"),
            Self::Stopping => f.write_str("the operator is shutting down"),
        }
    }
}

/// A review with the hook's answer.
pub(crate) fn admission_reply(head: &Head, response: &AdmissionResponse) -> Reply {
    let AdmissionResponse {
        allowed,
        message,
        warnings,
        patch,
    } = response;
    let mut fields = Map::new();
    fields.insert("allowed".to_owned(), json!(allowed));
    if !warnings.is_empty() {
        fields.insert("warnings".to_owned(), json!(warnings));
    }
    if !allowed {
        fields.insert("status".to_owned(), status(403, message));
    } else if !patch.is_empty() {
        fields.insert("patch".to_owned(), json!(patch));
        fields.insert("patchType".to_owned(), json!("JSONPatch"));
    }
    review(head, fields)
}

/// A review that denies the request because of an error of ours, not because of a hook's verdict.
pub(super) fn admission_error(head: &Head, what: &str) -> Reply {
    let fields = json!({
        "allowed": false,
        "status": status(500, &format!("handle AdmissionReview: {what}")),
    });
    review(head, as_map(fields))
}

/// A review with the converted objects.
pub(super) fn converted(head: &Head, objects: Vec<Value>) -> Reply {
    let fields = json!({
        "convertedObjects": Value::Array(objects),
        "result": {"metadata": {}, "status": "Success"},
    });
    review(head, as_map(fields))
}

/// A review with the error of a conversion.
pub(super) fn not_converted(head: &Head, message: &str) -> Reply {
    let fields = json!({
        "convertedObjects": null,
        "result": {"message": message, "metadata": {}, "status": "Failure"},
    });
    review(head, as_map(fields))
}

fn status(code: u16, message: &str) -> Value {
    let mut status = json!({"code": code, "metadata": {}});
    if !message.is_empty() {
        status["message"] = json!(message);
    }
    status
}

fn review(head: &Head, mut response: Map<String, Value>) -> Reply {
    let Head { api_version, kind, uid } = head;
    response.insert("uid".to_owned(), json!(uid));
    let mut review = Map::from_iter([("response".to_owned(), Value::Object(response))]);
    let types = [("apiVersion", api_version), ("kind", kind)];
    review.extend(
        types
            .into_iter()
            .filter_map(|(key, text)| Some((key.to_owned(), json!(text.as_ref()?)))),
    );
    Reply::Review(Json::from(&Value::Object(review)))
}

fn as_map(fields: Value) -> Map<String, Value> {
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
