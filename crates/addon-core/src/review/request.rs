//! Parses a request of the API server.
//!
//! The reviews of both API versions have the same form. Must never refuse an unknown field: the API server may be newer
//! than the operator.

use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::object::json::Json;

/// The error for a body that is no review. The texts are those of the original's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BadRequest {
    /// The body is not JSON, or fields have wrong types.
    #[error("Invalid JSON payload")]
    NoReview,
    /// The review has no request.
    #[error("Missing parameters: request")]
    NoRequest,
}

/// The fields of a review that its reply repeats.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// `admission.k8s.io/v1`, …
    pub api_version: Option<String>,
    /// `AdmissionReview` or `ConversionReview`.
    pub kind: Option<String>,
    /// The uid of the request.
    pub uid: String,
}

/// The question whether a request is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionRequest {
    /// The fields of the request that the reply repeats.
    pub head: Head,
    /// The document `{"request": …}` for the hook.
    pub review: Json,
}

/// The request to convert objects to another version.
#[derive(Debug, Clone, PartialEq)]
pub struct ConversionRequest {
    /// The fields of the request that the reply repeats.
    pub head: Head,
    /// The wanted `apiVersion`.
    pub desired: String,
    /// The objects, in their order.
    pub objects: Vec<Value>,
}

/// A review that the API server asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum ReviewRequest {
    /// Admission of a request.
    Admission(AdmissionRequest),
    /// Conversion of objects.
    Conversion(ConversionRequest),
}

impl AdmissionRequest {
    /// Parses the body of an admission review. Missing fields that hooks rely on are added as empty ones.
    pub fn parse(body: &[u8]) -> Result<Self, BadRequest> {
        let (head, mut request) = opened(body)?;
        let empty = json!({
            "kind": {"group": "", "kind": "", "version": ""},
            "object": null,
            "oldObject": null,
            "operation": "",
            "options": null,
            "resource": {"group": "", "resource": "", "version": ""},
            "uid": "",
            "userInfo": {},
        });
        complete(&mut request, empty)?;
        let review = Json::from(&json!({"request": request}));
        Ok(Self { head, review })
    }
}

/// Adds a missing field. A field of the wrong type makes the request invalid.
fn complete(request: &mut Map<String, Value>, empty: Value) -> Result<(), BadRequest> {
    let Value::Object(empty) = empty else { return Ok(()) };
    for (key, empty) in empty {
        match (request.get_mut(&key), empty) {
            (None | Some(Value::Null), empty) => {
                request.insert(key, empty);
            }
            (Some(Value::Object(inner)), empty @ Value::Object(_)) => complete(inner, empty)?,
            (Some(Value::String(_)), Value::String(_)) | (Some(_), Value::Null) => {}
            (Some(_), _) => return Err(BadRequest::NoReview),
        }
    }
    Ok(())
}

impl ConversionRequest {
    /// Parses the body of a conversion review.
    pub fn parse(body: &[u8]) -> Result<Self, BadRequest> {
        let (head, mut request) = opened(body)?;
        let desired = text(&request, "desiredAPIVersion")?.unwrap_or_default();
        let objects = match request.remove("objects") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(objects)) if objects.iter().all(Value::is_object) => objects,
            Some(_) => return Err(BadRequest::NoReview),
        };
        Ok(Self { head, desired, objects })
    }
}

/// The document `{"request": …}` for a hook that converts, with the current objects.
pub(super) fn conversion_review(head: &Head, desired: &str, objects: &[Value]) -> Json {
    Json::from(&json!({"request": {
        "desiredAPIVersion": desired,
        "objects": objects,
        "uid": head.uid,
    }}))
}

fn opened(body: &[u8]) -> Result<(Head, Map<String, Value>), BadRequest> {
    let review: Value = serde_json::from_slice(body).map_err(|_| BadRequest::NoReview)?;
    let Value::Object(mut review) = review else {
        return Err(BadRequest::NoReview);
    };
    let (api_version, kind) = (text(&review, "apiVersion")?, text(&review, "kind")?);
    let request = match review.remove("request") {
        None | Some(Value::Null) => return Err(BadRequest::NoRequest),
        Some(Value::Object(request)) => request,
        Some(_) => return Err(BadRequest::NoReview),
    };
    let head = Head {
        api_version,
        kind,
        uid: text(&request, "uid")?.unwrap_or_default(),
    };
    Ok((head, request))
}

fn text(fields: &Map<String, Value>, key: &str) -> Result<Option<String>, BadRequest> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(BadRequest::NoReview),
    }
}
