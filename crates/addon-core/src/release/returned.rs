//! The return from an upgrade whose objects do not do their work to the last revision whose objects did.
//!
//! The note about it is stored on the Secrets of revisions, so it survives a restart. An upgrade is taken back once: must
//! never try the same inputs again before they change or a person asks for it, and never go to and fro.

use std::ops::Not;

use serde::{Deserialize, Serialize};

use super::{Facts, Newest, Objects, Reason, ReleaseStep, Status, brake};
use crate::failure::{Class, Failure};

/// A revision whose objects do not do their work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unhealthy {
    /// The number of the revision.
    pub revision: u32,
    /// The object and the cause, for people.
    pub sentence: String,
}

/// The note about an upgrade that is taken back, or that cannot be taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returned {
    /// The digest of the upgrade's inputs.
    pub inputs: String,
    /// The revision that the upgrade made.
    pub revision: u32,
    /// The revision whose objects did their work.
    pub to: u32,
    /// The object and the cause, for people.
    pub sentence: String,
    /// The reason for which the revision is kept all the same; `None`: it is taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
    /// Whether a person wants the upgrade to be tried again.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub again: bool,
}

impl Returned {
    /// The failure that reports the return.
    pub fn failure(&self, release: &str) -> Failure {
        let Self {
            revision, to, sentence, ..
        } = self;
        let report = format!(
            "the upgrade of release '{release}' is taken back: the objects of revision {revision} did not do their work \
             ({sentence}), so the objects of revision {to} are back"
        );
        Failure::new(Class::Held, report)
            .hint("it is tried again when values or chart change")
            .hint(format!(
                "if the cause is gone, let it be tried again with `addon-operator module upgrade {release} --again`"
            ))
    }

    /// The remark about a revision that is not healthy and is kept; `None` if it was taken back.
    pub fn remark(&self) -> Option<String> {
        let kept = self.kept.as_ref()?;
        let (revision, sentence) = (self.revision, &self.sentence);
        Some(format!(
            "revision {revision} is not healthy and stays, because {kept}: {sentence}"
        ))
    }

    /// Whether helm has rolled back since the note was written.
    fn is_done(&self, newest: &Newest) -> bool {
        newest.revision > self.revision
            && newest.status == Status::Deployed
            && newest.inputs.as_ref() == Some(&self.inputs)
    }
}

/// The step that a return asks for; `None` if none is wanted, or if the inputs have changed since.
pub(super) fn step(facts: &Facts, newest: &Newest) -> Option<ReleaseStep> {
    let Some(note) = newest.returned.as_ref().filter(|note| note.inputs == facts.inputs) else {
        return begin(facts, newest);
    };
    if note.kept.is_some() {
        return None;
    }
    if note.again {
        return Some(brake::upgrade(facts, newest, Reason::Again));
    }
    if !note.is_done(newest) {
        return Some(ReleaseStep::Return {
            note: note.clone(),
            to: note.to,
        });
    }
    Some(match &facts.objects {
        Objects::Unknown => ReleaseStep::LookAtObjects,
        Objects::Present => ReleaseStep::StayBack(note.clone()),
        // The chart would bring the objects that do not work. The newest revision is the good one.
        Objects::Missing(_) => ReleaseStep::Return {
            note: note.clone(),
            to: newest.revision,
        },
    })
}

fn begin(facts: &Facts, newest: &Newest) -> Option<ReleaseStep> {
    let unhealthy = facts.unhealthy.as_ref()?;
    let is_it = unhealthy.revision == newest.revision
        && newest.status == Status::Deployed
        && newest.inputs.as_ref() == Some(&facts.inputs);
    let to = newest.good.filter(|good| is_it && *good < newest.revision)?;
    let note = Returned {
        inputs: facts.inputs.clone(),
        revision: newest.revision,
        to,
        sentence: unhealthy.sentence.clone(),
        kept: None,
        again: false,
    };
    Some(ReleaseStep::Return { note, to })
}
