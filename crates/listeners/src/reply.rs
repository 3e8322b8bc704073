//! An answer before it is written: its data and its format.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use helm_yaml::yaml;
use report::secrets::Secrets;
use serde::Serialize;
use serde_json::Value;

/// The format of an answer, from the path's extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Json,
    Yaml,
    Text,
}

impl Format {
    /// `None` for another extension.
    pub fn parse(extension: &str) -> Option<Self> {
        match extension {
            "json" => Some(Self::Json),
            "yaml" => Some(Self::Yaml),
            "text" => Some(Self::Text),
            _ => None,
        }
    }
}

/// The answer to a question at the debug socket.
#[derive(Debug)]
pub enum Reply {
    /// A document, which is the same in text and in JSON.
    Document(Format, Value),
    /// A document in YAML, with remarks before it, each a comment.
    Remarked(Vec<String>, Value),
    /// Plain text.
    Text(StatusCode, String),
    /// A graph in the language of Graphviz.
    Graph(String),
}

/// A document of a serialisable value.
pub fn document(format: Format, value: &impl Serialize) -> Reply {
    let value = serde_json::to_value(value).expect("answers are plain data with text keys");
    Reply::Document(format, value)
}

pub fn text(status: StatusCode, body: impl Into<String>) -> Reply {
    Reply::Text(status, body.into())
}

/// A value with a text form of its own.
pub fn shown(format: Format, value: &impl Serialize, as_text: impl FnOnce() -> String) -> Reply {
    match format {
        Format::Text => text(StatusCode::OK, as_text()),
        Format::Json | Format::Yaml => document(format, value),
    }
}

impl Reply {
    /// The answer with remarks, where its format has a place for these.
    #[must_use]
    pub fn remarked(self, remarks: Vec<String>) -> Self {
        match self {
            Self::Document(Format::Yaml, value) if !remarks.is_empty() => Self::Remarked(remarks, value),
            other => other,
        }
    }

    /// The answer with masked secrets.
    #[must_use]
    pub fn masked(self, secrets: &Secrets) -> Self {
        match self {
            Self::Document(format, mut value) => {
                secrets.mask(&mut value);
                Self::Document(format, value)
            }
            Self::Remarked(remarks, mut value) => {
                secrets.mask(&mut value);
                Self::Remarked(remarks, value)
            }
            Self::Text(status, text) => Self::Text(status, secrets.masked(&text).into_owned()),
            // A graph has only names of modules and numbers.
            Self::Graph(text) => Self::Graph(text),
        }
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        let of_type = |kind: &'static str, body: String| ([(header::CONTENT_TYPE, kind)], body).into_response();
        match self {
            Self::Document(Format::Json | Format::Text, value) => of_type("application/json", format!("{value}\n")),
            Self::Document(Format::Yaml, value) => of_type("application/yaml", yaml::to_string(&value)),
            Self::Remarked(remarks, value) => {
                let remarks: Vec<_> = remarks.iter().map(|remark| format!("# {remark}\n")).collect();
                of_type("application/yaml", remarks.concat() + &yaml::to_string(&value))
            }
            Self::Text(status, body) => crate::text(status, body),
            Self::Graph(graph) => of_type("text/vnd.graphviz; charset=utf-8", graph),
        }
    }
}

/// The answer to a request that cannot be carried out as it is.
pub fn bad_request(why: impl std::fmt::Display) -> Response {
    text(StatusCode::BAD_REQUEST, format!("{why}\n")).into_response()
}

/// The answer as long as the operator does not know the subject of the question yet.
pub fn still_starting() -> Reply {
    text(StatusCode::SERVICE_UNAVAILABLE, "the operator is still starting\n")
}
