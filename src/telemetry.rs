//! The log: one record per line on stdout, in the layout that log pipelines of this operator know.
//! Never decides what is worth a record, and never lets two records mix.

mod record;

use std::fmt;
use std::io::{self, Write};

use jiff::Timestamp;
use thiserror::Error;
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};
use tracing_subscriber::reload;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

use crate::secrets::Secrets;
use crate::settings::{ClientLog, LogFormat, LogLevel, LogSettings};

use record::Fields;

/// A field of this name holds a JSON object as text; its members become fields of the record. It is for what only the
/// run knows the names of, as the members of a hook's own JSON log line.
pub const MEMBERS: &str = "record.members";
/// A field of this name holds what the record names as its logger, where that is agreed on and not the path of a module.
pub const LOGGER: &str = "record.logger";

/// What the names of our own modules begin with; everything else is a library.
const OURS: [&str; 2] = ["addon_operator", "addon_core"];
/// Libraries whose talk is about requests to the API server.
const CLIENT: [&str; 4] = ["kube", "kube_client", "kube_runtime", "hyper_util"];
/// Has something to say of each request that failed. All of them come back to us, and we tell what follows from them.
const EVERY_FAILURE: &str = "kube_client::client";

#[derive(Debug, Error)]
pub enum TelemetryError {
    #[error("cannot start the log")]
    Start(#[source] TryInitError),
}

/// Starts the log of the process on stdout, which shows no secret that is known. The handle changes the level at run time.
pub fn start(settings: LogSettings, secrets: Secrets) -> Result<LevelHandle, TelemetryError> {
    let (subscriber, handle) = subscriber(settings, secrets, io::stdout);
    subscriber.try_init().map_err(TelemetryError::Start)?;
    Ok(handle)
}

fn subscriber<W>(settings: LogSettings, secrets: Secrets, writer: W) -> (impl Subscriber + Send + Sync, LevelHandle)
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let LogSettings { level, format, client } = settings;
    let (filter, reload) = reload::Layer::new(targets(level, client));
    let subscriber = Registry::default().with(filter).with(Lines {
        format,
        secrets,
        writer,
    });
    (subscriber, LevelHandle { reload, client })
}

/// Changes what is logged while the program runs.
#[derive(Clone)]
pub struct LevelHandle {
    reload: reload::Handle<Targets, Registry>,
    client: ClientLog,
}

impl LevelHandle {
    /// Without a log any more there is nothing to change.
    pub fn set(&self, level: LogLevel) {
        if let Err(error) = self.reload.reload(targets(level, self.client)) {
            tracing::error!(%error, "the log level cannot be changed");
        }
    }
}

impl fmt::Debug for LevelHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LevelHandle")
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

/// Our own records by the level; libraries only when they are worried, unless they were asked to speak.
fn targets(level: LogLevel, client: ClientLog) -> Targets {
    let level = match level {
        LogLevel::Trace => LevelFilter::TRACE,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Error => LevelFilter::ERROR,
    };
    let targets = Targets::new()
        .with_default(level.min(LevelFilter::WARN))
        .with_targets(OURS.map(|target| (target, level)));
    match client {
        ClientLog::Quiet => targets.with_target(EVERY_FAILURE, LevelFilter::OFF),
        ClientLog::Requests => targets.with_targets(CLIENT.map(|target| (target, LevelFilter::DEBUG))),
    }
}

/// Writes each event as one line.
struct Lines<W> {
    format: LogFormat,
    secrets: Secrets,
    writer: W,
}

impl<S, W> Layer<S> for Lines<W>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    W: for<'w> MakeWriter<'w> + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        for span in context
            .event_scope(event)
            .into_iter()
            .flat_map(tracing_subscriber::registry::Scope::from_root)
        {
            if let Some(outer) = span.extensions().get::<Fields>() {
                fields.extend(outer);
            }
        }
        event.record(&mut fields);
        fields.mask(&self.secrets);
        let line = fields.into_line(self.format, event.metadata(), Timestamp::now());
        // One write, so that the lock of the stream keeps lines whole. A log that cannot be written has nobody to tell.
        drop(self.writer.make_writer_for(event.metadata()).write_all(line.as_bytes()));
    }
}

#[cfg(test)]
mod tests;
