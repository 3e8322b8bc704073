//! Splits the text of a file into documents.

use helm_yaml::number;
use helm_yaml::yaml::YamlError;
use helm_yaml::yaml::document::{self, Document};
use serde_json::{Deserializer, Value};

use super::Unreadable;

/// The documents of a text: a stream of JSON or, if it is none, a stream of YAML.
pub(super) fn documents(text: &str) -> Result<Vec<Document>, Unreadable> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let json = match json(text) {
        Ok(documents) => return Ok(documents),
        Err(error) => error,
    };
    document::documents_v3(text).map_err(|yaml| {
        if text.trim_start().starts_with(['{', '[']) {
            Unreadable::Both { json, yaml }
        } else {
            Unreadable::Yaml(yaml)
        }
    })
}

fn json(text: &str) -> Result<Vec<Document>, YamlError> {
    let mut stream = Deserializer::from_str(text).into_iter::<Value>();
    let mut documents = Vec::new();
    let (mut line, mut counted) = (1, 0);
    loop {
        let rest = &text[stream.byte_offset()..];
        let begin = text.len() - rest.trim_start().len();
        line += text[counted..begin].matches('\n').count();
        counted = begin;
        match stream.next() {
            None => return Ok(documents),
            Some(Ok(mut value)) => {
                number::settle(&mut value);
                documents.push(Document::at(line, value));
            }
            Some(Err(error)) => return Err(json_error(&error)),
        }
    }
}

/// The error of the JSON parser. The place at the end of its text is left out, because our error has fields for it.
fn json_error(error: &serde_json::Error) -> YamlError {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let place = format!(" at line {line} column {column}");
    YamlError {
        line,
        column,
        message: text.strip_suffix(&place).unwrap_or(&text).to_owned(),
    }
}
