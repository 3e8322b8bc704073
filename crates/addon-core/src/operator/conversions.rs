//! Conversion webhooks that charts describe: in the cluster before any release that may need them.
//!
//! Each converge looks after those of all modules that it takes up, before it touches any of them, since objects of one may
//! be of a kind whose versions another converts. What fails there fails again in the run of its own module, right before
//! the release, when its hooks have said all they have to say. Must never touch what people have in their own hands.

use std::collections::BTreeMap;

use super::Operator;
use super::converge::{Look, Phase};
use super::effect::{Conversions, Job};
use super::jobs::Slot;
use super::modules::{Turn, Unit};
use super::task::{Lane, Task};
use crate::failure::Failure;
use crate::name::{ModuleName, Owner};
use crate::values::Globals;
use crate::values::section::Maintenance;

impl Operator {
    /// There are some that nobody has looked after since a converge took the module up.
    pub(super) fn needs_conversions(&self, unit: &Unit) -> bool {
        let found = &unit.found;
        let has_some = found.has_chart && found.has_conversions && !unit.conversions_ensured;
        has_some && self.config.maintenance(&found.name) == Maintenance::Managed
    }

    /// What a chart is rendered with to see them under these global values; nothing while its values are not fit for that.
    pub(super) fn conversions_of(&self, name: &ModuleName, globals: &Globals) -> Option<Conversions> {
        let vetting = self.vetting_for_helm(name).ok()?;
        Some(Conversions {
            module: name.clone(),
            values: self.values.hook_values_under(globals, &Owner::Module(name.clone())),
            vetting,
        })
    }

    /// A converge looks after those of all modules that it has just taken up.
    pub(super) fn look_after_conversions(&mut self) -> Look {
        let waiting = |name: &ModuleName| {
            let unit = self.modules.get(name).filter(|unit| unit.turn == Turn::Waiting);
            unit.is_some_and(|unit| self.needs_conversions(unit))
        };
        let names = self.modules_in_order().into_iter().filter(waiting);
        let globals = self.values.globals();
        let conversions: Vec<_> = names.filter_map(|name| self.conversions_of(&name, &globals)).collect();
        let is_needed = !conversions.is_empty();
        // Rather one helm more than that all wait for those that hang.
        let has_slot = self.jobs.helm_slot(&self.cx.policy) || self.jobs.all_hang(Slot::Helm, &self.cx.policy);
        if is_needed && !has_slot {
            return Look::NoSlot;
        }
        if let Some(active) = &mut self.converge.active
            && let Phase::Conversions { asked, .. } = &mut active.phase
        {
            *asked = true;
        }
        if !is_needed {
            return Look::Moved;
        }
        self.lanes
            .start_job(&mut self.cx, &mut self.jobs, &Lane::Global, |ticket| {
                Job::EnsureConversions(conversions, ticket)
            });
        Look::Started
    }

    /// The job of a converge or of a run has looked after those of the modules that it was given.
    pub(super) fn conversions_ensured(&mut self, lane: &Lane, outcomes: BTreeMap<ModuleName, Result<(), Failure>>) {
        let of_run = self.lanes.module_at(lane);
        for (name, outcome) in outcomes {
            if let Err(failure) = outcome {
                if of_run.as_ref() == Some(&name) {
                    return self.lane_failed(lane, failure);
                }
                continue;
            }
            // Those that came into question meanwhile wait for another converge.
            let unit = self.modules.get_mut(&name);
            if let Some(unit) = unit.filter(|unit| of_run.is_some() || unit.turn == Turn::Waiting) {
                unit.conversions_ensured = true;
            }
        }
        let is_ours = |task: &Task| of_run.is_some() || task.is_converge();
        if self.lanes.head(lane).is_some_and(|head| is_ours(&head.task)) {
            self.lanes.resume(lane);
        }
    }
}
