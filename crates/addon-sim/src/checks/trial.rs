//! Y1: on trial nothing is removed, and no hook of a removal runs. Y2: on trial no existing CRD is changed, and its
//! module is not released. Y3: after a trial that was not passed, the sections that hooks saved are put back, unless
//! people edited them. Y4: after a passed trial nothing is held for it.

use addon_core::operator::effect::{Effect, Job};
use addon_core::operator::event::{Event, Finished, TrialStage};
use addon_core::operator::policy::OnTrial;
use addon_core::operator::query::HeldBy;
use channel_core::trial::record::Ruling;

use super::{SimStep, Violation, ensure};
use crate::life::Seen;
use crate::world::World;

pub(super) fn check(step: &SimStep<'_>) -> Result<(), Violation> {
    if let Event::JobFinished(Finished::SectionsSettled(_, Ok(_))) = step.event {
        nothing_is_left(step.world)?;
    }
    if step.life.on_trial == OnTrial::No {
        let held = removals(step.after);
        return ensure(held.is_empty(), "Y4", || {
            format!("nobody is on trial, and held for one are {held:?}")
        });
    }
    for effect in step.effects {
        match effect {
            Effect::StartJob(Job::DeleteRelease { release, .. }) => {
                return Err(Violation::new("Y1", format!("{release} is removed on trial")));
            }
            Effect::StartJob(Job::RunHook(run, _)) => {
                let of_removal = run.labels.cause.is_removal();
                ensure(!of_removal, "Y1", || {
                    format!("{} runs on trial for a removal", run.hook)
                })?;
            }
            Effect::StartJob(Job::EnsureCrds { modules, on_trial, .. }) => {
                ensure(*on_trial == OnTrial::Yes, "Y2", || {
                    format!("CRDs of {modules:?} may be changed on trial")
                })?;
            }
            Effect::StartJob(Job::SyncRelease { module, .. }) => {
                let is_other = step.waits_for_trial(module.as_str());
                ensure(!is_other, "Y2", || {
                    format!("{module} is released, and its CRDs are not as it wants them")
                })?;
            }
            Effect::StartJob(Job::SaveConfig { key, on_trial, .. }) => {
                ensure(*on_trial == OnTrial::Yes, "Y3", || {
                    format!("{key} is saved on trial, and not noted")
                })?;
            }
            Effect::StartJob(Job::SettleSections(ruling, _)) => {
                return Err(Violation::new(
                    "Y3",
                    format!("sections are settled on trial, by {ruling:?}"),
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Y3, Y4: all saved sections were put back or forgotten, and nothing waits for the end of the trial.
pub(super) fn at_rest(world: &World, seen: &Seen) -> Result<(), Violation> {
    let noted = world
        .secret
        .as_ref()
        .is_some_and(|state| !state.trial_sections.is_empty());
    ensure(!noted, "Y3", || {
        "at rest there are notes of sections that were saved on trial".to_owned()
    })?;
    let held = holds(seen);
    ensure(held.is_empty(), "Y4", || {
        format!("at rest there are held for a trial: {held:?}")
    })?;
    nothing_is_left(world)
}

fn nothing_is_left(world: &World) -> Result<(), Violation> {
    let is_back = matches!(
        world.trial.stage,
        Some(TrialStage::Ended(Ruling::Failed | Ruling::Unclear | Ruling::Void))
    );
    let left = world.trial.left(world.config.data.as_ref()).filter(|_| is_back);
    ensure(left.is_none(), "Y3", || {
        format!("{left:?} was written on trial and by nobody else, and is not what it was before")
    })
}

/// The reports that name the trial. After a verdict, modules go on with the next converge, removals at once.
fn holds(seen: &Seen) -> Vec<String> {
    let modules = seen.status.held_by_trial.iter().cloned();
    removals(seen).into_iter().chain(modules).collect()
}

fn removals(seen: &Seen) -> Vec<String> {
    let held = seen.status.held.iter().filter(|held| held.by == HeldBy::Trial);
    held.map(|held| held.release.clone()).collect()
}
