//! The ways of helm's inputs and results for one module: values, CRDs and conversion webhooks.

use std::collections::BTreeMap;
use std::time::Duration;

use names::{ModuleName, Owner};

use crate::failure::Failure;
use crate::operator::Operator;
use crate::operator::effect::{Conversions, Job, Notice};
use crate::operator::event::{CrdObstacle, Reworked, SyncAction, Synced};
use crate::operator::modules::Turn;
use crate::operator::task::{Lane, Task};
use crate::values::vetted::Vetting;
use crate::values::{Globals, NotForHelm};

impl Operator {
    /// Checks whether helm may get the module's values. A check that takes long is returned, for the job that passes
    /// the values to helm.
    pub(super) fn vetting_for_helm(&self, name: &ModuleName) -> Result<Option<Box<Vetting>>, NotForHelm> {
        let owner = Owner::Module(name.clone());
        let version = self.values.version(&owner);
        if self.modules.get(name).is_some_and(|unit| unit.fits(version)) {
            return Ok(None);
        }
        let Some(vetting) = self.values.vetting_for_helm(&owner) else {
            return Ok(None);
        };
        if vetting.takes_long() {
            return Ok(Some(Box::new(vetting)));
        }
        vetting.for_helm().map(|()| None)
    }

    /// The inputs for rendering a chart to find its conversion webhooks, under these global values; `None` while its
    /// values break the schema.
    pub(super) fn conversions_of(&self, name: &ModuleName, globals: &Globals) -> Option<Conversions> {
        let vetting = self.vetting_for_helm(name).ok()?;
        Some(Conversions {
            module: name.clone(),
            values: self.values.hook_values_under(globals, &Owner::Module(name.clone())),
            vetting,
        })
    }

    pub(super) fn start_crds(&mut self, lane: &Lane, modules: Vec<ModuleName>) {
        let on_trial = self.probation.on_trial();
        self.lanes
            .start_job(&mut self.cx, &mut self.jobs, lane, |ticket| Job::EnsureCrds {
                modules,
                on_trial,
                ticket,
            });
    }

    /// Takes the end of the job that installed CRDs, for a converge or for a run.
    pub(super) fn crds_ensured(&mut self, lane: &Lane, mut failed: BTreeMap<ModuleName, CrdObstacle>) {
        let Some(name) = self.lanes.module_at(lane) else {
            self.crds_of_converge(lane, &failed);
            return;
        };
        match failed.remove(&name) {
            Some(CrdObstacle::Failed(failure)) => return self.lane_failed(lane, failure),
            Some(CrdObstacle::Held(crds)) if self.probation.is_on_trial() => {
                return self.end_run_for_trial(lane, &name, &crds);
            }
            // The trial was passed while the job ran. The next attempt may change the CRDs.
            Some(CrdObstacle::Held(_)) => return self.lanes.resume(lane),
            None => {}
        }
        if let Some(unit) = self.modules.get_mut(&name) {
            unit.crds_ensured();
        }
        self.modules.step_succeeded(&name);
        self.lanes.resume(lane);
    }

    fn crds_of_converge(&mut self, lane: &Lane, failed: &BTreeMap<ModuleName, CrdObstacle>) {
        if !self.lanes.head(lane).is_some_and(|head| head.task.is_converge()) {
            return;
        }
        for unit in self.modules.iter_mut() {
            // Modules that were taken up only later wait for another converge.
            if *unit.turn() == Turn::Waiting && !failed.contains_key(unit.name()) {
                unit.crds_ensured();
            }
        }
        let held = failed.iter().filter_map(|(name, obstacle)| match obstacle {
            CrdObstacle::Held(crds) if self.probation.is_on_trial() => Some((name, crds)),
            CrdObstacle::Held(_) | CrdObstacle::Failed(_) => None,
        });
        let held: Vec<_> = held.filter(|(name, _)| self.modules.is_waiting(name)).collect();
        for (name, crds) in held {
            self.hold_for_crds(name, crds);
        }
        self.lanes.resume(lane);
    }

    /// Takes the end of the job that published conversion webhooks, for a converge or for a run.
    pub(super) fn conversions_ensured(&mut self, lane: &Lane, outcomes: BTreeMap<ModuleName, Result<(), Failure>>) {
        let of_run = self.lanes.module_at(lane);
        for (name, outcome) in outcomes {
            if let Err(failure) = outcome {
                if of_run.as_ref() == Some(&name) {
                    return self.lane_failed(lane, failure);
                }
                continue;
            }
            // Modules that were taken up only later wait for another converge.
            let unit = self.modules.get_mut(&name);
            if let Some(unit) = unit.filter(|unit| of_run.is_some() || *unit.turn() == Turn::Waiting) {
                unit.conversions_ensured();
            }
        }
        let is_ours = |task: &Task| of_run.is_some() || task.is_converge();
        if self.lanes.head(lane).is_some_and(|head| is_ours(&head.task)) {
            self.lanes.resume(lane);
        }
    }

    pub(super) fn release_synced(&mut self, lane: &Lane, synced: &Synced, took: Duration) {
        let Some(name) = self.lanes.module_at(lane) else { return };
        self.loops.released(&name, self.cx.now.tick);
        if synced.revision > 0 {
            self.removal.exists(name.as_str());
        }
        if !synced.adopted.is_empty() {
            self.cx.tell(Notice::ObjectsAdopted {
                module: name.clone(),
                objects: synced.adopted.clone(),
            });
        }
        let reworked = Reworked {
            amended: synced.amended.clone(),
            repaired: synced.repaired.clone(),
        };
        for notice in reworked.notices(name.as_str()) {
            self.cx.tell(notice);
        }
        if !synced.replaced.is_empty() {
            self.cx.tell(Notice::ObjectsReplaced {
                module: name.clone(),
                objects: synced.replaced.clone(),
            });
        }
        let activation = self.converge.activation();
        let action = synced.action;
        self.cx.tell(Notice::HelmFinished {
            module: name.clone(),
            action,
            took,
            activation,
        });
        if let Some(unit) = self.modules.get_mut(&name) {
            unit.released(action, synced.remarks.clone());
            if synced.revision > 0 && self.cx.policy.watches_releases {
                let (timeout, now) = (unit.found().health.timeout, self.cx.now.tick);
                let is_new = action == SyncAction::Upgraded;
                self.healths.released(&name, synced.revision, is_new, timeout, now);
            }
        }
        self.modules.step_succeeded(&name);
        self.lanes.resume(lane);
    }
}
