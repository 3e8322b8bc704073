//! Checks of values that take long. One part of the program collects the questions, a job answers them, and the part uses
//! the answers.
//!
//! A question holds everything that its answer depends on, so an answer is never outdated: other values make another
//! question. Must never keep an answer that is no longer needed: the part that asks keeps its answers, and drops them
//! together with the values.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use names::Owner;
use serde_json::Value;
use values_schema::schema::{Invalid, Kind, Schemas};

use super::NotForHelm;

/// A question: does this section fit this schema of its owner?
#[derive(Clone)]
pub struct Vetting {
    pub(super) owner: Owner,
    pub(super) kind: Kind,
    pub(super) schemas: Arc<Schemas>,
    /// The number of times that the owner's schemas had been renewed.
    pub(super) renewals: u64,
    pub(super) section: Arc<Value>,
    /// The value before the change, if a schema rule reads it.
    pub(super) before: Option<Arc<Value>>,
}

impl PartialEq for Vetting {
    fn eq(&self, other: &Self) -> bool {
        // An owner's schemas change only with a renewal. A comparison of their contents may take longer than the check.
        self.kind == other.kind
            && self.owner == other.owner
            && self.renewals == other.renewals
            && self.section == other.section
            && self.before == other.before
    }
}

impl fmt::Debug for Vetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Vetting");
        shown.field("owner", &self.owner).field("kind", &self.kind);
        shown.field("section", &self.section).field("before", &self.before);
        shown.finish_non_exhaustive()
    }
}

impl Vetting {
    /// Whether the check may take long, so that a job has to do it. True for schemas with CEL rules: all other checks
    /// take about as long as merging the layers of values, which is done anyway.
    pub fn takes_long(&self) -> bool {
        self.schemas.has_rules(self.kind)
    }

    /// Does the check, which may take long.
    pub(super) fn vet(&self) -> Result<(), Invalid> {
        let key = self.owner.values_key();
        self.schemas
            .check(self.kind, &key, &self.section, self.before.as_deref())
    }

    /// Does the check for helm, which may take long. The error of this check has a type of its own.
    pub fn for_helm(&self) -> Result<(), NotForHelm> {
        self.vet().map_err(|invalid| NotForHelm(invalid.listed(None)))
    }
}

/// Checks against schemas whose results a decision needs.
#[derive(Debug, Clone)]
pub struct Unvetted(Vec<Vetting>);

impl Unvetted {
    /// Checks the values against their schemas, which may take long.
    pub fn vet(self) -> Vetted {
        let answered = self.0.into_iter().map(|vetting| Answered {
            answer: vetting.vet(),
            vetting,
            is_found_out: true,
        });
        Vetted(answered.collect())
    }

    /// Answers that no section may be used, because the checks could not be done.
    pub fn refuse(self, why: &str) -> Vetted {
        let refused = |vetting| Answered {
            vetting,
            answer: Err(Invalid::because(why)),
            is_found_out: false,
        };
        Vetted(self.0.into_iter().map(refused).collect())
    }

    /// The owners of the values.
    pub fn owners(&self) -> BTreeSet<&Owner> {
        self.0.iter().map(|vetting| &vetting.owner).collect()
    }
}

/// Checks against schemas, each with its result.
#[derive(Debug, Clone, Default)]
pub struct Vetted(Vec<Answered>);

#[derive(Debug, Clone)]
struct Answered {
    vetting: Vetting,
    answer: Result<(), Invalid>,
    /// Whether the check was really done.
    is_found_out: bool,
}

impl Vetted {
    /// Takes the results of more checks.
    pub fn extend(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    /// Forgets all answers except the newest few refusals of each owner. Invalid values may come again and again. Valid
    /// values are applied, so the answers about them are not needed again.
    pub fn keep_refusals(&mut self, of_each: usize) {
        let mut kept: BTreeMap<Owner, usize> = BTreeMap::new();
        let mut last_first: Vec<Answered> = std::mem::take(&mut self.0).into_iter().rev().collect();
        last_first.retain(|one| {
            let is_bad = one.is_found_out && one.answer.is_err();
            let count = kept.entry(one.vetting.owner.clone()).or_default();
            *count += usize::from(is_bad);
            is_bad && *count <= of_each
        });
        self.0 = last_first.into_iter().rev().collect();
    }

    /// Makes a decision at once, and does the checks that it needs, which may take long.
    pub fn at_once<T>(mut decide: impl FnMut(&Self) -> Result<T, Unvetted>) -> T {
        let mut vetted = Self::default();
        loop {
            match decide(&vetted) {
                Ok(decided) => return decided,
                Err(unvetted) => vetted.extend(unvetted.vet()),
            }
        }
    }

    fn answer(&self, vetting: &Vetting) -> Option<&Result<(), Invalid>> {
        let known = self.0.iter().rev().find(|one| one.vetting == *vetting);
        known.map(|one| &one.answer)
    }
}

/// A decision in progress: its answers, and its open questions.
#[derive(Debug)]
pub(super) struct Asking<'a> {
    vetted: &'a Vetted,
    open: Vec<Vetting>,
}

impl<'a> Asking<'a> {
    pub(super) fn new(vetted: &'a Vetted) -> Self {
        Self {
            vetted,
            open: Vec::new(),
        }
    }

    /// The answer to a question. If a long check has no result yet, the question is noted as open, and the values count
    /// as valid until the end of the decision.
    pub(super) fn ask(&mut self, vetting: Vetting) -> Result<(), Invalid> {
        match self.vetted.answer(&vetting) {
            Some(answer) => answer.clone(),
            None if vetting.takes_long() => {
                self.open.push(vetting);
                Ok(())
            }
            None => vetting.vet(),
        }
    }

    /// Ends the decision. The decision counts only if no question is open.
    pub(super) fn decided<T>(self, decision: T) -> Result<T, Unvetted> {
        if self.open.is_empty() {
            Ok(decision)
        } else {
            Err(Unvetted(self.open))
        }
    }
}
