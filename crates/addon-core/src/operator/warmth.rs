//! What a standby watches already, so that it need not list it when it leads.
//!
//! Only what the first run of a hook will read as a whole: what changes before is then in what it reads, and is told to
//! nobody. A watch that cannot be had is left to the leader, who says so.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Operator;
use super::effect::{Job, JobId, Notice};
use super::event::Done;
use super::jobs::Purpose;
use super::monitors::has_first_run;
use super::task::Lane;
use crate::failure::Failure;
use crate::hook::config::HookConfig;
use crate::name::HookId;

/// The hooks whose monitors were started before their time.
#[derive(Debug, Default)]
pub(super) struct Warmth(BTreeMap<HookId, Warm>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Warm {
    Starting(JobId),
    Watching,
    Cold,
}

impl Operator {
    /// Starts what is not started yet.
    pub(super) fn warm_up(&mut self) {
        // Who lists objects that hooks convert may have to wait for these.
        if self.hooks.values().any(|config| !config.conversions.is_empty()) {
            return;
        }
        let hooks: Vec<HookId> = self
            .hooks
            .iter()
            .filter(|(hook, config)| is_read_at_first(config) && !self.warmth.0.contains_key(hook))
            .map(|(hook, _)| hook.clone())
            .collect();
        for hook in hooks {
            let monitors = self.name_monitors(&hook);
            let job = Job::StartMonitors {
                hook: hook.clone(),
                monitors,
            };
            let id = self.start_job(job, Purpose::Warm(hook.clone()));
            self.warmth.0.insert(hook, Warm::Starting(id));
        }
    }

    /// A standby's start of monitors has ended.
    pub(super) fn warmed(&mut self, hook: HookId, result: &Result<Done, Failure>) {
        let warm = if let Ok(Done::MonitorsStarted) = result {
            self.monitors_watch(&hook);
            Warm::Watching
        } else {
            self.forget_monitors(&hook);
            Warm::Cold
        };
        self.warmth.0.insert(hook, warm);
    }

    /// The head of a lane is to start the monitors of a hook. True if they watch already, or are about to.
    pub(super) fn takes_warm_monitors(&mut self, lane: &Lane, hook: &HookId) -> bool {
        match self.warmth.0.remove(hook) {
            Some(Warm::Watching) => {
                self.queues.running(lane);
                self.monitors_started(lane, hook);
                let (hook, took) = (hook.clone(), Duration::ZERO);
                self.tell(Notice::MonitorsStarted { hook, took });
                true
            }
            Some(Warm::Starting(id)) => {
                let (lane, hook) = (lane.clone(), hook.clone());
                self.queues.running(&lane);
                self.jobs.redirect(id, Purpose::Monitors { lane, hook });
                true
            }
            Some(Warm::Cold) | None => false,
        }
    }
}

/// All that the hook watches is read by a first run.
fn is_read_at_first(config: &HookConfig) -> bool {
    let names: BTreeSet<_> = config.kubernetes.iter().map(|binding| &binding.name).collect();
    let all = config.kubernetes.iter().all(|binding| has_first_run(config, binding));
    // Of equal names only the first is read.
    all && !names.is_empty() && names.len() == config.kubernetes.len()
}
