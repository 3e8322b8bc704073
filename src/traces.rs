//! Traces: the durations of jobs, sent only to the collector that a setting names (OTLP).
//!
//! A job is a trace; a program that it runs is a step of it. Without a collector, work is only passed through.
//! Never holds values or arguments of programs: only names, exit codes and classes of failures.

use std::fmt;
#[cfg(feature = "otlp")]
use std::io;
#[cfg(feature = "otlp")]
use std::path::PathBuf;

use thiserror::Error;

use crate::settings::TraceSettings;

#[cfg(feature = "otlp")]
mod otlp;

/// What is told of a piece of work besides its name and its time.
pub type Attributes = Vec<(&'static str, String)>;

/// How a piece of work ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    Well,
    /// In few words, the same for all failures of a kind.
    Badly(String),
}

#[derive(Debug, Error)]
pub enum TracesError {
    #[error("this program was built without traces, and TRACING_OTLP_ENDPOINT asks for them")]
    NotBuilt,
    #[cfg(feature = "otlp")]
    #[error("cannot prepare to send traces to {endpoint}")]
    Exporter {
        endpoint: String,
        source: opentelemetry_otlp::ExporterBuildError,
    },
    #[cfg(feature = "otlp")]
    #[error("cannot read the certificate authorities for the collector of traces")]
    Unread(#[source] io::Error),
    #[cfg(feature = "otlp")]
    #[error("cannot use {} as certificate authorities for the collector of traces: {problem}", file.display())]
    Authorities { file: PathBuf, problem: &'static str },
    #[error("TRACING_OTLP_AUTH_TOKEN holds characters that a header must not hold")]
    Token,
}

/// Where traces go. Of several clones, any may end it for all.
#[derive(Clone, Default)]
pub struct Traces {
    #[cfg(feature = "otlp")]
    sender: Option<otlp::Sender>,
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traces").finish_non_exhaustive()
    }
}

#[cfg(feature = "otlp")]
impl Traces {
    /// To be called within the runtime that sends them. Whether the collector is there is not known before the first
    /// trace, and not waited for.
    pub fn start(settings: Option<&TraceSettings>, service: &'static str) -> Result<Self, TracesError> {
        let sender = settings
            .map(|settings| otlp::Sender::start(settings, service))
            .transpose()?;
        Ok(Self { sender })
    }

    /// Does a piece of work that belongs to no other.
    pub async fn whole<T>(
        &self,
        name: &'static str,
        attributes: impl FnOnce() -> Attributes,
        work: impl Future<Output = T>,
        ending: impl FnOnce(&T) -> Ending,
    ) -> T {
        match &self.sender {
            Some(sender) => otlp::span(sender.tracer(), name, attributes(), work, ending).await,
            None => work.await,
        }
    }

    /// Sends what has not been sent, for which there is little time.
    pub async fn stop(self) {
        if let Some(sender) = self.sender {
            sender.stop().await;
        }
    }
}

/// Does a piece of work that is a step of another, if that one is traced.
#[cfg(feature = "otlp")]
pub async fn step<T>(
    name: &'static str,
    attributes: impl FnOnce() -> Attributes,
    work: impl Future<Output = T>,
    ending: impl FnOnce(&T) -> Ending,
) -> T {
    match otlp::tracer_of_whole() {
        Some(tracer) => otlp::span(tracer, name, attributes(), work, ending).await,
        None => work.await,
    }
}

#[cfg(not(feature = "otlp"))]
impl Traces {
    /// Refuses what it cannot do.
    pub fn start(settings: Option<&TraceSettings>, _service: &'static str) -> Result<Self, TracesError> {
        settings.map_or(Ok(Self::default()), |_| Err(TracesError::NotBuilt))
    }

    /// Does the work.
    pub async fn whole<T>(
        &self,
        _name: &'static str,
        _attributes: impl FnOnce() -> Attributes,
        work: impl Future<Output = T>,
        _ending: impl FnOnce(&T) -> Ending,
    ) -> T {
        work.await
    }

    /// There is nothing to send.
    #[expect(clippy::unused_async, reason = "with traces there is something to wait for")]
    pub async fn stop(self) {}
}

/// Does the work.
#[cfg(not(feature = "otlp"))]
pub async fn step<T>(
    _name: &'static str,
    _attributes: impl FnOnce() -> Attributes,
    work: impl Future<Output = T>,
    _ending: impl FnOnce(&T) -> Ending,
) -> T {
    work.await
}
