//! Monitors: which binding each serves, and the way of a change to its hook.
//!
//! The shell keeps the objects; here is only what must be decided: who is told, in which queue, and from when on.

mod gate;

use std::collections::{BTreeMap, BTreeSet};

use self::gate::Gate;
use super::Operator;
use super::effect::{Effect, HookLabels, MonitorStart, Notice};
use super::event::ObjectChange;
use super::task::{HookTask, Lane, Task};
use crate::hook::cause::Cause;
use crate::hook::config::{ConfigVersion, HookConfig, KubernetesBinding};
use crate::hook::context::BindingContext;
use crate::name::{BindingName, HookId, ModuleName, MonitorId, Owner};

/// All monitors of this life that were not stopped.
#[derive(Debug, Default)]
pub(super) struct Monitors {
    last: u64,
    known: BTreeMap<MonitorId, Monitor>,
    /// First runs of global hooks in other queues, for which the first converge waits.
    pub(super) awaited: BTreeSet<MonitorId>,
}

#[derive(Debug)]
struct Monitor {
    hook: HookId,
    /// Which of the hook's kubernetes bindings.
    index: usize,
    /// It watches, and its snapshot may be read.
    started: bool,
    gate: Gate,
}

impl Monitors {
    fn of_hook(&self, hook: &HookId) -> impl Iterator<Item = (MonitorId, &Monitor)> {
        let of_hook = self.known.iter().filter(move |(_, monitor)| monitor.hook == *hook);
        of_hook.map(|(id, monitor)| (*id, monitor))
    }

    /// Takes out the monitors that match; their ids are never used again.
    fn remove(&mut self, matches: impl Fn(&Monitor) -> bool) -> Vec<MonitorId> {
        let known = std::mem::take(&mut self.known);
        let (gone, kept) = known.into_iter().partition(|(_, monitor)| matches(monitor));
        self.known = kept;
        let gone: BTreeMap<_, _> = gone;
        gone.into_keys().collect()
    }

    /// What a module's hooks were told has gaps.
    fn is_silenced(&self, owner: &Owner) -> bool {
        let shut = |monitor: &Monitor| monitor.hook.owner == *owner && matches!(monitor.gate, Gate::Shut);
        self.known.values().any(shut)
    }
}

/// The hook wants to run for the objects that are there at first.
pub(super) fn has_first_run(config: &HookConfig, binding: &KubernetesBinding) -> bool {
    config.version == ConfigVersion::V1 && binding.run_on_synchronization
}

impl Operator {
    /// Names the monitors of a hook, which the shell is about to start. Nobody is told of anything yet.
    pub(super) fn name_monitors(&mut self, hook: &HookId, bindings: Vec<KubernetesBinding>) -> Vec<MonitorStart> {
        let mut starts = Vec::new();
        for (index, binding) in bindings.into_iter().enumerate() {
            self.monitors.last += 1;
            let id = MonitorId(self.monitors.last);
            let monitor = Monitor {
                hook: hook.clone(),
                index,
                started: false,
                gate: Gate::Ahead,
            };
            self.monitors.known.insert(id, monitor);
            starts.push(MonitorStart { id, binding });
        }
        starts
    }

    /// From now on the hook is told of what no first run of its will read.
    pub(super) fn tell_of_unread(&mut self, hook: &HookId) {
        let Some(config) = self.hooks.get(hook) else { return };
        for monitor in self.monitors.known.values_mut().filter(|monitor| monitor.hook == *hook) {
            let Some(binding) = config.kubernetes.get(monitor.index) else {
                continue;
            };
            // Of equal names the first is read, whoever asks.
            let mut before = config.kubernetes[..monitor.index].iter();
            if before.any(|other| other.name == binding.name) || !has_first_run(config, binding) {
                monitor.gate = Gate::Unread { since: Vec::new() };
            }
        }
    }

    /// The shell started the monitors of a hook. Returns them in the order of the configuration.
    pub(super) fn monitors_watch(&mut self, hook: &HookId) -> Vec<MonitorId> {
        let mut started = Vec::new();
        for (id, monitor) in &mut self.monitors.known {
            if monitor.hook == *hook {
                monitor.started = true;
                started.push(*id);
            }
        }
        started
    }

    /// The shell could not start the monitors of a hook, and runs none of them.
    pub(super) fn forget_monitors(&mut self, hook: &HookId) {
        self.monitors.remove(|monitor| monitor.hook == *hook);
    }

    /// Ends all monitors of an owner but those that were started before their time and that nobody has taken.
    pub(super) fn stop_monitors(&mut self, owner: &Owner) {
        let is_taken = |monitor: &Monitor| monitor.hook.owner == *owner && !self.warmth.holds(&monitor.hook);
        let gone = self.monitors.remove(is_taken);
        self.monitors_gone(gone);
    }

    /// Ends the monitors of a hook.
    pub(super) fn stop_monitors_of(&mut self, hook: &HookId) {
        let gone = self.monitors.remove(|monitor| monitor.hook == *hook);
        self.monitors_gone(gone);
    }

    fn monitors_gone(&mut self, gone: Vec<MonitorId>) {
        self.monitors.awaited.retain(|id| !gone.contains(id));
        if !gone.is_empty() {
            self.effects.push_back(Effect::StopMonitors(gone));
        }
    }

    /// The binding that a monitor serves, with its hook.
    pub(super) fn binding_of(&self, id: MonitorId) -> Option<(&HookId, &HookConfig, &KubernetesBinding)> {
        let monitor = self.monitors.known.get(&id)?;
        let config = self.hooks.get(&monitor.hook)?;
        Some((&monitor.hook, config, config.kubernetes.get(monitor.index)?))
    }

    /// The bindings of a hook that are watched, in the order of the configuration.
    pub(super) fn watched(&self, hook: &HookId) -> Vec<(BindingName, MonitorId)> {
        let started = self.monitors.of_hook(hook).filter(|(_, monitor)| monitor.started);
        started
            .filter_map(|(id, _)| Some((self.binding_of(id)?.2.name.clone(), id)))
            .collect()
    }

    /// The monitors that hold what the contexts want; of equal names the first.
    pub(super) fn snapshots_of(&self, hook: &HookId, contexts: &[BindingContext]) -> BTreeMap<BindingName, MonitorId> {
        let wanted: BTreeSet<&BindingName> = contexts.iter().flat_map(BindingContext::wanted_snapshots).collect();
        if wanted.is_empty() {
            return BTreeMap::new();
        }
        let watched = self.watched(hook).into_iter().rev();
        watched.filter(|(name, _)| wanted.contains(name)).collect()
    }

    /// A change of an object came in.
    pub(super) fn object_changed(&mut self, change: ObjectChange) {
        let event = change.event;
        if !self
            .binding_of(change.monitor)
            .is_some_and(|(_, _, binding)| binding.events.contains(&event))
        {
            return;
        }
        let monitor = self.monitors.known.get_mut(&change.monitor);
        if let Some(change) = monitor.and_then(|monitor| monitor.gate.take(change)) {
            self.deliver(change);
        }
    }

    /// Puts a hook that is to be told of a change into its queue.
    fn deliver(&mut self, change: ObjectChange) {
        let Some((hook, _, binding)) = self.binding_of(change.monitor) else {
            return;
        };
        let lane = Lane::of(&hook.owner, &binding.queue);
        let task = HookTask {
            hook: hook.clone(),
            labels: HookLabels {
                cause: Cause::Objects,
                binding_name: binding.name.to_string(),
                queue: binding.queue.to_string(),
                activation: self.converge.activation(),
            },
            contexts: vec![BindingContext::Event {
                told: binding.into(),
                event: change.event,
                name: change.name,
                object: change.view,
            }],
            allow_failure: binding.allow_failure,
            deadline: self.deadline(binding.timeout),
            first_runs: Vec::new(),
            is_skipped: false,
        };
        self.push_hook(&lane, task);
    }

    /// A run that is the first one of these monitors begins.
    pub(super) fn first_run_begins(&mut self, ids: &[MonitorId]) {
        for id in ids {
            if let Some(monitor) = self.monitors.known.get_mut(id) {
                monitor.gate.begin();
            }
        }
    }

    /// That run failed and is tried again.
    pub(super) fn first_run_failed(&mut self, ids: &[MonitorId]) {
        for id in ids {
            if let Some(monitor) = self.monitors.known.get_mut(id) {
                monitor.gate.fail();
            }
        }
    }

    /// That run succeeded, was let pass, or is not wanted: what it has not read reaches the hook now, and who waited for
    /// it goes on.
    pub(super) fn first_run_over(&mut self, ids: &[MonitorId], read: &BTreeMap<MonitorId, u64>) {
        let mut unlocked: BTreeMap<HookId, Vec<BindingName>> = BTreeMap::new();
        for id in ids {
            self.monitors.awaited.remove(id);
            let Some((hook, _, binding)) = self.binding_of(*id) else {
                continue;
            };
            let (hook, name) = (hook.clone(), binding.name.clone());
            if let Some(module) = hook.owner.module() {
                self.first_run_of_module_over(module, *id);
            }
            let monitor = self.monitors.known.get_mut(id);
            let unseen = monitor.map(|monitor| monitor.gate.open(read.get(id).copied()));
            unlocked.entry(hook).or_default().push(name);
            for change in unseen.into_iter().flatten() {
                self.deliver(change);
            }
        }
        for (hook, bindings) in unlocked {
            self.tell(Notice::EventsUnlocked { hook, bindings });
        }
        if self.monitors.awaited.is_empty() {
            self.wake_parked(&Lane::Global, Task::awaits_first_runs);
        }
    }

    fn first_run_of_module_over(&mut self, module: &ModuleName, id: MonitorId) {
        let Some(unit) = self.modules.get_mut(module).filter(|unit| unit.life.awaits(id)) else {
            return;
        };
        unit.life.first_run_over(id);
        let lane = Lane::Module(module.clone());
        self.wake_parked(&lane, Task::is_run);
    }

    /// A module is not to run: nothing of what changes now is for its hooks. Their snapshots stay, for those that run
    /// when it is removed.
    pub(super) fn silence(&mut self, module: &ModuleName) {
        let owner = Owner::Module(module.clone());
        let mut any = false;
        for monitor in self.monitors.known.values_mut() {
            if monitor.started && monitor.hook.owner == owner {
                monitor.gate = Gate::Shut;
                any = true;
            }
        }
        if !any {
            return;
        }
        self.drop_runs_for_objects(&owner, "their module was switched off");
        let lane = Lane::Module(module.clone());
        self.wake_parked(&lane, Task::is_run);
    }

    fn drop_runs_for_objects(&mut self, owner: &Owner, reason: &'static str) {
        let of_objects = |task: &HookTask| task.hook.owner == *owner && task.labels.cause == Cause::Objects;
        let of_objects = |task: &Task| task.as_hook().is_some_and(of_objects);
        self.drop_tasks(reason, of_objects);
    }

    /// A module runs again that was switched off and not removed: what happened meanwhile was told to nobody.
    pub(super) fn watch_again(&mut self, module: &ModuleName) {
        let owner = Owner::Module(module.clone());
        if !self.monitors.is_silenced(&owner) {
            return;
        }
        self.stop_monitors(&owner);
        // What the old ones had to tell is part of what the new ones find.
        self.drop_runs_for_objects(&owner, "their monitors begin anew");
        self.forsake_runs_for_objects(&owner);
        if let Some(unit) = self.modules.get_mut(module) {
            unit.life.watch_again();
        }
    }

    /// The head of a lane that waits for something may look again, if it is such a task.
    fn wake_parked(&mut self, lane: &Lane, is_such: impl FnOnce(&Task) -> bool) {
        let head = self.queues.head(lane);
        if head.is_some_and(|head| head.state() == crate::queue::State::Parked && is_such(&head.task)) {
            self.queues.resume(lane);
        }
    }
}
