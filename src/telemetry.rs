//! The log: one record per line on stdout, in the layout that log pipelines of this operator know.
//! Never decides what is worth a record, never lets two records mix, and never makes the code wait that writes one.

mod record;
pub mod spool;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt;
use std::io::{self, Write};
use std::panic::PanicHookInfo;
use std::thread;
use std::time::{Duration, Instant};

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

use crate::report::last_words;
use crate::secrets::Secrets;
use crate::settings::{ClientLog, LogFormat, LogLevel, LogSettings};

use record::Fields;
use spool::Spool;

/// A field of this name holds a JSON object as text; its members become fields of the record. It is for what only the
/// run knows the names of, as the members of a hook's own JSON log line.
pub const MEMBERS: &str = "record.members";
/// A field of this name holds what the record names as its logger, where that is agreed on and not the path of a module.
pub const LOGGER: &str = "record.logger";

/// What the names of our own modules begin with; everything else is a library.
const OURS: [&str; 2] = ["addon_operator", "addon_core"];
/// Libraries whose talk is about requests to the API server.
const CLIENT: [&str; 4] = ["kube", "kube_client", "kube_runtime", "hyper_util"];
/// They tell of each request that failed, the second one in Rust's own form. All of these come back to us, and we tell of them in words.
const EVERY_FAILURE: [&str; 2] = ["kube_client::client", "kube_runtime::watcher"];

#[derive(Debug, Error)]
pub enum TelemetryError {
    #[error("cannot start the log")]
    Start(#[source] TryInitError),
    #[error("cannot start the thread that writes the log")]
    Thread(#[source] io::Error),
}

/// Starts the log of the process on stdout, which shows no secret that is known. The handle changes the level at run time.
pub fn start(settings: LogSettings, secrets: Secrets) -> Result<(LevelHandle, Spools), TelemetryError> {
    let spools = Spools::start().map_err(TelemetryError::Thread)?;
    let records = spools.records.clone();
    let (subscriber, handle) = subscriber(settings, secrets, move || records.clone());
    subscriber.try_init().map_err(TelemetryError::Start)?;
    let complaints = spools.complaints.clone();
    std::panic::set_hook(Box::new(move |panic| complaints.put(of_panic(panic).into_bytes())));
    Ok((handle, spools))
}

/// Where everything leaves the process that runs: records on stdout, last words on stderr.
#[derive(Debug, Clone)]
pub struct Spools {
    records: Spool,
    complaints: Spool,
}

impl Spools {
    fn start() -> io::Result<Self> {
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

    /// Says something on stderr, for an end that the log may not see.
    pub fn complain(&self, text: &str) {
        self.complaints.put(format!("{text}\n").into_bytes());
    }

    /// Waits until everything is written, but no longer than that: nobody may be reading it.
    pub fn flush(&self, within: Duration) {
        let end = Instant::now() + within;
        self.complaints.flush(within);
        self.records.flush(end.saturating_duration_since(Instant::now()));
    }

    /// How many records were lost since this was asked last.
    pub fn take_lost(&self) -> usize {
        self.records.take_lost()
    }
}

/// The record of a panic in place of the standard library's, which would wait for its reader.
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
        ClientLog::Quiet => targets.with_targets(EVERY_FAILURE.map(|target| (target, LevelFilter::OFF))),
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
        // One write, so that a line stays whole. A log that cannot be written has nobody to tell.
        drop(self.writer.make_writer_for(event.metadata()).write_all(line.as_bytes()));
    }
}

#[cfg(test)]
mod tests;
