//! V3 and V5: who may change which values, and that jobs are given the values that are in force.

use addon_core::operator::effect::{Effect, HookRun, Job, Notice};
use addon_core::operator::event::{Done, Event};
use serde_json::Value;

use super::{Step, Violation, ensure};
use crate::setup::key_of;
use crate::world::{document, job_name, owner_name};

/// The end of a hook changes at most the values of its owner; one that trespassed changes none.
pub(super) fn check(step: &Step<'_>, trespassed: bool) -> Result<(), Violation> {
    let Event::JobFinished(_, Ok(Done::HookRan { .. })) = step.event else {
        return Ok(());
    };
    let Some(Job::RunHook(HookRun { hook, .. })) = step.ended else {
        return Ok(());
    };
    let owner = owner_name(&hook.owner);
    for (whose, before) in &step.before.values {
        let after = step.after.values.get(whose);
        // A removal that ends in the same step forgets what the module's hooks had set.
        let deleted = step.effects.iter().any(|effect| match effect {
            Effect::Tell(Notice::ModuleDeleted { module }) => module.as_str() == whose,
            _ => false,
        });
        if (*whose == owner && !trespassed) || deleted {
            continue;
        }
        let name = if trespassed { "V3" } else { "V5" };
        ensure(after == Some(before), name, || {
            format!("{hook} changed the values of {whose} from {before} to {after:?}")
        })?;
    }
    Ok(())
}

/// A job that starts is given what is in force.
pub(super) fn job(step: &Step<'_>, job: &Job) -> Result<(), Violation> {
    let (owner, given) = match job {
        Job::RunHook(HookRun { hook, values, .. }) => (owner_name(&hook.owner), document(values)),
        Job::SyncRelease { module, values } => (module.to_string(), document(values)),
        _ => return Ok(()),
    };
    let key = if owner == "global" {
        owner.clone()
    } else {
        key_of(&owner)
    };
    for (section, whose) in [("global", "global"), (key.as_str(), owner.as_str())] {
        let (given, wanted) = (given.get(section), step.after.values.get(whose));
        ensure(given.is_some() && given == wanted, "V6", || {
            let shown = |value: Option<&Value>| value.map(ToString::to_string).unwrap_or_default();
            format!(
                "{} is given {} as {section}, but in force is {}",
                job_name(job),
                shown(given),
                shown(wanted)
            )
        })?;
    }
    Ok(())
}
