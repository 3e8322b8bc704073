//! Decides whether the release and the hooks of a module may be removed. Needs positive evidence, and removes a module
//! only after the modules that depend on it.
//!
//! Must never take the silence of a source for evidence before all sources were asked.

use std::collections::BTreeSet;

use names::{HookName, ModuleName};
use serde_json::Value;

use super::bindings::Bindings;
use super::config::Config;
use super::config::lost::LOST;
use super::directories::Directories;
use super::lanes::Lanes;
use super::modules::{Modules, Unit};
use super::policy::Mode;
use super::query::{HeldBy, HeldRemoval};
use super::removal::Removal;
use super::stand_ins::StandIns;
use super::supply::Supply;
use super::verdicts::Verdicts;
use crate::module::enabling::{Opinions, Source};
use crate::module::graph;
use crate::module::lifecycle::Lifecycle;
use crate::values::section::Entry;

/// The reason for which a removal waits for a trial. It follows the module's name in a sentence.
const TRIAL: &str = "this version of the operator is on trial, and the one before could not take it back";

/// A view of the state machines that a decision about a removal depends on, at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Certainty<'a> {
    pub(super) bindings: &'a Bindings,
    pub(super) lanes: &'a Lanes,
    pub(super) modules: &'a Modules,
    pub(super) directories: &'a Directories,
    pub(super) config: &'a Config,
    pub(super) verdicts: &'a Verdicts,
    pub(super) removal: &'a Removal,
    pub(super) supply: &'a Supply,
    pub(super) stand_ins: &'a StandIns,
    /// Whether this version of the operator is on trial.
    pub(super) on_trial: bool,
    /// The release that the operator never removes (`HELM_IGNORE_RELEASE`).
    pub(super) ignored: Option<&'a str>,
}

/// Which modules and releases exist, and which sources name them.
impl<'a> Certainty<'a> {
    fn opinions(self, name: &ModuleName) -> Opinions<'a> {
        self.verdicts.opinions(self.modules, self.config, self.supply, name)
    }

    /// Releases of ours whose modules are gone, without the ignored release.
    pub(super) fn orphans(self) -> impl Iterator<Item = &'a str> {
        // Modules and releases are both in the order of names. This is asked after each event, and one walk through
        // both lists is cheaper than a search for each release.
        let mut modules = self.modules.iter().map(|unit| unit.name().as_str()).peekable();
        let is_orphan = move |name: &&str| {
            while modules.next_if(|module| module < name).is_some() {}
            modules.peek() != Some(name) && Some(*name) != self.ignored
        };
        self.removal.ours().filter(is_orphan)
    }

    /// The existing releases that no source names, whether they may be removed yet or not.
    pub(super) fn unspoken(self) -> BTreeSet<String> {
        let modules: Vec<&str> = if self.verdicts.is_known() {
            let refused = self.verdicts.refused();
            let silent = refused.filter(|(name, verdict)| {
                verdict.source == Source::Default && self.modules.get(name).is_some_and(|unit| self.is_there(unit))
            });
            silent.map(|(name, _)| name.as_str()).collect()
        } else {
            // While the verdicts are being renewed, the last known set of silent modules is used.
            let known = self.removal.brake().known().map(String::as_str);
            known.filter(|name| self.modules.of_release(name).is_some()).collect()
        };
        modules.into_iter().chain(self.orphans()).map(str::to_owned).collect()
    }

    /// The names of all modules and releases of ours that exist in the cluster.
    pub(super) fn all_there(self) -> BTreeSet<String> {
        let units = self.modules.iter().filter(|unit| self.is_there(unit));
        let modules = units.map(|unit| unit.name().as_str());
        modules.chain(self.removal.ours()).map(str::to_owned).collect()
    }

    /// Whether the edit that left the module out of the ConfigMap has confirmed its removal.
    pub(super) fn is_confirmed_by_edit(self, release: &str) -> bool {
        let unit = self.modules.of_release(release);
        unit.is_some_and(|unit| self.config.is_removal_confirmed(unit.name()))
    }

    /// Whether the release would be removed now: no source that has not answered yet can want it.
    pub(super) fn is_certain(self, release: &str) -> bool {
        let unit = self.modules.of_release(release);
        unit.is_none_or(|unit| self.is_unwanted(unit.name()))
    }

    /// Whether the removal of this release is certain and has not begun.
    pub(super) fn is_next(self, release: &str) -> bool {
        let begun = match self.modules.of_release(release) {
            None => self.lanes.is_purged(release),
            Some(unit) => unit.life().is_deleting() || self.lanes.is_being_deleted(unit.name()),
        };
        !begun && self.is_certain(release)
    }

    /// The modules with a release that would be removed if the ConfigMap did not name them. Modules that are about to be
    /// removed anyhow are not listed.
    pub(super) fn omissible(self) -> BTreeSet<ModuleName> {
        let units = self.modules.iter().filter(|unit| {
            let name = unit.name();
            let others = Opinions {
                config: None,
                ..self.opinions(name)
            };
            // Other sources switch on most modules, so these sources are asked first.
            let depends = !others.verdict().enabled && unit.found().broken.is_none() && self.is_there(unit);
            depends && !self.is_removable(name) && !self.config.is_removal_confirmed(name)
        });
        units.map(|unit| unit.name().clone()).collect()
    }

    /// Whether a new section of the module has to wait. A run must see the same section from start to end. A module that
    /// is switched off because no source names it any more is removed with the section that it ran with.
    pub(super) fn must_wait(self, name: &ModuleName, entry: &Entry<Value>) -> bool {
        let runs = self.lanes.is_at_work(name);
        let unit = self.modules.get(name);
        let is_there = unit.is_some_and(|unit| unit.is_enabled() || self.is_there(unit));
        let says_nothing = self.config.says_nothing_for(name, entry);
        runs || is_there && says_nothing && !self.opinions(name).verdict().enabled
    }

    /// Whether the module's enabled script has to be asked again: it was asked before a section that had been left for
    /// later was applied, and no section of the module waits any more.
    pub(super) fn is_asked_late(self, name: &ModuleName) -> bool {
        let has_script = self
            .modules
            .get(name)
            .is_some_and(|unit| unit.found().has_enabled_script);
        has_script && self.config.later(name).is_none() && self.opinions(name).ask_script()
    }
}

/// Which modules may be removed, and which obstacles hold a removal.
impl<'a> Certainty<'a> {
    /// Whether the module may be removed now: it exists, it is certainly not wanted, and nothing holds its removal.
    pub(super) fn is_removable(self, name: &ModuleName) -> bool {
        let is_confirmed = !self.is_silently_off(name) || self.directories.rereading().confirms_silence(name);
        let is_free = !self.removal.brake().holds(name.as_str()) && !self.on_trial;
        is_confirmed && self.is_unwanted(name) && is_free
    }

    /// The modules that may be removed now, by name.
    pub(super) fn removable(self) -> impl Iterator<Item = &'a ModuleName> {
        let refused = self.verdicts.refused().map(|(name, _)| name);
        refused.filter(move |name| self.is_removable(name))
    }

    /// Whether a module is off because no source names it, and only the second reading of the directories is still missing.
    pub(super) fn some_wait_for_rereading(self) -> bool {
        let mut refused = self.verdicts.refused();
        refused.any(|(name, _)| self.waits_for_rereading(name))
    }

    /// Whether the module is off because no source names it, and only the second reading of the directories is still missing.
    fn waits_for_rereading(self, name: &ModuleName) -> bool {
        let is_next =
            self.is_silently_off(name) && self.is_unwanted(name) && !self.removal.brake().holds(name.as_str());
        is_next && !self.directories.rereading().confirms_silence(name)
    }

    /// Whether the module exists in the cluster and no source names it.
    pub(super) fn is_silently_off(self, name: &ModuleName) -> bool {
        let unit = self.modules.get(name).filter(|unit| self.is_there(unit));
        let verdict = unit.and_then(|unit| self.verdicts.on(unit.name()));
        verdict.is_some_and(|verdict| verdict.source == Source::Default)
    }

    /// Whether the module exists in the cluster and is certainly not wanted: no source that has not answered yet can
    /// switch it on.
    pub(super) fn is_unwanted(self, name: &ModuleName) -> bool {
        let Some(unit) = self.modules.get(name).filter(|unit| self.may_be_removed(unit)) else {
            return false;
        };
        if self.config.losses().hold(name.as_str()) {
            return false;
        }
        // The verdict is older than the failure of the script, so it says nothing about the current inputs.
        if self.verdicts.is_undecided(name) {
            return false;
        }
        let is_there = self.is_there(unit);
        let Some(verdict) = self
            .verdicts
            .on(unit.name())
            .filter(|verdict| is_there && !verdict.enabled)
        else {
            return false;
        };
        match verdict.source {
            Source::Config => true,
            _ if self.directories.sources().lost_for(name).is_some() || self.stood_in().is_some() => false,
            Source::Dynamic => true,
            Source::Script(_) => self.are_decided_before(name),
            Source::Static | Source::Supply => self.global_hooks_spoke(),
            Source::Default => {
                self.global_hooks_spoke()
                    && self.directories.are_complete()
                    && self.directories.sources().unheard().is_none()
                    && self.config.is_silent_about(name)
            }
        }
    }

    /// A global hook that fails while values of an earlier run serve for it.
    fn stood_in(self) -> Option<&'a HookName> {
        self.stand_ins.served().next().map(|(hook, _)| hook)
    }

    /// Whether the module can be used as it lies on disk, or could be used if a values file had not been lost.
    fn may_be_removed(self, unit: &Unit) -> bool {
        if self.supply.lack(unit.name()).is_some() {
            return false;
        }
        unit.found().broken.is_none() || self.directories.sources().lacks_values(unit.name())
    }

    /// Whether something of the module is in the cluster, or is about to be.
    pub(super) fn is_there(self, unit: &Unit) -> bool {
        self.removal.is_ours(unit.name().as_str()) || *unit.life() != Lifecycle::Disabled
    }

    /// The reason for which a module that is switched off and still exists is not removed; a text for people.
    pub(super) fn removal_obstacle(self, name: &ModuleName) -> Option<String> {
        let unit = self.modules.get(name).filter(|unit| self.may_be_removed(unit))?;
        let is_there = self.is_there(unit);
        let verdict = self
            .verdicts
            .on(unit.name())
            .filter(|verdict| is_there && !verdict.enabled)?;
        if self.config.losses().hold(name.as_str()) {
            return Some(LOST.to_owned());
        }
        if let Some(obstacle) = self.trial_obstacle(name) {
            return Some(obstacle);
        }
        let unheard = || {
            let id = self.bindings.global_hooks_to_speak().next()?;
            let id = Mode::Addons.told(id);
            Some(format!(
                "{id} to have run before it is removed, as that hook may want it"
            ))
        };
        match verdict.source {
            Source::Config => None,
            _ if self.directories.sources().lost_for(name).is_some() => {
                let file = self.directories.sources().lost_for(name).unwrap_or_default();
                Some(format!(
                    "{file}, which is missing or empty, or its flag in the ConfigMap, before it is removed"
                ))
            }
            _ if self.stood_in().is_some() => self
                .stood_in()
                .map(|hook| format!("global hook '{hook}' to succeed before it is removed, as its values are old")),
            Source::Dynamic => None,
            Source::Script(_) => (!self.are_decided_before(name))
                .then(|| "the enabled scripts of modules before it to answer before it is removed".to_owned()),
            Source::Static | Source::Supply => unheard(),
            Source::Default => unheard().or_else(|| {
                let obstacle = if !self.directories.are_complete() {
                    "modules directories of which all are read completely and none is empty"
                } else if let Some(file) = self.directories.sources().unheard() {
                    return Some(format!(
                        "{file}, which is missing or empty, or its flag in the ConfigMap, before it is removed"
                    ));
                } else if self.waits_for_rereading(name) {
                    "the modules directories to be read a second time and found the same"
                } else if !self.config.is_silent_about(name) {
                    "a ConfigMap that people made and that does not name it"
                } else {
                    let reason = self.removal.brake().reason(name.as_str())?;
                    return Some(format!(
                        "a source that names it, or a person who confirms its removal: {reason}"
                    ));
                };
                Some(format!("{obstacle} before it is removed"))
            }),
        }
    }

    /// Whether all modules before this one have verdicts. The answer of an enabled script may depend on the verdicts of
    /// the modules before its own module.
    fn are_decided_before(self, name: &ModuleName) -> bool {
        let order = self.modules.in_order();
        let mut before = order.iter().take_while(|other| *other != name);
        !before.any(|other| self.verdicts.is_undecided(other))
    }

    /// Whether every global hook has succeeded in this life. After that, removals need not wait for a flag of a hook.
    fn global_hooks_spoke(self) -> bool {
        self.bindings.global_hooks_to_speak().next().is_none()
    }

    /// A module that depends on this one and has to be removed before it.
    pub(super) fn outlived_by(self, name: &ModuleName) -> Option<&'a ModuleName> {
        let goes = |unit: &Unit| self.is_removable(unit.name()) || self.is_half_removed(unit);
        let needs = |unit: &&Unit| unit.found().depends_on.contains(name) && goes(unit);
        let mut remaining = self.modules.iter().filter(needs).peekable();
        remaining.peek()?;
        // In a cycle of dependencies the plan's order decides which module goes first.
        let order = graph::plan(&self.modules.nodes()).order;
        let place = |name: &ModuleName| order.iter().position(|other| other == name);
        remaining.map(Unit::name).find(|other| place(other) > place(name))
    }

    /// Whether the module's removal has begun while its enabled script fails, so that the verdict is open.
    fn is_half_removed(self, unit: &Unit) -> bool {
        let begun = !unit.is_enabled() && unit.life().is_deleting();
        begun && self.verdicts.is_undecided(unit.name())
    }

    /// Whether the module would be removed if this version were not on trial.
    pub(super) fn trial_keeps(self, name: &ModuleName) -> bool {
        self.on_trial && self.is_unwanted(name)
    }

    fn trial_obstacle(self, name: &ModuleName) -> Option<String> {
        let keeps = self.trial_keeps(name);
        keeps.then(|| format!("the end of a trial before it is removed: {TRIAL}"))
    }

    /// The held removals of releases, each with the reason for which it is held.
    pub(super) fn held_removals(self) -> Vec<HeldRemoval> {
        let report = |(name, reason): (&String, &_)| HeldRemoval {
            release: name.clone(),
            sign: if self.modules.of_release(name).is_some() {
                "no source names its module any more"
            } else {
                "its module is gone from the directories"
            },
            reason: ToString::to_string(reason),
            by: HeldBy::Brake,
        };
        let held = self.removal.brake().held().map(report);
        held.chain(self.removals_held_by_trial()).collect()
    }

    /// The removals that wait only for the end of the trial.
    fn removals_held_by_trial(self) -> Vec<HeldRemoval> {
        if !self.on_trial {
            return Vec::new();
        }
        let held = |release: String, sign: &'static str| HeldRemoval {
            release,
            sign,
            reason: TRIAL.to_owned(),
            by: HeldBy::Trial,
        };
        let modules = self.modules.names().filter(|name| self.is_unwanted(name));
        let modules = modules.map(|name| held(name.to_string(), "its module is switched off"));
        let orphans = self.orphans().filter(|_| self.directories.are_complete());
        let orphans = orphans.map(|release| held(release.to_owned(), "its module is gone from the directories"));
        let free = |held: &HeldRemoval| !self.removal.brake().holds(&held.release);
        modules.chain(orphans).filter(free).collect()
    }
}
