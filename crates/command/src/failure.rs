//! Why a command failed, with hints for people. Errors of one capability come as text.
//!
//! Must never hold a hint that a person cannot act on.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use settings::ConfigurationError;
use thiserror::Error;

use crate::edit::EditError;
use crate::outside::OutsideError;
use crate::socket::SocketError;

/// Why a command failed.
#[derive(Debug, Error)]
pub enum CommandError {
    #[error(transparent)]
    Settings(#[from] ConfigurationError),
    #[error(transparent)]
    Socket(#[from] SocketError),
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error(transparent)]
    Outside(#[from] OutsideError),
    #[error("cannot print the answer")]
    Print(#[source] io::Error),
    #[error("cannot wait between two looks")]
    Watch(#[source] io::Error),
    #[error("cannot read {}", file.display())]
    Read { file: PathBuf, source: io::Error },
    #[error("cannot write {}", file.display())]
    Write { file: PathBuf, source: io::Error },
    #[error("nothing is changed: standard input is no terminal, so the question cannot be asked")]
    NobodyToAsk,
    #[error("nothing is changed")]
    NotWanted,
    #[error(transparent)]
    Own(Own),
}

/// The error of one capability's commands.
#[derive(Debug)]
pub struct Own {
    error: Box<dyn Error + Send + Sync>,
    hints: Vec<String>,
}

impl fmt::Display for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Error for Own {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

impl CommandError {
    /// The failure of a capability, with hints for a person.
    pub fn own(error: impl Error + Send + Sync + 'static, hints: Vec<String>) -> Self {
        let error = Box::new(error);
        Self::Own(Own { error, hints })
    }

    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Socket(error) => error.hints().into_iter().map(str::to_owned).collect(),
            Self::Edit(error) => error.hints(),
            Self::Outside(error) => error.hints(),
            Self::Own(own) => own.hints.clone(),
            Self::NobodyToAsk => vec!["--yes skips the question".to_owned()],
            Self::Settings(_)
            | Self::Print(_)
            | Self::Watch(_)
            | Self::Read { .. }
            | Self::Write { .. }
            | Self::NotWanted => Vec::new(),
        }
    }
}
