//! Q4 and Q5: a failed head stays the head, its lane starts nothing before its back-off ends, and back-offs are bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use addon_core::failure::Class;
use addon_core::name::HookId;
use addon_core::operator::effect::{Effect, HookLabels, HookRun, Job, Notice};
use addon_core::operator::event::Event;
use addon_core::operator::query::ModuleReport;

use super::jobs::{lane, lane_of};
use super::{Seen, SimStep, Violation, ensure};
use crate::setup::key_of;
use crate::world::{job_name, owner_name};

/// The first back-off is this long, and none is longer than the second.
const BOUNDS: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(32));

/// Lanes whose heads have failed.
#[derive(Debug, Default)]
pub(super) struct Backoffs {
    asleep: BTreeMap<String, Asleep>,
    /// Failures in a row, as they were told.
    attempts: BTreeMap<String, u32>,
    /// Modules whose sections changed, which will run with them once it is known again who is to run.
    touched: BTreeSet<String>,
    /// Those of this step.
    applied: BTreeSet<String>,
}

#[derive(Debug)]
struct Asleep {
    until: u64,
    /// Which hook is the head, if it is one.
    hook: Option<HookId>,
    /// How many contexts the failed run had.
    contexts: usize,
}

fn hook_lane(hook: &HookId, labels: &HookLabels) -> String {
    lane_of(&hook.owner, &labels.queue)
}

/// A key stands for all that was changed with it: a module that is given back together with a flag is told by the flag.
fn handed_over(step: &SimStep<'_>) -> impl Iterator<Item = String> {
    let held = |seen: &Seen, name: &str| seen.modules.get(name).is_some_and(|module| module.in_maintenance);
    let handed = move |name: &&String| held(step.before, name) != held(step.after, name);
    step.after.modules.keys().filter(handed).map(|name| key_of(name))
}

impl Backoffs {
    pub(super) fn effect(&mut self, step: &SimStep<'_>, effect: &Effect) -> Result<(), Violation> {
        match effect {
            Effect::Tell(notice) => self.notice(step, notice),
            Effect::StartJob(job) => self.start(step, job),
            Effect::CancelJob(_) | Effect::Reply(..) | Effect::StopMonitors(_) | Effect::Exit | Effect::GiveUp(_) => {
                Ok(())
            }
        }
    }

    /// A head that is tried again when its hook is off is dropped, and says nothing.
    pub(super) fn over(&mut self, step: &SimStep<'_>) {
        let dropped = |asleep: &Asleep| {
            let is_due = asleep.until <= step.clock;
            is_due && asleep.hook.as_ref().is_some_and(|hook| is_off(step, hook))
        };
        self.asleep.retain(|_, asleep| !dropped(asleep));
        self.applied.clear();
    }

    fn notice(&mut self, step: &SimStep<'_>, notice: &Notice) -> Result<(), Violation> {
        match notice {
            Notice::HookFailed { .. } => self.hook_failed(step, notice),
            // Its hooks have no place in any queue, and stand at the end when they come back.
            Notice::ModuleDeleted { module } => {
                let gone = |hook: &HookId| hook.owner.module() == Some(module);
                self.asleep.retain(|_, asleep| !asleep.hook.as_ref().is_some_and(gone));
                Ok(())
            }
            Notice::MonitorsFailed { hook, retry_in, .. } => {
                let lane = format!("main of {}", owner_name(&hook.owner));
                self.sleep(step, lane, *retry_in, None)
            }
            Notice::ModuleFailed { module, retry_in, .. } | Notice::ModuleDeleteFailed { module, retry_in, .. } => {
                self.sleep(step, format!("main of {module}"), *retry_in, None)
            }
            Notice::PurgeFailed { release, retry_in, .. } => {
                self.sleep(step, format!("main of {release}"), *retry_in, None)
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
            // That may be when nobody waits for a script any more.
            Notice::ScriptLate { .. } => {
                self.wake_touched(step);
                Ok(())
            }
            // What was waited for changed: trying again at once is right.
            Notice::ConvergeStarted { .. } | Notice::ScriptAnswered { .. } | Notice::ModuleSwitched { .. } => {
                self.wake_main();
                Ok(())
            }
            Notice::HookSucceeded { hook, labels, .. } => {
                self.attempts.remove(&hook_lane(hook, labels));
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
        // Its config patch counts although the hook does not, and its module may run with it at once.
        if step.before.values.get(&owner) != step.after.values.get(&owner) {
            self.asleep.remove(&format!("main of {owner}"));
        }
        let Some(retry_in) = retry_in else { return Ok(()) };
        let lane = hook_lane(hook, labels);
        self.attempts(&lane, *attempts)?;
        self.sleep(step, lane, *retry_in, Some(hook.clone()))
    }

    /// A hook that stands in line by itself counts its failures one by one.
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
        // What failed had begun with the section from before this step.
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

    /// Those whose sections changed go on with them, unless a further script is asked first.
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
        let Some(lane) = lane(job) else { return Ok(()) };
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

/// A converge let a module run whose last run had failed: its turn has come, and another task begins.
fn is_new_run(step: &SimStep<'_>, lane: &str) -> bool {
    let module = lane
        .strip_prefix("main of ")
        .and_then(|name| step.after.modules.get(name));
    step.after.status.converge_tasks > 0 && module.is_some_and(|module| module.enabled && module.failures == 0)
}

/// The hook's module was switched off, or has not started again, so that the hook has no place in its queue any more.
fn is_off(step: &SimStep<'_>, hook: &HookId) -> bool {
    let idle = |module: &ModuleReport| {
        !module.enabled || ["Disabled", "Deleting", "Configuring", "Starting"].contains(&module.state.as_str())
    };
    let reports = [step.before, step.after].map(|seen| seen.modules.get(&owner_name(&hook.owner)));
    reports.into_iter().flatten().any(idle)
}

/// A run that its deadline ended is left alone for as long as it took at most; the longest deadline is that of hooks.
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
