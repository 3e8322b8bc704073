//! The errors of all commands, with the hints for people.
//!
//! Must never hold a hint that a person cannot act on.

use std::io;
use std::path::PathBuf;

use authoring::cases::CasesError;
use authoring::draft::DraftError;
use authoring::lint::LintError;
use authoring::manifest::NoManifest;
use authoring::replaying::ReplayError;
use authoring::rights::RightsError;
use settings::ConfigurationError;
use thiserror::Error;

use super::socket::SocketError;
use crate::app::channel::ChannelError;
use crate::app::confirm::ConfirmError;
use crate::app::outside::OutsideError;
use crate::app::packages::PackageError;
use crate::app::source_edits::SourceEditError;
use crate::app::switch::SwitchError;
use crate::app::versions::ChooseError;

/// Why a command failed.
#[derive(Debug, Error)]
pub(super) enum CommandError {
    #[error(transparent)]
    Settings(#[from] ConfigurationError),
    #[error(transparent)]
    Socket(#[from] SocketError),
    #[error("module not found: {name}")]
    NoSuchModule { name: String },
    #[error("cannot print the answer")]
    Print(#[source] io::Error),
    #[error("cannot wait between two looks")]
    Watch(#[source] io::Error),
    #[error("cannot read {}", file.display())]
    Read { file: PathBuf, source: io::Error },
    #[error("cannot write {}", file.display())]
    Write { file: PathBuf, source: io::Error },
    #[error(transparent)]
    Lint(#[from] LintError),
    #[error(transparent)]
    Cases(#[from] CasesError),
    #[error(transparent)]
    Draft(#[from] DraftError),
    #[error(transparent)]
    NoManifest(#[from] NoManifest),
    #[error(transparent)]
    Package(#[from] PackageError),
    #[error(transparent)]
    Choose(#[from] ChooseError),
    #[error(transparent)]
    Rights(#[from] RightsError),
    #[error("there are problems to correct")]
    Found,
    #[error("not all releases are fit for Kubernetes {version}")]
    Unfit { version: String },
    #[error("the kinds of releases are not judged: {message}")]
    NotJudged { message: String },
    #[error("there are cases that fail")]
    Failing,
    #[error(transparent)]
    Switch(#[from] SwitchError),
    #[error(transparent)]
    Confirm(#[from] ConfirmError),
    #[error(transparent)]
    Channel(#[from] ChannelError),
    #[error(transparent)]
    Outside(#[from] OutsideError),
    #[error(transparent)]
    Source(#[from] SourceEditError),
    #[error("no {key} version of module '{module}' is known")]
    NoVersion { module: String, key: &'static str },
    #[error("nothing is changed: standard input is no terminal, so the question cannot be asked")]
    NobodyToAsk,
    #[error("nothing is changed")]
    NotWanted,
    #[error("nothing is removed: confirm the number of releases, or name the releases to remove")]
    Unconfirmed,
    #[error("nothing is removed: {message}")]
    NotPurged { message: String },
    #[error("the hook is not recorded: {message}")]
    NotRecorded { message: String },
    #[error("{message}")]
    NoRecord { message: String },
    #[error(transparent)]
    Replay(#[from] ReplayError),
    #[error("the run differs from the recorded one")]
    Differs,
    #[error("module is not reloaded: {message}")]
    NotReloaded { message: String },
    #[error("the registry is not asked: {message}")]
    NotChecked { message: String },
    #[error("no upgrade of module '{module}' is held")]
    NothingHeld { module: String },
    #[error("the records of module '{module}' need no repair")]
    NothingToRepair { module: String },
}

impl CommandError {
    pub(super) fn hints(&self) -> Vec<String> {
        match self {
            Self::Socket(error) => error.hints().into_iter().map(str::to_owned).collect(),
            Self::Switch(error) | Self::Source(SourceEditError::Switch(error)) => error.hints(),
            Self::Confirm(error) => error.hints(),
            Self::Channel(error) => error.hints(),
            Self::Outside(error) => error.hints(),
            Self::Package(error) | Self::Choose(ChooseError::Reach(error)) => error.hints(),
            Self::Draft(error) => error.hints(),
            Self::Replay(error) => error.hints(),
            Self::NoSuchModule { .. } => vec!["`addon-operator module list -o wide` names all modules".to_owned()],
            Self::NotPurged { .. } => vec!["`addon-operator module purge` shows what is held, and why".to_owned()],
            Self::NotChecked { .. } => {
                vec!["`addon-operator channel status` shows the state of the channel".to_owned()]
            }
            Self::NoVersion { .. } => {
                vec!["`addon-operator module source status` lists digests, one of which can be given".to_owned()]
            }
            Self::NobodyToAsk => vec!["--yes skips the question".to_owned()],
            Self::Settings(_)
            | Self::Source(_)
            | Self::NotReloaded { .. }
            | Self::NotRecorded { .. }
            | Self::NoRecord { .. }
            | Self::Differs
            | Self::NothingToRepair { .. }
            | Self::Print(_)
            | Self::Choose(_)
            | Self::Watch(_)
            | Self::Read { .. }
            | Self::Write { .. }
            | Self::Lint(_)
            | Self::Cases(_)
            | Self::Rights(_)
            | Self::Found
            | Self::Failing
            | Self::Unfit { .. }
            | Self::NotJudged { .. }
            | Self::Unconfirmed
            | Self::NoManifest(_)
            | Self::NotWanted => Vec::new(),
            Self::NothingHeld { module } => {
                vec![format!(
                    "`addon-operator module why {module}` shows the reason of its wait"
                )]
            }
        }
    }
}
