//! Schedules: one timer for each distinct crontab text. Times that passed while the program did not run are not made up
//! for. Times that the clock jumps over are run once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clock::{Now, Tick};
use crontab::schedule::Crontab;
use jiff::{SignedDuration, Timestamp};
use names::HookId;

use super::bindings::Bindings;
use super::cx::Cx;
use super::effect::{HookLabels, Notice};
use super::policy::{Mode, Policy};
use super::query::Waiting;
use super::task::{HookTask, Lane, Trigger};
use crate::hook::cause::Cause;
use crate::hook::context::BindingContext;

/// The difference from the monotonic clock from which on the wall clock counts as set. Smaller differences are
/// corrections, and no time comes twice because of them.
const SET: SignedDuration = SignedDuration::from_mins(1);

/// The interval at which the wall clock is checked, because nothing reports that it was set or that the machine slept.
const LOOK: Duration = Duration::from_mins(10);

/// All schedules of all configured hooks.
#[derive(Debug, Clone, Default)]
pub(super) struct Schedules {
    /// The last look at the wall clock.
    seen: Option<Now>,
    timers: BTreeMap<String, Timer>,
    /// Hooks without modules whose schedules are enabled.
    enabled: BTreeSet<HookId>,
}

#[derive(Debug, Clone)]
struct Timer {
    crontab: Crontab,
    /// `None` for a crontab whose time never comes.
    next: Option<Timestamp>,
    /// The hooks with this crontab and the index of the schedule in their configuration: by the name of the hook, then in
    /// the order of the configuration.
    users: Vec<(HookId, usize)>,
}

impl Schedules {
    /// Takes over the schedules that the hooks have now. A timer that stays keeps its next time.
    pub(super) fn rebuild(&mut self, cx: &Cx, bindings: &Bindings) {
        let (policy, wall) = (&cx.policy, cx.now.wall);
        let mut old = std::mem::take(&mut self.timers);
        let counts = |id: &HookId| policy.mode == Mode::Addons || self.enabled.contains(id);
        for (id, config) in bindings.iter().filter(|(id, _)| counts(id)) {
            for (index, binding) in config.schedules.iter().enumerate() {
                let text = binding.crontab.to_string();
                let timer = self.timers.entry(text.clone()).or_insert_with(|| {
                    let kept = old.remove(&text).map(|timer| timer.next);
                    let crontab = binding.crontab.clone();
                    let next = kept.unwrap_or_else(|| crontab.next_after(wall, &policy.time_zone));
                    Timer {
                        crontab,
                        next,
                        users: Vec::new(),
                    }
                });
                timer.users.push((id.clone(), index));
            }
        }
    }

    /// Checks whether the wall clock was set. If it was set back, times that were computed before would come too late, so
    /// they are computed again.
    pub(super) fn look_at_clock(&mut self, now: Now, policy: &Policy) {
        let Some(seen) = self.seen.replace(now) else {
            return;
        };
        let passed = SignedDuration::try_from(now.tick - seen.tick).unwrap_or(SignedDuration::MAX);
        let set = now.wall.duration_since(seen.wall).saturating_sub(passed);
        if set.abs() <= SET {
            return;
        }
        // The next time is searched from the last look on, so that a time since then is not lost.
        let by_new_clock = seen.wall.saturating_add(set).unwrap_or(now.wall);
        for timer in self.timers.values_mut() {
            if timer.crontab.is_period() {
                timer.next = timer.next.and_then(|next| next.checked_add(set).ok());
            } else if set.is_negative() {
                timer.next = timer.crontab.next_after(by_new_clock, &policy.time_zone);
            }
        }
    }

    /// Enables the schedules of this hook. Other conditions may still keep them from running.
    pub(super) fn enable(&mut self, cx: &mut Cx, bindings: &Bindings, hook: HookId) {
        self.enabled.insert(hook.clone());
        self.rebuild(cx, bindings);
        cx.tell(Notice::SchedulesEnabled { hook });
    }

    /// The hooks that are due, by name, each with the index of the schedule in its configuration.
    pub(super) fn due(&mut self, cx: &Cx) -> Vec<(HookId, usize)> {
        let wall = cx.now.wall;
        let mut due = Vec::new();
        for timer in self.timers.values_mut() {
            if timer.next.is_some_and(|next| next <= wall) {
                timer.next = timer.crontab.next_after(wall, &cx.policy.time_zone);
                due.extend(timer.users.iter().cloned());
            }
        }
        due.sort();
        due
    }

    /// The time at which the next schedule is due.
    pub(super) fn timeout(&self, cx: &Cx) -> Option<(Tick, Waiting)> {
        let timers = self.timers.iter();
        let (crontab, next) = timers
            .filter_map(|(text, timer)| Some((text, timer.next?)))
            .min_by_key(|(_, next)| *next)?;
        let wait = Duration::try_from(next.duration_since(cx.now.wall)).unwrap_or_default();
        Some((
            cx.now.tick + wait.min(LOOK),
            Waiting::Schedule {
                crontab: crontab.clone(),
            },
        ))
    }
}

/// The run of a hook for the schedule at this index of its configuration.
pub(super) fn run_of(
    cx: &Cx,
    bindings: &Bindings,
    due: (HookId, usize),
    activation: &'static str,
) -> Option<(Lane, HookTask)> {
    let (hook, index) = due;
    let binding = bindings.get(&hook)?.schedules.get(index)?;
    let lane = Lane::of(&hook.owner, &binding.queue);
    let task = HookTask {
        trigger: Trigger::Schedule,
        labels: HookLabels {
            cause: Cause::Schedule,
            binding_name: binding.name.to_string(),
            queue: binding.queue.to_string(),
            activation,
        },
        contexts: vec![BindingContext::schedule(binding)],
        allow_failure: binding.allow_failure,
        deadline: cx.policy.deadline_of(binding.timeout),
        first_runs: Vec::new(),
        is_skipped: false,
        origins: Vec::new(),
        hook,
    };
    Some((lane, task))
}
