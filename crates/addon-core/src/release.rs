//! The next step for one release, from its wanted, rendered and observed states.
//!
//! Facts cost something (a request, a child process), so they are fetched only when the decision asks for them: the
//! caller asks [`decide`], does what it says, adds what it learnt and asks again. Must never guess: a state that could
//! be the work of another helm is left alone until nobody can be working on it any more.

pub mod brake;
mod likeness;
mod status;
mod step;
pub mod tenure;

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::Digest;
use crate::failure::{Class, Failure};
pub use likeness::Likeness;
pub use status::Status;
pub use step::{Reason, ReleaseStep};

use brake::{Asked, Base, Held, Part};
use tenure::{Holder, Tenure};

/// The side that computes the changes of an object. A release stays with the side that first applied it, whichever helm
/// comes to work on it: a change in between leaves fields with two owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplyMethod {
    /// Helm, by comparing two manifests and the object: all that helm 3 knows, and what new releases get.
    Client,
    /// The API server, by the owners of the fields; helm 4 can do so.
    Server,
}

impl ApplyMethod {
    /// Parses helm 4's value; helm 3 writes none.
    pub fn parse(word: &str) -> Self {
        if word == "ssa" { Self::Server } else { Self::Client }
    }
}

/// The values of the ConfigMap for a module when its release was made: kept on the release, they show that a ConfigMap
/// is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigTrace {
    /// Nothing: neither values, global or its own, nor a flag.
    Nothing,
    /// Something with this digest.
    Said(Digest),
}

impl ConfigTrace {
    /// How `Nothing` is written.
    const NOTHING: &str = "none";

    /// Of the values of the ConfigMap; `null` without any.
    pub fn of(said: &Value) -> Self {
        let silent = said.as_object().is_some_and(|said| said.values().all(Value::is_null));
        if silent {
            Self::Nothing
        } else {
            Self::Said(Digest::of(said))
        }
    }

    /// Parses the written form; `None` for one that this version does not know.
    pub fn parse(text: &str) -> Option<Self> {
        if text == Self::NOTHING {
            return Some(Self::Nothing);
        }
        Digest::try_from(text.to_owned()).ok().map(Self::Said)
    }
}

impl fmt::Display for ConfigTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str(Self::NOTHING),
            Self::Said(digest) => digest.fmt(f),
        }
    }
}

/// The newest revision of a release, as described by its labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Newest {
    /// Its number, from 1.
    pub revision: u32,
    /// Its status in helm.
    pub status: Status,
    /// It carries our labels, or those of the original operator.
    pub ours: bool,
    /// The digest of the inputs it was made of, if this very revision was marked with one.
    pub inputs: Option<String>,
    /// It is marked as in maintenance: only people change its objects.
    pub unmanaged: bool,
    /// The checksum of its rendering, if this very revision was marked with one.
    pub checksum: Option<String>,
    /// Which helm child of ours began it, by when that was started. Helm copies this to revisions that people make.
    pub begun: Option<u64>,
    /// The upgrade from it that waits for a person, as it was noted.
    pub held: Option<Held>,
    /// The digest of the objects that a person lets go.
    pub confirmed: Option<String>,
}

/// The purpose of a helm child of ours. Written before the start, cleared after the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// Its action.
    pub kind: IntentKind,
    /// The newest revision before it; 0 without a release.
    pub revision_before: u32,
    /// The digest of its inputs; empty for a removal.
    #[serde(default)]
    pub digest: String,
    /// When it was started, in seconds since 1970.
    pub started: u64,
    /// The leadership under which it was started; none without an election, or if an older version wrote the note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
}

/// The two things a helm child of ours does to a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IntentKind {
    /// Install or upgrade.
    Upgrade,
    /// Remove.
    Uninstall,
}

impl Intent {
    /// Whether this child left the unfinished revision: a revision of that number may also have been begun by a person,
    /// after the child had been ended and before it had written anything. Children of older versions left no sign.
    fn explains(&self, newest: &Newest) -> bool {
        match self.kind {
            IntentKind::Upgrade => {
                newest.revision == self.revision_before.saturating_add(1)
                    && newest.begun.is_none_or(|begun| begun == self.started)
            }
            IntentKind::Uninstall => newest.revision == self.revision_before && newest.status == Status::Uninstalling,
        }
    }

    /// Whether a child that failed left no revision of its own, as far as the newest one tells; `None` is no release, or a
    /// release that cannot be read.
    pub fn left_nothing(&self, newest: Option<u32>) -> bool {
        newest.is_none_or(|newest| newest <= self.revision_before)
    }
}

/// Whether the objects of the deployed revision are known to exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Objects {
    /// Not checked yet.
    Unknown,
    /// All are there.
    Present,
    /// At least this one is not.
    Missing(String),
}

/// The rendering of a chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The checksum of all of it.
    pub checksum: String,
    /// The objects.
    pub parts: BTreeSet<Part>,
}

/// Everything the decision may rest on. The caller holds the release: no helm child of ours works on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The release's name.
    pub release: String,
    /// The digest of everything that can change the outcome.
    pub inputs: String,
    /// The sections of people that these inputs were made of.
    pub asked: Asked,
    /// The version of the chart.
    pub version: Option<String>,
    /// The module is in maintenance: only people change its objects.
    pub unmanaged: bool,
    /// The newest revision, `None` if there is no release.
    pub newest: Option<Newest>,
    /// The objects of the deployed revision.
    pub objects: Objects,
    /// The revision that helm would upgrade from, `None` while it is not read.
    pub base: Option<Base>,
    /// The rendering of the chart now, `None` while it is not rendered.
    pub rendered: Option<Rendered>,
    /// How it compares with the newest revision, `None` while they are not compared.
    pub likeness: Option<Likeness>,
    /// The last helm child of ours that was not seen to end.
    pub intent: Option<Intent>,
    /// The last helm child of ours failed and left no revision: its changes of objects are not recorded.
    pub torn: bool,
    /// Our own time as leader, `None` without an election.
    pub tenure: Option<Tenure>,
    /// For how long we have seen the newest revision unfinished and unchanged, by our own observation on a clock that
    /// cannot be set.
    pub unchanged: Duration,
    /// How long any helm may work on a release.
    pub helm_timeout: Duration,
}

/// The next step towards the release that the inputs describe.
pub fn decide(facts: &Facts) -> ReleaseStep {
    match next_step(facts) {
        step @ (ReleaseStep::Repair { .. }
        | ReleaseStep::LookAtBase
        | ReleaseStep::Hold(_)
        | ReleaseStep::Upgrade(_)) => facts.left_to_another().map_or(step, ReleaseStep::Refuse),
        step => step,
    }
}

fn next_step(facts: &Facts) -> ReleaseStep {
    let Some(newest) = &facts.newest else {
        return ReleaseStep::Upgrade(Reason::NotInstalled);
    };
    if !newest.ours {
        return ReleaseStep::Refuse(foreign(&facts.release));
    }
    if newest.status.is_unfinished() {
        return repair_or_wait(facts, newest);
    }
    match (facts.unmanaged, newest.unmanaged) {
        // Also one that could not be brought to where it should be: trying again and again would be work on it.
        (true, true) => {
            return ReleaseStep::LeaveAlone {
                revision: newest.revision,
            };
        }
        (true, false) => return brake::upgrade(facts, newest, Reason::Yielded),
        (false, true) => return brake::upgrade(facts, newest, Reason::TakenBack),
        (false, false) => {}
    }
    match newest.status {
        Status::Deployed => {}
        // Nothing of it is there.
        Status::Uninstalled => return ReleaseStep::Upgrade(Reason::Last(newest.status)),
        status => return brake::upgrade(facts, newest, Reason::Last(status)),
    }
    if facts.torn {
        return brake::upgrade(facts, newest, Reason::Torn);
    }
    if newest.inputs.as_deref() == Some(facts.inputs.as_str()) {
        let revision = newest.revision;
        return with_objects(facts, ReleaseStep::Keep { revision });
    }
    let Some(rendered) = &facts.rendered else {
        return brake::held_before(facts, newest).map_or(ReleaseStep::Render, ReleaseStep::Hold);
    };
    // A checksum counts on a revision that we have marked: helm copies it to those that other programs make, and the
    // original works it out in another way.
    let is_known = newest.inputs.is_some() && newest.checksum.as_ref() == Some(&rendered.checksum);
    match facts.likeness {
        _ if is_known => {}
        None => return ReleaseStep::Compare,
        Some(Likeness::Other) => return brake::upgrade(facts, newest, Reason::Changed),
        Some(Likeness::Same) => {}
    }
    let checksum = newest.checksum.as_ref().unwrap_or(&rendered.checksum);
    with_objects(
        facts,
        ReleaseStep::Record {
            revision: newest.revision,
            checksum: checksum.clone(),
        },
    )
}

/// The step, if the objects exist. A rendering that equals the deployed one deletes nothing.
fn with_objects(facts: &Facts, step: ReleaseStep) -> ReleaseStep {
    match &facts.objects {
        Objects::Unknown => ReleaseStep::LookAtObjects,
        Objects::Missing(object) => ReleaseStep::Upgrade(Reason::Absent(object.clone())),
        Objects::Present => step,
    }
}

/// The refusal to touch a release that another program installed.
pub fn foreign(release: &str) -> Failure {
    Failure::new(
        Class::Refused,
        format!("release '{release}' exists and was not installed by addon-operator, so it is not touched"),
    )
    .hint(format!(
        "uninstall or rename the release '{release}', or rename the module"
    ))
}

/// The refusal of a removal because of the newest revision, `None` if it may continue.
pub fn delay_of_removal(facts: &Facts) -> Option<Failure> {
    let newest = facts.newest.as_ref()?;
    if !newest.ours {
        return Some(foreign(&facts.release));
    }
    if let Some(failure) = facts.left_to_another() {
        return Some(failure);
    }
    if !newest.status.is_unfinished() {
        return None;
    }
    match repair_or_wait(facts, newest) {
        ReleaseStep::Refuse(failure) => Some(failure),
        _ => None,
    }
}

fn repair_or_wait(facts: &Facts, newest: &Newest) -> ReleaseStep {
    let left_by_us = facts.intent.as_ref().is_some_and(|intent| intent.explains(newest));
    if left_by_us || facts.unchanged >= facts.helm_timeout {
        return ReleaseStep::Repair {
            revision: newest.revision,
            left: newest.status,
        };
    }
    let (age, rest) = (
        facts.unchanged.as_secs(),
        (facts.helm_timeout.saturating_sub(facts.unchanged)).as_secs(),
    );
    ReleaseStep::Refuse(
        Failure::new(
            Class::Unavailable,
            format!(
                "release '{}' is being changed by another helm: revision {} is {}, unchanged since we have looked for {age} s",
                facts.release, newest.revision, newest.status
            ),
        )
        .hint(format!(
            "if no helm is at work, it is taken over in {rest} s, when the helm timeout has passed"
        )),
    )
}

#[cfg(test)]
mod tests;
