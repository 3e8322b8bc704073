//! M5: every change is either in the snapshot that a first run read, or reported afterwards, once and in order. M3 for
//! first runs. And no change comes from a stopped monitor.

use std::collections::{BTreeMap, BTreeSet};

use addon_core::hook::context::BindingContext;
use addon_core::operator::effect::{Effect, HookLabels, HookRun, Job, MonitorStart, Notice, StandIn};
use addon_core::operator::event::{Event, Finished, HookRan};
use names::{BindingName, HookId, MonitorId};

use super::jobs::{aside, lane, lane_of, lane_of_ended};
use super::{SimStep, Violation, ensure};
use crate::life::{Life, Seen};
use crate::monitors::told;
use crate::setup::{HookSpec, Watch};
use crate::world::owner_name;

/// The states of all monitors, and of the running hooks.
#[derive(Debug, Default)]
pub(super) struct Monitored {
    known: BTreeMap<MonitorId, Known>,
    stopped: BTreeSet<MonitorId>,
    /// The number of bindings of an owner's hooks, from their configurations.
    bindings: BTreeMap<String, usize>,
    runs: BTreeMap<String, Run>,
}

#[derive(Debug)]
struct Known {
    hook: HookId,
    binding: BindingName,
    watch: Watch,
    started: bool,
    /// Whether the monitor's first run is over.
    open: bool,
    /// The last change that the hook knows of; `None` after a failure that `allowFailure` ignored.
    upto: Option<u64>,
    /// The number of the last change in the contexts of a run.
    last: u64,
    /// Whether the monitor's module was switched off, so that changes need not be reported.
    idle: bool,
    /// Whether a standby prepared the monitor, and no run has taken it.
    warm: bool,
}

/// The objects in the contexts of a hook's run.
#[derive(Debug, Default)]
struct Run {
    labels: Option<HookLabels>,
    firsts: Vec<MonitorId>,
    events: Vec<(MonitorId, u64)>,
    /// The groups in the run's contexts.
    groups: BTreeSet<String>,
    read: BTreeMap<MonitorId, u64>,
}

/// The hooks of an owner as they were at the reading of the directories.
fn hooks<'a>(step: &SimStep<'a>, owner: &str) -> &'a [HookSpec] {
    let known = step.life.told.knows(owner);
    known.map_or(&step.world.setup.global_hooks, |module| &module.hooks)
}

fn watch_of(step: &SimStep<'_>, hook: &HookId, binding: &BindingName) -> Option<Watch> {
    let specs = hooks(step, &owner_name(&hook.owner));
    let spec = specs.iter().find(|spec| spec.name == hook.name.as_str())?;
    let index = binding.as_str().strip_prefix('w')?.parse::<usize>().ok()?;
    spec.watches.get(index).cloned()
}

impl Monitored {
    /// Notes the facts in the event, before its effects.
    pub(super) fn event(&mut self, step: &SimStep<'_>) {
        let Event::JobFinished(finished) = step.event else {
            return;
        };
        match (step.ended, finished) {
            (Some(job @ Job::RunHook(..)), Finished::HookRan(_, Ok(HookRan { read, .. }))) => {
                if let Some(run) = lane(step, job).and_then(|lane| self.runs.get_mut(&lane)) {
                    run.read.clone_from(read);
                }
            }
            (Some(Job::ConfigureHooks(owner, _)), Finished::HooksConfigured(_, Ok(hooks))) => {
                let bindings = hooks.iter().map(|(_, config)| config.kubernetes.len());
                self.bindings.insert(owner_name(owner), bindings.sum());
            }
            (Some(Job::StartMonitors { monitors, .. }), Finished::MonitorsStarted(_, Ok(()))) => {
                for start in monitors {
                    if let Some(known) = self.known.get_mut(&start.id) {
                        known.started = true;
                    }
                }
            }
            (Some(Job::StartMonitors { monitors, .. }), Finished::MonitorsStarted(_, Err(_))) => {
                for start in monitors {
                    self.known.remove(&start.id);
                    self.stopped.insert(start.id);
                }
            }
            _ => {}
        }
    }

    pub(super) fn effect(&mut self, step: &SimStep<'_>, effect: &Effect) -> Result<(), Violation> {
        match effect {
            Effect::StartJob(Job::StartMonitors { hook, monitors, .. }) => self.start(step, hook, monitors),
            Effect::StartJob(job @ Job::RunHook(run, _)) => {
                if let (Some(lane), found) = (lane(step, job), self.run(run)?) {
                    self.skips(step, run, &found)?;
                    let labels = Some(run.labels.clone());
                    self.runs.insert(lane, Run { labels, ..found });
                }
                self.order(step, run)
            }
            Effect::StartJob(Job::SyncRelease { module, .. }) => self.all_open(step, module.as_str(), "M3"),
            Effect::StopMonitors(ids) => {
                for id in ids {
                    let known = self.known.remove(id);
                    ensure(known.is_some() && self.stopped.insert(*id), "W1", || {
                        format!("monitor {} is stopped and does not watch", id.0)
                    })?;
                }
                Ok(())
            }
            Effect::Tell(notice) => self.notice(step, notice),
            _ => Ok(()),
        }
    }

    /// Ends a step: changes for a module that is not to run need not be reported any more.
    pub(super) fn over(&mut self, step: &SimStep<'_>) {
        for known in self.known.values_mut() {
            if let Some(module) = known.hook.owner.module().filter(|_| !known.warm) {
                let report = step.after.modules.get(module.as_str());
                known.idle |= report.is_none_or(|module| !module.enabled || module.state == "Deleting");
            }
        }
    }

    fn start(&mut self, step: &SimStep<'_>, hook: &HookId, starts: &[MonitorStart]) -> Result<(), Violation> {
        // A standby may watch everything.
        if step.world.setup.alone && step.life.leads {
            let before = self.known.values().find(|known| !known.open && !known.warm);
            ensure(before.is_none(), "G2", || {
                format!("the monitors of {hook} are started before {before:?} is open")
            })?;
        }
        for start in starts {
            let used = self.known.contains_key(&start.id) || self.stopped.contains(&start.id);
            ensure(!used, "W1", || format!("the name {} is used twice", start.id.0))?;
            let twice = self
                .known
                .values()
                .find(|known| known.hook == *hook && known.binding == start.binding.name);
            ensure(twice.is_none(), "W1", || format!("{hook} is watched twice: {twice:?}"))?;
            let binding = start.binding.name.clone();
            let watch = watch_of(step, hook, &binding).unwrap_or_default();
            // Changes of a binding without a first run are reported from the beginning of the lead.
            let upto = (step.life.leads || !watch.skips).then_some(0);
            let known = Known {
                hook: hook.clone(),
                watch,
                binding,
                started: false,
                open: false,
                upto,
                last: 0,
                idle: false,
                warm: !step.life.leads,
            };
            self.known.insert(start.id, known);
        }
        Ok(())
    }

    /// Begins a run. The changes in its contexts must be the next ones for the hook.
    fn run(&self, run: &HookRun) -> Result<Run, Violation> {
        let mut found = Run::default();
        let mut next: BTreeMap<MonitorId, u64> = BTreeMap::new();
        for context in &run.contexts {
            found.groups.extend(context.group().map(str::to_owned));
            match context {
                BindingContext::Synchronization(of) => {
                    let of_hook = |known: &Known| known.hook == run.hook && known.binding == of.binding;
                    let monitor = self.known.iter().find(|(_, known)| of_hook(known));
                    let good = monitor.filter(|(_, known)| known.started && !known.open);
                    let Some((id, _)) = good else {
                        let text = format!("{} runs for all of {}, but that is {monitor:?}", run.hook, of.binding);
                        return Err(Violation::new("M5", text));
                    };
                    found.firsts.push(*id);
                }
                BindingContext::Event { object, .. } => {
                    let (id, seq) = told(object).ok_or_else(|| Violation::new("M5", "an object that nobody told"))?;
                    self.tells(run, id, seq, &mut next)?;
                    found.events.push((id, seq));
                }
                _ => {}
            }
        }
        for (name, id) in &run.snapshots {
            let known = self.known.get(id);
            let own = known.is_some_and(|known| known.hook == run.hook && known.binding == *name && known.started);
            ensure(own, "W2", || format!("{} reads {name} from {known:?}", run.hook))?;
        }
        let lacking = run
            .contexts
            .iter()
            .flat_map(BindingContext::wanted_snapshots)
            .find(|name| !run.snapshots.contains_key(*name));
        let removed = run.labels.cause.is_removal();
        ensure(lacking.is_none() || removed, "W2", || {
            format!("{} wants {lacking:?}, which nobody watches", run.hook)
        })?;
        Ok(found)
    }

    /// A run that consists only of first runs must not include the first run of a binding that wants none.
    fn skips(&self, step: &SimStep<'_>, run: &HookRun, found: &Run) -> Result<(), Violation> {
        let is_first = found.firsts.len() == run.contexts.len() && found.groups.is_empty();
        let mut firsts = found.firsts.iter().filter_map(|id| self.known.get(id));
        let skipping = firsts.find(|known| known.watch.skips && is_first && !step.world.setup.alone);
        ensure(skipping.is_none(), "M5", || {
            format!("{} runs for all of {skipping:?}", run.hook)
        })
    }

    fn tells(
        &self,
        run: &HookRun,
        id: MonitorId,
        seq: u64,
        next: &mut BTreeMap<MonitorId, u64>,
    ) -> Result<(), Violation> {
        let Some(known) = self.known.get(&id) else {
            let text = format!("{} is told of a monitor that was stopped: {}", run.hook, id.0);
            return Err(Violation::new("W1", text));
        };
        ensure(known.open && known.hook == run.hook, "M5", || {
            format!(
                "{} is told change {seq} of {known:?} before its first run was over",
                run.hook
            )
        })?;
        // In a group not every change is reported by itself.
        let expected = match (&known.watch.group, known.upto) {
            (None, Some(upto)) => Some(upto + 1),
            _ => None,
        };
        let expected = next
            .insert(id, seq + 1)
            .filter(|_| known.watch.group.is_none())
            .or(expected);
        ensure(
            expected.is_none_or(|expected| seq == expected) && seq > known.last,
            "M5",
            || format!("{} is told change {seq} of {known:?}, next is {expected:?}", run.hook),
        )
    }

    /// Checks the stages that come only after the awaited first runs.
    fn order(&self, step: &SimStep<'_>, run: &HookRun) -> Result<(), Violation> {
        let owner = owner_name(&run.hook.owner);
        match run.labels.cause.key() {
            "beforeAll" if !step.before.status.ready => self.all_open(step, "global", "G2"),
            "beforeHelm" | "afterHelm" => self.all_open(step, &owner, "M3"),
            _ => Ok(()),
        }
    }

    /// Checks that all awaited first runs of the owner are over.
    fn all_open(&self, step: &SimStep<'_>, owner: &str, invariant: &'static str) -> Result<(), Violation> {
        let of_owner = || {
            self.known
                .values()
                .filter(|known| owner_name(&known.hook.owner) == owner)
        };
        let wanted = self.bindings.get(owner).copied().unwrap_or_default();
        let watched = of_owner().filter(|known| known.started && !known.idle).count();
        let passes = owner == "global" && step.has_stand_ins();
        ensure(watched == wanted || passes, invariant, || {
            format!("{owner} goes on with {watched} of {wanted} bindings watched")
        })?;
        let closed =
            of_owner().find(|known| known.watch.is_awaited() && !known.open && !step.has_stand_in(&known.hook));
        ensure(closed.is_none(), invariant, || {
            format!("{owner} goes on before a first run is over: {closed:?}")
        })
    }

    fn notice(&mut self, step: &SimStep<'_>, notice: &Notice) -> Result<(), Violation> {
        match notice {
            Notice::HookSucceeded { hook, labels, .. } => {
                if let Some(run) = self.ended(step, hook, labels) {
                    self.told(hook, &run, true);
                }
            }
            Notice::HookFailed {
                hook, labels, allowed, ..
            } => {
                if let Some(run) = self.ended(step, hook, labels).filter(|_| *allowed) {
                    self.told(hook, &run, false);
                }
            }
            Notice::StandIn(StandIn::Moves { hook, .. }) => {
                if let Some(run) = self.runs.remove(&lane_of(&hook.owner, "main")) {
                    self.runs.insert(aside(hook), run);
                }
            }
            Notice::MonitorsStarted { hook, .. } => {
                for known in self.known.values_mut().filter(|known| known.hook == *hook) {
                    known.warm = false;
                }
            }
            Notice::EventsUnlocked { hook, bindings } => {
                for binding in bindings {
                    let of_hook = |known: &&mut Known| known.hook == *hook && known.binding == *binding;
                    let Some(known) = self.known.values_mut().find(of_hook) else {
                        continue;
                    };
                    // The first run of another binding of the group may have included the first run of this binding.
                    let grouped = known.watch.group.is_some();
                    ensure(known.open || known.watch.skips || known.idle || grouped, "M5", || {
                        format!("{known:?} is unlocked without a first run")
                    })?;
                    known.open = true;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes out the run of a hook that has ended. If its section was saved first, another job than the run's has ended,
    /// which does not tell whether the modules have waited for the run.
    fn ended(&mut self, step: &SimStep<'_>, hook: &HookId, labels: &HookLabels) -> Option<Run> {
        let aside = aside(hook);
        let is_saved = !matches!(step.ended, Some(Job::RunHook(run, _)) if run.hook == *hook);
        let its = self.runs.get(&aside).and_then(|run| run.labels.as_ref());
        let is_aside = is_saved && its == Some(labels);
        let ended = || lane_of_ended(step, hook, labels);
        self.runs.remove(&if is_aside { aside } else { ended() })
    }

    /// Notes that a run succeeded, or failed and was ignored by `allowFailure`.
    fn told(&mut self, hook: &HookId, run: &Run, succeeded: bool) {
        for (id, seq) in &run.events {
            if let Some(known) = self.known.get_mut(id) {
                known.upto = Some(*seq);
                known.last = *seq;
            }
        }
        for id in &run.firsts {
            if let Some(known) = self.known.get_mut(id) {
                known.open = true;
                known.upto = run.read.get(id).copied().filter(|_| succeeded);
            }
        }
        for (id, known) in &mut self.known {
            let in_group = known
                .watch
                .group
                .as_ref()
                .is_some_and(|group| run.groups.contains(group));
            if known.hook == *hook && in_group {
                let read = run.read.get(id).copied().filter(|_| succeeded);
                known.upto = read.map(|read| read.max(known.upto.unwrap_or_default()));
            }
        }
    }

    /// Checks that at rest every hook knows of all changes. There is one exception: a module that was stopped before
    /// its release, because a module that it depends on was switched off. It may still have first runs to do, if they
    /// are steps of its own run.
    pub(super) fn at_rest(&self, life: &Life, seen: &Seen, stuck: &BTreeSet<String>) -> Result<(), Violation> {
        let named = life.named_monitors();
        let watching: BTreeSet<MonitorId> = life.monitors.known.keys().copied().collect();
        ensure(named == watching, "W1", || {
            format!("it has the monitors {named:?}, but {watching:?} watch")
        })?;
        for (id, monitor) in &life.monitors.known {
            let known = self.known.get(id).filter(|known| !known.idle);
            let is_stopped = |name: &str| {
                let state = seen.modules.get(name).map(|module| module.state.as_str());
                stuck.contains(name) && matches!(state, Some("Watching" | "Synchronizing"))
            };
            let may_wait = |known: &Known| known.watch.queue.is_none() && is_stopped(&owner_name(&known.hook.owner));
            let behind = |known: &Known| known.upto.is_some_and(|upto| upto < monitor.seq);
            let missed = known.filter(|known| if known.open { behind(known) } else { !may_wait(known) });
            ensure(missed.is_none(), "M5", || {
                format!(
                    "monitor {} has told {} changes, but its hook knows of {missed:?}",
                    id.0, monitor.seq
                )
            })?;
        }
        Ok(())
    }
}
