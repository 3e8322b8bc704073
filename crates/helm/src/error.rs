//! Why a call of helm failed, and the remedy for a person. Never shows values.

use std::io;
use std::path::PathBuf;

use addon_core::failure::{Class, Failure};
use child::{Exit, Finished, ProcessError};
use report::Chain;
use report::secrets::Secrets;
use thiserror::Error;

use super::immutable::Immutable;
use super::{NEWEST_MAJOR, OLDEST, outcry};

/// Why a call failed.
#[derive(Debug, Error)]
pub enum HelmError {
    #[error("cannot run helm")]
    Process(#[source] ProcessError),
    #[error("{} is {found}, which addon-operator cannot work with", binary.display())]
    Unsuitable { binary: PathBuf, found: String },
    #[error("cannot {action} release '{release}': helm: {message}")]
    Failed {
        action: &'static str,
        release: String,
        message: String,
        class: Class,
        hint: Option<String>,
        /// The field that the API server lets nobody change, if that is the reason.
        immutable: Option<Box<Immutable>>,
    },
    #[error("cannot read the output of helm for release '{release}'")]
    Output { release: String, source: serde_json::Error },
    #[error("cannot prepare a helm call")]
    Prepare(#[source] io::Error),
}

impl From<HelmError> for Failure {
    fn from(error: HelmError) -> Self {
        let report = Chain(&error).to_string();
        match error {
            HelmError::Process(error) if error.is_shortage() || matches!(error, ProcessError::Stuck { .. }) => error
                .hint()
                .into_iter()
                .fold(Self::new(Class::Unavailable, report), Self::hint),
            HelmError::Process(ProcessError::Start { hint, .. }) => {
                let failure = Self::new(Class::Invalid, report);
                let failure = hint.into_iter().fold(failure, Self::hint);
                failure.hint(suitable())
            }
            HelmError::Process(ProcessError::TimedOut { .. }) => Self::new(Class::TimedOut, report),
            HelmError::Process(ProcessError::Cancelled { .. }) => Self::new(Class::Cancelled, report),
            HelmError::Process(ProcessError::Wait { .. } | ProcessError::Stuck { .. }) | HelmError::Output { .. } => {
                Self::new(Class::Defect, report)
            }
            HelmError::Unsuitable { .. } => Self::new(Class::Invalid, report).hint(suitable()),
            HelmError::Failed { class, hint, .. } => hint.into_iter().fold(Self::new(class, report), Self::hint),
            HelmError::Prepare(_) => Self::new(Class::Unavailable, report),
        }
    }
}

/// The remedy for a helm of an unsuitable version.
fn suitable() -> String {
    format!("install helm {OLDEST} or later, up to helm {NEWEST_MAJOR}, or name it in HELM_BIN")
}

/// The failure of a call. `complaint` is the error of the post-renderer, if helm does not print it.
pub(super) fn failed(
    action: &'static str,
    release: &str,
    finished: &Finished,
    secrets: &Secrets,
    complaint: &str,
) -> HelmError {
    let stderr = finished.stderr.text();
    let outcry::Reading {
        class,
        mut message,
        hint,
        immutable,
    } = outcry::read(&stderr, secrets);
    if !complaint.is_empty() {
        message = format!("{message}: {complaint}");
    }
    // A killed helm prints no error; its earlier output is no explanation.
    let (class, message) = match finished.exit {
        exit @ Exit::Signal(_) => (Class::Unavailable, exit.to_string()),
        exit @ Exit::Code(_) if message.is_empty() => (class, exit.to_string()),
        Exit::Code(_) => (class, message),
    };
    HelmError::Failed {
        action,
        release: release.to_owned(),
        message,
        class,
        hint,
        immutable: immutable.map(Box::new),
    }
}
