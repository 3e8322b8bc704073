//! The objects of a selection, kept up to date: a list, then its changes, and a new list whenever the position in the
//! watch is lost.
//!
//! The watch never ends: it recovers by itself, with pauses. Between two events a complete read can be requested. An
//! old state must never count as known: when a watch fails twice in a row, or is forbidden, its objects are unknown.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::time::Duration;

use addon_core::failure::Failure;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use kube::api::{Api, ListParams, ObjectList, ObjectMeta};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Resource, ResourceExt as _};
use kube_access::error::{Attempt, RequestError};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep_until, timeout_at};
use tracing::{debug, info, warn};

use watches::trouble::Pause;

/// The timeout of a list.
const LISTING: Duration = Duration::from_secs(15);
/// A watch after a failure counts as working when it has lasted this long.
const TRIAL: Duration = Duration::from_secs(1);

/// The objects of a selection by name.
pub(super) type Objects<K> = BTreeMap<String, K>;

/// The objects of one selection, and the state of their watch.
pub(super) struct Kept<K> {
    api: Api<K>,
    config: watcher::Config,
    /// The watch request, for error messages.
    attempt: Attempt,
    /// The time without an event after which all objects are read anew.
    pub(super) silence: Duration,
    place: Progress<K>,
    known: Option<Objects<K>>,
    pause: Pause,
    told: Option<String>,
    /// The resource version of the last requested list; events up to this version are old.
    confirmed: u64,
}

/// The position in the watch.
enum Progress<K> {
    /// No request is made before the given time.
    Resting(Instant),
    /// A list is being read.
    Listing {
        stream: Stream<K>,
        found: Objects<K>,
        until: Instant,
    },
    /// Changes arrive; the watch has not yet lasted long enough to count as working.
    OnTrial {
        stream: Stream<K>,
        found: Objects<K>,
        until: Instant,
    },
    /// All changes arrive.
    Following { stream: Stream<K>, until: Instant },
}

type Stream<K> = BoxStream<'static, watcher::Result<Event<K>>>;

impl<K> fmt::Debug for Kept<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept")
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

impl<K> Kept<K>
where
    K: Resource + Clone + DeserializeOwned + fmt::Debug + Send + 'static,
{
    pub(super) fn new(api: Api<K>, config: watcher::Config, attempt: Attempt, silence: Duration) -> Self {
        Self {
            api,
            config,
            attempt,
            silence,
            place: Progress::Resting(Instant::now()),
            known: None,
            pause: Pause::default(),
            told: None,
            confirmed: 0,
        }
    }

    /// All objects of the selection; none if they are unknown.
    pub(super) fn known(&self) -> Option<&Objects<K>> {
        self.known.as_ref()
    }

    /// The request for a complete read.
    pub(super) fn listing(&self) -> (Attempt, impl Future<Output = kube::Result<ObjectList<K>>> + use<K>) {
        let params = ListParams {
            label_selector: self.config.label_selector.clone(),
            field_selector: self.config.field_selector.clone(),
            ..ListParams::default()
        };
        let api = self.api.clone();
        (self.attempt("list"), async move { api.list(&params).await })
    }

    /// Takes over the result of `listing` if the watch works. Otherwise the watch itself lists the objects next.
    pub(super) fn confirm(&mut self, list: ObjectList<K>) {
        if self.known.is_some() {
            let version = number(list.metadata.resource_version.as_ref());
            self.confirmed = Some(version).filter(|version| *version < u64::MAX).unwrap_or_default();
            self.known = Some(
                list.items
                    .into_iter()
                    .map(|object| (object.name_any(), object))
                    .collect(),
            );
        }
    }

    /// Waits for the next event. Dropping the future loses nothing.
    pub(super) async fn step(&mut self) {
        let next = match &mut self.place {
            Progress::Resting(until) => {
                sleep_until(*until).await;
                self.place = Progress::Listing {
                    stream: watcher(self.api.clone(), self.config.clone()).boxed(),
                    found: Objects::new(),
                    until: Instant::now() + LISTING,
                };
                return;
            }
            Progress::Listing { stream, until, .. }
            | Progress::OnTrial { stream, until, .. }
            | Progress::Following { stream, until } => timeout_at(*until, stream.next()).await,
        };
        match next {
            Ok(Some(Ok(event))) => self.take(event),
            Ok(Some(Err(error))) => self.fail(self.error(error)),
            // The API server ends every watch at some time. The next list fills the gap.
            Ok(None) => self.place = Progress::Resting(Instant::now()),
            Err(_) => self.be_silent(),
        }
    }

    /// Handles a watch without an event in time.
    fn be_silent(&mut self) {
        let now = Instant::now();
        match std::mem::replace(&mut self.place, Progress::Resting(now)) {
            // The API server may be unreachable. The next list shows whether it is.
            Progress::Following { .. } | Progress::Resting(_) => {}
            Progress::OnTrial { stream, found, .. } => self.follow(stream, found),
            Progress::Listing { .. } => self.fail(RequestError::Silent {
                attempt: self.attempt("list"),
                waited: LISTING,
            }),
        }
    }

    fn take(&mut self, event: Event<K>) {
        let now = Instant::now();
        self.place = match std::mem::replace(&mut self.place, Progress::Resting(now)) {
            Progress::Resting(until) => Progress::Resting(until),
            Progress::Listing { stream, found, until } => self.list(event, stream, found, until),
            Progress::OnTrial { stream, found, .. } => {
                self.follow(stream, found);
                return self.take(event);
            }
            Progress::Following { stream, .. } => self.hear(event, stream),
        };
    }

    /// Handles an event while the list is being read.
    fn list(&mut self, event: Event<K>, stream: Stream<K>, mut found: Objects<K>, until: Instant) -> Progress<K> {
        match event {
            Event::Init => found.clear(),
            Event::InitApply(object) | Event::Apply(object) => {
                found.insert(object.name_any(), object);
            }
            Event::Delete(object) => {
                found.remove(&object.name_any());
            }
            Event::InitDone if self.told.is_some() => {
                let until = Instant::now() + TRIAL;
                return Progress::OnTrial { stream, found, until };
            }
            Event::InitDone => {
                self.follow(stream, found);
                return std::mem::replace(&mut self.place, Progress::Resting(until));
            }
        }
        Progress::Listing { stream, found, until }
    }

    /// Handles an event of the watch.
    fn hear(&mut self, event: Event<K>, stream: Stream<K>) -> Progress<K> {
        let now = Instant::now();
        let until = now + self.silence;
        let known = self.known.get_or_insert_default();
        match event {
            Event::Apply(object) | Event::Delete(object) if version(object.meta()) <= self.confirmed => {}
            Event::Apply(object) => {
                known.insert(object.name_any(), object);
            }
            Event::Delete(object) => {
                known.remove(&object.name_any());
            }
            // The watch has begun a new list.
            Event::Init | Event::InitApply(_) | Event::InitDone => {
                let (found, until) = (Objects::new(), now + LISTING);
                return Progress::Listing { stream, found, until };
            }
        }
        Progress::Following { stream, until }
    }

    /// Takes over the complete list and follows the changes.
    fn follow(&mut self, stream: Stream<K>, found: Objects<K>) {
        self.known = Some(found);
        // `found` may be older than the last list that `confirm` took over. The watch then sends the later changes
        // again.
        self.confirmed = 0;
        self.pause.reset();
        let until = Instant::now() + self.silence;
        self.place = Progress::Following { stream, until };
        if self.told.take().is_some() {
            info!(resource = self.attempt.resource, "watching our own installation again");
        }
    }

    fn attempt(&self, verb: &'static str) -> Attempt {
        Attempt {
            verb,
            ..self.attempt.clone()
        }
    }

    fn error(&self, error: watcher::Error) -> RequestError {
        let with = |verb, source| RequestError::Failed {
            attempt: self.attempt(verb),
            source: Box::new(source),
        };
        match error {
            watcher::Error::InitialListFailed(source) => with("list", source),
            watcher::Error::WatchStartFailed(source) | watcher::Error::WatchFailed(source) => with("watch", source),
            watcher::Error::WatchError(status) => with("watch", kube::Error::Api(status)),
            error @ watcher::Error::NoResourceVersion => RequestError::Unusable {
                attempt: self.attempt.clone(),
                problem: error.to_string(),
            },
        }
    }

    /// Handles an error. A single error may only be the end of a connection; the next list shows whether it is more.
    fn fail(&mut self, error: RequestError) {
        let is_first = self.pause.is_first();
        self.place = Progress::Resting(Instant::now() + self.pause.next(None));
        if is_first && !error.is_forbidden() {
            debug!(
                error = &error as &dyn std::error::Error,
                "a watch of our own installation failed"
            );
            return;
        }
        self.known = None;
        let Failure { report, hints, .. } = error.into();
        if self.told.as_ref() == Some(&report) {
            return;
        }
        warn!(
            error = report,
            hint = hints.join("; "),
            "cannot watch our own installation, trying again; no version is tried until the watch works"
        );
        self.told = Some(report);
    }
}

fn version(object: &ObjectMeta) -> u64 {
    number(object.resource_version.as_ref())
}

/// The resource version as a number. A version that is no number counts as newest, so its event is never skipped.
fn number(version: Option<&String>) -> u64 {
    version.and_then(|version| version.parse().ok()).unwrap_or(u64::MAX)
}
