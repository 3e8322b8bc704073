//! Traces: the durations of jobs, sent only to the collector that a setting names (OTLP).
//!
//! A job is a trace, and each program that it runs is a span in it. Without a collector the work is done without
//! tracing. Values and arguments of programs are never in a trace: only names, exit codes and classes of failures.

use std::fmt;
#[cfg(feature = "otlp")]
use std::io;
#[cfg(feature = "otlp")]
use std::path::PathBuf;

use settings::TraceSettings;
use thiserror::Error;

#[cfg(feature = "otlp")]
mod otlp;

/// The attributes of a span.
pub type Attributes = Vec<(&'static str, String)>;

/// The result of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    Well,
    /// A failure in few words, which are the same for all failures of a kind.
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

/// Sends traces. Each clone may end the sending for all clones.
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
    /// Starts sending. It must be called within the async runtime. Whether the collector answers is not known before
    /// the first trace, and is not waited for.
    pub fn start(settings: Option<&TraceSettings>, service: &'static str) -> Result<Self, TracesError> {
        let sender = settings
            .map(|settings| otlp::Sender::start(settings, service))
            .transpose()?;
        Ok(Self { sender })
    }

    /// Does work as a new trace.
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

    /// Sends the remaining spans, within a short time.
    pub async fn stop(self) {
        if let Some(sender) = self.sender {
            sender.stop().await;
        }
    }
}

/// Does work as a span of the current trace, if there is one.
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
    /// Fails if traces are asked for, because this build has no support for them.
    pub fn start(settings: Option<&TraceSettings>, _service: &'static str) -> Result<Self, TracesError> {
        settings.map_or(Ok(Self::default()), |_| Err(TracesError::NotBuilt))
    }

    /// Does the work without a trace.
    pub async fn whole<T>(
        &self,
        _name: &'static str,
        _attributes: impl FnOnce() -> Attributes,
        work: impl Future<Output = T>,
        _ending: impl FnOnce(&T) -> Ending,
    ) -> T {
        work.await
    }

    /// Does nothing.
    #[expect(clippy::unused_async, reason = "with traces there is something to wait for")]
    pub async fn stop(self) {}
}

/// Does the work without a span.
#[cfg(not(feature = "otlp"))]
pub async fn step<T>(
    _name: &'static str,
    _attributes: impl FnOnce() -> Attributes,
    work: impl Future<Output = T>,
    _ending: impl FnOnce(&T) -> Ending,
) -> T {
    work.await
}
