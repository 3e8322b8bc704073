//! Rules in CEL for kinds whose status the general rules do not understand.
//!
//! A rule has up to three expressions over the top-level fields of an object. Must never let an expression that cannot
//! be evaluated decide anything.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;
use values_schema::schema::expression::{Expression, ExpressionError};

use crate::field::{Malformed, conditions, group_kind_of};
use crate::finding::{Finding, State};
use crate::judge::{deletion, generation, judge};
use crate::text::{MESSAGE, NAME, harmless};

/// The text of a rule, as its writer gives it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RuleText {
    /// The group and a version of the objects. The rule is for all versions of the group.
    pub api_version: String,
    /// The kind of the objects.
    pub kind: String,
    /// True of an object that is as its spec says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// True of an object whose controller is at work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_progress: Option<String>,
    /// True of an object whose controller has given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// One expression of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The expression `current`.
    Current,
    /// The expression `inProgress`.
    InProgress,
    /// The expression `failed`.
    Failed,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Current => "current",
            Self::InProgress => "inProgress",
            Self::Failed => "failed",
        })
    }
}

/// A rule that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RuleError {
    /// The kind is empty, or the version is no version.
    #[error("a health rule is for no kind: apiVersion '{api_version}', kind '{kind}'")]
    NoKind {
        /// The version as given.
        api_version: String,
        /// The kind as given.
        kind: String,
    },
    /// All three expressions are absent.
    #[error("the health rule for {kind} has no expression")]
    Empty {
        /// The group and the kind.
        kind: String,
    },
    /// An expression does not compile.
    #[error("the expression `{part}` of the health rule for {kind}: {error}")]
    Expression {
        /// The group and the kind.
        kind: String,
        /// The expression with the mistake.
        part: Part,
        /// The mistake, with its position.
        error: ExpressionError,
    },
    /// Two rules are for the same kind.
    #[error("there are two health rules for {kind}")]
    Twice {
        /// The group and the kind.
        kind: String,
    },
}

/// A compiled rule. Two rules are equal if their texts are.
#[derive(Debug, Clone)]
pub struct Rule {
    text: RuleText,
    group_kind: String,
    current: Option<Expression>,
    in_progress: Option<Expression>,
    failed: Option<Expression>,
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Rule {}

impl Rule {
    /// Compiles the expressions of a rule.
    pub fn compile(text: &RuleText) -> Result<Self, RuleError> {
        let kind = group_kind_of(&text.api_version, &text.kind);
        if kind.is_empty() || text.kind.is_empty() || text.api_version.is_empty() {
            return Err(RuleError::NoKind {
                api_version: harmless(&text.api_version, NAME),
                kind: harmless(&text.kind, NAME),
            });
        }
        let told = harmless(&kind, 2 * NAME);
        if text.current.is_none() && text.in_progress.is_none() && text.failed.is_none() {
            return Err(RuleError::Empty { kind: told });
        }
        let compile = |part: Part, expression: Option<&String>| {
            let compiled = expression.map(|expression| Expression::compile(expression)).transpose();
            compiled.map_err(|error| RuleError::Expression {
                kind: told.clone(),
                part,
                error,
            })
        };
        Ok(Self {
            text: text.clone(),
            current: compile(Part::Current, text.current.as_ref())?,
            in_progress: compile(Part::InProgress, text.in_progress.as_ref())?,
            failed: compile(Part::Failed, text.failed.as_ref())?,
            group_kind: kind,
        })
    }

    /// The text of the rule.
    pub fn text(&self) -> &RuleText {
        &self.text
    }

    /// Judges an object by the rule, whatever the kind of the object.
    ///
    /// A deletion comes first, then a spec that is not observed yet, then the expressions `inProgress`, `failed` and
    /// `current`. If none is true, a rule with `current` says in progress, and the general rules judge otherwise.
    pub fn judge(&self, object: &Value, now: Timestamp) -> Finding {
        let Some(fields) = object.as_object() else {
            return Malformed::at("the object").into();
        };
        let first = deletion(object).and_then(|finding| match finding {
            Some(finding) => Ok(Some(finding)),
            None => generation(object),
        });
        match first {
            Ok(None) => {}
            Ok(Some(finding)) => return finding,
            Err(malformed) => return malformed.into(),
        }
        let mut complaint = None;
        let parts = [
            (Part::InProgress, &self.in_progress, State::InProgress),
            (Part::Failed, &self.failed, State::Failed),
            (Part::Current, &self.current, State::Current),
        ];
        for (part, expression, state) in parts {
            match holds(expression.as_ref(), part, fields) {
                Ok(true) => return decided(object, part, state),
                Ok(false) => {}
                Err(error) => complaint = complaint.or(Some(error)),
            }
        }
        self.undecided(object, complaint, now)
    }

    fn undecided(&self, object: &Value, complaint: Option<String>, now: Timestamp) -> Finding {
        if self.current.is_some() {
            let sentence = complaint.unwrap_or_else(|| reported(object, "its rule does not call it current yet"));
            return Finding::in_progress(&sentence);
        }
        let finding = judge(object, now);
        match complaint {
            Some(complaint) if finding.sentence.is_empty() => Finding::new(finding.state, &complaint),
            _ => finding,
        }
    }
}

fn holds(expression: Option<&Expression>, part: Part, fields: &Map<String, Value>) -> Result<bool, String> {
    let Some(expression) = expression else {
        return Ok(false);
    };
    let outcome = expression.holds(fields);
    outcome.map_err(|error| {
        let error = harmless(&error.to_string(), MESSAGE);
        format!("the rule `{part}` could not be evaluated: {error}")
    })
}

fn decided(object: &Value, part: Part, state: State) -> Finding {
    match state {
        State::Current => Finding::current(),
        _ => Finding::new(state, &reported(object, &format!("the rule `{part}` holds"))),
    }
}

/// The message of the first condition that is bad news by its name, or the other text.
fn reported(object: &Value, otherwise: &str) -> String {
    let conditions = conditions(object).unwrap_or_default();
    let bad = conditions.iter().find(|condition| {
        let wanted = matches!(condition.name, "Ready" | "Available" | "Healthy" | "Synced");
        let unwanted = matches!(condition.name, "Stalled" | "Reconciling" | "Failed");
        (wanted && condition.status != "True") || (unwanted && condition.status == "True")
    });
    bad.map_or_else(|| otherwise.to_owned(), |condition| condition.told(otherwise))
}

/// The rules of one owner, at most one for each kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules(BTreeMap<String, Rule>);

impl Rules {
    /// Adds a rule.
    pub fn add(&mut self, text: &RuleText) -> Result<(), RuleError> {
        let rule = Rule::compile(text)?;
        match self.0.entry(rule.group_kind.clone()) {
            Entry::Occupied(taken) => Err(RuleError::Twice {
                kind: harmless(taken.key(), 2 * NAME),
            }),
            Entry::Vacant(free) => {
                free.insert(rule);
                Ok(())
            }
        }
    }

    /// The rule for a kind.
    pub fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Rule> {
        self.0.get(&group_kind_of(api_version, kind))
    }
}

#[cfg(test)]
mod tests;
