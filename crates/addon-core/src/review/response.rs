//! Parses the response file of a hook for a review.
//!
//! An empty file means no answer and is no error, because most runs are no reviews. Must never guess: a field of the
//! wrong type fails the run.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

/// The error for an invalid response file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BadResponse {
    /// The file of a validating or mutating hook.
    #[error("got bad validating response: {0}")]
    Admission(Problem),
    /// The file of a converting hook.
    #[error("got bad conversion response: {0}")]
    Conversion(Problem),
}

/// The mistake in a response file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Problem {
    /// The file is not JSON.
    #[error("it is not JSON: {0}")]
    Syntax(String),
    /// The file is JSON, but no object.
    #[error("it should be an object, and is {0}")]
    NoObject(&'static str),
    /// A field has the wrong type.
    #[error("'{field}' should be {wanted}, and is {found}")]
    Field {
        /// The field.
        field: String,
        /// The expected type.
        wanted: &'static str,
        /// The type of the field's value.
        found: &'static str,
    },
    /// The string of the patch is no valid patch.
    #[error("'patch' should be a JSON patch in base64: {0}")]
    Patch(String),
    /// A converted object has no kind.
    #[error("'convertedObjects[{0}]' has no kind")]
    NoKind(usize),
}

/// The answer of a hook to an admission review.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdmissionResponse {
    /// Whether the request is allowed.
    pub allowed: bool,
    /// The reason for a denial.
    pub message: String,
    /// Warnings for the client that sent the request.
    pub warnings: Vec<String>,
    /// A JSON patch, in base64; empty for none.
    pub patch: String,
}

/// The objects of a request as a hook converted them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ConversionResponse {
    /// All converted objects, in the order of the request.
    pub objects: Vec<Value>,
    /// The reason why the objects could not be converted; empty if they were converted.
    pub failed: String,
}

/// The contents of the two response files of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HookResponse {
    /// The contents of `ADMISSION_RESPONSE_PATH`, also known as `VALIDATING_RESPONSE_PATH`.
    pub admission: Option<AdmissionResponse>,
    /// The contents of `CONVERSION_RESPONSE_PATH`.
    pub conversion: Option<ConversionResponse>,
}

impl HookResponse {
    /// Reads both files. The mistakes of the first are reported first.
    pub fn parse(admission: &str, conversion: &str) -> Result<Self, BadResponse> {
        Ok(Self {
            admission: AdmissionResponse::parse(admission)?,
            conversion: ConversionResponse::parse(conversion)?,
        })
    }
}

impl AdmissionResponse {
    /// Reads the hook's response file; `None` if the file is empty.
    pub fn parse(text: &str) -> Result<Option<Self>, BadResponse> {
        let Some(fields) = fields(text).map_err(BadResponse::Admission)? else {
            return Ok(None);
        };
        Self::of(&fields).map(Some).map_err(BadResponse::Admission)
    }

    fn of(fields: &Map<String, Value>) -> Result<Self, Problem> {
        let allowed = match find(fields, "allowed") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(allowed)) => *allowed,
            Some(other) => return Err(wrong("allowed", "true or false", other)),
        };
        let warnings = match find(fields, "warnings") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(warnings)) => warnings.iter().enumerate().map(warning).collect::<Result<_, _>>()?,
            Some(other) => return Err(wrong("warnings", "a list of strings", other)),
        };
        Ok(Self {
            allowed,
            message: string(fields, "message")?,
            warnings,
            patch: patch(&string(fields, "patch")?)?,
        })
    }

    /// The response as one line for the log.
    pub fn dump(&self) -> String {
        let mut dump = format!("AdmissionResponse(allowed={}", self.allowed);
        let patch = STANDARD.decode(&self.patch).unwrap_or_default();
        if !patch.is_empty() {
            dump.push_str(",patch=");
            dump.push_str(&String::from_utf8_lossy(&patch));
        }
        if !self.message.is_empty() {
            dump.push_str(",msg=");
            dump.push_str(&self.message);
        }
        for warning in &self.warnings {
            dump.push_str(",warn=");
            dump.push_str(warning);
        }
        dump + ")"
    }
}

fn warning((place, warning): (usize, &Value)) -> Result<String, Problem> {
    match warning {
        Value::String(warning) => Ok(warning.clone()),
        other => Err(wrong(&format!("warnings[{place}]"), "a string", other)),
    }
}

/// Checks a patch, and removes the line breaks that `base64` puts into a long text.
fn patch(text: &str) -> Result<String, Problem> {
    let text: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    match STANDARD.decode(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(Problem::Patch(error.to_string())),
    }
}

impl ConversionResponse {
    /// Reads the hook's response file; `None` if the file is empty.
    pub fn parse(text: &str) -> Result<Option<Self>, BadResponse> {
        let Some(mut fields) = fields(text).map_err(BadResponse::Conversion)? else {
            return Ok(None);
        };
        Self::of(&mut fields).map(Some).map_err(BadResponse::Conversion)
    }

    fn of(fields: &mut Map<String, Value>) -> Result<Self, Problem> {
        let failed = string(fields, "failedMessage")?;
        let objects = match key(fields, "convertedObjects").and_then(|key| fields.remove(&key)) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(objects)) => objects,
            Some(other) => return Err(wrong("convertedObjects", "a list of objects", &other)),
        };
        for (place, object) in objects.iter().enumerate() {
            match object {
                Value::Object(fields) => match fields.get("kind") {
                    Some(Value::String(kind)) if !kind.is_empty() => {}
                    _ => return Err(Problem::NoKind(place)),
                },
                other => return Err(wrong(&format!("convertedObjects[{place}]"), "an object", other)),
            }
        }
        Ok(Self { objects, failed })
    }
}

/// The fields of the first document in a file. Text after it is ignored, as in the original.
fn fields(text: &str) -> Result<Option<Map<String, Value>>, Problem> {
    if text.is_empty() {
        return Ok(None);
    }
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    match documents.next() {
        None => Err(Problem::Syntax("it holds nothing but space".to_owned())),
        Some(Err(error)) => Err(Problem::Syntax(error.to_string())),
        Some(Ok(Value::Object(fields))) => Ok(Some(fields)),
        Some(Ok(Value::Null)) => Ok(Some(Map::new())),
        Some(Ok(other)) => Err(Problem::NoObject(found(&other))),
    }
}

/// The key as the file spells it. As in the original, upper and lower case do not matter.
fn key(fields: &Map<String, Value>, name: &str) -> Option<String> {
    let spelled = || fields.keys().find(|key| key.eq_ignore_ascii_case(name));
    fields
        .contains_key(name)
        .then(|| name.to_owned())
        .or_else(|| spelled().cloned())
}

fn find<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    key(fields, name).and_then(|key| fields.get(&key))
}

fn string(fields: &Map<String, Value>, name: &str) -> Result<String, Problem> {
    match find(fields, name) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(wrong(name, "a string", other)),
    }
}

fn wrong(field: &str, wanted: &'static str, value: &Value) -> Problem {
    Problem::Field {
        field: field.to_owned(),
        wanted,
        found: found(value),
    }
}

fn found(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
