//! Decides the next step for one release from three states: wanted, rendered and observed.
//!
//! Facts cost a request or a child process, so they are fetched only when the decision needs them: the caller asks
//! [`decide`], does the step, adds the new fact and asks again. Must never guess: a state that another helm may be
//! working on is left alone until no helm can be working on it any more.

pub mod brake;
mod intent;
pub mod interception;
pub mod kinds;
mod likeness;
pub mod records;
pub mod refusal;
pub mod returned;
mod status;
mod step;
pub mod tenure;

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::digest::Digest;
use crate::failure::{Class, Failure};
pub use intent::{Intent, IntentKind};
pub use likeness::Likeness;
pub use status::Status;
pub use step::{Reason, ReleaseStep};

use brake::{Asked, Base, Held, Part};
use records::{OtherHelm, Records};
use returned::{Returned, Unhealthy};
use tenure::Tenure;

/// The annotation by which helm names the release of an object.
pub const RELEASE_NAME: &str = "meta.helm.sh/release-name";
/// The annotation by which helm names the namespace of an object's release.
pub const RELEASE_NAMESPACE: &str = "meta.helm.sh/release-namespace";
/// The annotation that can tell helm to leave an object in the cluster.
pub const POLICY: &str = "helm.sh/resource-policy";
/// The value of `POLICY` that tells helm to leave the object in the cluster.
pub const KEEP: &str = "keep";

/// The side that computes the changes of an object. A release stays with the side that first applied it, whichever
/// version of helm works on it: after a change of sides, fields would have two owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplyMethod {
    /// Helm compares two manifests and the object. This is the only way of helm 3, and the way of new releases.
    Client,
    /// The API server compares the owners of fields. Only helm 4 can do so.
    Server,
}

impl ApplyMethod {
    /// Parses helm 4's value. Helm 3 writes none.
    pub fn parse(word: &str) -> Self {
        if word == "ssa" { Self::Server } else { Self::Client }
    }
}

/// A trace of the ConfigMap on a release: the module's keys in the ConfigMap when the release was made. It shows later
/// whether a ConfigMap is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigTrace {
    /// The ConfigMap had neither values, global or for the module, nor a flag.
    Nothing,
    /// The digest of the values and flags in the ConfigMap.
    Said(Digest),
}

impl ConfigTrace {
    /// The written form of `Nothing`.
    const NOTHING: &str = "none";

    /// The trace of these values and flags; `null` stands for none.
    pub fn of(said: &Value) -> Self {
        let silent = said.as_object().is_some_and(|said| said.values().all(Value::is_null));
        if silent {
            Self::Nothing
        } else {
            Self::Said(Digest::of(said))
        }
    }

    /// Parses the written form; `None` for a form that this version does not know.
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

/// The newest revision of a release, from its labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Newest {
    /// The revision's number, from 1.
    pub revision: u32,
    /// The status that helm wrote.
    pub status: Status,
    /// Whether the operator may change the release: it carries our labels or those of the original, or a person has handed it over.
    pub ours: bool,
    /// The digest of the revision's inputs, if the revision was marked with one.
    pub inputs: Option<String>,
    /// Whether the release is marked as in maintenance: only people change its objects.
    pub unmanaged: bool,
    /// The checksum of the revision's rendering, if the revision was marked with one.
    pub checksum: Option<String>,
    /// The start of our helm child that began the revision. It identifies the child. Helm copies this mark to revisions
    /// that people make.
    pub begun: Option<u64>,
    /// The note about a held upgrade from this revision.
    pub held: Option<Held>,
    /// The digest of the deletions that a person has confirmed.
    pub confirmed: Option<String>,
    /// The last revision before this one whose objects did their work, if a return to it is wanted.
    pub good: Option<u32>,
    /// The note about an upgrade that was taken back, on this revision or on the last marked one.
    pub returned: Option<Returned>,
}

/// Whether the objects of the deployed revision exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Objects {
    /// The objects were not checked yet.
    Unknown,
    /// All objects of the revision exist.
    Present,
    /// At least the named object is missing.
    Missing(String),
}

/// The rendering of a chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The checksum of the whole manifest.
    pub checksum: String,
    /// The objects in the manifest.
    pub parts: BTreeSet<Part>,
}

/// How the newest revision of a release is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// The revision was read for this decision.
    Read,
    /// A watch shows the revision. Another program may have changed it since then, so nothing is written because of it.
    Watched(Notes),
}

/// Whether the notes on a revision are those of the wanted release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notes {
    /// Nothing is to be written.
    Current,
    /// A note is outdated, or fields of objects were altered.
    Outdated,
}

/// The facts that the decision may need. The caller sees to it that no helm child of ours works on the release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The release's name.
    pub release: String,
    /// The digest of everything that can change the result.
    pub inputs: String,
    /// The digests of the ConfigMap's sections that the inputs contain.
    pub asked: Asked,
    /// The version of the module's chart.
    pub version: Option<String>,
    /// Whether the module is in maintenance: only people change its objects.
    pub unmanaged: bool,
    /// The revision whose objects do not do their work, if the module wants to return from it.
    pub unhealthy: Option<Unhealthy>,
    /// The newest revision; `None` if there is no release.
    pub newest: Option<Newest>,
    /// How the newest revision is known.
    pub known: Known,
    /// The knowledge about damage of the records.
    pub records: Records,
    /// Whether the objects of the deployed revision exist.
    pub objects: Objects,
    /// The revision that helm would upgrade from; `None` while it is not read.
    pub base: Option<Base>,
    /// The rendering of the current chart; `None` while it is not rendered.
    pub rendered: Option<Rendered>,
    /// The comparison of the rendering with the newest revision; `None` while they are not compared.
    pub likeness: Option<Likeness>,
    /// The note about the last helm child of ours whose end was not observed.
    pub intent: Option<Intent>,
    /// Whether the last helm child of ours failed and left no revision: it may have changed objects without a record.
    pub torn: bool,
    /// Our own time as leader; `None` without an election.
    pub tenure: Option<Tenure>,
    /// The time for which the newest revision has been unfinished and unchanged, by our own observation on a monotonic clock.
    pub unchanged: Duration,
    /// The time for which a helm may work on a release.
    pub helm_timeout: Duration,
}

/// Decides the next step towards the release that the inputs describe. If only a watch shows the newest revision, the
/// step never writes or refuses anything.
pub fn decide(facts: &Facts) -> ReleaseStep {
    match (facts.known, certain_step(facts)) {
        (Known::Read, step)
        | (Known::Watched(Notes::Current), step @ ReleaseStep::Keep { .. })
        | (Known::Watched(_), step @ (ReleaseStep::LookAtObjects | ReleaseStep::LeaveAlone { .. })) => step,
        (Known::Watched(_), _) => ReleaseStep::Read,
    }
}

/// The next step if the newest revision was read.
fn certain_step(facts: &Facts) -> ReleaseStep {
    match next_step(facts) {
        step @ (ReleaseStep::Examine
        | ReleaseStep::Repair { .. }
        | ReleaseStep::LookAtBase
        | ReleaseStep::Amend
        | ReleaseStep::Hold(_)
        | ReleaseStep::Return { .. }
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
    // Nothing is written to a release that people maintain.
    if facts.records == Records::Doubtful && !(facts.unmanaged && newest.unmanaged) {
        return ReleaseStep::Examine;
    }
    if newest.status.is_unfinished() {
        return repair_or_wait(facts, newest);
    }
    if let Some(step) = of_maintenance(facts, newest) {
        return step;
    }
    if let Some(step) = returned::step(facts, newest) {
        return step;
    }
    match newest.status {
        Status::Deployed => {}
        // Nothing of the release exists, so nothing can be deleted.
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
    // A checksum counts only if we have marked the revision with inputs: helm copies it to revisions that other programs
    // make, and the original computes it in another way.
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

/// The step of a release that people maintain, or that changes hands; `None` if it is and stays the operator's.
fn of_maintenance(facts: &Facts, newest: &Newest) -> Option<ReleaseStep> {
    match (facts.unmanaged, newest.unmanaged) {
        // A failed revision is left alone, too: repeated attempts would be work on the objects.
        (true, true) => Some(ReleaseStep::LeaveAlone {
            revision: newest.revision,
        }),
        (true, false) => Some(brake::upgrade(facts, newest, Reason::Yielded)),
        (false, true) => Some(brake::upgrade(facts, newest, Reason::TakenBack)),
        (false, false) => None,
    }
}

/// The step, if all objects exist. The rendering equals the deployed one, so an upgrade deletes nothing.
fn with_objects(facts: &Facts, step: ReleaseStep) -> ReleaseStep {
    match &facts.objects {
        Objects::Unknown => ReleaseStep::LookAtObjects,
        Objects::Missing(object) => ReleaseStep::Upgrade(Reason::Absent(object.clone())),
        Objects::Present => step,
    }
}

/// The error for a release that another program installed.
pub fn foreign(release: &str) -> Failure {
    Failure::new(
        Class::Refused,
        format!("release '{release}' exists and was not installed by addon-operator, so it is not touched"),
    )
    .hint(format!(
        "uninstall or rename the release '{release}', or rename the module"
    ))
}

/// The reason for which the records must not be repaired before a removal; `None` if they may be repaired.
pub fn delay_of_repair(facts: &Facts) -> Option<Failure> {
    let newest = facts.newest.as_ref()?;
    if !newest.ours {
        return Some(foreign(&facts.release));
    }
    facts.left_to_another()
}

/// The reason for which the newest revision must not be removed yet; `None` if the removal may continue.
pub fn delay_of_removal(facts: &Facts) -> Option<Failure> {
    if let Some(failure) = delay_of_repair(facts) {
        return Some(failure);
    }
    let newest = facts.newest.as_ref()?;
    if !newest.status.is_unfinished() {
        return None;
    }
    (facts.other_helm() == OtherHelm::Possible).then(|| facts.at_work(newest))
}

fn repair_or_wait(facts: &Facts, newest: &Newest) -> ReleaseStep {
    if facts.other_helm() == OtherHelm::Excluded {
        return ReleaseStep::Repair {
            revision: newest.revision,
            left: newest.status,
        };
    }
    // The label alone may be wrong.
    if facts.records == Records::Unread {
        return ReleaseStep::Examine;
    }
    ReleaseStep::Refuse(facts.at_work(newest))
}

#[cfg(test)]
mod tests;
