//! Certificates in files that another program maintains, usually a mounted Secret.
//!
//! The files are read at each use, so that a renewal takes effect without a restart.

use std::io;
use std::path::{Path, PathBuf};

use addon_core::failure::{Class, Failure};
use thiserror::Error;

use super::material::{Pem, Texts};

/// The paths of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// The certificate of the listener.
    pub cert: PathBuf,
    /// The key of the certificate.
    pub key: PathBuf,
    /// The authority of the certificate.
    pub ca: PathBuf,
}

/// Why a file cannot be read.
#[derive(Debug, Error)]
#[error("cannot read the webhooks' {what} {}", path.display())]
pub struct Unread {
    what: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl From<Unread> for Failure {
    fn from(error: Unread) -> Self {
        Self::of(Class::Invalid, &error).hint("is the Secret with the certificates mounted there?")
    }
}

impl Files {
    /// Whether none of the files exists: then files are not used.
    pub fn are_absent(&self) -> bool {
        ![&self.cert, &self.key, &self.ca].iter().any(|path| path.exists())
    }

    /// Reads all three files.
    pub fn read(&self) -> Result<Texts, Unread> {
        Ok(Texts {
            cert: read("certificate", &self.cert)?,
            key: read("private key", &self.key)?,
            ca: read("CA certificate", &self.ca)?,
        })
    }
}

pub(super) fn read(what: &'static str, path: &Path) -> Result<Pem, Unread> {
    // The text already has the path, which the error of `fs_err` would repeat.
    let text = fs_err::read(path).map_err(|error| Unread {
        what,
        path: path.to_owned(),
        source: error.kind().into(),
    })?;
    Ok(Pem {
        place: path.display().to_string(),
        text,
    })
}
