//! The ways of objects: bindings become known, a change goes to its hook, the end of a first run goes to the module and
//! the queues that wait for it, and monitors end.

use std::collections::BTreeMap;

use names::{BindingName, HookId, HookName, ModuleName, MonitorId, Owner};

use crate::hook::cause::Cause;
use crate::hook::config::HookConfig;
use crate::operator::Operator;
use crate::operator::effect::{Effect, Notice};
use crate::operator::event::ObjectChange;
use crate::operator::monitors::{FirstRunOver, RunTerms};
use crate::operator::task::{HookTask, Lane, Task, Trigger};

impl Operator {
    /// The settings of a run that a change of an object causes now.
    pub(super) fn run_terms(&self, trigger: Trigger) -> RunTerms {
        RunTerms {
            activation: self.converge.activation(),
            trigger,
            deadline: self.cx.policy.hook_deadline,
        }
    }

    /// Takes in a change of an object.
    pub(super) fn object_changed(&mut self, change: ObjectChange) {
        if let Some(change) = self.monitors.take(&self.bindings, change) {
            self.deliver(change);
        }
    }

    /// Puts a run of a hook for a change into its queue.
    fn deliver(&mut self, change: ObjectChange) {
        let terms = self.run_terms(Trigger::Objects);
        let origin = self.origin_of(&change);
        if let Some((queue, task)) = self.monitors.run_for(&self.bindings, terms, (change, origin)) {
            let lane = Lane::of(&task.hook.owner, &queue);
            self.lanes.push_hook(&mut self.cx, &self.bindings, &lane, task);
        }
    }

    /// Notes that the first runs of these monitors are over: the hooks get the changes that they have not read, and the
    /// tasks that waited go on.
    pub(super) fn first_run_over(&mut self, ids: &[MonitorId], read: &BTreeMap<MonitorId, u64>) {
        let mut unlocked: BTreeMap<HookId, Vec<BindingName>> = BTreeMap::new();
        for id in ids {
            let over = self.monitors.first_run_over(&self.bindings, *id, read.get(id).copied());
            let Some(FirstRunOver {
                monitor,
                hook,
                binding,
                unseen,
            }) = over
            else {
                continue;
            };
            if let Some(module) = hook.owner.module() {
                self.first_run_of_module_over(module, monitor);
            }
            unlocked.entry(hook).or_default().push(binding);
            for change in unseen {
                self.deliver(change);
            }
        }
        for (hook, bindings) in unlocked {
            self.cx.tell(Notice::EventsUnlocked { hook, bindings });
        }
        if self.monitors.awaited().len() == 0 {
            self.lanes.wake_parked(&Lane::Global, Task::awaits_first_runs);
        }
    }

    fn first_run_of_module_over(&mut self, module: &ModuleName, id: MonitorId) {
        let Some(unit) = self.modules.get_mut(module).filter(|unit| unit.life().awaits(id)) else {
            return;
        };
        unit.first_run_over(id);
        self.lanes.wake_parked(&Lane::Module(module.clone()), Task::is_run);
    }

    /// Stops all monitors of an owner, except prepared ones that no run has taken.
    pub(super) fn stop_monitors(&mut self, owner: &Owner) {
        let warmth = &self.warmth;
        let gone = self.monitors.stop(|hook| hook.owner == *owner && !warmth.holds(hook));
        self.tell_stopped(gone);
    }

    /// Stops the monitors of a hook.
    pub(super) fn stop_monitors_of(&mut self, hook: &HookId) {
        let gone = self.monitors.stop(|other| other == hook);
        self.tell_stopped(gone);
    }

    fn tell_stopped(&mut self, gone: Vec<MonitorId>) {
        if !gone.is_empty() {
            self.cx.effect(Effect::StopMonitors(gone));
        }
    }

    /// Stops passing changes to the hooks of a module that is switched off. Their snapshots stay, for the hooks that run
    /// when the module is removed.
    pub(super) fn silence(&mut self, module: &ModuleName) {
        let owner = Owner::Module(module.clone());
        if self.monitors.silence(&owner) {
            self.drop_runs_for_objects(&owner, "their module was switched off");
            self.lanes.wake_parked(&Lane::Module(module.clone()), Task::is_run);
        }
    }

    fn drop_runs_for_objects(&mut self, owner: &Owner, reason: &'static str) {
        let of_objects = |task: &HookTask| task.hook.owner == *owner && task.labels.cause == Cause::Objects;
        self.loops.drop_hooks(of_objects);
        let of_objects = |task: &Task| task.as_hook().is_some_and(of_objects);
        self.lanes.drop_tasks(&mut self.cx, reason, of_objects);
    }

    /// Makes the monitors of a module begin anew, if the module was switched off, was not removed, and runs again:
    /// changes were dropped meanwhile.
    pub(super) fn watch_again(&mut self, module: &ModuleName) {
        let owner = Owner::Module(module.clone());
        if !self.monitors.is_silenced(&owner) {
            return;
        }
        self.stop_monitors(&owner);
        // The first runs of the new monitors will include everything that the dropped runs had to tell.
        self.drop_runs_for_objects(&owner, "their monitors begin anew");
        self.lanes.forsake_runs_for_objects(&owner);
        if let Some(unit) = self.modules.get_mut(module) {
            unit.watch_again();
        }
    }

    /// Drops the preparations for a module.
    pub(super) fn cool(&mut self, name: &ModuleName) {
        for hook in self.warmth.cool(name) {
            self.stop_monitors_of(&hook);
        }
    }

    /// Takes the configurations of an owner's hooks.
    pub(super) fn hooks_configured(&mut self, owner: &Owner, hooks: Vec<(HookName, HookConfig)>) {
        self.stop_monitors(owner);
        let id = |name| HookId {
            owner: owner.clone(),
            name,
        };
        let hooks: Vec<_> = hooks.into_iter().map(|(name, config)| (id(name), config)).collect();
        let count = |config: &HookConfig| config.stages.len() + config.schedules.len() + config.kubernetes.len();
        let bindings = hooks.iter().map(|(id, config)| (id.clone(), count(config))).collect();
        self.bindings.replace(owner, hooks);
        if let Some(unit) = owner.module().and_then(|name| self.modules.get_mut(name)) {
            unit.hooks_told(self.bindings.order(owner));
        }
        self.schedules.rebuild(&self.cx, &self.bindings);
        self.cx.tell(Notice::HooksConfigured {
            owner: owner.clone(),
            bindings,
        });
    }
}
