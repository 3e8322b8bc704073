//! What it is called when the patches of a hook cannot be put into force. Must never decide that.

use crate::failure::{Class, Failure};
use crate::name::Owner;
use crate::operator::Operator;
use crate::operator::task::Lane;
use crate::values::patch::{PatchFile, Unacceptable};
use crate::values::{Attempt, Reason, Rejected};

impl Operator {
    /// A refusal of patches, with the hook that made them.
    pub(super) fn refusal(&self, lane: &Lane, rejected: &Rejected) -> Failure {
        let Attempt::Patch(file) = rejected.attempt else {
            return Failure::of(Class::HookFailed, rejected);
        };
        if let Reason::Unacceptable(flag @ Unacceptable::FlagValue { .. }) = &rejected.reason {
            let file = match file {
                PatchFile::Values => "values",
                PatchFile::Config => "config",
            };
            return Failure::of(Class::HookFailed, flag)
                .within(format_args!("apply enabled patches from global {file} patch"));
        }
        let attempt = match (&rejected.owner, file) {
            (Owner::Global, PatchFile::Values) => "dynamic global values update error",
            (Owner::Global, PatchFile::Config) => "kube config global values update error",
            (Owner::Module(_), PatchFile::Values) => "dynamic module values update error",
            (Owner::Module(_), PatchFile::Config) => "kube module config values update error",
        };
        self.of_doing(lane, Failure::of(Class::HookFailed, rejected).within(attempt))
    }

    /// The failure with the name of the hook that runs, or ran, at the head of the lane.
    pub(super) fn of_doing(&self, lane: &Lane, failure: Failure) -> Failure {
        let Some(hook) = self.lanes.doing(lane).map(|doing| &doing.hook) else {
            return failure;
        };
        let name = &hook.name;
        match hook.owner {
            Owner::Global => failure.within(format_args!("global hook '{name}'")),
            Owner::Module(_) => failure.within(format_args!("module hook '{name}'")),
        }
    }
}
