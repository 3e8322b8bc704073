//! Damage among helm's records of a release, and the remedy for each damaged record.
//!
//! Helm finds records by their labels, and works by their contents. Must never name a remedy that touches an object of the
//! release, or one by which a record is lost.

use std::fmt;

use super::Status;
use crate::failure::{Class, Failure};

const PREFIX: &str = "sh.helm.release.v1.";

/// The knowledge about damage of the release's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Records {
    /// The contents of the records were not examined.
    Unread,
    /// Names, labels, or contents that could not be read show damage.
    Doubtful,
    /// The records were examined, and were repaired where the remedy is certain.
    Examined,
}

/// The release and the revision in helm's name of a Secret; `None` for any other name.
pub fn place(secret: &str) -> Option<(&str, u32)> {
    let (release, number) = secret.strip_prefix(PREFIX)?.rsplit_once(".v")?;
    let revision: u32 = number.parse().ok()?;
    (revision.to_string() == number).then_some((release, revision))
}

/// The name of a record's Secret, and the labels by which helm finds it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tag {
    /// The name of the Secret.
    pub secret: String,
    /// The label `owner`.
    pub owner: Option<String>,
    /// The label `name`.
    pub name: Option<String>,
    /// The label `version`.
    pub version: Option<String>,
    /// The label `status`.
    pub status: Option<String>,
}

impl Tag {
    /// The revision in the name of the Secret, if it is one of the release.
    pub fn revision(&self, release: &str) -> Option<u32> {
        let (of, revision) = place(&self.secret)?;
        (of == release).then_some(revision)
    }

    fn is_plain(&self, release: &str) -> bool {
        let revision = self.revision(release).map(|revision| revision.to_string());
        self.owner.as_deref() == Some("helm")
            && self.name.as_deref() == Some(release)
            && self.version == revision
            && revision.is_some()
    }

    fn status(&self) -> Status {
        Status::parse(self.status.as_deref().unwrap_or_default())
    }

    /// The labels that differ from those of this revision and status.
    fn wrong(&self, release: &str, revision: u32, status: Status) -> Vec<&'static str> {
        let number = revision.to_string();
        let pairs = [
            ("owner", &self.owner, "helm"),
            ("name", &self.name, release),
            ("version", &self.version, &number),
            ("status", &self.status, status.word()),
        ];
        let wrong = pairs
            .into_iter()
            .filter(|(_, found, right)| found.as_deref() != Some(right));
        wrong.map(|(label, _, _)| label).collect()
    }
}

/// Whether the names and the labels of all records of a release show damage, so that the contents have to be examined.
/// If the newest record is superseded, a newer record is gone.
pub fn is_doubtful(release: &str, tags: &[Tag]) -> bool {
    let deployed = tags.iter().filter(|tag| tag.status() == Status::Deployed).count();
    let newest = tags.iter().max_by_key(|tag| tag.revision(release));
    deployed > 1
        || tags.iter().any(|tag| !tag.is_plain(release))
        || newest.is_some_and(|newest| newest.status() == Status::Superseded)
}

/// The facts in the contents of a record that helm uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// The name of the release.
    pub release: String,
    /// The number of the revision.
    pub revision: u32,
    /// The status.
    pub status: Status,
}

/// A record as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The name and the labels.
    pub tag: Tag,
    /// The contents, or the reason for which they cannot be read.
    pub payload: Result<Payload, String>,
    /// Whether the operator has noted the objects of the revision on the Secret. It does so once the revision is deployed.
    pub is_noted: bool,
}

/// The work that is to be done with the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The release is brought up to date: the chart renders all its objects.
    Upgrade,
    /// The release is removed: objects that no record names stay for ever.
    Removal,
}

/// Whether another helm may be working on the release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherHelm {
    /// A helm may still write the record of an unfinished revision.
    Possible,
    /// No helm is at work.
    Excluded,
}

/// The damage of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flaw {
    /// The contents cannot be read, for this reason.
    Unreadable(String),
    /// The contents are those of another record.
    Misplaced(Payload),
    /// These labels differ from the contents.
    Mislabelled(Vec<&'static str>),
    /// The contents have this status, although the operator has found the revision deployed after helm's last write.
    Restated(Status),
    /// A newer revision is deployed, too.
    DeployedTwice,
    /// Helm takes the Secret for a record, but would look for that record under another name.
    Copied,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(reason) => write!(f, "its contents cannot be read ({reason})"),
            Self::Misplaced(payload) => write!(
                f,
                "it holds revision {} of release '{}'",
                payload.revision, payload.release
            ),
            Self::Mislabelled(labels) => write!(f, "labels differ from its contents: {}", labels.join(", ")),
            Self::Restated(status) => write!(f, "its contents say {status}, but it was deployed"),
            Self::DeployedTwice => f.write_str("a newer revision is deployed, too"),
            Self::Copied => f.write_str("it is a copy under another name"),
        }
    }
}

/// The remedy for a damaged record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Set the labels by the contents.
    Relabel(Status),
    /// Set the status, in the contents and the labels.
    Restate(Status),
    /// Make the record again, from the objects that are noted on it and the next older record, with this status.
    Remake(Status),
    /// Keep the Secret under a name and with labels that helm does not look for.
    PutAside,
    /// Nothing yet, because another helm may be at work.
    Wait,
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Relabel(_) => f.write_str("labelled by its contents"),
            Self::Restate(status) => write!(f, "marked as {status}"),
            Self::Remake(_) => f.write_str("made again from the list of objects on it, and the broken contents kept"),
            Self::PutAside => f.write_str("put aside under another name"),
            Self::Wait => f.write_str("left alone while another helm may be at work"),
        }
    }
}

/// Whether a remedy needs a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// The remedy is certain.
    Needless,
    /// A person must confirm it.
    Needed,
}

/// A damaged record with its remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The name of the Secret.
    pub secret: String,
    /// The revision by the name of the Secret; `None` for a copy.
    pub revision: Option<u32>,
    /// The damage.
    pub flaw: Flaw,
    /// The remedy.
    pub remedy: Remedy,
    /// Whether the remedy needs a person.
    pub consent: Consent,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            secret, flaw, remedy, ..
        } = self;
        write!(f, "Secret '{secret}': {flaw}; {remedy}")
    }
}

/// The result of an examination.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Examined {
    /// The damaged records.
    pub findings: Vec<Finding>,
    /// Whether the newest record is lost, so that the release may have objects that no record names.
    pub is_lossy: bool,
}

impl Examined {
    /// The failure for remedies that a person must confirm.
    pub fn refusal(&self, release: &str) -> Option<Failure> {
        let needed = self
            .findings
            .iter()
            .filter(|finding| finding.consent == Consent::Needed);
        let needed: Vec<String> = needed
            .map(|finding| format!("Secret '{}': {}", finding.secret, finding.flaw))
            .collect();
        let report = format!(
            "the records of release '{release}' are damaged, and their repair may leave objects behind: {}",
            needed.join("; ")
        );
        let hint =
            format!("`addon-operator module release repair {release}` shows the repair, and does it with --confirm");
        (!needed.is_empty()).then(|| Failure::new(Class::Damaged, report).hint(hint))
    }
}

/// Examines all records of a release.
pub fn examine(release: &str, records: &[Record], purpose: Purpose, other: OtherHelm) -> Examined {
    let history = History {
        release,
        records,
        newest: records.iter().filter_map(|record| record.tag.revision(release)).max(),
    };
    let mut findings: Vec<Finding> = records
        .iter()
        .filter_map(|record| history.finding(record, purpose, other))
        .collect();
    findings.sort_by_key(|finding| finding.revision);
    let is_newest = |revision: Option<u32>| revision.is_some() && revision == history.newest;
    let is_aside = |finding: &Finding| finding.remedy == Remedy::PutAside && is_newest(finding.revision);
    let is_gone = history
        .sound()
        .any(|found| is_newest(Some(found.revision)) && found.status == Status::Superseded);
    Examined {
        is_lossy: is_gone || findings.iter().any(is_aside),
        findings,
    }
}

/// All records of a release.
struct History<'a> {
    release: &'a str,
    records: &'a [Record],
    newest: Option<u32>,
}

impl<'a> History<'a> {
    /// The payload, if it belongs to the revision in the Secret's name.
    fn sound_payload(&self, record: &'a Record) -> Option<&'a Payload> {
        let payload = record.payload.as_ref().ok()?;
        let is_right = payload.release == self.release && record.tag.revision(self.release) == Some(payload.revision);
        is_right.then_some(payload)
    }

    fn sound(&self) -> impl Iterator<Item = &'a Payload> {
        self.records.iter().filter_map(|record| self.sound_payload(record))
    }

    fn is_deployed_after(&self, revision: u32) -> bool {
        self.sound()
            .any(|found| found.status == Status::Deployed && found.revision > revision)
    }

    fn finding(&self, record: &Record, purpose: Purpose, other: OtherHelm) -> Option<Finding> {
        let revision = record.tag.revision(self.release);
        let (flaw, remedy, consent) = match (revision, self.sound_payload(record)) {
            (None, _) => (Flaw::Copied, Remedy::PutAside, self.consent_to_copy(record)),
            (Some(revision), None) => {
                let flaw = match &record.payload {
                    Err(reason) => Flaw::Unreadable(reason.clone()),
                    Ok(payload) => Flaw::Misplaced(payload.clone()),
                };
                let remedy = self.remedy_for_broken(record, revision, other);
                (flaw, remedy, self.consent_to(remedy, revision, purpose))
            }
            (Some(revision), Some(payload)) => {
                let (flaw, remedy) = self.contradiction(record, revision, payload.status)?;
                (flaw, remedy, Consent::Needless)
            }
        };
        Some(Finding {
            secret: record.tag.secret.clone(),
            revision,
            flaw,
            remedy,
            consent,
        })
    }

    /// The contradiction between a readable record and its labels, or between that record and a newer one.
    fn contradiction(&self, record: &Record, revision: u32, status: Status) -> Option<(Flaw, Remedy)> {
        if status == Status::Deployed && self.is_deployed_after(revision) {
            return Some((Flaw::DeployedTwice, Remedy::Restate(Status::Superseded)));
        }
        // Each write of helm drops the note, which the operator makes on deployed revisions.
        let was_deployed = record.is_noted && record.tag.status() == Status::Deployed;
        if was_deployed && status != Status::Deployed && !self.is_deployed_after(revision) {
            return Some((Flaw::Restated(status), Remedy::Restate(Status::Deployed)));
        }
        let wrong = record.tag.wrong(self.release, revision, status);
        (!wrong.is_empty()).then_some((Flaw::Mislabelled(wrong), Remedy::Relabel(status)))
    }

    /// The remedy for a record without contents of its own. Helm uses only the newest record and the deployed one, so
    /// these two are made again if it is certain which objects they named.
    fn remedy_for_broken(&self, record: &Record, revision: u32, other: OtherHelm) -> Remedy {
        let (is_newest, status) = (self.newest == Some(revision), record.tag.status());
        if is_newest && status.is_unfinished() && other == OtherHelm::Possible {
            return Remedy::Wait;
        }
        let is_base = status == Status::Deployed && !self.is_deployed_after(revision);
        if !record.is_noted || !(is_newest || is_base) {
            return Remedy::PutAside;
        }
        Remedy::Remake(match status {
            // The objects are noted once a revision is deployed.
            Status::Unknown => Status::Deployed,
            status if status.is_unfinished() => Status::Failed,
            status => status,
        })
    }

    /// Whether the remedy needs a person: a removal without the newest record would leave objects behind.
    fn consent_to(&self, remedy: Remedy, revision: u32, purpose: Purpose) -> Consent {
        let is_lost = remedy == Remedy::PutAside && self.newest == Some(revision);
        match purpose {
            Purpose::Removal if is_lost => Consent::Needed,
            Purpose::Removal | Purpose::Upgrade => Consent::Needless,
        }
    }

    /// Whether the remedy for a copy needs a person: the copy may be the only record left of its revision.
    fn consent_to_copy(&self, record: &Record) -> Consent {
        let is_spare = record.payload.as_ref().map_or(true, |copy| {
            self.sound()
                .any(|found| (&found.release, found.revision) == (&copy.release, copy.revision))
        });
        if is_spare { Consent::Needless } else { Consent::Needed }
    }
}

#[cfg(test)]
mod tests;
