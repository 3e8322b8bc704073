//! The ways of a removal: the steps of a module's removal, and the purge of releases without a module.

use names::{ModuleName, Owner};

use crate::operator::Operator;
use crate::operator::effect::Notice;
use crate::operator::event::Reworked;
use crate::operator::modules::Unit;
use crate::operator::task::{Lane, Slot, Task};

impl Operator {
    /// Advances the removal at the head of a module's lane. False if it must wait for a slot.
    pub(super) fn advance_delete(&mut self, lane: &Lane, name: &ModuleName) -> bool {
        let begins = self.lanes.begins(lane);
        let lacks_files = begins && self.supply.lack(name).is_some();
        if lacks_files || self.modules.get(name).is_none_or(Unit::is_enabled) {
            self.lanes.finish(&self.cx, lane);
            return true;
        }
        // The removal was queued before the current converge. It waits, because the converge may want the module after
        // all.
        if begins && self.converge.assesses_by_itself() {
            return false;
        }
        if self.lanes.begin_head(&mut self.cx, lane)
            && let Some(unit) = self.modules.get_mut(name)
        {
            unit.begin_delete();
        }
        self.take_steps(lane, name).unwrap_or_else(|| {
            self.delete_succeeded(lane, name);
            true
        })
    }

    fn delete_succeeded(&mut self, lane: &Lane, name: &ModuleName) {
        self.lanes.succeeded(lane);
        self.lanes.finish(&self.cx, lane);
        let owner = Owner::Module(name.clone());
        self.apply_deferred(name);
        self.stop_monitors(&owner);
        self.end_hooks(&owner, "their module was removed");
        // The layers without patches were accepted before, so they cannot be refused.
        let _ = self.values.forget_patches(&owner);
        self.values.forget_empty_config(&owner);
        self.bindings.forget(&owner);
        self.schedules.rebuild(&self.cx, &self.bindings);
        if let Some(unit) = self.modules.get_mut(name) {
            unit.deleted();
        }
        self.drifts.forget(name);
        self.healths.forget(name);
        self.config.forget_confirmation(name);
        self.cx.tell(Notice::ModuleDeleted { module: name.clone() });
    }

    /// Notes that helm uninstalled the release at the head of a lane.
    pub(super) fn release_deleted(&mut self, lane: &Lane, reworked: Reworked) {
        let release = if let Some(name) = self.lanes.module_at(lane) {
            self.modules.step_succeeded(&name);
            self.removal.gone(name.as_str());
            self.lanes.resume(lane);
            name.as_str().to_owned()
        } else if let Some(Task::Purge { release }) = self.lanes.finish(&self.cx, lane) {
            self.lanes.close(lane);
            self.removal.gone(&release);
            let purged = release.clone();
            self.cx.tell(Notice::ReleasePurged { release });
            purged
        } else {
            return;
        };
        for notice in reworked.notices(&release) {
            self.cx.tell(notice);
        }
    }

    pub(super) fn advance_purge(&mut self, lane: &Lane, release: String) -> bool {
        if !self.lanes.finds_slot(&self.cx, &self.jobs, lane, Slot::Helm) {
            return false;
        }
        self.lanes.begin_head(&mut self.cx, lane);
        self.start_uninstall(lane, release)
    }
}
