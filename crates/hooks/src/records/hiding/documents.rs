//! The documents in a file of a run, before and after they are masked.
//!
//! A file without a secret must keep its text to the last byte.

use std::collections::BTreeSet;

use helm_yaml::yaml::document::documents_v3;
use serde_json::{Deserializer, Value};

use super::{Inputs, Masks, gather, objects};
use crate::records::record::{Content, RunFile};

pub(super) struct Documents {
    before: Vec<Value>,
    after: Vec<Value>,
}

impl Documents {
    /// Reads and masks the documents of a file; none if they cannot be read.
    pub(super) fn hidden(file: RunFile, text: &str, inputs: &Inputs) -> Option<Self> {
        let before = match file {
            RunFile::ObjectPatches => json(text).or_else(|| yaml(text)),
            _ => json(text),
        }?;
        let hide = |document: &Value| match file {
            RunFile::Contexts => objects::contexts(document, inputs),
            RunFile::Values | RunFile::ConfigValues => inputs.secrecy.masked(document),
            RunFile::ValuesPatch | RunFile::ConfigPatch => match document {
                Value::Array(operations) => operations
                    .iter()
                    .map(|operation| inputs.secrecy.masked_operation(operation))
                    .collect(),
                operation => inputs.secrecy.masked_operation(operation),
            },
            RunFile::ObjectPatches => objects::operation(document),
            RunFile::Metrics => document.clone(),
            RunFile::Admission | RunFile::Conversion => objects::response(document, !inputs.secret_contexts.is_empty()),
        };
        let after = before.iter().map(hide).collect();
        Some(Self { before, after })
    }

    /// Collects the secrets that were masked.
    pub(super) fn gather(&self, found: &mut BTreeSet<String>) {
        for (before, after) in self.before.iter().zip(&self.after) {
            gather(before, after, found);
        }
    }

    /// The text with the documents that remain, a line each if there was a secret.
    pub(super) fn content(mut self, text: &str, masks: &Masks<'_>) -> Content {
        self.after.iter_mut().for_each(|document| masks.document(document));
        // A secret may also be in a key, in a comment or in a text with another spelling.
        if self.after == self.before {
            return masks.content(text);
        }
        let lines = self.after.iter().map(|document| format!("{document}\n"));
        Content {
            text: lines.collect(),
            masked: true,
            left_out: None,
        }
    }
}

fn json(text: &str) -> Option<Vec<Value>> {
    let documents: Result<Vec<Value>, _> = Deserializer::from_str(text).into_iter().collect();
    documents.ok()
}

fn yaml(text: &str) -> Option<Vec<Value>> {
    let documents = documents_v3(text).ok()?;
    Some(documents.into_iter().map(|document| document.value).collect())
}
