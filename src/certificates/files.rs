//! Certificates that another program keeps in files: a mounted Secret, mostly.
//!
//! They are read again whenever they are asked for, so that a renewal is seen without a restart.

use std::io;
use std::path::{Path, PathBuf};

use addon_core::failure::{Class, Failure};
use thiserror::Error;

use super::material::{Pem, Texts};

/// Where they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// The certificate of the listener.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Its authority.
    pub ca: PathBuf,
}

/// A file that cannot be read.
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
    /// None of the files exists: we are not meant to use any.
    pub fn are_absent(&self) -> bool {
        ![&self.cert, &self.key, &self.ca].iter().any(|path| path.exists())
    }

    /// Reads all three.
    pub fn read(&self) -> Result<Texts, Unread> {
        Ok(Texts {
            cert: read("certificate", &self.cert)?,
            key: read("private key", &self.key)?,
            ca: read("CA certificate", &self.ca)?,
        })
    }
}

pub(super) fn read(what: &'static str, path: &Path) -> Result<Pem, Unread> {
    // The error of this crate's `fs_err` would name the path a second time.
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
