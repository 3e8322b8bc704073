//! Masks a run before it is written: values by their schemas, objects by their kind, keys by their names, and every other
//! text by the secrets that were found so.
//!
//! A text that cannot be read and might hold a secret is left out. Must never pass on the data of a Secret.

mod documents;
mod objects;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use addon_core::values::HookSecrecy;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use masking::secret::MASK;
use masking::secret::known::Known;
use names::{HookId, ModuleName};
use report::secrets::Secrets;
use serde_json::Value;

use super::record::{Content, End, FORM, NamedFile, Program, Record, RunFile};
use super::ring::LONGEST_FILE;
use documents::Documents;

/// The facts about a hook's inputs by which they are masked.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// The rules for values.
    pub secrecy: HookSecrecy,
    /// The bindings whose objects are Secrets.
    pub secret_bindings: BTreeSet<String>,
    /// The positions of the contexts that are about a single Secret, in the list of contexts.
    pub secret_contexts: BTreeSet<usize>,
}

/// A file as it was during the run.
#[derive(Debug, Clone)]
pub struct RawFile {
    pub file: RunFile,
    pub name: String,
    /// The text, or the reason for which there is none.
    pub text: Result<String, String>,
}

/// The output of a program, and the number of bytes that were dropped at its end.
pub type Printed = (String, u64);

/// A run before its secrets are masked.
#[derive(Debug)]
pub struct Raw {
    pub hook: HookId,
    pub cause: String,
    pub binding: String,
    pub queue: String,
    pub began: Timestamp,
    pub took: Duration,
    pub deadline: Duration,
    pub program: Program,
    pub inputs: Inputs,
    pub files: Vec<RawFile>,
    pub end: End,
    pub failure: Option<String>,
    pub stdout: Printed,
    pub stderr: Printed,
}

/// All secrets that a record must not hold.
struct Masks<'a> {
    /// The secrets of all values.
    told: &'a Secrets,
    /// The secrets in the files of this run.
    found: Known,
}

impl Masks<'_> {
    fn text(&self, text: &str) -> String {
        self.told.masked(&self.found.masked(text)).into_owned()
    }

    fn document(&self, document: &mut Value) {
        self.found.mask(document);
        self.told.mask(document);
    }

    /// A text that is masked as it is, because it has no known format.
    fn content(&self, text: &str) -> Content {
        let shown = self.text(text);
        Content {
            masked: shown != text,
            text: shown,
            left_out: None,
        }
    }

    fn printed(&self, (text, dropped): &Printed) -> Content {
        let content = self.content(text);
        if *dropped == 0 {
            return content;
        }
        // The last line may end in a part of a secret.
        let whole = content.text.rfind('\n').map_or(0, |at| at + 1);
        Content {
            text: content.text[..whole].to_owned(),
            left_out: Some(format!(
                "the end, {} bytes",
                dropped + (content.text.len() - whole) as u64
            )),
            ..content
        }
    }
}

/// The record of a run, without its secrets.
pub(super) fn hidden(raw: Raw, secrets: &Secrets) -> Record {
    let read: Vec<(RawFile, Option<Documents>)> = raw
        .files
        .into_iter()
        .map(|file| {
            let documents = file.text.as_deref().ok().filter(|text| text.len() <= LONGEST_FILE);
            let documents = documents.and_then(|text| Documents::hidden(file.file, text, &raw.inputs));
            (file, documents)
        })
        .collect();
    let mut found = BTreeSet::new();
    for documents in read.iter().filter_map(|(_, documents)| documents.as_ref()) {
        documents.gather(&mut found);
    }
    let masks = Masks {
        told: secrets,
        found: found.iter().map(String::as_str).collect(),
    };
    let files = read.into_iter().map(|(file, documents)| {
        let content = content(&file, documents, &masks);
        let named = NamedFile {
            name: file.name,
            content,
        };
        (file.file.variable().to_owned(), named)
    });
    Record {
        record: FORM,
        id: raw.began.strftime("%Y%m%d-%H%M%S-%6f").to_string(),
        hook: raw.hook.name.as_str().to_owned(),
        module: raw.hook.owner.module().map(ModuleName::to_string),
        cause: raw.cause,
        binding: raw.binding,
        queue: raw.queue,
        began: raw.began.to_string(),
        seconds: raw.took.as_secs_f64(),
        deadline_seconds: raw.deadline.as_secs_f64(),
        program: raw.program,
        files: files.collect::<BTreeMap<_, _>>(),
        end: raw.end,
        failure: raw.failure.map(|failure| masks.text(&failure)),
        stdout: masks.printed(&raw.stdout),
        stderr: masks.printed(&raw.stderr),
    }
}

fn content(file: &RawFile, documents: Option<Documents>, masks: &Masks<'_>) -> Content {
    let without = |why: String| Content {
        left_out: Some(why),
        ..Content::default()
    };
    let text = match &file.text {
        Err(why) => return without(masks.text(why)),
        Ok(text) if text.len() > LONGEST_FILE => {
            return without(format!(
                "all of it: {} bytes, at most {LONGEST_FILE} are kept",
                text.len()
            ));
        }
        Ok(text) => text,
    };
    match documents {
        Some(documents) => documents.content(text, masks),
        // Operations on metrics hold no objects, and are shown on a page anyway.
        None if file.file == RunFile::Metrics || text.trim().is_empty() => masks.content(text),
        None => without("all of it: it is not valid, and it might hold a secret".to_owned()),
    }
}

/// Collects the texts that were masked in `after`.
fn gather(before: &Value, after: &Value, found: &mut BTreeSet<String>) {
    match (before, after) {
        (before, Value::String(mask)) if mask == MASK => leaves(before, found),
        (Value::Array(before), Value::Array(after)) => {
            for (before, after) in before.iter().zip(after) {
                gather(before, after, found);
            }
        }
        (Value::Object(before), Value::Object(after)) => {
            for (key, after) in after {
                gather(before.get(key).unwrap_or(&Value::Null), after, found);
            }
        }
        _ => {}
    }
}

/// Collects the texts and numbers of a secret, and the decoded form of texts that are base64.
fn leaves(secret: &Value, found: &mut BTreeSet<String>) {
    match secret {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => drop(found.insert(number.to_string())),
        Value::String(text) => {
            let decoded = STANDARD.decode(text.trim()).ok();
            found.extend(decoded.and_then(|bytes| String::from_utf8(bytes).ok()));
            found.insert(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| leaves(item, found)),
        Value::Object(map) => map.values().for_each(|value| leaves(value, found)),
    }
}
