//! Q4 and Q5: a failed head stays the head, its lane starts nothing before its back-off ends, and back-offs are bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use addon_core::failure::Class;
use addon_core::operator::effect::{Effect, HookRun, Job, Notice, StandIn};
use addon_core::operator::event::Event;
use addon_core::operator::query::ModuleReport;
use names::{HookId, ModuleName};

use super::jobs::{aside, lane, lane_of_ended};
use super::{Seen, SimStep, Violation, ensure};
use crate::setup::key_of;
use crate::world::{job_name, owner_name};

/// The first back-off, and the longest one.
const BOUNDS: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(32));

/// Lanes whose heads have failed.
#[derive(Debug, Default)]
pub(super) struct Backoffs {
    asleep: BTreeMap<String, Asleep>,
    /// By lane, the last reported number of failures in a row.
    attempts: BTreeMap<String, u32>,
    /// Modules whose sections changed. They run with the new sections once the verdicts are known again.
    touched: BTreeSet<String>,
    /// The modules among `touched` whose sections changed in this step.
    applied: BTreeSet<String>,
}

#[derive(Debug)]
struct Asleep {
    until: u64,
    /// The hook of the head, if the head is a hook.
    hook: Option<HookId>,
    /// The number of contexts of the failed run.
    contexts: usize,
}

/// The modules whose maintenance changed in this step. They are not taken from the report, which names only one key for
/// each module: if the flag changed, too, the report may name the flag alone.
fn handed_over(step: &SimStep<'_>) -> impl Iterator<Item = String> {
    let held = |seen: &Seen, name: &str| seen.modules.get(name).is_some_and(|module| module.in_maintenance);
    let handed = move |name: &&String| held(step.before, name) != held(step.after, name);
    step.after.modules.keys().filter(handed).map(|name| key_of(name))
}

impl Backoffs {
    pub(super) fn effect(&mut self, step: &SimStep<'_>, effect: &Effect) -> Result<(), Violation> {
        match effect {
            Effect::Tell(notice) => {
                self.lives(step, notice);
                self.notice(step, notice)
            }
            Effect::StartJob(job) => self.start(step, job),
            Effect::CancelJob(_)
            | Effect::Reply(..)
            | Effect::TakeUpFiles(..)
            | Effect::JudgeFiles(..)
            | Effect::StopMonitors(_)
            | Effect::Exit
            | Effect::GiveUp(_) => Ok(()),
        }
    }

    /// Forgets heads whose hook is off when the retry is due: the operator drops them without a report.
    pub(super) fn over(&mut self, step: &SimStep<'_>) {
        let dropped = |asleep: &Asleep| {
            let is_due = asleep.until <= step.clock;
            is_due && asleep.hook.as_ref().is_some_and(|hook| is_off(step, hook))
        };
        self.asleep.retain(|_, asleep| !dropped(asleep));
        self.applied.clear();
    }

    /// Forgets heads whose modules end a life or run at once.
    fn lives(&mut self, step: &SimStep<'_>, notice: &Notice) {
        match notice {
            // The hooks' tasks were dropped, and come at the end of their queues when the module is switched on again.
            Notice::ModuleDeleted { module } => self.hooks_over(module),
            // A new life with other files begins at once.
            Notice::ModuleRenewed { module } => {
                self.asleep.remove(&format!("main of {module}"));
                self.attempts.remove(&format!("main of {module}"));
                self.hooks_over(module);
            }
            // A module that was held until this one is ready runs at once, also if its last run failed.
            Notice::ModuleReady { module, .. } => {
                let modules = step.life.told.modules.iter().flat_map(|(modules, _)| modules.values());
                for spec in modules.filter(|spec| spec.needs.iter().any(|need| need == module.as_str())) {
                    self.asleep.remove(&format!("main of {}", spec.name));
                }
            }
            _ => {}
        }
    }

    fn hooks_over(&mut self, module: &ModuleName) {
        let of_module = |hook: &HookId| hook.owner.module() == Some(module);
        self.asleep
            .retain(|_, asleep| !asleep.hook.as_ref().is_some_and(of_module));
    }

    fn notice(&mut self, step: &SimStep<'_>, notice: &Notice) -> Result<(), Violation> {
        match notice {
            Notice::HookFailed { .. } => self.hook_failed(step, notice),
            Notice::MonitorsFailed { hook, retry_in, .. } => {
                let aside = step.ended.filter(|job| job.is_aside()).map(|_| aside(hook));
                let lane = aside.unwrap_or_else(|| format!("main of {}", owner_name(&hook.owner)));
                self.sleep(step, lane, *retry_in, None)
            }
            Notice::ModuleFailed { module, retry_in, .. } | Notice::ModuleDeleteFailed { module, retry_in, .. } => {
                self.sleep(step, format!("main of {module}"), *retry_in, None)
            }
            Notice::PurgeFailed { release, retry_in, .. } => {
                self.sleep(step, format!("main of {release}"), *retry_in, None)
            }
            // The failed task has left its lane.
            Notice::StandIn(StandIn::Serves { .. }) => {
                self.asleep.remove("main of global");
                Ok(())
            }
            Notice::ScriptFailed { retry_in, .. } => {
                self.wake_main();
                bounded(step, *retry_in)
            }
            Notice::StepFailed { retry_in, .. } => bounded(step, *retry_in),
            Notice::TasksDropped { queue, .. } => {
                self.asleep.remove(&format!("queue {queue}"));
                self.wake_main();
                Ok(())
            }
            Notice::ConfigApplied { keys } => {
                let sections = keys.iter().map(|key| key.trim_end_matches("Maintenance").to_owned());
                self.touched.extend(sections);
                self.touched.extend(handed_over(step));
                self.applied = self.touched.clone();
                self.wake_main();
                Ok(())
            }
            // This may happen when no round waits for the script any more.
            Notice::ScriptLate { .. } => {
                self.wake_touched(step);
                Ok(())
            }
            // The state that the failed work waited for has changed, so a retry at once is right.
            Notice::ConvergeStarted { .. } | Notice::ScriptAnswered { .. } | Notice::ModuleSwitched { .. } => {
                self.wake_main();
                Ok(())
            }
            Notice::HookSucceeded { hook, labels, .. } => {
                self.attempts.remove(&lane_of_ended(step, hook, labels));
                self.asleep.remove(&format!("main of {}", owner_name(&hook.owner)));
                if hook.owner.module().is_none() {
                    self.wake_main();
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn hook_failed(&mut self, step: &SimStep<'_>, notice: &Notice) -> Result<(), Violation> {
        let Notice::HookFailed {
            hook,
            labels,
            retry_in,
            attempts,
            ..
        } = notice
        else {
            return Ok(());
        };
        let owner = owner_name(&hook.owner);
        // The config patch of a failed hook counts, and its module may run at once because of it.
        if step.before.values.get(&owner) != step.after.values.get(&owner) {
            self.asleep.remove(&format!("main of {owner}"));
        }
        let Some(retry_in) = retry_in else { return Ok(()) };
        let lane = lane_of_ended(step, hook, labels);
        self.attempts(&lane, *attempts)?;
        self.sleep(step, lane, *retry_in, Some(hook.clone()))
    }

    /// Q5: a hook in a queue of its own reports its failures one by one.
    fn attempts(&mut self, lane: &str, attempts: u32) -> Result<(), Violation> {
        let before = self.attempts.insert(lane.to_owned(), attempts).unwrap_or_default();
        // The head of the global lane may also have failed at something other than a hook.
        let counted = lane.starts_with("queue ");
        ensure(!counted || attempts == before + 1 || attempts == 1, "Q5", || {
            format!("failure {attempts} in a row of {lane} came after failure {before}")
        })
    }

    fn sleep(
        &mut self,
        step: &SimStep<'_>,
        lane: String,
        retry_in: Duration,
        hook: Option<HookId>,
    ) -> Result<(), Violation> {
        bounded(step, retry_in)?;
        // The failed work had begun with the section from before this step.
        if lane
            .strip_prefix("main of ")
            .is_some_and(|name| self.applied.contains(&key_of(name)))
        {
            return Ok(());
        }
        let contexts = match step.ended {
            Some(Job::RunHook(run, _)) => run.contexts.len(),
            _ => 0,
        };
        let micros = u64::try_from(retry_in.as_micros()).unwrap_or(u64::MAX);
        self.asleep.insert(
            lane,
            Asleep {
                until: step.clock + micros,
                hook,
                contexts,
            },
        );
        Ok(())
    }

    /// Forgets the back-offs of modules whose sections changed. They run with the new sections, unless another script is
    /// asked first.
    fn wake_touched(&mut self, step: &SimStep<'_>) {
        let touched = &self.touched;
        let is_touched = |lane: &str| {
            let name = lane.strip_prefix("main of ");
            name.is_some_and(|name| touched.contains(&key_of(name)))
        };
        self.asleep.retain(|lane, _| !is_touched(lane));
        let is_script = |job: &Job| matches!(job, Job::RunEnabledScript { .. });
        let asks = |effect: &Effect| matches!(effect, Effect::StartJob(job) if is_script(job));
        let running = step.life.running.values().any(|running| is_script(&running.job));
        if !running && !step.effects.iter().any(asks) {
            self.touched.clear();
        }
    }

    fn wake_main(&mut self) {
        self.asleep.retain(|lane, _| !lane.starts_with("main of "));
    }

    fn start(&mut self, step: &SimStep<'_>, job: &Job) -> Result<(), Violation> {
        let Some(lane) = lane(step, job) else { return Ok(()) };
        let Some(asleep) = self.asleep.remove(&lane) else {
            return Ok(());
        };
        ensure(asleep.until <= step.clock || is_new_run(step, &lane), "Q4", || {
            let left = asleep.until - step.clock;
            format!(
                "{} starts for {lane}, {left} µs before the back-off of its head ends",
                job_name(job)
            )
        })?;
        let (Some(failed), Job::RunHook(HookRun { hook, contexts, .. }, _)) = (&asleep.hook, job) else {
            return Ok(());
        };
        if is_off(step, failed) {
            return Ok(());
        }
        ensure(failed == hook || !lane.starts_with("queue "), "Q4", || {
            format!("{hook} runs in {lane}, whose head is {failed}, which failed")
        })?;
        let (before, now) = (asleep.contexts, contexts.len());
        ensure(now >= before || !lane.starts_with("queue "), "Q3", || {
            format!("{hook} failed with {before} contexts and is tried again with {now}")
        })
    }
}

/// Whether a converge started a new run of a module whose last run had failed: that is another task.
fn is_new_run(step: &SimStep<'_>, lane: &str) -> bool {
    let module = lane
        .strip_prefix("main of ")
        .and_then(|name| step.after.modules.get(name));
    step.after.status.converge_tasks > 0 && module.is_some_and(|module| module.enabled && module.failures == 0)
}

/// Whether the hook's module was switched off or has not started again, so that the hook's tasks were dropped.
fn is_off(step: &SimStep<'_>, hook: &HookId) -> bool {
    let idle = |module: &ModuleReport| {
        !module.enabled || ["Disabled", "Deleting", "Configuring", "Starting"].contains(&module.state.as_str())
    };
    let reports = [step.before, step.after].map(|seen| seen.modules.get(&owner_name(&hook.owner)));
    reports.into_iter().flatten().any(idle)
}

/// The longest delay after a run that its deadline ended. The delay is at most as long as the run, and hooks have the
/// longest deadline.
const LONGEST_RUN: Duration = Duration::from_mins(30);

fn bounded(step: &SimStep<'_>, retry_in: Duration) -> Result<(), Violation> {
    let (first, mut longest) = BOUNDS;
    if matches!(step.event, Event::JobFinished(finished) if finished.failure().is_some_and(|failure| failure.class == Class::TimedOut))
    {
        longest = LONGEST_RUN;
    }
    ensure((first..=longest).contains(&retry_in), "Q5", || {
        format!("a back-off of {retry_in:?}")
    })
}
