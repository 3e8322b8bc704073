//! Monitors: which binding each monitor serves, and how its changes reach the hook.
//!
//! The shell keeps the objects. This state machine decides which hook gets a change, and from which time on. It knows
//! no module: the end of a first run is returned to the way that waits for it.

mod gate;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use names::{BindingName, HookId, MonitorId, Owner, QueueName};

use self::gate::Gate;
use super::bindings::Bindings;
use super::effect::{HookLabels, MonitorStart};
use super::event::ObjectChange;
use super::loops::Origin;
use super::task::{HookTask, Trigger};
use crate::hook::cause::Cause;
use crate::hook::config::{HookConfig, KubernetesBinding};
use crate::hook::context::BindingContext;

/// All monitors of this life except the stopped ones.
#[derive(Debug, Clone, Default)]
pub(super) struct Monitors {
    last: u64,
    known: BTreeMap<MonitorId, Monitor>,
    /// First runs of global hooks that are in other queues. The first converge waits for them.
    awaited: BTreeSet<MonitorId>,
}

#[derive(Debug, Clone)]
struct Monitor {
    hook: HookId,
    /// The index of the binding among the hook's kubernetes bindings.
    index: usize,
    /// Whether the monitor is watching, so that its snapshot can be read.
    started: bool,
    gate: Gate,
}

/// The binding that a monitor serves, with its hook.
#[derive(Debug, Clone, Copy)]
pub(super) struct Served<'a> {
    pub(super) hook: &'a HookId,
    pub(super) config: &'a HookConfig,
    pub(super) binding: &'a KubernetesBinding,
}

/// The end of the first run for a monitor.
#[derive(Debug)]
#[must_use]
pub(super) struct FirstRunOver {
    pub(super) monitor: MonitorId,
    pub(super) hook: HookId,
    pub(super) binding: BindingName,
    /// The changes that the first run has not seen. The hook has to get them.
    pub(super) unseen: Vec<ObjectChange>,
}

/// The settings of a run that do not depend on its binding.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunTerms {
    pub(super) activation: &'static str,
    /// The event that caused the run.
    pub(super) trigger: Trigger,
    /// The deadline of a run if neither its binding nor its hook has one.
    pub(super) deadline: Duration,
}

/// Monitors begin and end.
impl Monitors {
    /// Gives ids to the monitors of a hook, which the shell is about to start. No change reaches the hook yet.
    pub(super) fn name(&mut self, hook: &HookId, bindings: Vec<KubernetesBinding>) -> Vec<MonitorStart> {
        let mut starts = Vec::new();
        for (index, binding) in bindings.into_iter().enumerate() {
            self.last += 1;
            let id = MonitorId(self.last);
            let monitor = Monitor {
                hook: hook.clone(),
                index,
                started: false,
                gate: Gate::Ahead,
            };
            self.known.insert(id, monitor);
            starts.push(MonitorStart { id, binding });
        }
        starts
    }

    /// Starts to collect the changes of those bindings whose objects no first run of the hook will read.
    pub(super) fn tell_of_unread(&mut self, bindings: &Bindings, hook: &HookId) {
        let Some(config) = bindings.get(hook) else { return };
        for monitor in self.known.values_mut().filter(|monitor| monitor.hook == *hook) {
            let Some(binding) = config.kubernetes.get(monitor.index) else {
                continue;
            };
            // Of bindings with equal names, a first run reads only the snapshot of the first binding.
            let mut before = config.kubernetes[..monitor.index].iter();
            if before.any(|other| other.name == binding.name) || !config.has_first_run(binding) {
                monitor.gate = Gate::Unread { since: Vec::new() };
            }
        }
    }

    /// Notes that the shell started the monitors of a hook. Returns their ids in the order of the configuration.
    pub(super) fn watch(&mut self, hook: &HookId) -> Vec<MonitorId> {
        let mut started = Vec::new();
        for (id, monitor) in &mut self.known {
            if monitor.hook == *hook {
                monitor.started = true;
                started.push(*id);
            }
        }
        started
    }

    /// Forgets the monitors of a hook, which the shell could not start.
    pub(super) fn forget(&mut self, hook: &HookId) {
        self.remove(|monitor| monitor.hook == *hook);
    }

    /// Forgets the monitors of these hooks. Returns the ids that the shell has to stop. Ids are never used again.
    #[must_use]
    pub(super) fn stop(&mut self, is_of: impl Fn(&HookId) -> bool) -> Vec<MonitorId> {
        let gone = self.remove(|monitor| is_of(&monitor.hook));
        self.awaited.retain(|id| !gone.contains(id));
        gone
    }

    fn remove(&mut self, matches: impl Fn(&Monitor) -> bool) -> Vec<MonitorId> {
        let gone = self.known.extract_if(.., |_, monitor| matches(monitor));
        gone.map(|(id, _)| id).collect()
    }

    /// Drops all further changes for the owner's hooks, and keeps their snapshots. False if none of their monitors is watching.
    pub(super) fn silence(&mut self, owner: &Owner) -> bool {
        let of_owner = |monitor: &&mut Monitor| monitor.started && monitor.hook.owner == *owner;
        let mut any = false;
        for monitor in self.known.values_mut().filter(of_owner) {
            monitor.gate = Gate::Shut;
            any = true;
        }
        any
    }

    /// Whether changes were dropped for hooks of the owner.
    pub(super) fn is_silenced(&self, owner: &Owner) -> bool {
        let shut = |monitor: &Monitor| monitor.hook.owner == *owner && monitor.gate.is_shut();
        self.known.values().any(shut)
    }
}

/// Changes, and the first runs that changes wait for.
impl Monitors {
    /// Takes a change of an object. Returns it if the hook has to get it now.
    pub(super) fn take(&mut self, bindings: &Bindings, change: ObjectChange) -> Option<ObjectChange> {
        let served = self.binding_of(bindings, change.monitor)?;
        if !served.binding.events.contains(&change.event) {
            return None;
        }
        self.known.get_mut(&change.monitor)?.gate.take(change)
    }

    /// The run of the hook for a change, with the name of its queue.
    pub(super) fn run_for(
        &self,
        bindings: &Bindings,
        terms: RunTerms,
        (change, origin): (ObjectChange, Origin),
    ) -> Option<(QueueName, HookTask)> {
        let Served { hook, binding, .. } = self.binding_of(bindings, change.monitor)?;
        let task = HookTask {
            trigger: terms.trigger,
            hook: hook.clone(),
            labels: labels(binding, &binding.queue, terms),
            contexts: vec![BindingContext::Event {
                told: binding.into(),
                event: change.event,
                name: change.name,
                object: change.view,
            }],
            allow_failure: binding.allow_failure,
            deadline: binding.timeout.unwrap_or(terms.deadline),
            first_runs: Vec::new(),
            is_skipped: false,
            origins: vec![origin],
        };
        Some((binding.queue.clone(), task))
    }

    /// The run of the hook for the objects that a monitor found.
    pub(super) fn first_run(
        &self,
        bindings: &Bindings,
        terms: RunTerms,
        id: MonitorId,
        queue: &QueueName,
    ) -> Option<HookTask> {
        let Served { hook, config, binding } = self.binding_of(bindings, id)?;
        Some(HookTask {
            trigger: terms.trigger,
            hook: hook.clone(),
            labels: labels(binding, queue, terms),
            contexts: vec![BindingContext::Synchronization(binding.into())],
            allow_failure: binding.allow_failure,
            deadline: binding.timeout.unwrap_or(terms.deadline),
            first_runs: vec![id],
            is_skipped: !config.has_first_run(binding),
            origins: Vec::new(),
        })
    }

    /// Notes that a first run for these monitors begins.
    pub(super) fn first_run_begins(&mut self, ids: &[MonitorId]) {
        for id in ids {
            if let Some(monitor) = self.known.get_mut(id) {
                monitor.gate.begin();
            }
        }
    }

    /// Notes that this first run failed and will be tried again.
    pub(super) fn first_run_failed(&mut self, ids: &[MonitorId]) {
        for id in ids {
            if let Some(monitor) = self.known.get_mut(id) {
                monitor.gate.fail();
            }
        }
    }

    /// Notes that the first run for a monitor succeeded, failed where failures are allowed, or was skipped. Returns the
    /// changes that it has not read. `None` for a stopped monitor.
    pub(super) fn first_run_over(
        &mut self,
        bindings: &Bindings,
        id: MonitorId,
        read: Option<u64>,
    ) -> Option<FirstRunOver> {
        self.awaited.remove(&id);
        let Served { hook, binding, .. } = self.binding_of(bindings, id)?;
        let (hook, binding) = (hook.clone(), binding.name.clone());
        let unseen = self.known.get_mut(&id)?.gate.open(read);
        Some(FirstRunOver {
            monitor: id,
            hook,
            binding,
            unseen,
        })
    }

    /// Makes the first converge wait for these first runs of global hooks, which are in other queues.
    pub(super) fn await_first_runs(&mut self, ids: impl IntoIterator<Item = MonitorId>) {
        self.awaited.extend(ids);
    }

    /// Lets the first converge begin without the first runs of this hook.
    pub(super) fn await_no_run_of(&mut self, hook: &HookId) {
        let known = &self.known;
        self.awaited
            .retain(|id| known.get(id).is_none_or(|monitor| monitor.hook != *hook));
    }

    /// The first runs that the first converge waits for.
    pub(super) fn awaited(&self) -> impl ExactSizeIterator<Item = MonitorId> {
        self.awaited.iter().copied()
    }
}

/// Look-ups of the binding that a monitor serves, and of its hook.
impl Monitors {
    /// The binding that a monitor serves, with its hook.
    pub(super) fn binding_of<'a>(&'a self, bindings: &'a Bindings, id: MonitorId) -> Option<Served<'a>> {
        let monitor = self.known.get(&id)?;
        let config = bindings.get(&monitor.hook)?;
        Some(Served {
            hook: &monitor.hook,
            config,
            binding: config.kubernetes.get(monitor.index)?,
        })
    }

    /// The watched bindings of a hook, in the order of the configuration.
    pub(super) fn watched(&self, bindings: &Bindings, hook: &HookId) -> Vec<(BindingName, MonitorId)> {
        let of_hook = self.known.iter().filter(|(_, monitor)| monitor.hook == *hook);
        let started = of_hook.filter(|(_, monitor)| monitor.started);
        started
            .filter_map(|(id, _)| Some((self.binding_of(bindings, *id)?.binding.name.clone(), *id)))
            .collect()
    }

    /// The monitors whose snapshots the contexts include. Of bindings with equal names, the first binding counts.
    pub(super) fn snapshots_of(
        &self,
        bindings: &Bindings,
        hook: &HookId,
        contexts: &[BindingContext],
    ) -> BTreeMap<BindingName, MonitorId> {
        let wanted: BTreeSet<&BindingName> = contexts.iter().flat_map(BindingContext::wanted_snapshots).collect();
        if wanted.is_empty() {
            return BTreeMap::new();
        }
        let watched = self.watched(bindings, hook).into_iter().rev();
        watched.filter(|(name, _)| wanted.contains(name)).collect()
    }
}

fn labels(binding: &KubernetesBinding, queue: &QueueName, terms: RunTerms) -> HookLabels {
    HookLabels {
        cause: Cause::Objects,
        binding_name: binding.name.to_string(),
        queue: queue.to_string(),
        activation: terms.activation,
    }
}
