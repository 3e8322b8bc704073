//! The steps of a preview by module, in the order in which they begin.

use std::collections::{BTreeMap, VecDeque};

use addon_core::operator::preview::{Release, Step};
use names::Owner;
use releases::crd::foresight::Brought;
use releases::sync::foresight::Change;

use crate::document::{HookPlan, ValuesOf};
use crate::outcome::Foresight;

/// The steps of a preview by module.
#[derive(Default)]
pub(crate) struct Course {
    pub(crate) order: Vec<String>,
    /// The modules whose CRDs are ensured. A converge does so for all of them at once, so this is not the order in which they begin.
    pub(crate) crds: BTreeMap<String, Crds>,
    pub(crate) of: BTreeMap<String, OfModule>,
}

/// The steps of a module's CRDs.
#[derive(Default)]
pub(crate) struct Crds {
    /// The changes of the last step, which is compared with the cluster of now, as all are.
    pub(crate) changes: Vec<Change>,
    /// The kinds that are there before all releases.
    pub(crate) early: Vec<Brought>,
    /// The kinds that come later.
    pub(crate) late: Vec<Brought>,
}

/// The steps of one module.
#[derive(Default)]
pub(crate) struct OfModule {
    pub(crate) hooks: Vec<HookPlan>,
    pub(crate) release: Option<Box<Release>>,
    /// Whether its release is removed.
    pub(crate) is_removed: bool,
    /// Whether it is switched off. It may have no release to remove.
    pub(crate) is_off: bool,
}

impl Course {
    /// The steps of a module, which come after all noted so far if it has none yet.
    pub(crate) fn at(&mut self, module: &str) -> &mut OfModule {
        if !self.of.contains_key(module) {
            self.order.push(module.to_owned());
        }
        self.of.entry(module.to_owned()).or_default()
    }

    /// Notes a step. The runs of global hooks are added to `of_all`.
    pub(crate) fn note(&mut self, step: &Step, of_all: &mut Vec<HookPlan>, foresight: &mut Foresight) {
        match step {
            Step::Hook { hook, cause, is_known } => {
                let (tried, last) = (
                    foresight.patches.get(hook),
                    if *is_known { ValuesOf::LastRun } else { ValuesOf::NoRun },
                );
                let plan = HookPlan {
                    hook: hook.name.to_string(),
                    binding: cause.to_string(),
                    values: tried.map_or(last, |_| ValuesOf::Try),
                    patches: tried.cloned().unwrap_or_default(),
                };
                let hooks = match &hook.owner {
                    Owner::Global => of_all,
                    Owner::Module(module) => &mut self.at(module.as_str()).hooks,
                };
                if !hooks.contains(&plan) {
                    hooks.push(plan);
                }
            }
            Step::Crds(module) => {
                let is_early = self.of.values().all(|of| of.release.is_none());
                let Some(foreseen) = foresight.crds.get_mut(module).and_then(VecDeque::pop_front) else {
                    return;
                };
                let crds = self.crds.entry(module.to_string()).or_default();
                crds.changes = foreseen.changes;
                let kinds = if is_early { &mut crds.early } else { &mut crds.late };
                kinds.extend(foreseen.brought);
            }
            Step::Release(release) => {
                let of = self.at(release.module.as_str());
                (of.release, of.is_removed) = (Some(release.clone()), false);
            }
            Step::Removal(release) => self.at(release).is_removed = true,
        }
    }
}
