//! The commands of authors: `module lint`, `test` and `new`, `rbac`, and the check of a ConfigMap.
//!
//! Must never ask a running operator.

pub mod lint;
pub mod new;
pub mod rbac;
pub mod test;

use command::CommandError;
use thiserror::Error;

use crate::cases::CasesError;
use crate::draft::DraftError;
use crate::lint::LintError;
use crate::manifest::NoManifest;
use crate::replaying::ReplayError;
use crate::rights::RightsError;

/// The checked files have problems. The answer has already shown the problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
enum Unsound {
    #[error("there are problems to correct")]
    Found,
    #[error("there are cases that fail")]
    Failing,
}

macro_rules! told {
    ($($error:ty),*) => {$(
        impl From<$error> for CommandError {
            fn from(error: $error) -> Self {
                Self::own(error, Vec::new())
            }
        }
    )*};
}

told!(LintError, CasesError, NoManifest, RightsError, Unsound);

macro_rules! hinted {
    ($($error:ty),*) => {$(
        impl From<$error> for CommandError {
            fn from(error: $error) -> Self {
                let hints = error.hints();
                Self::own(error, hints)
            }
        }
    )*};
}

hinted!(DraftError, ReplayError);
