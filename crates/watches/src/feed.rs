//! One watch: a list, then its changes, continued from the same position whenever the connection is lost.
//!
//! It always knows the version up to which all changes were taken, and continues from there. Only if the server no
//! longer has that version, all objects are listed again and the differences are reported. A watch that brings neither
//! an object nor a bookmark for longer than the bound allows is not trusted: it is dropped, and a request on another
//! connection must show that the server answers and that no change was missed. Must never end while a monitor needs it.

mod listing;
mod showing;

use std::sync::Arc;
use std::time::Duration;

use addon_core::failure::{Class, Failure};
use addon_core::object::snapshot::PartId;
use kube::core::ApiResource;
use kube_access::kinds::KindError;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{debug, info, warn};

use super::heard::{Heard, advance, is_before, read_line, unusable};
use super::ledger::Viewer;
use super::observation::Observation;
use super::reader::{Answer, Condition};
use super::selection::Selection;
use super::shared::Shared;
use super::stream::{Lines, Source};
use super::trouble::{Pause, Trouble, WatchError};

/// A watch that has lasted this long counts as working.
const TRIAL: Duration = Duration::from_secs(1);
/// A retry time up to this is no refusal: a server asks for it while it sets up a new CRD.
const SOON: Duration = Duration::from_secs(2);
/// The number of objects that are processed before other tasks get their turn.
const BATCH: usize = 64;
/// The time without an answer to a list after which the reader is told.
const OVERDUE: Duration = Duration::from_secs(3);

/// The state of a watch.
pub(super) struct Feed {
    shared: Arc<Shared>,
    id: PartId,
    source: Source,
    wake: Arc<Notify>,
    place: Progress,
    pause: Pause,
    /// Whether the last connection may have withheld changes, or may have led to a restored store.
    doubt: bool,
    /// Whether the next list is read in pages, because the streaming list got no answer.
    paged: bool,
    /// Whether the API server no longer serves the kind, so that the watch waits until it does.
    unserved: bool,
    told: Option<String>,
}

/// The position in the watch.
#[derive(Default)]
enum Progress {
    /// Unknown: a list has to come next.
    #[default]
    Lost,
    /// All changes up to this resource version are known; no watch runs.
    At(String),
    /// All changes up to the resource version of the watch are known, and the watch brings more.
    Following(Box<Watch>),
}

struct Watch {
    lines: Lines,
    version: String,
    /// The time of the last event.
    heard: Instant,
    /// Whether the watch has not yet shown that it works.
    on_trial: bool,
}

/// Whether and where a kind is served, after its objects were not found.
enum Whereabouts {
    Here,
    Elsewhere(ApiResource),
    Nowhere(Failure),
}

/// The event that ends a wait for the next line of the watch.
enum Event {
    Line(Result<Heard, Trouble>),
    Wanted,
    Silence,
}

impl Feed {
    pub(super) fn new(shared: Arc<Shared>, id: PartId, source: Source, wake: Arc<Notify>) -> Self {
        Self {
            shared,
            id,
            source,
            wake,
            place: Progress::Lost,
            pause: Pause::default(),
            doubt: false,
            paged: false,
            unserved: false,
            told: None,
        }
    }

    /// Watches until the future is dropped.
    pub(super) async fn run(mut self) {
        loop {
            if let Err(trouble) = self.step().await {
                self.wait_after(trouble).await;
            }
        }
    }

    /// Makes one request, or takes one event. After an error the position is the last certain one.
    async fn step(&mut self) -> Result<(), Trouble> {
        match std::mem::take(&mut self.place) {
            Progress::Lost => self.list().await,
            Progress::At(version) => match self.resume(&version).await {
                Ok(lines) => {
                    self.place = Progress::Following(Watch::begin(lines, version));
                    Ok(())
                }
                Err(trouble) => Err(self.stay(version, trouble)),
            },
            Progress::Following(watch) => self.follow(watch).await,
        }
    }

    /// Keeps the position after an error, unless the resource version of the position has expired.
    fn stay(&mut self, version: String, trouble: Trouble) -> Trouble {
        if !trouble.is_expired() {
            self.go_on_from(version);
        }
        trouble
    }

    /// Sets the position after a break. The objects of a reader are listed again, because the server's store may have
    /// been restored from a backup meanwhile.
    fn go_on_from(&mut self, version: String) {
        if !self.source.selection.is_read {
            self.place = Progress::At(version);
        }
    }

    /// Watches from `version` on. If the last connection is doubted, the server is first asked for its present version,
    /// over another connection.
    async fn resume(&mut self, version: &str) -> Result<Lines, Trouble> {
        if self.doubt {
            let present = self.source.present().await?;
            if is_before(&present, version) {
                let problem = format!("its history went back from version {version} to {present}");
                return Err(Trouble {
                    kind: WatchError::Expired,
                    ..unusable(&self.source.attempt("watch"), &problem)
                });
            }
        }
        self.source.watch(Some(version)).await
    }

    async fn follow(&mut self, mut watch: Box<Watch>) -> Result<(), Trouble> {
        if !self.admit().await {
            // A new monitor needs a part of the objects that was not kept, so everything is listed.
            return Ok(());
        }
        match self.wait(&mut watch).await {
            Event::Wanted => self.place = Progress::Following(watch),
            Event::Silence if watch.on_trial => {
                watch.on_trial = false;
                self.recovered();
                self.place = Progress::Following(watch);
            }
            Event::Silence if self.source.selection.is_read => {}
            Event::Silence => {
                debug!(watch = %self.source, "the watch was silent for long, watching over another connection");
                let selection = &self.source.selection;
                self.shared.observe(&Observation::Replaced {
                    resource: &selection.resource,
                    namespace: selection.namespace.as_deref(),
                });
                self.doubt = true;
                self.place = Progress::At(watch.version);
            }
            // The API server ends every watch from time to time; that is no failure.
            Event::Line(Err(trouble)) if trouble.kind == WatchError::Eof && !watch.on_trial => {
                self.go_on_from(watch.version);
            }
            Event::Line(Err(trouble)) => return Err(self.stay(watch.version, trouble)),
            Event::Line(Ok(heard)) => {
                watch.heard = Instant::now();
                watch.on_trial = false;
                if let Err(trouble) = self.hear(heard, &mut watch.version).await {
                    return Err(self.stay(watch.version, trouble));
                }
                self.recovered();
                self.place = Progress::Following(watch);
            }
        }
        Ok(())
    }

    async fn wait(&mut self, watch: &mut Watch) -> Event {
        let patience = if watch.on_trial {
            TRIAL
        } else {
            self.shared.settings.silence()
        };
        let until = watch.heard + patience;
        let resource = &self.source.selection.resource;
        let attempt = watch.lines.attempt().clone();
        tokio::select! {
            line = watch.lines.next() => Event::Line(line.and_then(|line| read_line(line, resource, &attempt))),
            () = self.wake.notified() => Event::Wanted,
            () = sleep_until(until) => Event::Silence,
        }
    }

    /// Takes one event. Only then the position moves to its version.
    async fn hear(&mut self, heard: Heard, version: &mut String) -> Result<(), Trouble> {
        let begin = Instant::now();
        let attempt = self.source.attempt("watch");
        let (item, gone, of_item) = match heard {
            Heard::Mark { version: mark, .. } => {
                advance(version, mark, &attempt)?;
                return self.read(Answer::Mark(version)).await;
            }
            Heard::Present(item, version) => (item, false, version),
            Heard::Gone(item, version) => (item, true, version),
        };
        if is_before(&of_item, version) {
            return advance(version, of_item, &attempt);
        }
        let viewers = self.shared.ledger().viewers(self.id);
        self.show(vec![item], gone, &viewers).await;
        let took = begin.elapsed();
        for labels in viewers.iter().filter_map(Viewer::measured) {
            self.shared.observe(&Observation::Handled { labels, took });
        }
        advance(version, of_item, &attempt)?;
        self.read(Answer::Change(version)).await
    }

    /// Records that the watch works, as far as this can be known.
    fn recovered(&mut self) {
        self.pause.reset();
        self.doubt = false;
        self.unserved = false;
        self.shared.ledger().prove(self.id);
        if self.source.selection.is_read {
            self.shared.tell_readers(self.id, Condition::Works);
        } else if self.told.take().is_some() {
            info!(watch = %self.source, "watching again");
        }
    }

    async fn wait_after(&mut self, trouble: Trouble) {
        if self.source.selection.is_read {
            return self.wait_for_reader(&trouble).await;
        }
        self.shared.observe(&Observation::WatchFailed(trouble.kind));
        if trouble.finds_nothing() {
            match self.look_for_kind(&trouble).await {
                Whereabouts::Here => {}
                Whereabouts::Elsewhere(resource) => return self.move_to(resource),
                Whereabouts::Nowhere(missing) => return self.await_kind(&missing).await,
            }
        }
        self.doubt = true;
        self.unserved = false;
        let (expired, asked) = (trouble.is_expired(), trouble.retry_after);
        let first = self.pause.is_first();
        let failure = trouble.into_failure();
        {
            let mut ledger = self.shared.ledger();
            ledger.trouble(self.id, failure.report.clone());
            let soon = asked.is_some_and(|asked| asked <= SOON);
            if !(first && (expired || soon)) {
                ledger.fail_starters(self.id, &failure);
            }
        }
        let pause = self.pause.next(asked);
        if expired && first {
            debug!(watch = %self.source, error = failure.report, "the resource version of the watch has expired, listing again");
            return;
        }
        self.tell_people(&failure);
        tokio::select! {
            () = sleep(pause) => {}
            () = self.wake.notified(), if asked.is_none() => {}
        }
    }

    /// Tells the readers, which log the failure themselves. To them each error is a failure of the watch, even an
    /// expired version.
    async fn wait_for_reader(&mut self, trouble: &Trouble) {
        let first = self.pause.is_first();
        self.shared.tell_readers(self.id, Condition::Fails { trouble, first });
        sleep(self.pause.next(trouble.retry_after)).await;
    }

    /// Asks the server where the kind is served now. An answer "not found" need not mean that the kind is gone.
    async fn look_for_kind(&mut self, trouble: &Trouble) -> Whereabouts {
        let Selection {
            resource, namespace, ..
        } = &self.source.selection;
        match self.shared.kinds.again(resource).await {
            Ok(kind) if kind.resource == *resource && self.unserved => {
                // The server may list a kind a moment before it answers requests for objects of the kind.
                Whereabouts::Nowhere(Failure::new(Class::Refused, trouble.error.to_string()))
            }
            Ok(kind) if kind.resource == *resource => Whereabouts::Here,
            Ok(kind) => match namespace.as_ref().filter(|_| !kind.namespaced) {
                Some(namespace) => Whereabouts::Nowhere(nowhere_in(&kind.resource.kind, namespace)),
                None => Whereabouts::Elsewhere(kind.resource),
            },
            Err(error @ KindError::Unknown { .. }) => Whereabouts::Nowhere(error.into()),
            // A missing answer proves nothing, so the earlier conclusion stays.
            Err(KindError::Ask { .. } | KindError::Stale { .. }) if self.unserved => {
                Whereabouts::Nowhere(Failure::new(Class::Refused, trouble.error.to_string()))
            }
            Err(KindError::Ask { .. } | KindError::Stale { .. }) => Whereabouts::Here,
        }
    }

    /// Follows a kind that was created anew with another plural. Its objects have a new history.
    fn move_to(&mut self, resource: ApiResource) {
        info!(watch = %self.source, plural = resource.plural, "the kind has another plural now, watching the new resource");
        self.place = Progress::Lost;
        self.shared.ledger().moved(self.id, &resource);
        self.source.selection.resource = resource;
    }

    /// Waits for a kind that is not served. It has no objects, and the deletion of the earlier ones was reported. When
    /// it is served again, its objects have a new history.
    async fn await_kind(&mut self, missing: &Failure) {
        self.place = Progress::Lost;
        {
            let mut ledger = self.shared.ledger();
            ledger.unserved(self.id);
            ledger.fail_starters(self.id, missing);
        }
        if !std::mem::replace(&mut self.unserved, true) {
            info!(watch = %self.source, "the API server no longer serves the kind, waiting until it does");
            self.told = Some(missing.report.clone());
        }
        let pause = self.pause.next(None);
        tokio::select! {
            () = sleep(pause) => {}
            () = self.wake.notified() => {}
        }
    }

    fn tell_people(&mut self, failure: &Failure) {
        let Failure { report, hints, .. } = failure;
        if self.told.as_ref() == Some(report) {
            return;
        }
        let hint = hints.join("; ");
        warn!(watch = %self.source, error = report, hint, "cannot watch, trying again; objects that were seen stay known");
        self.told = Some(report.clone());
    }
}

fn nowhere_in(kind: &str, namespace: &str) -> Failure {
    let report = format!("objects of kind {kind} live in no namespace by now, and '{namespace}' is watched");
    Failure::new(Class::Refused, report).hint("leave the namespace out of the binding")
}

impl Watch {
    fn begin(lines: Lines, version: String) -> Box<Self> {
        Box::new(Self {
            lines,
            version,
            heard: Instant::now(),
            on_trial: true,
        })
    }
}
