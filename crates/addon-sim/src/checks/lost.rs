//! R8: with the `ConfigMap` and the state Secret both lost nothing is upgraded or removed that was made with them.

use addon_core::operator::effect::{Effect, Job};
use addon_core::release::ConfigTrace;

use super::{SimStep, Violation, ensure};

pub(super) fn check(step: &SimStep<'_>, effect: &Effect) -> Result<(), Violation> {
    let name = match effect {
        Effect::StartJob(Job::SyncRelease { module, .. }) => module.as_str(),
        Effect::StartJob(Job::DeleteRelease { release, .. }) => release.as_str(),
        _ => return Ok(()),
    };
    let told = &step.life.told;
    // A program may have put the same in its place.
    let is_lost = told.is_lost() && !told.says_anything_of(name);
    let trace = step.life.traces.get(name);
    ensure(!(is_lost && matches!(trace, Some(ConfigTrace::Said(_)))), "R8", || {
        format!("{name} was released with a configuration that is lost, and it is touched")
    })
}
