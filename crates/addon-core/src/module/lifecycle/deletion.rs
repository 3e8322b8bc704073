//! The states of a removal. Must never name the uninstall as a step if there is no release of ours.

use super::{Facts, HookOrder, ModuleStep, hook};
use crate::hook::config::Stage;

/// The state of a removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deletion {
    /// The hooks are being asked for their configuration, which was not needed before.
    Configuring,
    /// The hooks before the removal run; the number is the place of the next one.
    BeforeDelete(usize),
    /// The release is being uninstalled.
    Uninstalling,
    /// The hooks after the removal run; the number is the place of the next one.
    AfterDelete(usize),
}

impl Deletion {
    /// Notes the success of the step that [`Deletion::step`] named.
    pub(super) fn succeeded(&mut self) {
        match self {
            Self::Configuring => *self = Self::BeforeDelete(0),
            Self::BeforeDelete(next) | Self::AfterDelete(next) => *next += 1,
            Self::Uninstalling => *self = Self::AfterDelete(0),
        }
    }

    /// Skips steps without work and returns the next one; `None` at the end.
    pub(super) fn step(&mut self, hooks: &HookOrder, facts: Facts) -> Option<ModuleStep> {
        loop {
            match self {
                Self::Configuring => return Some(ModuleStep::Configure),
                Self::BeforeDelete(next) if facts.has_release => match hook(&hooks.before_delete, *next) {
                    Some(name) => return Some(ModuleStep::Hook(Stage::BeforeDeleteHelm, name)),
                    None => *self = Self::Uninstalling,
                },
                Self::BeforeDelete(_) => *self = Self::Uninstalling,
                Self::Uninstalling if facts.has_release => return Some(ModuleStep::Uninstall),
                Self::Uninstalling => *self = Self::AfterDelete(0),
                Self::AfterDelete(next) => {
                    return hook(&hooks.after_delete, *next).map(|name| ModuleStep::Hook(Stage::AfterDeleteHelm, name));
                }
            }
        }
    }
}
