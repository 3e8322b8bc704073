//! Checks of values that take long: asked for in one place, answered in another, and used where they were asked for.
//!
//! A question holds all that its answer depends on, so an answer is never out of date: other values make another
//! question. Must never hold an answer that is no longer needed: the asking part keeps its answers, and drops them
//! together with the values that they were for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::NotForHelm;
use super::schema::{Invalid, Kind, Schemas};
use crate::name::Owner;

/// A section that is to be held against one of its owner's schemas.
#[derive(Clone)]
pub struct Vetting {
    pub(super) owner: Owner,
    pub(super) kind: Kind,
    pub(super) schemas: Arc<Schemas>,
    pub(super) section: Arc<Value>,
    /// The old value, if there are rules that read it.
    pub(super) before: Option<Arc<Value>>,
}

impl PartialEq for Vetting {
    fn eq(&self, other: &Self) -> bool {
        // An owner's schemas are read once in a life, and comparing them may take longer than using them.
        self.kind == other.kind
            && self.owner == other.owner
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
    /// Whether it may take longer than everybody else should have to wait. The line is drawn at rules: all else takes
    /// about as long as laying the layers of values over each other, which is done anyway.
    pub fn takes_long(&self) -> bool {
        self.schemas.has_rules(self.kind)
    }

    /// Holds it against its schema, however long that takes.
    pub(super) fn vet(&self) -> Result<(), Invalid> {
        let key = self.owner.values_key();
        self.schemas
            .check(self.kind, &key, &self.section, self.before.as_deref())
    }

    /// The same, of the values for helm.
    pub fn for_helm(&self) -> Result<(), NotForHelm> {
        self.vet().map_err(|invalid| NotForHelm(invalid.listed(None)))
    }
}

/// Questions without which something cannot be decided.
#[derive(Debug, Clone)]
pub struct Unvetted(Vec<Vetting>);

impl Unvetted {
    /// Answers them, however long that takes.
    pub fn vet(self) -> Vetted {
        let answered = self.0.into_iter().map(|vetting| Answered {
            answer: vetting.vet(),
            vetting,
            is_found_out: true,
        });
        Vetted(answered.collect())
    }

    /// They cannot be answered: then no part of it may be applied.
    pub fn refuse(self, why: &str) -> Vetted {
        let refused = |vetting| Answered {
            vetting,
            answer: Err(Invalid::because(why)),
            is_found_out: false,
        };
        Vetted(self.0.into_iter().map(refused).collect())
    }

    /// The owner of the values.
    pub fn owners(&self) -> BTreeSet<&Owner> {
        self.0.iter().map(|vetting| &vetting.owner).collect()
    }
}

/// Questions with their answers.
#[derive(Debug, Clone, Default)]
pub struct Vetted(Vec<Answered>);

#[derive(Debug, Clone)]
struct Answered {
    vetting: Vetting,
    answer: Result<(), Invalid>,
    /// The check is done.
    is_found_out: bool,
}

impl Vetted {
    /// Takes more answers.
    pub fn extend(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    /// Forgets all but the newest few of each owner that were found invalid: invalid values may be asked about again
    /// and again, and valid ones are applied.
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

    /// Decides something here and now, however long its questions take.
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

/// A decision in progress: the answers that it has, and the questions without an answer.
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

    /// The answer. One that is lacking is put down, and taken for a good one until the end.
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

    /// The end: the decision counts only if no answer was missing.
    pub(super) fn decided<T>(self, decision: T) -> Result<T, Unvetted> {
        if self.open.is_empty() {
            Ok(decision)
        } else {
            Err(Unvetted(self.open))
        }
    }
}
