//! A finding of a check: the place, the mistake, and the remedy. A finding must never lack one of them.

use std::fmt;

/// One breach of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Path from the root of the repository.
    pub(crate) file: String,
    /// The line, from 1; 0 stands for the whole file.
    pub(crate) line: usize,
    pub(crate) what: String,
    pub(crate) remedy: String,
}

impl Finding {
    pub(crate) fn new(file: &str, line: usize, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line,
            what: what.into(),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            write!(f, "{}: {}\n    {}", self.file, self.what, self.remedy)
        } else {
            write!(f, "{}:{}: {}\n    {}", self.file, self.line, self.what, self.remedy)
        }
    }
}

/// Fails the calling test with all findings at once, so that one run shows them all.
#[track_caller]
pub(crate) fn assert_none(rule: &str, findings: &[Finding]) {
    let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(
        findings.is_empty(),
        "{rule}: {} finding(s)\n\n{}\n",
        findings.len(),
        lines.join("\n")
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_names_file_line_and_remedy() {
        let finding = Finding::new("src/a.rs", 7, "a uses b", "move it");
        assert_eq!(finding.to_string(), "src/a.rs:7: a uses b\n    move it");
        assert_eq!(
            Finding::new("src/a.rs", 0, "too long", "split it").to_string(),
            "src/a.rs: too long\n    split it"
        );
    }

    #[test]
    #[should_panic(expected = "sizes: 1 finding(s)\n\nsrc/a.rs:7: a uses b\n    move it")]
    fn findings_fail_the_test() {
        assert_none("sizes", &[Finding::new("src/a.rs", 7, "a uses b", "move it")]);
    }
}
