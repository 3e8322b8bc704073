//! The log: one record per line on stdout, in the layout that log pipelines for this operator know. Never decides what
//! is worth a record, never mixes two records, and never makes the writing code wait.

mod record;
pub mod spool;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt;
use std::io::{self, Write};
use std::panic::PanicHookInfo;
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use report::last_words;
use report::secrets::Secrets;
use settings::{ClientLog, LogFormat, LogLevel, LogSettings};
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

use record::Fields;
use spool::Spool;

/// The name of a field with a JSON object as text, whose members become fields of the record. It is for names that are
/// known only at run time, such as the members of a hook's own JSON log line.
pub const MEMBERS: &str = "record.members";
/// The name of a field with the record's logger, if the logger is fixed and not the module's path.
pub const LOGGER: &str = "record.logger";

/// The program's own crates that log; all other records come from libraries.
const OURS: [&str; 21] = [
    "addon_operator",
    "channel",
    "child",
    "config_map",
    "helm",
    "hooks",
    "jobs",
    "kube_access",
    "leadership",
    "objects",
    "page",
    "parts",
    "registry",
    "releases",
    "saved_state",
    "sources",
    "status_objects",
    "telling",
    "traces",
    "watches",
    "webhooks",
];
/// Libraries whose records are about requests to the API server.
const CLIENT: [&str; 4] = ["kube", "kube_client", "kube_runtime", "hyper_util"];
/// Modules that log every failed request, the second one in Rust's debug format. They are switched off, because the
/// operator logs these failures itself.
const EVERY_FAILURE: [&str; 2] = ["kube_client::client", "kube_runtime::watcher"];

#[derive(Debug, Error)]
pub enum TelemetryError {
    #[error("cannot start the log")]
    Start(#[source] TryInitError),
    #[error("cannot start the thread that writes the log")]
    Thread(#[source] io::Error),
}

/// Starts the log of the process on stdout, with masked secrets. The handle changes the level at run time.
pub fn start(settings: LogSettings, secrets: Secrets) -> Result<(LevelHandle, Spools), TelemetryError> {
    let spools = Spools::start().map_err(TelemetryError::Thread)?;
    let records = spools.records.clone();
    let (subscriber, handle) = subscriber(settings, secrets, move || records.clone());
    subscriber.try_init().map_err(TelemetryError::Start)?;
    let complaints = spools.complaints.clone();
    std::panic::set_hook(Box::new(move |panic| complaints.put(of_panic(panic).into_bytes())));
    Ok((handle, spools))
}

/// The output queues of the process: records on stdout, final messages on stderr.
#[derive(Debug, Clone)]
pub struct Spools {
    records: Spool,
    complaints: Spool,
}

impl Spools {
    /// The queues without a log, for a program that keeps none.
    pub fn start() -> io::Result<Self> {
        let tell = |records: usize| {
            tracing::warn!(
                records,
                "Log records were lost, because standard output was not read in time"
            );
        };
        Ok(Self {
            records: Spool::start("log", io::stdout(), tell)?,
            complaints: Spool::start("stderr", io::stderr(), |_| {})?,
        })
    }

    /// Writes a message to stderr, for an end that may not reach the log.
    pub fn complain(&self, text: &str) {
        self.complaints.put(format!("{text}\n").into_bytes());
    }

    /// Waits until everything is written, up to a time: the output may have no reader.
    pub fn flush(&self, within: Duration) {
        let end = Instant::now() + within;
        self.complaints.flush(within);
        self.records.flush(end.saturating_duration_since(Instant::now()));
    }

    /// The number of records that were lost since the last call.
    pub fn take_lost(&self) -> usize {
        self.records.take_lost()
    }
}

/// The log record of a panic. It replaces the standard library's message, which would block without a reader.
fn of_panic(panic: &PanicHookInfo<'_>) -> String {
    let name = thread::current().name().unwrap_or("without a name").to_owned();
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let mut text = format!(
        "thread '{name}' panicked at {place}:\n{}\n",
        last_words(panic.payload())
    );
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        text.push_str(&backtrace.to_string());
        text.push('\n');
    }
    text
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

/// Changes the log level at run time.
#[derive(Clone)]
pub struct LevelHandle {
    reload: reload::Handle<Targets, Registry>,
    client: ClientLog,
}

impl LevelHandle {
    /// Sets the level. Without a log there is nothing to change.
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

/// The filter: the operator's own records by level; the records of libraries only from warnings on, unless a setting
/// asks for more.
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
        ClientLog::Quiet => targets.with_targets(EVERY_FAILURE.map(|target| (target, LevelFilter::OFF))),
        ClientLog::Requests => targets.with_targets(CLIENT.map(|target| (target, LevelFilter::DEBUG))),
    }
}

/// Writes each record as one line.
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
        // One write keeps the line whole. If the log cannot be written, there is nowhere to report it.
        drop(self.writer.make_writer_for(event.metadata()).write_all(line.as_bytes()));
    }
}

#[cfg(test)]
mod tests;
