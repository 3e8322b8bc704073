//! Which jobs may run at the same time: Q1, M4, M7, and the slots.

use std::collections::{BTreeMap, BTreeSet};

use addon_core::operator::effect::{Effect, HookLabels, HookRun, Job, JobId};
use addon_core::operator::event::Event;
use names::{HookId, Owner};

use super::patience::{self, Patience};
use super::scripts::Scripts;
use super::{SimStep, Violation, ensure};
use crate::world::{asked_of, job_name, owner_name};

/// The job ids that were used.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    used: BTreeSet<JobId>,
    scripts: Scripts,
    patience: Patience,
}

/// The lane of a job: a named queue, or the lane of a module, of a release, or the global one.
pub(super) fn lane(step: &SimStep<'_>, job: &Job) -> Option<String> {
    match job {
        Job::RunHook(HookRun { hook, .. }, _) | Job::StartMonitors { hook, .. } if step.life.is_aside(job) => {
            Some(aside(hook))
        }
        Job::RunHook(run, _) if asked_of(run).is_some() => None,
        Job::RunHook(HookRun { hook, labels, .. }, _) => Some(lane_of(&hook.owner, &labels.queue)),
        Job::StartMonitors { hook, .. } => Some(format!("main of {}", owner_name(&hook.owner))),
        Job::ConfigureHooks(Owner::Module(module), _) | Job::SyncRelease { module, .. } => {
            Some(format!("main of {module}"))
        }
        Job::DeleteRelease { release, .. } => Some(format!("main of {release}")),
        Job::ConfigureHooks(Owner::Global, _)
        | Job::EnsureCrds { .. }
        | Job::EnsureConversions(..)
        | Job::LoadState(_)
        | Job::SaveState { .. }
        | Job::SaveValuesFiles(..)
        | Job::SaveGiven(..)
        | Job::ReadDirectories(_)
        | Job::ListReleases(_)
        | Job::WatchReleases { .. }
        | Job::RunEnabledScript { .. }
        | Job::PublishWebhooks(..)
        | Job::Vet(..)
        | Job::JudgeEdit(..)
        | Job::SettleSections(..)
        | Job::SaveConfig { .. } => None,
    }
}

/// The lane of a hook with this owner and queue. Start-up hooks of a world without modules have no queue name and run
/// in `main`.
pub(super) fn lane_of(owner: &Owner, queue: &str) -> String {
    match queue {
        "main" | "" => format!("main of {}", owner_name(owner)),
        queue => format!("queue {queue}"),
    }
}

/// The lane of a global hook that the modules do not wait for.
pub(super) fn aside(hook: &HookId) -> String {
    format!("aside of {}", hook.name)
}

/// The lane of a hook that has ended in this step.
pub(super) fn lane_of_ended(step: &SimStep<'_>, hook: &HookId, labels: &HookLabels) -> String {
    let aside = step.ended.filter(|job| step.life.is_aside(job)).map(|_| aside(hook));
    aside.unwrap_or_else(|| lane_of(&hook.owner, &labels.queue))
}

/// A name that two running jobs must not share, even if they are in different lanes.
fn alone(job: &Job) -> Option<String> {
    match job {
        Job::SyncRelease { module, .. } => Some(format!("release {module}")),
        Job::DeleteRelease { release, .. } => Some(format!("release {release}")),
        Job::SaveConfig { key, .. } => Some(format!("section {key}")),
        Job::LoadState(_) | Job::SaveState { .. } => Some("state".to_owned()),
        Job::SettleSections(..) => Some("sections of a trial".to_owned()),
        Job::SaveValuesFiles(..) => Some("values files".to_owned()),
        Job::SaveGiven(..) => Some("values of global hooks".to_owned()),
        Job::ReadDirectories(_) => Some("directories".to_owned()),
        Job::StartMonitors { hook, .. } => Some(format!("monitors of {hook}")),
        Job::PublishWebhooks(..) => Some("webhooks".to_owned()),
        Job::WatchReleases { .. } => Some("releases".to_owned()),
        Job::JudgeEdit(..) => Some("edits".to_owned()),
        Job::EnsureCrds { .. }
        | Job::EnsureConversions(..)
        | Job::Vet(..)
        | Job::ConfigureHooks(..)
        | Job::ListReleases(_)
        | Job::RunHook(..)
        | Job::RunEnabledScript { .. } => None,
    }
}

/// M7: a script is not started again before it has answered.
fn script(job: &Job) -> Option<String> {
    match job {
        Job::RunEnabledScript { module, .. } => Some(format!("the script of {module}")),
        _ => None,
    }
}

impl Jobs {
    pub(super) fn check(&mut self, step: &SimStep<'_>, starts: &[&Job]) -> Result<(), Violation> {
        for effect in step.effects {
            self.effect(step, effect, starts.len())?;
        }
        self.scripts.check(step)?;
        self.patience.note(step);
        self.patience.nobody_waits(step)?;
        if step.life.stopping.is_some() {
            ensure(starts.is_empty(), "M7", || {
                format!("{} starts after a shutdown was asked for", job_name(starts[0]))
            })?;
        }
        gives_up(step)?;
        if starts.is_empty() {
            return Ok(());
        }
        let running: Vec<&Job> = step
            .life
            .running
            .values()
            .map(|running| &running.job)
            .chain(starts.iter().copied())
            .collect();
        let warming = step.life.running.values().filter(|running| running.warms);
        let warming: Vec<&Job> = warming.map(|running| &running.job).collect();
        let stands_in_line = |job: &&&Job| step.life.leads && !warming.iter().any(|other| std::ptr::eq(*other, **job));
        let in_line: Vec<&Job> = running.iter().filter(stands_in_line).copied().collect();
        at_most_one(&in_line, "Q1", |job| lane(step, job))?;
        at_most_one(&running, "M4", alone)?;
        at_most_one(&running, "Z1", script)?;
        let is_hook = |job: &&Job| match job {
            Job::RunHook(run, _) => asked_of(run).is_none(),
            // A late script has no slot, and neither has a job that was started as a preparation of a standby.
            Job::RunEnabledScript { module, .. } => !self.scripts.is_late(module),
            Job::ConfigureHooks(Owner::Module(_), _) => stands_in_line(&job) || !step.life.leads,
            job => matches!(job, Job::ConfigureHooks(..)),
        };
        let begun = step.effects.iter().filter_map(|effect| match effect {
            Effect::StartJob(job) => Some((job.id(), job)),
            _ => None,
        });
        let all = step
            .life
            .running
            .iter()
            .map(|(id, running)| (*id, &running.job))
            .chain(begun);
        let hooks = self.patience.held(step, all.clone().filter(|(_, job)| is_hook(job)));
        let helms = self.patience.held(step, all.filter(|(_, job)| patience::is_helm(job)));
        self.patience.slots(step, hooks, helms)
    }

    fn effect(&mut self, step: &SimStep<'_>, effect: &Effect, starts: usize) -> Result<(), Violation> {
        match effect {
            Effect::StartJob(job) => ensure(self.used.insert(job.id()), "J1", || {
                format!("the name {} is used twice", job.id())
            }),
            Effect::CancelJob(id) => ensure(step.life.running.contains_key(id), "J1", || {
                format!("job {id} is cancelled, but does not run")
            }),
            Effect::Exit => {
                let running = step.life.running.len() + starts;
                ensure(running == 0 && step.life.stopping.is_some(), "M7", || {
                    format!("it ends while {running} jobs run, or without being asked to")
                })
            }
            Effect::GiveUp(_) => {
                let refused = matches!(step.ended, Some(Job::ConfigureHooks(Owner::Global, _)));
                ensure(refused && step.world.setup.alone, "M7", || {
                    "it gives up without a hook that says no".to_owned()
                })
            }
            Effect::Reply(..)
            | Effect::TakeUpFiles(..)
            | Effect::JudgeFiles(..)
            | Effect::StopMonitors(_)
            | Effect::Tell(_) => Ok(()),
        }
    }
}

/// Without modules the process ends if a hook's configuration cannot be had.
fn gives_up(step: &SimStep<'_>) -> Result<(), Violation> {
    let refused = matches!(step.event, Event::JobFinished(finished) if finished.failure().is_some())
        && matches!(step.ended, Some(Job::ConfigureHooks(Owner::Global, _)));
    let may_go_on = !step.world.setup.alone || step.life.stopping.is_some();
    let given_up = step.effects.iter().any(|effect| matches!(effect, Effect::GiveUp(_)));
    ensure(!refused || may_go_on || given_up, "M7", || {
        "it goes on although its hooks cannot say what they want".to_owned()
    })
}

fn at_most_one(jobs: &[&Job], invariant: &'static str, key: impl Fn(&Job) -> Option<String>) -> Result<(), Violation> {
    let mut taken: BTreeMap<String, &Job> = BTreeMap::new();
    for job in jobs {
        let Some(key) = key(job) else { continue };
        if let Some(other) = taken.insert(key.clone(), job) {
            let text = format!(
                "{} and {} run at a time, both for {key}",
                job_name(other),
                job_name(job)
            );
            return Err(Violation::new(invariant, text));
        }
    }
    Ok(())
}
