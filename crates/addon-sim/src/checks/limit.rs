//! R6: no hook runs more often than its settings allow.

use std::collections::BTreeMap;

use addon_core::operator::effect::{Effect, HookRun, Job};
use names::HookId;

use super::{SimStep, Violation, ensure};
use crate::world::owner_name;

/// The starts of hooks with settings, in microseconds of the world.
#[derive(Debug, Default)]
pub(super) struct Limits {
    began: BTreeMap<HookId, Vec<u64>>,
}

impl Limits {
    pub(super) fn effect(&mut self, step: &SimStep<'_>, effect: &Effect) -> Result<(), Violation> {
        let Effect::StartJob(Job::RunHook(HookRun { hook, .. }, _)) = effect else {
            return Ok(());
        };
        let specs = step.world.hooks(&owner_name(&hook.owner));
        let spec = specs.iter().find(|spec| spec.name == hook.name.as_str());
        let Some((seconds, burst)) = spec.and_then(|spec| spec.limit) else {
            return Ok(());
        };
        let began = self.began.entry(hook.clone()).or_default();
        began.push(step.clock);
        // In every period there are at most as many runs as the bucket holds and as tokens came in it.
        for (before, start) in began.iter().rev().enumerate() {
            let earned = (step.clock - start) / (seconds * 1_000_000);
            let runs = before as u64 + 1;
            ensure(runs <= burst.max(1) + earned, "R6", || {
                format!("{hook} ran {runs} times since {start}, and may {burst} times and once in {seconds} s")
            })?;
        }
        Ok(())
    }
}
