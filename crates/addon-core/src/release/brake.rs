//! The objects that an upgrade would take away, and whether people asked for that.
//!
//! Files of a module that are missing look like files that were removed on purpose. So an upgrade that takes away what
//! cannot be had back, or most of a release, waits for a person, unless people changed what the release is made of.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};

use super::{Facts, Newest, Reason, ReleaseStep};
use crate::digest::Digest;
use crate::failure::{Class, Failure};

/// Stands on objects that a release took over from another maker, beside helm's own word to keep them: helm's marks are on
/// them by then as on all others.
pub const ADOPTED: &str = "addon-operator/adopted";

/// As many objects may go as their author likes, if none of them holds anything.
const TAKEN_UNASKED: usize = 2;
/// How many objects a sentence names.
const NAMED: usize = 5;
/// How many objects a note names.
const NOTED: usize = 200;

/// Digests of the sections of the `ConfigMap`, by which a change by people is noticed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The module's own section.
    pub section: String,
    /// The global one.
    pub global: String,
}

/// One object of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// Its API group; empty for the core's.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Where it is put, unless that is where the release is.
    pub namespace: Option<String>,
    /// Its name.
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
    /// Its deletion loses data that no chart can restore.
    pub fn holds_others(&self) -> bool {
        matches!(
            (self.group.as_str(), self.kind.as_str()),
            ("", "PersistentVolumeClaim" | "Namespace") | ("apiextensions.k8s.io", "CustomResourceDefinition")
        )
    }
}

/// The revision from which helm would upgrade: the deployed one, or the newest if none is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// The digests of the sections when it was made, if it is marked with them.
    pub asked: Option<Asked>,
    /// The digest of the objects that a person lets go from it.
    pub confirmed: Option<String>,
    /// The version of its chart.
    pub version: Option<String>,
    /// Its objects that are deleted when they are not rendered any more.
    pub parts: BTreeSet<Part>,
    /// Templates of its chart, by their paths, that are missing now or have other contents.
    pub altered: Vec<String>,
}

/// An upgrade that waits for a person. It is noted on the newest revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The digest of its inputs.
    pub inputs: String,
    /// The digests of the sections.
    pub asked: Asked,
    /// A digest of all objects that it would delete: a confirmation counts for exactly these.
    pub digest: String,
    /// Those objects, as far as they can be named, the most important first.
    pub takes: Vec<String>,
    /// How many they are.
    pub taken: usize,
    /// How many the release has.
    pub of: usize,
}

impl Held {
    /// Whether the note is about this very upgrade.
    fn is_of(&self, facts: &Facts) -> bool {
        self.inputs == facts.inputs && self.asked == facts.asked
    }

    /// A person has seen the objects that it would delete, and confirmed.
    fn is_confirmed_by(&self, confirmed: Option<&String>) -> bool {
        confirmed == Some(&self.digest)
    }

    /// The failure that reports it.
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

/// The reason to hold the upgrade from this revision to the rendering, if there is one.
fn holds(facts: &Facts, base: &Base, rendered: &BTreeSet<Part>) -> Option<Held> {
    let goes = base.parts.difference(rendered);
    let (heavy, light): (Vec<&Part>, Vec<&Part>) = goes.partition(|part| part.holds_others());
    let (taken, of) = (heavy.len() + light.len(), base.parts.len());
    let is_most = taken > TAKEN_UNASKED && taken * 2 > of;
    // Values may switch off all that a small chart renders; a directory that is copied by half looks the same.
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

/// The module's section or its chart's version has changed, or its former section is unknown: the deletions are
/// intended. Global values do not count: an edit of them is about all modules.
fn is_asked_for(facts: &Facts, base: &Base) -> bool {
    let section = base.asked.as_ref().map(|asked| &asked.section);
    section != Some(&facts.asked.section) || base.version != facts.version
}

/// An upgrade of an existing release, unless it would delete objects without a request of people.
pub(super) fn upgrade(facts: &Facts, newest: &Newest, reason: Reason) -> ReleaseStep {
    if let Some(held) = held_before(facts, newest) {
        return ReleaseStep::Hold(held);
    }
    let Some(base) = &facts.base else {
        return ReleaseStep::LookAtBase;
    };
    if is_asked_for(facts, base) {
        return ReleaseStep::Upgrade(reason);
    }
    let Some(rendered) = &facts.rendered else {
        return ReleaseStep::Render;
    };
    // A confirmation counts again after an upgrade that failed.
    let confirmed = [newest.confirmed.as_ref(), base.confirmed.as_ref()];
    match holds(facts, base, &rendered.parts) {
        Some(held) if !confirmed.iter().any(|word| held.is_confirmed_by(*word)) => ReleaseStep::Hold(held),
        Some(_) | None => ReleaseStep::Upgrade(reason),
    }
}

/// The very same upgrade was held before, and is not confirmed.
pub(super) fn held_before(facts: &Facts, newest: &Newest) -> Option<Held> {
    let held = newest.held.as_ref()?;
    let is_confirmed = held.is_confirmed_by(newest.confirmed.as_ref());
    (held.is_of(facts) && !is_confirmed).then(|| held.clone())
}
