//! R8: if the `ConfigMap` and the state Secret are both lost, no release that was made with them is upgraded or removed.

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
    // A program may have made a `ConfigMap` with the same values in its place.
    let is_lost = told.is_lost() && !told.says_anything_of(name);
    let trace = step.life.traces.get(name);
    ensure(!(is_lost && matches!(trace, Some(ConfigTrace::Said(_)))), "R8", || {
        format!("{name} was released with a configuration that is lost, and it is touched")
    })
}
