//! CRDs of modules: in the cluster before anything that may need them, and never taken out of it.
//!
//! A converge looks after those of all modules that were just switched on before it touches any module, since one may hold
//! objects of a kind that another brings. What fails there fails again in the run of its own module, which says so and goes
//! on trying; the others are not held back. On trial a CRD that is there is not changed: its module waits for the end of that.

use std::collections::BTreeMap;

use super::Operator;
use super::effect::Job;
use super::event::CrdObstacle;
use super::modules::Turn;
use super::task::Lane;
use crate::name::ModuleName;

impl Operator {
    /// Before a converge touches any module, somebody looks after the CRDs of those that are new to it. False if there are none.
    pub(super) fn start_new_crds(&mut self) -> bool {
        let new = self.without_crds();
        let are_some = !new.is_empty();
        if are_some {
            self.start_crds(&Lane::Global, new);
        }
        are_some
    }

    /// The modules of the converge under way whose CRDs nobody has looked after in this life of theirs.
    fn without_crds(&mut self) -> Vec<ModuleName> {
        let mut names = Vec::new();
        for name in self.modules_in_order() {
            let Some(unit) = self.modules.get_mut(&name).filter(|unit| unit.turn == Turn::Waiting) else {
                continue;
            };
            if unit.life.is_over() {
                unit.crds_ensured = false;
            }
            if unit.needs_crds() {
                names.push(name);
            }
        }
        names
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

    /// The job of a converge or of a run has looked after the CRDs that it was given.
    pub(super) fn crds_ensured(&mut self, lane: &Lane, mut failed: BTreeMap<ModuleName, CrdObstacle>) {
        let Some(name) = self.lanes.module_at(lane) else {
            self.crds_of_converge(lane, &failed);
            return;
        };
        match failed.remove(&name) {
            Some(CrdObstacle::Failed(failure)) => return self.lane_failed(lane, failure),
            Some(CrdObstacle::Held(crds)) if self.is_on_trial() => return self.end_run_for_trial(lane, &name, &crds),
            // The trial was passed meanwhile: once more, and then they are changed.
            Some(CrdObstacle::Held(_)) => return self.lanes.resume(lane),
            None => {}
        }
        if let Some(unit) = self.modules.get_mut(&name) {
            unit.crds_ensured = true;
        }
        self.step_succeeded(&name);
        self.lanes.resume(lane);
    }

    fn crds_of_converge(&mut self, lane: &Lane, failed: &BTreeMap<ModuleName, CrdObstacle>) {
        if !self.lanes.head(lane).is_some_and(|head| head.task.is_converge()) {
            return;
        }
        for (name, unit) in &mut self.modules {
            // Those that came into question meanwhile wait for another converge.
            if unit.turn == Turn::Waiting && !failed.contains_key(name) {
                unit.crds_ensured = true;
            }
        }
        let held = failed.iter().filter_map(|(name, obstacle)| match obstacle {
            CrdObstacle::Held(crds) if self.is_on_trial() => Some((name, crds)),
            CrdObstacle::Held(_) | CrdObstacle::Failed(_) => None,
        });
        let is_to_come = |name: &ModuleName| self.modules.get(name).is_some_and(|unit| unit.turn == Turn::Waiting);
        let held: Vec<_> = held.filter(|(name, _)| is_to_come(name)).collect();
        for (name, crds) in held {
            self.hold_for_crds(name, crds);
        }
        self.lanes.resume(lane);
    }
}
