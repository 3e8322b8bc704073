//! The releases of the namespace, and the brake on removals. A release that is not ours is never touched.
//!
//! Knows no module: `certainty` decides whether a release may be removed.

pub(super) mod brake;

use std::collections::{BTreeMap, BTreeSet};

use self::brake::Brake;
use super::event::ReleaseSummary;
use crate::release::ConfigTrace;

/// The releases of the namespace, as far as removals depend on them.
#[derive(Debug, Clone, Default)]
pub(super) struct Removal {
    /// Whether each release is ours, by its name. `None` until the releases were listed.
    releases: Option<BTreeMap<String, bool>>,
    /// The traces of the ConfigMap on releases of ours, for the releases that carry one.
    traces: BTreeMap<String, ConfigTrace>,
    /// Releases of ours that may exist because a helm job failed. They are removed like other releases, but do not count in
    /// the brake's share.
    suspected: BTreeSet<String>,
    /// The brake, which limits the number of removals at one time.
    brake: Brake,
}

impl Removal {
    pub(super) fn listed(&mut self, releases: Vec<ReleaseSummary>) {
        let ours = releases.iter().filter(|release| release.ours);
        let traces = ours.filter_map(|release| Some((release.name.clone(), release.config?)));
        self.traces = traces.collect();
        self.releases = Some(
            releases
                .into_iter()
                .map(|release| (release.name, release.ours))
                .collect(),
        );
    }

    /// The traces of the ConfigMap on releases of ours, as they were at the start.
    pub(super) fn traces(&self) -> &BTreeMap<String, ConfigTrace> {
        &self.traces
    }

    pub(super) fn brake(&self) -> &Brake {
        &self.brake
    }

    pub(super) fn brake_mut(&mut self) -> &mut Brake {
        &mut self.brake
    }

    pub(super) fn is_listed(&self) -> bool {
        self.releases.is_some()
    }

    /// Whether any release is ours.
    pub(super) fn has_ours(&self) -> bool {
        self.releases.iter().flat_map(BTreeMap::values).any(|ours| *ours)
    }

    /// Whether a release of that name exists and is ours.
    pub(super) fn is_ours(&self, name: &str) -> bool {
        let known = self.releases.as_ref().and_then(|releases| releases.get(name));
        known.copied().unwrap_or_else(|| self.suspected.contains(name))
    }

    /// Notes that the named release of ours exists now.
    pub(super) fn exists(&mut self, name: &str) {
        if let Some(releases) = &mut self.releases {
            releases.insert(name.to_owned(), true);
        }
    }

    /// Notes that a helm job failed and may have left a release of ours behind.
    pub(super) fn may_exist(&mut self, name: &str) {
        self.suspected.insert(name.to_owned());
    }

    /// Forgets a foreign release of this name, because a helm job has worked on the name until its deadline: the job
    /// refuses a foreign release before it starts helm, so there is none any more.
    pub(super) fn forget_foreign(&mut self, name: &str) {
        if let Some(releases) = &mut self.releases
            && releases.get(name) == Some(&false)
        {
            releases.remove(name);
        }
    }

    /// Notes that this release does not exist any more.
    pub(super) fn gone(&mut self, name: &str) {
        self.suspected.remove(name);
        if let Some(releases) = &mut self.releases {
            releases.remove(name);
        }
    }

    /// The releases that are ours, by name.
    pub(super) fn ours(&self) -> impl DoubleEndedIterator<Item = &str> {
        let all = self.releases.iter().flatten();
        all.filter(|(_, ours)| **ours).map(|(name, _)| name.as_str())
    }
}
