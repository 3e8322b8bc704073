//! Schedules: one timer per distinct crontab text. A time that was missed is not made up for.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::Operator;
use super::effect::HookLabels;
use super::policy::Policy;
use super::query::Waiting;
use super::task::{HookTask, Lane, Task};
use crate::hook::config::HookConfig;
use crate::hook::context::BindingContext;
use crate::hook::crontab::Crontab;
use crate::name::{HookId, Owner, QueueName};
use crate::time::Tick;

/// All schedules of all configured hooks.
#[derive(Debug, Default)]
pub(super) struct Schedules {
    timers: BTreeMap<String, Timer>,
}

#[derive(Debug)]
struct Timer {
    crontab: Crontab,
    /// `None` for one that never comes.
    next: Option<Timestamp>,
    /// Hooks, and which of their schedules: in hook-name order, then in that of the configuration.
    users: Vec<(HookId, usize)>,
}

impl Schedules {
    /// Takes over what the hooks say now; a timer that goes on keeps its next time.
    pub(super) fn rebuild(&mut self, hooks: &BTreeMap<HookId, HookConfig>, policy: &Policy, wall: Timestamp) {
        let mut old = std::mem::take(&mut self.timers);
        for (id, config) in hooks {
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
}

impl Operator {
    /// Puts the hooks whose time has come into their queues.
    pub(super) fn fire_schedules(&mut self) {
        let wall = self.now.wall;
        let mut due = Vec::new();
        for timer in self.schedules.timers.values_mut() {
            if timer.next.is_some_and(|next| next <= wall) {
                timer.next = timer.crontab.next_after(wall, &self.policy.time_zone);
                due.extend(timer.users.iter().cloned());
            }
        }
        due.sort();
        for (hook, index) in due {
            if self.takes_schedules(&hook) {
                self.fire(hook, index);
            }
        }
    }

    /// Schedules count from the end of the first converge on, those of a module once its start-up is over.
    fn takes_schedules(&self, hook: &HookId) -> bool {
        self.converge.first_done
            && match &hook.owner {
                Owner::Global => true,
                Owner::Module(name) => self
                    .modules
                    .get(name)
                    .is_some_and(|unit| unit.enabled && unit.life.takes_events()),
            }
    }

    fn fire(&mut self, hook: HookId, index: usize) {
        let Some(binding) = self.hooks.get(&hook).and_then(|config| config.schedules.get(index)) else {
            return;
        };
        let lane = match &hook.owner {
            _ if binding.queue != QueueName::main() => Lane::Named(binding.queue.clone()),
            Owner::Global => Lane::Global,
            Owner::Module(name) => Lane::Module(name.clone()),
        };
        let labels = HookLabels {
            binding: "schedule",
            binding_name: binding.name.to_string(),
            queue: binding.queue.to_string(),
            activation: self.converge.activation(),
        };
        let contexts = vec![BindingContext::schedule(binding)];
        let task = HookTask {
            hook,
            labels,
            contexts,
            allow_failure: binding.allow_failure,
        };
        self.queues.push(lane, Task::Hook(task), self.now.tick);
    }

    pub(super) fn schedule_timeout(&self) -> Option<(Tick, Waiting)> {
        let timers = self.schedules.timers.iter();
        let (crontab, next) = timers
            .filter_map(|(text, timer)| Some((text, timer.next?)))
            .min_by_key(|(_, next)| *next)?;
        let wait = std::time::Duration::try_from(next.duration_since(self.now.wall)).unwrap_or_default();
        Some((
            self.now.tick + wait,
            Waiting::Schedule {
                crontab: crontab.clone(),
            },
        ))
    }
}
