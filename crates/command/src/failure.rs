//! Why a command failed, with hints for people. Each capability has errors of its own, which come boxed.
//!
//! Must never hold a hint that a person cannot act on.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use settings::ConfigurationError;
use thiserror::Error;

use crate::socket::SocketError;

/// An error that ends a command.
pub trait Hinted: Error + Send + Sync + 'static {
    /// The steps that a person can take, a line each.
    fn hints(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Hinted for ConfigurationError {}

/// Why a command failed.
#[derive(Debug, Error)]
pub enum CommandError {
    #[error(transparent)]
    Socket(#[from] SocketError),
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
pub struct Own(Box<dyn Hinted>);

impl fmt::Display for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Own {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

impl<E: Hinted> From<E> for CommandError {
    fn from(error: E) -> Self {
        Self::Own(Own(Box::new(error)))
    }
}

impl CommandError {
    /// The steps that a person can take, a line each.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Socket(error) => error.hints().into_iter().map(str::to_owned).collect(),
            Self::Own(Own(error)) => error.hints(),
            Self::NobodyToAsk => vec!["--yes skips the question".to_owned()],
            Self::Print(_) | Self::Watch(_) | Self::Read { .. } | Self::Write { .. } | Self::NotWanted => Vec::new(),
        }
    }
}
