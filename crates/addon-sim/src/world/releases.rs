//! Releases: what helm does for the operator, and the facts about it that checks need.
//!
//! The core decides about the next step of a release, as in the shell; the world carries it out. Must never miss a write
//! to a release that people maintain.

mod cut;
mod damage;
pub(super) mod halves;
mod removal;
mod returning;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use addon_core::failure::{Class, Failure};
use addon_core::operator::event::{ReleaseSummary, SyncAction, Synced};
use addon_core::release::brake::{Asked, Held};
use addon_core::release::records::Records;
use addon_core::release::returned::{Returned, Unhealthy};
use addon_core::release::{
    self, ConfigTrace, Facts, Intent, Known, Likeness, Newest, Notes, Objects, ReleaseStep, Status,
};
use addon_core::values::section::Maintenance;
use serde_json::Value;

use self::returning::Good;
use super::World;
use crate::setup::{ModuleSpec, ReleaseSpec};

/// The time for which a helm may work on a release, in seconds.
const HELM_TIMEOUT: u64 = 60;

/// One release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// Whether the release carries our labels.
    pub ours: bool,
    /// The status of the release's newest revision.
    pub status: Status,
    /// The newest revision.
    pub revision: u32,
    /// The values that the newest revision was made of.
    pub inputs: String,
    /// The marks on the newest revision, if there are any: the digest of its inputs, and the checksum of its rendering.
    marks: Option<(String, String)>,
    /// Whether the release is marked as maintained by people.
    pub unmanaged: bool,
    /// The digests of the sections that the release was made with, if the release is marked with them.
    asked: Option<Asked>,
    /// The last upgrade that was held.
    held: Option<Held>,
    /// The digest of the deletions that a person has confirmed.
    confirmed: Option<String>,
    /// Whether the objects of the newest revision do their work, as far as it was told.
    pub is_healthy: bool,
    /// Whether a person let the newest revision be tried again.
    pub is_retried: bool,
    good: Option<Good>,
    returned: Option<Returned>,
    /// The release's objects.
    pub objects: BTreeSet<String>,
    /// The release's objects that are missing.
    pub missing: BTreeSet<String>,
    /// The trace of the `ConfigMap` that the release was made with, if the release is marked with one.
    pub config: Option<ConfigTrace>,
    /// The time of the last write to the release, in seconds of the world.
    written: u64,
}

impl Release {
    pub(super) fn found(spec: &ReleaseSpec) -> Self {
        Self {
            ours: spec.ours,
            status: if spec.pending {
                Status::PendingUpgrade
            } else {
                Status::Deployed
            },
            revision: 1,
            inputs: "somebody's".to_owned(),
            marks: None,
            unmanaged: false,
            asked: None,
            held: None,
            confirmed: None,
            is_healthy: false,
            is_retried: false,
            good: None,
            returned: None,
            objects: BTreeSet::new(),
            missing: BTreeSet::new(),
            config: None,
            written: 0,
        }
    }

    pub(super) fn foreign() -> Self {
        Self::found(&ReleaseSpec::default())
    }

    fn newest(&self) -> Newest {
        Newest {
            revision: self.revision,
            status: self.status,
            ours: self.ours,
            inputs: self.marks.as_ref().map(|(inputs, _)| inputs.clone()),
            unmanaged: self.unmanaged,
            checksum: self.marks.as_ref().map(|(_, checksum)| checksum.clone()),
            begun: None,
            held: self.held.clone(),
            confirmed: self.confirmed.clone(),
            good: self.good.as_ref().map(|good| good.revision),
            returned: self.returned.clone(),
        }
    }

    /// Begins the next revision, as helm does.
    fn begin(&mut self, status: Status, now: u64) {
        self.revision += 1;
        self.status = status;
        (self.marks, self.held, self.confirmed) = (None, None, None);
        (self.is_healthy, self.is_retried) = (false, false);
        self.written = now;
    }
}

/// The owners of objects, and our intentions with releases.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    owners: BTreeMap<String, String>,
    intents: BTreeMap<String, Intent>,
    /// Releases that people uninstalled and that were not made again.
    pub taken: BTreeSet<String>,
    /// Releases that the operator wrote to although people maintained them before and after the write.
    pub meddled: Vec<String>,
    /// Releases of which we deleted objects without a request of people.
    pub lost: Vec<String>,
    /// The inputs of upgrades that were taken back, by release, until they change or a person asks for another try.
    spoilt: BTreeMap<String, String>,
    /// Releases that got an upgrade again although it was taken back.
    pub retried: Vec<String>,
}

/// The rendering of a chart.
struct Rendering {
    text: String,
    objects: BTreeSet<String>,
}

impl World {
    fn seconds(&self) -> u64 {
        self.clock / 1_000_000
    }

    pub(super) fn list(&mut self) -> Result<Vec<ReleaseSummary>, Failure> {
        self.fault("list", Class::Unavailable)?;
        // A new process learns the owners of objects only from releases.
        self.ledger.owners.clear();
        for (name, release) in self.releases.iter().filter(|(_, release)| release.ours) {
            for object in &release.objects {
                self.ledger.owners.entry(object.clone()).or_insert_with(|| name.clone());
            }
        }
        let summary = |(name, release): (&String, &Release)| ReleaseSummary {
            name: name.clone(),
            ours: release.ours,
            config: release.config,
        };
        Ok(self.releases.iter().map(summary).collect())
    }

    /// Takes all objects for a release, or none if one of them belongs to another release.
    fn claim(&mut self, module: &str, objects: &BTreeSet<String>) -> Result<(), Failure> {
        let owner = |object: &String| self.ledger.owners.get(object).filter(|owner| *owner != module);
        let taken = objects.iter().find_map(|object| Some((object, owner(object)?.clone())));
        let Some((object, owner)) = taken else {
            let claimed = objects.iter().map(|object| (object.clone(), module.to_owned()));
            self.ledger.owners.extend(claimed);
            return Ok(());
        };
        let report = format!("module '{module}' renders {object}, which belongs to module '{owner}'");
        if !self.releases.contains_key(&owner) {
            self.consists_of(&owner, &BTreeSet::new());
        }
        Err(Failure::new(Class::Invalid, report))
    }

    fn consists_of(&mut self, release: &str, objects: &BTreeSet<String>) {
        let kept = |object: &String, owner: &mut String| owner != release || objects.contains(object);
        self.ledger.owners.retain(kept);
    }

    fn observe(&self, facts: &mut Facts) {
        let release = self.releases.get(&facts.release);
        facts.newest = release.map(Release::newest);
        facts.known = Known::Read;
        facts.objects = Objects::Unknown;
        // The operator checks so often that it has seen the revision from its beginning.
        let age = release.map_or(0, |release| self.seconds().saturating_sub(release.written));
        facts.unchanged = Duration::from_secs(age);
        facts.intent = self.ledger.intents.get(&facts.release).cloned();
    }

    fn facts(&self, release: &str) -> Facts {
        let mut facts = Facts {
            release: release.to_owned(),
            inputs: String::new(),
            asked: Asked {
                section: String::new(),
                global: String::new(),
            },
            version: None,
            unmanaged: false,
            unhealthy: None,
            newest: None,
            known: Known::Read,
            records: Records::Examined,
            objects: Objects::Unknown,
            base: None,
            rendered: None,
            likeness: None,
            intent: None,
            torn: false,
            tenure: None,
            unchanged: Duration::ZERO,
            helm_timeout: Duration::from_secs(HELM_TIMEOUT),
        };
        self.observe(&mut facts);
        facts
    }

    /// Does the steps that the core names, up to the last one.
    fn approach(&mut self, facts: &mut Facts, rendering: &Rendering) -> Result<ReleaseStep, Failure> {
        loop {
            match release::decide(facts) {
                ReleaseStep::Read => self.observe(facts),
                ReleaseStep::LookAtObjects => {
                    let release = self.releases.get(&facts.release);
                    let missing = release.and_then(|release| release.missing.first().cloned());
                    facts.objects = missing.map_or(Objects::Present, Objects::Missing);
                }
                // Equal renderings have equal texts here.
                ReleaseStep::Compare => facts.likeness = Some(Likeness::Other),
                ReleaseStep::Render => {
                    self.claim(&facts.release, &rendering.objects)?;
                    facts.rendered = Some(halves::rendered(rendering));
                }
                ReleaseStep::LookAtBase => facts.base = self.releases.get(&facts.release).map(Release::base),
                ReleaseStep::Repair { .. } => {
                    let now = self.seconds();
                    if let Some(release) = self.releases.get_mut(&facts.release) {
                        release.status = Status::Failed;
                        release.written = now;
                    }
                    self.ledger.intents.remove(&facts.release);
                    self.observe(facts);
                }
                step => return Ok(step),
            }
        }
    }

    /// Whether the release is marked with the wanted sections, and no upgrade of it is held.
    fn notes(&self, facts: &Facts) -> Notes {
        let is_current = |release: &Release| release.asked.as_ref() == Some(&facts.asked) && release.held.is_none();
        if self.releases.get(&facts.release).is_some_and(is_current) {
            Notes::Current
        } else {
            Notes::Outdated
        }
    }

    fn rendering(&mut self, spec: &ModuleSpec, values: &Value, unmanaged: bool) -> (String, Rendering) {
        let all = values.to_string();
        let own = values.get(spec.key()).filter(|_| spec.ignores_global);
        let text = own.map_or_else(|| all.clone(), Value::to_string);
        let mut rendering = Rendering {
            text: format!("{unmanaged} {text}"),
            objects: spec.objects(),
        };
        if self.fails(&format!("half/{}", spec.name)) {
            rendering = halves::halved(rendering);
        }
        (format!("{unmanaged} {:?} {all}", rendering.objects), rendering)
    }

    /// Brings a release to the state of its values, with as little work as needed.
    pub(super) fn sync(
        &mut self,
        module: &str,
        values: &Value,
        config: &Value,
        maintenance: Maintenance,
        unhealthy: Option<Unhealthy>,
    ) -> Result<Synced, Failure> {
        let Some(spec) = self.files(module).cloned() else {
            return Err(Failure::new(Class::Invalid, "the chart is not there"));
        };
        if !spec.chart {
            return Ok(Synced::plain(SyncAction::Unchanged, 0));
        }
        let mut facts = self.facts(module);
        facts.unmanaged = maintenance == Maintenance::NoResourceReconciliation;
        facts.asked = halves::asked(&spec, config);
        facts.known = Known::Watched(self.notes(&facts));
        let (digest, rendering) = self.rendering(&spec, values, facts.unmanaged);
        (facts.inputs, facts.unhealthy) = (digest, unhealthy);
        self.note_inputs(&facts);
        match self.approach_and_return(&mut facts, &rendering)? {
            ReleaseStep::Keep { revision } | ReleaseStep::LeaveAlone { revision } => {
                if let Some(release) = self.releases.get_mut(module).filter(|release| !release.unmanaged) {
                    (release.asked, release.held) = (Some(facts.asked), None);
                }
                Ok(Synced::plain(SyncAction::Unchanged, revision))
            }
            ReleaseStep::Record { revision, checksum } => {
                self.note_write(&facts);
                if let Some(release) = self.releases.get_mut(module) {
                    release.inputs = values.to_string();
                    release.marks = Some((facts.inputs, checksum));
                    (release.asked, release.held) = (Some(facts.asked), None);
                    release.returned = None;
                }
                Ok(Synced::plain(SyncAction::Recorded, revision))
            }
            ReleaseStep::Upgrade(_) => self.upgrade(&facts, rendering, values, spec.returns),
            ReleaseStep::StayBack(note) => Err(note.failure(module)),
            ReleaseStep::Refuse(failure) => Err(failure),
            ReleaseStep::Hold(held) => {
                self.hold(module, &held);
                Err(held.failure(module))
            }
            step => Err(Failure::defect(format!("{step:?} is no last step"))),
        }
    }

    /// Marks a release with the trace of the `ConfigMap`. While people maintain it, only an upgrade marks it.
    pub(super) fn mark_config(&mut self, module: &str, config: ConfigTrace, action: SyncAction) {
        let release = self.releases.get_mut(module);
        if let Some(release) = release.filter(|release| !release.unmanaged || action == SyncAction::Upgraded) {
            release.config = Some(config);
        }
    }

    /// Notes a write to a release that people maintained before and after.
    fn note_write(&mut self, facts: &Facts) {
        if facts.unmanaged && facts.newest.as_ref().is_some_and(|newest| newest.unmanaged) {
            self.ledger.meddled.push(facts.release.clone());
        }
    }

    fn upgrade(
        &mut self,
        facts: &Facts,
        rendering: Rendering,
        values: &Value,
        returns: bool,
    ) -> Result<Synced, Failure> {
        let module = facts.release.as_str();
        self.claim(module, &rendering.objects)?;
        self.note_write(facts);
        self.note_loss(facts, &rendering);
        self.note_retry(facts);
        let (fails, now) = (self.fails(&format!("helm/{module}")), self.seconds());
        let release = self.releases.entry(module.to_owned()).or_insert_with(|| Release {
            revision: 0,
            ours: true,
            ..Release::foreign()
        });
        if returns {
            release.remember_good();
        }
        let is_retried = release.returned.as_ref().is_some_and(|note| note.again);
        release.begin(if fails { Status::Failed } else { Status::Deployed }, now);
        release.unmanaged = facts.unmanaged;
        self.ledger.taken.remove(module);
        if fails {
            return Err(Failure::new(Class::Unavailable, "helm upgrade failed"));
        }
        (release.is_retried, release.returned) = (is_retried, None);
        release.inputs = values.to_string();
        release.asked = Some(facts.asked.clone());
        release.marks = Some((facts.inputs.clone(), rendering.text));
        release.objects.clone_from(&rendering.objects);
        release.missing.clear();
        let revision = release.revision;
        self.consists_of(module, &rendering.objects);
        Ok(Synced::plain(SyncAction::Upgraded, revision))
    }
}
