//! The commands of authors: `module lint`, `test` and `new`, `rbac`, and the check of a ConfigMap.
//!
//! Must never ask a running operator.

pub mod lint;
pub mod new;
pub mod rbac;
pub mod test;

use command::Hinted;
use thiserror::Error;

use crate::cases::CasesError;
use crate::lint::LintError;
use crate::manifest::NoManifest;
use crate::rights::RightsError;

/// The checked files have problems. The answer has already shown the problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
enum Unsound {
    #[error("there are problems to correct")]
    Found,
    #[error("there are cases that fail")]
    Failing,
}

impl Hinted for Unsound {}
impl Hinted for CasesError {}
impl Hinted for LintError {}
impl Hinted for NoManifest {}
impl Hinted for RightsError {}
