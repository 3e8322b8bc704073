//! Holds upgrades that would delete objects without a request of people.
//!
//! Missing files of a module look the same as files that were removed on purpose. So an upgrade that deletes objects with
//! data, or most of a release, waits for a person, unless people changed the module's section or its chart has another
//! version.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};

use super::{Facts, Newest, Reason, ReleaseStep};
use crate::digest::Digest;
use crate::failure::{Class, Failure};

/// The annotation on objects that a release took over from another program. Helm's own annotation keeps these objects
/// in the cluster. Helm's labels do not tell them apart, because by now they carry these labels like all other objects.
pub const ADOPTED: &str = "addon-operator/adopted";

/// The number of objects without data that may be deleted without a request.
const TAKEN_UNASKED: usize = 2;
/// The number of deleted objects that a sentence about a held upgrade names.
const NAMED: usize = 5;
/// The number of deleted objects that the note of a held upgrade names.
const NOTED: usize = 200;

/// The digests of sections of the `ConfigMap`. They show whether people changed a section.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The module's section.
    pub section: String,
    /// The global section.
    pub global: String,
}

/// One object of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// The API group; empty for the core group.
    pub group: String,
    /// The kind of the object.
    pub kind: String,
    /// The namespace of the object; `None` for the release's namespace.
    pub namespace: Option<String>,
    /// The name of the object.
    pub name: String,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        write!(f, "{}/{}", self.kind, self.name)
    }
}

impl Part {
    /// Whether the deletion of the object deletes data that no chart can restore.
    pub fn holds_others(&self) -> bool {
        matches!(
            (self.group.as_str(), self.kind.as_str()),
            ("", "PersistentVolumeClaim" | "Namespace") | ("apiextensions.k8s.io", "CustomResourceDefinition")
        )
    }
}

/// The revision from which helm would upgrade: the deployed one, or else the newest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// The digests of the sections when the revision was made, if the revision is marked with them.
    pub asked: Option<Asked>,
    /// The digest of the deletions that a person has confirmed.
    pub confirmed: Option<String>,
    /// The version of the revision's chart.
    pub version: Option<String>,
    /// The revision's objects. Helm deletes them if they are not rendered any more.
    pub parts: BTreeSet<Part>,
    /// The paths of the chart's templates that are missing now or have other contents.
    pub altered: Vec<String>,
    /// Whether the revision names kinds of objects in a form that is no longer served. Helm cannot upgrade from such a
    /// revision.
    pub is_outdated: bool,
}

/// An upgrade that waits for a person. It is noted on the newest revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The digest of the upgrade's inputs.
    pub inputs: String,
    /// The digests of the ConfigMap's sections in these inputs.
    pub asked: Asked,
    /// The digest of all objects that the upgrade would delete. A confirmation counts for exactly these objects.
    pub digest: String,
    /// The names of the objects that the upgrade would delete, the most important first, up to a limit.
    pub takes: Vec<String>,
    /// The number of objects that the upgrade would delete.
    pub taken: usize,
    /// The number of objects in the release now.
    pub of: usize,
}

impl Held {
    /// Whether the note is about the upgrade with these facts.
    fn is_of(&self, facts: &Facts) -> bool {
        self.inputs == facts.inputs && self.asked == facts.asked
    }

    /// Whether a person has confirmed exactly the deletions of this upgrade.
    fn is_confirmed_by(&self, confirmed: Option<&String>) -> bool {
        confirmed == Some(&self.digest)
    }

    /// The failure that reports the held upgrade.
    pub fn failure(&self, release: &str) -> Failure {
        let mut report = format!(
            "the upgrade of release '{release}' is held: it would delete {} of {} objects ({}",
            self.taken,
            self.of,
            self.takes[..self.takes.len().min(NAMED)].join(", ")
        );
        if self.taken > NAMED {
            let _ = write!(report, " and {} more", self.taken - NAMED);
        }
        report.push_str("), although neither its section nor the version of its chart has changed");
        Failure::new(Class::Held, report)
            .hint("if files of the module are missing, put them back: it goes on by itself")
            .hint(format!(
                "if they are to go, allow it with `addon-operator module upgrade {release} --confirm`"
            ))
    }
}

/// The upgrade to hold, if its deletions need a confirmation.
fn holds(facts: &Facts, base: &Base, rendered: &BTreeSet<Part>) -> Option<Held> {
    let goes = base.parts.difference(rendered);
    let (heavy, light): (Vec<&Part>, Vec<&Part>) = goes.partition(|part| part.holds_others());
    let (taken, of) = (heavy.len() + light.len(), base.parts.len());
    let is_most = taken > TAKEN_UNASKED && taken * 2 > of;
    // Values may switch off all objects of a small chart on purpose. A directory that is copied by half looks the same,
    // except that templates differ.
    let is_all = taken > 0 && rendered.is_empty() && !base.altered.is_empty();
    if heavy.is_empty() && !is_most && !is_all {
        return None;
    }
    let all = || heavy.iter().chain(&light);
    let digest = all().fold(Digest::builder(), |digest, part| {
        digest.part(&part.group).part(part.to_string())
    });
    Some(Held {
        inputs: facts.inputs.clone(),
        asked: facts.asked.clone(),
        digest: digest.finish().to_string(),
        takes: all().take(NOTED).map(ToString::to_string).collect(),
        taken,
        of,
    })
}

/// Whether people asked for the deletions: the module's section or the version of its chart has changed, or the former
/// section is unknown. Global values do not count, because an edit of them concerns all modules.
fn is_asked_for(facts: &Facts, base: &Base) -> bool {
    let section = base.asked.as_ref().map(|asked| &asked.section);
    // A record that was made again may lack the version.
    let is_other_version = base.version.is_some() && base.version != facts.version;
    section != Some(&facts.asked.section) || is_other_version
}

/// The step for an upgrade of an existing release: hold it if it would delete objects without a request of people.
pub(super) fn upgrade(facts: &Facts, newest: &Newest, reason: Reason) -> ReleaseStep {
    if let Some(held) = held_before(facts, newest) {
        return ReleaseStep::Hold(held);
    }
    let Some(base) = &facts.base else {
        return ReleaseStep::LookAtBase;
    };
    if base.is_outdated {
        return ReleaseStep::Amend;
    }
    if is_asked_for(facts, base) {
        return ReleaseStep::Upgrade(reason);
    }
    let Some(rendered) = &facts.rendered else {
        return ReleaseStep::Render;
    };
    // After a failed upgrade a confirmation on the deployed revision counts, too.
    let confirmed = [newest.confirmed.as_ref(), base.confirmed.as_ref()];
    match holds(facts, base, &rendered.parts) {
        Some(held) if !confirmed.iter().any(|word| held.is_confirmed_by(*word)) => ReleaseStep::Hold(held),
        Some(_) | None => ReleaseStep::Upgrade(reason),
    }
}

/// The note about this upgrade, if it was held before and was not confirmed since.
pub(super) fn held_before(facts: &Facts, newest: &Newest) -> Option<Held> {
    let held = newest.held.as_ref()?;
    let is_confirmed = held.is_confirmed_by(newest.confirmed.as_ref());
    (held.is_of(facts) && !is_confirmed).then(|| held.clone())
}
