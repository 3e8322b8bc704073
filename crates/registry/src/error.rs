//! A failed request to a registry: the request, the reason of the failure, and its class.
//!
//! Must never show credentials, and at most one line of a registry's own text.

use std::fmt;
use std::io;
use std::time::Duration;

use addon_core::failure::{Class, Failure};
use channel_core::reference::ImageDigest;
use jiff::Timestamp;
use report::Chain;
use thiserror::Error;

use super::place::{Host, ImagePlace, Reference};
use super::way::WayError;

/// A request to a registry, for errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The repository.
    pub place: ImagePlace,
    /// The requested content.
    pub what: What,
}

/// The content of a repository that was requested or sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A manifest or an index.
    Version(Reference),
    Blob(ImageDigest),
    Tags,
    /// All referrers of a version.
    Referrers(ImageDigest),
    /// A blob that is sent.
    SentBlob(ImageDigest),
    /// A manifest or an index that is sent.
    SentVersion(Reference),
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Version(reference) | What::SentVersion(reference) => write!(f, "{reference}")?,
            What::Blob(digest) | What::SentBlob(digest) => write!(f, "blob {digest}")?,
            What::Tags => f.write_str("the tags")?,
            What::Referrers(digest) => write!(f, "what refers to {digest}")?,
        }
        write!(f, " of {}", self.place)
    }
}

/// A failed request to a registry.
#[derive(Debug, Error)]
pub struct RegistryError {
    /// The request.
    pub asked: Asked,
    /// The host that was asked last: the registry, its server, or a mirror.
    pub server: Host,
    /// The problem for which the registry gave no answer.
    #[source]
    pub problem: Problem,
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.asked.what {
            What::Version(_) | What::Blob(_) | What::Tags | What::Referrers(_) => "get",
            What::SentBlob(_) | What::SentVersion(_) => "send",
        };
        write!(f, "cannot {verb} {}", self.asked)?;
        if self.server != self.asked.place.host {
            write!(f, " from {}", self.server)?;
        }
        Ok(())
    }
}

/// The problem for which there is no usable answer of a registry.
#[derive(Debug, Error)]
pub enum Problem {
    /// The registry says that the content does not exist.
    #[error("it is not there")]
    Absent,
    /// The registry demands a pause.
    #[error("the registry asks to be left alone until {until}")]
    Slow { until: Timestamp },
    /// The registry or its token issuer denies access.
    #[error("access is denied ({status}): {said}")]
    Denied { status: u16, said: String },
    /// The server answered with another unexpected status.
    #[error("the answer is {status}: {said}")]
    Status { status: u16, said: String },
    /// Settings forbid requests to this host.
    #[error("it is none of the registries that may be asked")]
    Foreign,
    /// A step of the request took too long.
    #[error("{step} took longer than {waited:?}")]
    Late { step: &'static str, waited: Duration },
    /// The connection could not be made.
    #[error(transparent)]
    Way(#[from] WayError),
    /// The connection ended too early.
    #[error("the answer breaks off")]
    Cut(#[source] hyper::Error),
    /// The answer is larger than any valid one.
    #[error("the answer is larger than {limit} bytes")]
    Large { limit: usize },
    /// The list is longer than any valid one.
    #[error("there are more than {limit} {what}")]
    Many { what: &'static str, limit: usize },
    /// The content does not have the requested digest.
    #[error("the content has the digest {found} instead of {wanted}")]
    Content { wanted: ImageDigest, found: ImageDigest },
    /// The answer is no description of an image.
    #[error("the answer is of the kind '{0}', which is none of an image")]
    Kind(String),
    /// The answer is not valid JSON.
    #[error("cannot understand the answer")]
    Syntax(#[source] serde_json::Error),
    /// The registry redirects to a place that is not allowed.
    #[error("the registry refers us to '{to}': {why}")]
    Astray { to: String, why: &'static str },
    /// The token issuer's token is not valid in a header.
    #[error("the token that {issuer} issues cannot be used")]
    Token { issuer: String },
    /// The file for the content cannot be written.
    #[error("cannot keep the content")]
    Unkept(#[source] io::Error),
    /// The operator's own credentials cannot be read.
    #[error("cannot read the credentials")]
    Credentials(#[source] Failure),
}

impl Problem {
    pub(super) fn too_many(what: &'static str, limit: usize) -> Self {
        Self::Many { what, limit }
    }
}

impl RegistryError {
    /// Whether the registry answered that the content does not exist.
    pub fn is_absent(&self) -> bool {
        matches!(self.problem, Problem::Absent)
    }

    /// The end of the pause that the registry demands, if it demands one.
    pub fn slow_until(&self) -> Option<Timestamp> {
        match self.problem {
            Problem::Slow { until } => Some(until),
            _ => None,
        }
    }

    /// The remaining time of the pause that the registry demands, if it demands one.
    pub fn pause(&self) -> Option<Duration> {
        let until = self.slow_until()?;
        Some(Duration::try_from(until.duration_since(Timestamp::now())).unwrap_or_default())
    }

    /// The class of the failure, which tells who has to act.
    pub fn class(&self) -> Class {
        match &self.problem {
            Problem::Absent | Problem::Denied { .. } => Class::Refused,
            Problem::Status { status, .. } if *status < 500 => Class::Refused,
            Problem::Slow { .. } | Problem::Status { .. } | Problem::Cut(_) | Problem::Unkept(_) => Class::Unavailable,
            Problem::Late { .. } => Class::TimedOut,
            Problem::Way(error) => error.class(),
            Problem::Credentials(failure) => failure.class,
            Problem::Foreign
            | Problem::Large { .. }
            | Problem::Many { .. }
            | Problem::Content { .. }
            | Problem::Kind(_)
            | Problem::Syntax(_)
            | Problem::Astray { .. }
            | Problem::Token { .. } => Class::Invalid,
        }
    }

    fn hint(&self) -> Option<String> {
        let host = &self.asked.place.host;
        match &self.problem {
            Problem::Foreign => Some(format!(
                "add {host} to the registries of the channel, if it is to be asked"
            )),
            Problem::Denied { .. } => Some(format!(
                "give the operator a pull secret for {} that may read it",
                self.asked.place
            )),
            Problem::Way(error) => error.hint(&self.server),
            _ => None,
        }
    }
}

impl From<RegistryError> for Failure {
    fn from(error: RegistryError) -> Self {
        let failure = Self::new(error.class(), Chain(&error).to_string());
        error.hint().into_iter().fold(failure, Self::hint)
    }
}

#[cfg(test)]
mod tests {
    use channel_core::reference::Tag;

    use super::*;

    fn error(problem: Problem) -> RegistryError {
        let place: ImagePlace = "registry.example/team/app".parse().unwrap();
        RegistryError {
            server: place.host.clone(),
            asked: Asked {
                place,
                what: What::Version(Reference::Tag(Tag::parse("1.4").unwrap())),
            },
            problem,
        }
    }

    #[test]
    fn the_report_names_host_repository_and_reference_once() {
        let mut denied = error(Problem::Denied {
            status: 403,
            said: "no".to_owned(),
        });
        denied.server = "mirror.example".parse().unwrap();
        let failure = Failure::from(denied);
        assert_eq!(
            failure.report,
            "cannot get tag '1.4' of registry.example/team/app from mirror.example: access is denied (403): no"
        );
        assert_eq!(failure.class, Class::Refused);
        assert_eq!(
            failure.hints,
            ["give the operator a pull secret for registry.example/team/app that may read it"]
        );
    }

    #[test]
    fn the_class_tells_who_has_to_act() {
        let status = |status| Problem::Status {
            status,
            said: String::new(),
        };
        for (problem, class) in [
            (Problem::Absent, Class::Refused),
            (Problem::Foreign, Class::Invalid),
            (status(418), Class::Refused),
            (status(502), Class::Unavailable),
            (Problem::Large { limit: 1 }, Class::Invalid),
            (
                Problem::Late {
                    step: "x",
                    waited: Duration::ZERO,
                },
                Class::TimedOut,
            ),
        ] {
            assert_eq!(error(problem).class(), class);
        }
    }
}
