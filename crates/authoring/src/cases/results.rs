//! The results of cases as text: a line a case, the differences below, and the counts at the end.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::junit;

/// The result of one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    /// The differences between expected results and real ones.
    Failed(Vec<String>),
    /// The line of a mistake in the case, and its text.
    Mistake(usize, String),
}

/// A case that was played.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tested {
    pub module: String,
    pub file: PathBuf,
    /// The line on which the case begins.
    pub line: usize,
    pub name: String,
    pub took: Duration,
    pub outcome: Outcome,
}

/// All cases that were played.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub(super) tested: Vec<Tested>,
    pub(super) took: Duration,
}

impl Report {
    pub(super) fn new(tested: Vec<Tested>, took: Duration) -> Self {
        Self { tested, took }
    }

    /// Whether every case passed.
    pub fn is_good(&self) -> bool {
        self.failed() == 0
    }

    pub(super) fn failed(&self) -> usize {
        let is_bad = |one: &&Tested| one.outcome != Outcome::Passed;
        self.tested.iter().filter(is_bad).count()
    }

    /// The report in the format of `JUnit`.
    pub fn junit(&self) -> String {
        junit::document(self)
    }
}

impl Tested {
    /// The differences, or the mistake with its place; empty if the case passed.
    pub(super) fn told(&self) -> Vec<String> {
        match &self.outcome {
            Outcome::Passed => Vec::new(),
            Outcome::Failed(differences) => differences.clone(),
            Outcome::Mistake(line, mistake) => vec![format!("{}:{line}: {mistake}", self.file.display())],
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for one in &self.tested {
            let word = if one.outcome == Outcome::Passed { "ok" } else { "FAILED" };
            writeln!(f, "{word} {}: {}", one.module, one.name)?;
            if matches!(one.outcome, Outcome::Failed(_)) {
                writeln!(f, "  {}:{}", one.file.display(), one.line)?;
            }
            for difference in one.told() {
                writeln!(f, "  {}", difference.trim_end().replace('\n', "\n  "))?;
            }
        }
        let failed = self.failed();
        writeln!(f, "{} passed, {failed} failed", self.tested.len() - failed)
    }
}
