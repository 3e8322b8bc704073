//! The findings of a check of files, and their output. Never decides what follows from them.

use std::fmt;
use std::path::{Path, PathBuf};

use helm_yaml::yaml;
use serde::Serialize;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// The file has to be corrected.
    Error,
    /// The file works, or will work in a complete installation.
    Warning,
}

/// A finding about a file, with the line that it is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub path: PathBuf,
    /// The line, from 1, if the finding is about one.
    pub line: Option<usize>,
    pub weight: Weight,
    pub message: String,
}

/// The result of a check of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    pub findings: Vec<Finding>,
    /// The things that were checked, as in `3 sections, 2 flags`.
    pub looked_at: String,
}

/// The form in which findings are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Each finding is one line, as compilers print errors.
    Text,
    Json,
    Yaml,
}

impl Finding {
    pub(super) fn error(path: impl Into<PathBuf>, message: impl fmt::Display) -> Self {
        Self {
            path: path.into(),
            line: None,
            weight: Weight::Error,
            message: message.to_string(),
        }
    }

    pub(super) fn warning(path: impl Into<PathBuf>, message: impl fmt::Display) -> Self {
        Self {
            weight: Weight::Warning,
            ..Self::error(path, message)
        }
    }

    pub(super) fn at(self, line: usize) -> Self {
        Self {
            line: Some(line),
            ..self
        }
    }
}

impl Finding {
    /// Shortens paths below a place to the form in which the person typed them, so that an editor finds the files.
    pub(super) fn show_as_typed(&mut self, place: &Path, typed: &Path) {
        if let Ok(rest) = self.path.strip_prefix(place) {
            self.path = typed.join(rest);
        }
        let (whole, typed) = (place.join(""), typed.join(""));
        self.message = self
            .message
            .replace(&*whole.to_string_lossy(), &typed.to_string_lossy());
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        if self.weight == Weight::Warning {
            f.write_str(" warning:")?;
        }
        // Further lines are indented below the first.
        write!(f, " {}", self.message.trim_end().replace('\n', "\n  "))
    }
}

/// All findings as a text in the given form.
pub fn shown(findings: &[Finding], form: Form) -> String {
    let document = || serde_json::to_value(findings).expect("findings are plain data");
    match form {
        Form::Text => findings
            .iter()
            .flat_map(|finding| [finding.to_string(), "\n".to_owned()])
            .collect(),
        Form::Json => format!("{}\n", document()),
        Form::Yaml => yaml::to_string(&document()),
    }
}

/// Whether one of the findings is an error.
pub fn is_bad(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.weight == Weight::Error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_have_a_line_each_and_the_same_facts_as_documents() {
        let findings = [
            Finding::error("a/values.yaml", "is not YAML").at(3),
            Finding::warning("a/lib", "odd\nvery odd"),
        ];
        assert_eq!(
            shown(&findings, Form::Text),
            "a/values.yaml:3: is not YAML\na/lib: warning: odd\n  very odd\n"
        );
        assert_eq!(
            shown(&findings[..1], Form::Json),
            "[{\"line\":3,\"message\":\"is not YAML\",\"path\":\"a/values.yaml\",\"weight\":\"error\"}]\n"
        );
        assert!(shown(&findings, Form::Yaml).contains("weight: warning"));
        assert!(is_bad(&findings) && !is_bad(&findings[1..]));
    }
}
