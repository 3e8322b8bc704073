//! The record of one run of a hook, as a document.
//!
//! Must never hold a variable of the operator's own environment, where credentials may be.

use std::collections::BTreeMap;
use std::fmt;

/// The text in the place of a secret.
pub use masking::secret::MASK;
use serde::{Deserialize, Serialize};

/// The version of the document's form.
pub const FORM: u32 = 1;

/// The files of a run, by their use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunFile {
    Contexts,
    Values,
    ConfigValues,
    ValuesPatch,
    ConfigPatch,
    ObjectPatches,
    Metrics,
    Admission,
    Conversion,
}

impl RunFile {
    /// All of them, first those that a hook reads.
    pub const ALL: [Self; 9] = [
        Self::Contexts,
        Self::Values,
        Self::ConfigValues,
        Self::ValuesPatch,
        Self::ConfigPatch,
        Self::ObjectPatches,
        Self::Metrics,
        Self::Admission,
        Self::Conversion,
    ];

    /// The variables with the path of the file.
    pub fn variables(self) -> &'static [&'static str] {
        match self {
            Self::Contexts => &["BINDING_CONTEXT_PATH"],
            Self::Values => &["VALUES_PATH"],
            Self::ConfigValues => &["CONFIG_VALUES_PATH"],
            Self::ValuesPatch => &["VALUES_JSON_PATCH_PATH"],
            Self::ConfigPatch => &["CONFIG_VALUES_JSON_PATCH_PATH"],
            Self::ObjectPatches => &["KUBERNETES_PATCH_PATH"],
            Self::Metrics => &["METRICS_PATH"],
            // The second is the older name of the same file.
            Self::Admission => &["ADMISSION_RESPONSE_PATH", "VALIDATING_RESPONSE_PATH"],
            Self::Conversion => &["CONVERSION_RESPONSE_PATH"],
        }
    }

    /// The variable that names the file in a record.
    pub fn variable(self) -> &'static str {
        self.variables()[0]
    }

    /// Whether the hook reads the file. It writes the others.
    pub fn is_given(self) -> bool {
        matches!(self, Self::Contexts | Self::Values | Self::ConfigValues)
    }
}

/// The other variables that the operator sets for a hook.
pub const VARIABLES: [&str; 3] = ["MODULE_NAME", "APPLICATION_NAME", "APPLICATION_NAMESPACE"];

/// A text of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Content {
    pub text: String,
    /// Whether secrets in the text are masked.
    pub masked: bool,
    /// The part of the text that is not in the record, and the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

/// A file of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NamedFile {
    /// The name of the file, without its directory.
    pub name: String,
    #[serde(flatten)]
    pub content: Content,
}

/// The program of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Program {
    /// The path of the hook.
    pub path: String,
    pub arguments: Vec<String>,
    /// The directory of the module; none for a hook of no module.
    pub module: Option<String>,
    /// The working directory; none for the operator's own.
    pub directory: Option<String>,
    /// The variables that the operator set, without those with paths of files.
    pub variables: BTreeMap<String, String>,
}

/// The end of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum End {
    ExitCode(i32),
    Signal(i32),
    /// The program could not be started.
    NotStarted,
    /// The program was ended at its deadline.
    Deadline,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ExitCode(code) => write!(f, "exit code {code}"),
            Self::Signal(number) => write!(f, "signal {number}"),
            Self::NotStarted => f.write_str("not started"),
            Self::Deadline => f.write_str("ended at its deadline"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The version of this form.
    pub record: u32,
    pub id: String,
    pub hook: String,
    /// The name of the hook's module; none for a hook of no module.
    pub module: Option<String>,
    /// The kind of binding that caused the run.
    pub cause: String,
    /// The name of that binding; empty if it has none.
    pub binding: String,
    pub queue: String,
    /// The time of the start, in UTC.
    pub began: String,
    pub seconds: f64,
    pub deadline_seconds: f64,
    pub program: Program,
    /// The files by their variables.
    pub files: BTreeMap<String, NamedFile>,
    pub end: End,
    /// The reason for which the run counts as failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    pub stdout: Content,
    pub stderr: Content,
}

impl Record {
    /// The hook, for messages.
    pub fn title(&self) -> String {
        match &self.module {
            Some(module) => format!("hook '{}' of module '{module}'", self.hook),
            None => format!("hook '{}'", self.hook),
        }
    }

    /// A file of the run, if it had one.
    pub fn file(&self, file: RunFile) -> Option<&NamedFile> {
        self.files.get(file.variable())
    }

    /// The document in many lines, for people.
    pub fn to_text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a record is plain data with text keys");
        text.push('\n');
        text
    }
}
