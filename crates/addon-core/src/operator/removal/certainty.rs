//! Whether what is there of a module may be removed: only on a positive sign, and after what needs it.
//!
//! Must never take silence for a sign while somebody has yet to speak.

use super::super::Operator;
use super::super::config::lost::LOST;
use super::super::modules::Unit;
use crate::module::enabling::Source;
use crate::module::graph;
use crate::module::lifecycle::Lifecycle;
use crate::name::ModuleName;

impl Operator {
    /// Something of the module is there, it is certain that it is not to run, and nothing holds its removal.
    pub(in super::super) fn is_removable(&self, name: &ModuleName) -> bool {
        let is_confirmed = !self.is_silently_off(name) || self.rereading.confirms_silence(name);
        let is_free = !self.removal.brake.holds(name.as_str()) && !self.is_on_trial();
        is_confirmed && self.is_unwanted(name) && is_free
    }

    /// It is off because nobody speaks of it, and nothing but a second look at the directories is lacking.
    pub(super) fn waits_for_rereading(&self, name: &ModuleName) -> bool {
        let is_next = self.is_silently_off(name) && self.is_unwanted(name) && !self.removal.brake.holds(name.as_str());
        is_next && !self.rereading.confirms_silence(name)
    }

    /// Something of it is there, and no source names it.
    pub(in super::super) fn is_silently_off(&self, name: &ModuleName) -> bool {
        let unit = self.modules.get(name).filter(|unit| self.is_there(unit));
        let verdict = unit.and_then(|unit| unit.verdict.as_ref());
        verdict.is_some_and(|verdict| verdict.source == Source::Default)
    }

    /// Something of the module is there, and it is certain that it is not to run: nobody who has yet to speak could
    /// say otherwise.
    pub(in super::super) fn is_unwanted(&self, name: &ModuleName) -> bool {
        let Some(unit) = self.modules.get(name).filter(|unit| self.may_be_removed(unit)) else {
            return false;
        };
        if self.config.losses.hold(name.as_str()) {
            return false;
        }
        // A verdict from before its script failed is no verdict on what was said since.
        if self.assessment.is_undecided(name) {
            return false;
        }
        let is_there = self.is_there(unit);
        let Some(verdict) = unit.verdict.as_ref().filter(|verdict| is_there && !verdict.enabled) else {
            return false;
        };
        match verdict.source {
            Source::Config => true,
            _ if self.sources.lost_for(name).is_some() => false,
            Source::Dynamic => true,
            Source::Script(_) => self.are_decided_before(name),
            Source::Static => self.global_hooks_spoke(),
            Source::Default => {
                self.global_hooks_spoke()
                    && self.startup.inventory_complete
                    && self.sources.unheard().is_none()
                    && self.config.is_silent_about(name)
            }
        }
    }

    /// It can be used as it lies on disk, or could if a values file had not been lost.
    fn may_be_removed(&self, unit: &Unit) -> bool {
        unit.found.broken.is_none() || self.sources.lacks_values(&unit.found.name)
    }

    /// Something of the module is in the cluster, or about to be.
    pub(in super::super) fn is_there(&self, unit: &Unit) -> bool {
        self.removal.is_ours(unit.found.name.as_str()) || unit.life != Lifecycle::Disabled
    }

    /// Why what is there of a module that is switched off is not removed, in words.
    pub(in super::super) fn removal_obstacle(&self, name: &ModuleName) -> Option<String> {
        let unit = self.modules.get(name).filter(|unit| self.may_be_removed(unit))?;
        let is_there = self.is_there(unit);
        let verdict = unit.verdict.as_ref().filter(|verdict| is_there && !verdict.enabled)?;
        if self.config.losses.hold(name.as_str()) {
            return Some(LOST.to_owned());
        }
        if let Some(obstacle) = self.trial_obstacle(name) {
            return Some(obstacle);
        }
        let unheard = || {
            let id = self.bindings.global_hooks_to_speak().next()?;
            Some(format!(
                "{id} to have run before it is removed, as that hook may want it"
            ))
        };
        match verdict.source {
            Source::Config => None,
            _ if self.sources.lost_for(name).is_some() => {
                let file = self.sources.lost_for(name).unwrap_or_default();
                Some(format!(
                    "{file}, which is missing or empty, or its flag in the ConfigMap, before it is removed"
                ))
            }
            Source::Dynamic => None,
            Source::Script(_) => (!self.are_decided_before(name))
                .then(|| "the enabled scripts of modules before it to answer before it is removed".to_owned()),
            Source::Static => unheard(),
            Source::Default => unheard().or_else(|| {
                let obstacle = if !self.startup.inventory_complete {
                    "the modules directories to be read completely"
                } else if let Some(file) = self.sources.unheard() {
                    return Some(format!(
                        "{file}, which is missing or empty, or its flag in the ConfigMap, before it is removed"
                    ));
                } else if self.waits_for_rereading(name) {
                    "the modules directories to be read a second time and found the same"
                } else if !self.config.is_silent_about(name) {
                    "a ConfigMap that people made and that does not name it"
                } else {
                    let reason = self.removal.brake.reason(name.as_str())?;
                    return Some(format!(
                        "a source that names it, or a person who confirms its removal: {reason}"
                    ));
                };
                Some(format!("{obstacle} before it is removed"))
            }),
        }
    }

    /// A script may go by which modules before its own are to run, and that is known of all of them.
    fn are_decided_before(&self, name: &ModuleName) -> bool {
        let order = self.modules_in_order();
        let mut before = order.iter().take_while(|other| *other != name);
        !before.any(|other| self.assessment.is_undecided(other))
    }

    /// Every global hook has run in this life, so what they have not said they do not say.
    fn global_hooks_spoke(&self) -> bool {
        self.bindings.global_hooks_to_speak().next().is_none()
    }

    /// A module that needs this one and has still to be removed before it.
    pub(in super::super) fn outlived_by(&self, name: &ModuleName) -> Option<&ModuleName> {
        let goes = |unit: &Unit| self.is_removable(&unit.found.name) || self.is_half_removed(unit);
        let needs = |unit: &&Unit| unit.found.depends_on.contains(name) && goes(unit);
        let mut remaining = self.modules.values().filter(needs).peekable();
        remaining.peek()?;
        // In a circle somebody has to be the first.
        let order = graph::plan(&self.nodes()).order;
        let place = |name: &ModuleName| order.iter().position(|other| other == name);
        remaining
            .map(|unit| &unit.found.name)
            .find(|other| place(other) > place(name))
    }

    /// Its removal has begun, and whether it is to run after all is for its script to say, which fails.
    fn is_half_removed(&self, unit: &Unit) -> bool {
        let begun = !unit.enabled && unit.life.is_deleting();
        begun && self.assessment.is_undecided(&unit.found.name)
    }
}
