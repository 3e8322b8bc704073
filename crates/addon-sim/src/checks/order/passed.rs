//! H4, and the hooks that modules need not wait for: failures that count as the end of a run.

use addon_core::failure::{Class, Failure};
use addon_core::operator::effect::HookLabels;
use names::HookId;

use super::super::{SimStep, Violation, ensure};
use super::Order;
use crate::world::owner_name;

impl Order {
    /// Lets the global hooks that stand-ins serve for count as hooks that succeeded.
    pub(super) fn pass_over(&mut self, step: &SimStep<'_>) {
        let hooks = self.hooks("global").iter().map(|hook| hook.name.clone());
        let passed: Vec<String> = hooks.filter(|hook| step.is_passed_over(hook)).collect();
        for stage in ["onStartup", "beforeAll", "afterAll"] {
            let succeeded = self.passed.entry(("global".to_owned(), stage)).or_default();
            succeeded.extend(passed.iter().cloned());
        }
    }

    /// H4: a failure is ignored if the binding has `allowFailure`, and only then.
    pub(super) fn passing(
        &self,
        hook: &HookId,
        labels: &HookLabels,
        failure: &Failure,
        allowed: bool,
    ) -> Result<(), Violation> {
        // The hook may end after its module was removed, when its configuration is forgotten.
        let Some(specs) = self.configured.get(&owner_name(&hook.owner)) else {
            return Ok(());
        };
        let index = labels
            .binding_name
            .strip_prefix(['s', 'w'])
            .and_then(|index| index.parse::<usize>().ok());
        let spec = specs.iter().find(|spec| spec.name == hook.name.as_str()).zip(index);
        let may = spec.is_some_and(|(spec, index)| match labels.cause.key() {
            "schedule" => spec.schedules.get(index).is_some_and(|one| one.allow_failure),
            "kubernetes" => spec.watches.get(index).is_some_and(|one| one.allow_failure),
            _ => false,
        });
        let wanted = may && failure.class != Class::Defect;
        ensure(allowed == wanted, "H4", || {
            format!(
                "a failure of {hook} at {} is let pass: {allowed}, but should be: {wanted}",
                labels.binding_name
            )
        })
    }
}
