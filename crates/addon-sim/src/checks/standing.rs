//! B1: a standby does nothing that another program could notice. B2: a deposed leader cancels its jobs, and decides
//! nothing more. B3: answers that a standby got are not asked for again. B4: a standby starts no monitors that would not
//! be wanted.

use std::collections::BTreeSet;

use addon_core::operator::effect::{Effect, Job, Notice};
use addon_core::operator::event::{Event, Finished};
use addon_core::operator::query::ModuleReport;
use addon_core::review::reply::Reply;
use names::{HookId, Owner};

use super::{SimStep, Violation, ensure};

pub(super) fn check(step: &SimStep<'_>) -> Result<(), Violation> {
    if !step.life.leads {
        let acts = step.effects.iter().find(|effect| !is_quiet(step, effect));
        ensure(acts.is_none(), "B1", || format!("who stands by does {acts:?}"))?;
    }
    if !step.life.deposed {
        return Ok(());
    }
    let starts = step.effects.iter().find(|effect| matches!(effect, Effect::StartJob(_)));
    ensure(starts.is_none(), "B2", || format!("who leads no more does {starts:?}"))?;
    if !matches!(step.event, Event::Deposed) {
        return Ok(());
    }
    let is_ended = |id| {
        step.effects
            .iter()
            .any(|effect| matches!(effect, Effect::CancelJob(other) if other == id))
    };
    let running = step.life.running.iter().filter(|(_, running)| !running.cancelled);
    let left = running.map(|(id, _)| id).find(|id| !is_ended(*id));
    ensure(left.is_none(), "B2", || {
        format!("job {left:?} goes on, although another one leads")
    })
}

/// Whether an effect is allowed for a standby: to ask hooks for their configuration, to watch, and to reply that no hook
/// can be asked.
fn is_quiet(step: &SimStep<'_>, effect: &Effect) -> bool {
    match effect {
        Effect::StartJob(Job::ConfigureHooks(owner, _)) => would_run(step, owner),
        Effect::StartJob(Job::StartMonitors { hook, .. }) => would_run(step, &hook.owner),
        Effect::StartJob(_) | Effect::TakeUpFiles(..) | Effect::JudgeFiles(..) => false,
        Effect::Reply(_, reply) => matches!(reply, Reply::NoAnswer(_)),
        Effect::Tell(_) | Effect::CancelJob(_) | Effect::StopMonitors(_) | Effect::Exit | Effect::GiveUp(_) => true,
    }
}

fn would_run(step: &SimStep<'_>, owner: &Owner) -> bool {
    owner
        .module()
        .is_none_or(|module| step.life.told.would_run(module.as_str()))
}

/// The preparations of standbys.
#[derive(Debug, Default)]
pub(super) struct Standbys {
    /// Modules whose hooks have answered and that have been certain to run ever since.
    warm: BTreeSet<String>,
}

impl Standbys {
    pub(super) fn check(&mut self, step: &SimStep<'_>) -> Result<(), Violation> {
        if !step.life.leads {
            self.learn(step);
            // The monitors end with the process, so they do not matter during a shutdown.
            if step.life.stopping.is_none() {
                only_wanted_is_watched(step)?;
            }
        }
        let told = &step.life.told;
        // The monitors of a held module are stopped: for a lost configuration, lost values or a trial.
        let held = |module: &String| {
            let is_held = |report: &ModuleReport| report.state == "Held";
            step.after.status.config_lost.contains(module)
                || told.without_values().contains(module)
                || step.after.modules.get(module).is_some_and(is_held)
        };
        let certain = |module: &String| told.runs_for_certain(module, &step.world.setup) && !held(module);
        self.warm.retain(certain);
        for effect in step.effects {
            match effect {
                // The hooks that answered were in other files.
                Effect::TakeUpFiles(module, _) => drop(self.warm.remove(module.as_str())),
                Effect::StartJob(Job::ConfigureHooks(Owner::Module(module), _)) => {
                    ensure(!self.warm.contains(module.as_str()), "B3", || {
                        format!("the hooks of {module} are asked again what they want")
                    })?;
                }
                Effect::Tell(Notice::HooksConfigured {
                    owner: Owner::Module(module),
                    ..
                }) => {
                    self.warm.remove(module.as_str());
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn learn(&mut self, step: &SimStep<'_>) {
        if let (
            Event::JobFinished(Finished::HooksConfigured(_, Ok(_))),
            Some(Job::ConfigureHooks(Owner::Module(module), _)),
        ) = (step.event, step.ended)
        {
            self.warm.insert(module.to_string());
        }
    }
}

fn only_wanted_is_watched(step: &SimStep<'_>) -> Result<(), Violation> {
    // The operator knows the success of a start only when the job's end is reported.
    let is_starting = |hook: &HookId| {
        let mut jobs = step.life.running.values().map(|running| &running.job);
        jobs.any(|job| matches!(job, Job::StartMonitors { hook: other, .. } if other == hook))
    };
    let is_ended = |id| {
        let mut effects = step.effects.iter();
        effects.any(|effect| matches!(effect, Effect::StopMonitors(ids) if ids.contains(id)))
    };
    let mut watching = step.life.monitors.known.iter();
    let unwanted = watching.find(|(id, monitor)| {
        let hook = &monitor.hook;
        !would_run(step, &hook.owner) && !is_starting(hook) && !is_ended(id)
    });
    ensure(unwanted.is_none(), "B4", || {
        format!("who stands by watches for a module that would not run: {unwanted:?}")
    })
}
