//! The failure of a piece of work, in the one form in which the shell reports it to the core.
//!
//! The class says who must act: each variant names that person or part. This file retries nothing; the core decides about
//! retries.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The person or part that must act before a retry can help. The text form is a metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The author or the user must correct a hook's configuration, a section or a cycle.
    Invalid,
    /// The hook's author must correct the hook: its exit code or its output.
    HookFailed,
    /// The cluster's admin must act: the API server understood the request and refused it.
    Refused,
    /// Nobody must act: the network, the API server or a lock will be available again.
    Unavailable,
    /// Nobody must act: a deadline passed.
    TimedOut,
    /// Nobody must act: the operator cancelled the work itself.
    Cancelled,
    /// The authors of the operator must act: a panic or a broken invariant.
    Defect,
    /// A person must confirm: nothing is broken, but the next step cannot be undone.
    Held,
    /// The module's author or a person must act: the API server allows no user to do this step on the existing object.
    Blocked,
    /// A record of helm cannot be read. A person must act if the operator cannot repair the record.
    Damaged,
}

impl Class {
    /// Whether the operator's files or people are at fault. Otherwise the work goes well once the cluster does.
    pub fn is_fault(self) -> bool {
        match self {
            Self::Unavailable | Self::Cancelled => false,
            Self::Invalid
            | Self::HookFailed
            | Self::Refused
            | Self::TimedOut
            | Self::Defect
            | Self::Held
            | Self::Blocked
            | Self::Damaged => true,
        }
    }

    /// The value of the class as a label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::HookFailed => "hook_failed",
            Self::Refused => "refused",
            Self::Unavailable => "unavailable",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Defect => "defect",
            Self::Held => "held",
            Self::Blocked => "blocked",
            Self::Damaged => "damaged",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// A failed piece of work: its class, the whole error chain as one line, and the remedies for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The class of the failure, which says who must act.
    pub class: Class,
    /// The error chain, outermost first, joined by `: `.
    pub report: String,
    /// Remedies, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
}

impl Failure {
    /// A failure without hints.
    pub fn new(class: Class, report: impl Into<String>) -> Self {
        Self {
            class,
            report: report.into(),
            hints: Vec::new(),
        }
    }

    /// A failure with an error and the chain of its causes.
    pub fn of(class: Class, error: &dyn std::error::Error) -> Self {
        let mut report = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            report.push_str(": ");
            report.push_str(&error.to_string());
            cause = error.source();
        }
        Self::new(class, report)
    }

    /// A failure that only a bug of the operator can cause.
    pub fn defect(report: impl Into<String>) -> Self {
        Self::new(Class::Defect, report)
    }

    /// This failure as the cause of a larger failure, which `attempt` names.
    #[must_use]
    pub fn within(mut self, attempt: impl fmt::Display) -> Self {
        self.report = format!("{attempt}: {}", self.report);
        self
    }

    /// Adds one more hint to the failure.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.report)
    }
}

impl std::error::Error for Failure {}
