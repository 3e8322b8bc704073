//! Why the program's own commands fail: the operator refused, or there is nothing to do.
//!
//! Must never hold a hint that a person cannot act on.

use command::Hinted;
use thiserror::Error;

/// The end of a command that did not get what it asked for.
#[derive(Debug, Error)]
pub(super) enum Refusal {
    #[error("module not found: {name}")]
    NoSuchModule { name: String },
    #[error("the time is over, and not all modules are {state}: {modules}")]
    NotReached { state: &'static str, modules: String },
    #[error("not all releases are fit for Kubernetes {version}")]
    Unfit { version: String },
    #[error("the kinds of releases are not judged: {message}")]
    NotJudged { message: String },
    #[error("nothing is removed: confirm the number of releases, or name the releases to remove")]
    Unconfirmed,
    #[error("nothing is removed: {message}")]
    NotPurged { message: String },
    #[error("the hook is not recorded: {message}")]
    NotRecorded { message: String },
    #[error("{message}")]
    NoRecord { message: String },
    #[error("the run differs from the recorded one")]
    Differs,
    #[error("module is not reloaded: {message}")]
    NotReloaded { message: String },
}

impl Hinted for Refusal {
    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::NoSuchModule { .. } => "`addon-operator module list -o wide` names all modules",
            Self::NotPurged { .. } => "`addon-operator module purge` shows what is held, and why",
            Self::NotReached { .. } => "`addon-operator why MODULE` says what a module waits for",
            Self::Unfit { .. }
            | Self::NotJudged { .. }
            | Self::Unconfirmed
            | Self::NotRecorded { .. }
            | Self::NoRecord { .. }
            | Self::Differs
            | Self::NotReloaded { .. } => return Vec::new(),
        };
        vec![hint.to_owned()]
    }
}
