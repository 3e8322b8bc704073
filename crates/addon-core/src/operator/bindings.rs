//! The configurations of all hooks that have answered `--config`, and the set of hooks that have run. Must never run a hook.

use std::collections::{BTreeMap, BTreeSet};

use names::{HookId, HookName, Owner};

use crate::hook::config::{ConfigVersion, HookConfig, RateLimit, Stage};
use crate::module::lifecycle::HookOrder;

/// The configurations of hooks, and the hooks that have succeeded.
#[derive(Debug, Clone, Default)]
pub(super) struct Bindings {
    hooks: BTreeMap<HookId, HookConfig>,
    /// Hooks that have succeeded at least once in this life.
    spoken: BTreeSet<HookId>,
}

impl Bindings {
    pub(super) fn get(&self, hook: &HookId) -> Option<&HookConfig> {
        self.hooks.get(hook)
    }

    /// All hooks with their configurations, by owner and name.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (&HookId, &HookConfig)> {
        self.hooks.iter()
    }

    pub(super) fn of_owner(&self, owner: &Owner) -> impl Iterator<Item = (&HookId, &HookConfig)> {
        self.hooks.iter().filter(move |(id, _)| id.owner == *owner)
    }

    /// Replaces the configurations of an owner's hooks. `hooks` are all hooks of that owner.
    pub(super) fn replace(&mut self, owner: &Owner, hooks: impl IntoIterator<Item = (HookId, HookConfig)>) {
        self.forget(owner);
        self.hooks.extend(hooks);
    }

    /// Forgets the owner's hooks.
    pub(super) fn forget(&mut self, owner: &Owner) {
        self.hooks.retain(|id, _| id.owner != *owner);
    }

    /// Notes that the hook has succeeded. Removals wait until each global hook has, because a hook may enable a module.
    pub(super) fn spoke(&mut self, hook: HookId) {
        self.spoken.insert(hook);
    }

    /// The global hooks that are sure to run by themselves (at start-up, for the first converge, …) and have not succeeded yet.
    pub(super) fn global_hooks_to_speak(&self) -> impl Iterator<Item = &HookId> {
        let has_first_run = |config: &HookConfig| config.kubernetes.iter().any(|one| config.has_first_run(one));
        let runs = move |config: &HookConfig| {
            !config.stages.is_empty() || !config.schedules.is_empty() || has_first_run(config)
        };
        let bound = self.of_owner(&Owner::Global).filter(move |(_, config)| runs(config));
        bound.map(|(id, _)| id).filter(|id| !self.spoken.contains(id))
    }

    /// The version of the hook's configuration format; the newest version for an unknown hook.
    pub(super) fn version(&self, hook: &HookId) -> ConfigVersion {
        self.get(hook).map_or(ConfigVersion::V1, |config| config.version)
    }

    /// The hook's limit of runs; `None` if the hook has no limit.
    pub(super) fn rate_limit(&self, hook: &HookId) -> Option<RateLimit> {
        let limit = self.get(hook)?.rate_limit?;
        (!limit.min_interval.is_zero()).then_some(limit)
    }

    /// The global hooks with a binding of this kind, by the order number of the binding and then by path.
    pub(super) fn global_hooks(&self, stage: Stage) -> Vec<HookId> {
        let owner = Owner::Global;
        let names = self.bound(&owner, stage).into_iter();
        let id = |name| HookId {
            owner: owner.clone(),
            name,
        };
        names.map(id).collect()
    }

    /// The hooks of an owner in the order in which they run.
    pub(super) fn order(&self, owner: &Owner) -> HookOrder {
        let watching = self.of_owner(owner).filter(|(_, config)| !config.kubernetes.is_empty());
        HookOrder {
            startup: self.bound(owner, Stage::OnStartup),
            watching: watching.map(|(id, _)| id.name.clone()).collect(),
            before_helm: self.bound(owner, Stage::BeforeHelm),
            after_helm: self.bound(owner, Stage::AfterHelm),
            before_delete: self.bound(owner, Stage::BeforeDeleteHelm),
            after_delete: self.bound(owner, Stage::AfterDeleteHelm),
        }
    }

    fn bound(&self, owner: &Owner, stage: Stage) -> Vec<HookName> {
        let of_owner = self.of_owner(owner);
        let mut hooks: Vec<_> = of_owner
            .filter_map(|(id, config)| Some((config.order(stage)?, &id.name)))
            .collect();
        hooks.sort();
        hooks.into_iter().map(|(_, name)| name.clone()).collect()
    }
}
