//! The content of a status object.
//!
//! Must never hold a text that changes with time alone: each change is a request.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use serde::Serialize;

use crate::condition::{Condition, Status};
use crate::module::ModuleSheet;
use crate::operator::OperatorSheet;

/// The kind of a status object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The state of one module.
    Module,
    /// The state of the operator.
    Operator,
}

/// The name of a status object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
}

/// The content of an object: its status.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Sheet {
    /// The state of one module.
    Module(Box<ModuleSheet>),
    /// The state of the operator.
    Operator(Box<OperatorSheet>),
}

/// All objects that should be there, and whether these are certainly all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sheets {
    /// The objects.
    pub all: BTreeMap<Key, Sheet>,
    /// Whether every module is known, so that an object without a module may be deleted.
    pub are_complete: bool,
}

impl Sheet {
    /// The conditions.
    pub fn conditions(&self) -> &[Condition] {
        match self {
            Self::Module(sheet) => &sheet.conditions,
            Self::Operator(sheet) => &sheet.conditions,
        }
    }

    pub(crate) fn conditions_mut(&mut self) -> &mut [Condition] {
        match self {
            Self::Module(sheet) => &mut sheet.conditions,
            Self::Operator(sheet) => &mut sheet.conditions,
        }
    }

    /// Whether the state will soon be another one.
    pub(crate) fn is_passing(&self) -> bool {
        let is_reconciling = |condition: &Condition| condition.kind == RECONCILING && condition.status == Status::True;
        self.conditions().iter().any(is_reconciling)
    }

    /// Keeps the earlier time of the next attempt if the two differ by rounding alone.
    pub(crate) fn keep_next_try(&mut self, earlier: &Self) {
        let (Self::Module(own), Self::Module(earlier)) = (self, earlier) else {
            return;
        };
        let told = earlier.failure.as_ref().and_then(|failure| failure.next_try);
        if let (Some(failure), Some(told)) = (&mut own.failure, told)
            && let Some(next) = failure.next_try
            && next.duration_since(told).abs() <= BLUR
        {
            failure.next_try = Some(told);
        }
    }

    /// Whether another sheet differs in texts for people alone.
    pub(crate) fn is_reworded(&self, other: &Self) -> bool {
        let (own, theirs) = (self.conditions().iter(), other.conditions().iter());
        self.state() == other.state() && own.map(Condition::verdict).eq(theirs.map(Condition::verdict))
    }

    fn state(&self) -> &str {
        match self {
            Self::Module(sheet) => &sheet.state,
            Self::Operator(sheet) => &sheet.state,
        }
    }
}

/// The largest difference between two times of the same attempt: it is computed from whole seconds.
const BLUR: SignedDuration = SignedDuration::from_secs(2);

/// The condition of objects whose state will soon be another one, as kstatus names it.
pub(crate) const RECONCILING: &str = "Reconciling";
