//! The watch of the `ConfigMap`: a list, then what changes, and a list again whenever the watch has lost its place.
//!
//! It never ends and recovers by itself. It logs once when it waits and once when the wait is over, and never floods a
//! server that answers badly: a watch that ends as soon as it has begun counts as a failure. Must never trust a silent
//! connection: its other end may be gone. Nor a watch that continues after a break: the server's store may have been
//! restored from a backup meanwhile, and then a watch from our resource version would bring nothing for long.

use std::time::Duration;

use addon_core::failure::Failure;
use addon_core::operator::event::ConfigRead;
use futures::stream::{BoxStream, StreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, WatchEvent, WatchParams};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::super::Cluster;
use super::super::error::RequestError;
use super::history::History;
use super::{number, present};

const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause: after it an API server that is back is noticed.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// A list that takes longer is logged.
const FIRST_WORD: Duration = Duration::from_secs(3);
/// A watch that has lasted for this time counts as working.
const TRIAL: Duration = Duration::from_secs(1);
/// How long a watch may usually bring nothing before everything is read anew. Marks come about once a minute.
pub const SILENCE: Duration = Duration::from_secs(75);

/// The reason why the `ConfigMap` cannot be watched, in a sentence for people; `None` if it is watched.
pub type Trouble = watch::Sender<Option<String>>;

/// News of the `ConfigMap`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    Read(ConfigRead),
    /// The history of the API server went back; a reading of the present state comes next.
    WentBack,
}

/// The stream's own state between two readings.
pub(super) struct Watcher {
    cluster: Cluster,
    name: String,
    silence: Duration,
    place: Progress,
    history: History,
    /// The reading behind the news that the history went back.
    next: Option<ConfigRead>,
    pause: Duration,
    told: Option<Told>,
    trouble: Trouble,
}

/// How far we have read.
#[derive(Default)]
enum Progress {
    /// Nothing is known.
    #[default]
    Lost,
    /// Everything up to this version.
    At(String),
    /// Everything up to this version, and more is on its way.
    Following(Watch),
}

struct Watch {
    events: BoxStream<'static, Result<WatchEvent<ConfigMap>, kube::Error>>,
    /// It has not shown yet that it works.
    on_trial: bool,
}

/// The last logged reason of a wait.
#[derive(PartialEq, Eq)]
enum Told {
    Unreachable,
    Other(String),
}

impl Watcher {
    pub(super) fn new(cluster: Cluster, name: String, silence: Duration, trouble: Trouble) -> Self {
        Self {
            cluster,
            name,
            silence,
            place: Progress::Lost,
            history: History::default(),
            next: None,
            pause: FIRST_PAUSE,
            told: None,
            trouble,
        }
    }

    /// The contents of the `ConfigMap`, for the first time or after a change.
    pub(super) async fn next(&mut self) -> Heard {
        if let Some(read) = self.next.take() {
            return Heard::Read(read);
        }
        loop {
            match self.step().await {
                Ok(Some(heard)) => return heard,
                Ok(None) => {}
                Err(error) => self.wait_after(error).await,
            }
        }
    }

    /// One request, or one event. After an error our place is lost.
    async fn step(&mut self) -> Result<Option<Heard>, RequestError> {
        match std::mem::take(&mut self.place) {
            Progress::Lost => self.list().await.map(Some),
            Progress::At(version) => {
                self.place = Progress::Following(self.begin(version).await?);
                Ok(None)
            }
            Progress::Following(watch) => Ok(self.follow(watch).await?.map(Heard::Read)),
        }
    }

    async fn list(&mut self) -> Result<Heard, RequestError> {
        let cluster = self.cluster.clone();
        let (api, params) = (cluster.config_maps(), ListParams::default().fields(&self.selector()));
        let attempt = cluster.attempt("list", "configmaps", &self.name);
        let mut listing = std::pin::pin!(cluster.ask(attempt.clone(), api.list(&params)));
        let list = if let Ok(list) = timeout(FIRST_WORD, listing.as_mut()).await {
            list?
        } else {
            self.tell_silence();
            listing.await?
        };
        let Some(version) = list.metadata.resource_version.filter(|version| !version.is_empty()) else {
            let problem = "it has no resourceVersion".to_owned();
            return Err(RequestError::Unusable { attempt, problem });
        };
        let found = list.items.iter().find(|found| self.is_ours(found));
        let read = found.map_or(ConfigRead::Missing, present);
        let seen = self.history.newest();
        let went_back = self.history.listed(number(&version), &read);
        self.place = Progress::At(version);
        if went_back {
            warn!(
                version = self.history.newest(),
                seen,
                "The history of the API server went back: the ConfigMap is taken as it is now, and newer versions that were seen before are forgotten"
            );
            self.next = Some(read);
            return Ok(Heard::WentBack);
        }
        Ok(Heard::Read(read))
    }

    async fn begin(&mut self, version: String) -> Result<Watch, RequestError> {
        let (api, params) = (
            self.cluster.config_maps(),
            WatchParams::default().fields(&self.selector()),
        );
        let attempt = self.cluster.attempt("watch", "configmaps", &self.name);
        let events = self.cluster.ask(attempt, api.watch(&params, &version)).await?;
        Ok(Watch {
            events: events.boxed(),
            on_trial: true,
        })
    }

    async fn follow(&mut self, mut watch: Watch) -> Result<Option<ConfigRead>, RequestError> {
        let attempt = self.cluster.attempt("watch", "configmaps", &self.name);
        let event = if watch.on_trial {
            let Ok(event) = timeout(TRIAL, watch.events.next()).await else {
                watch.on_trial = false;
                self.recovered();
                self.place = Progress::Following(watch);
                return Ok(None);
            };
            event
        } else {
            let Ok(event) = timeout(self.silence, watch.events.next()).await else {
                // Our place is lost with it: a list shows the missed changes, and whether the server answers.
                return Ok(None);
            };
            event
        };
        let failed = |source| RequestError::Failed {
            attempt: attempt.clone(),
            source: Box::new(source),
        };
        let (read, version) = match event {
            Some(Ok(WatchEvent::Added(found) | WatchEvent::Modified(found))) => self.news(found, present),
            Some(Ok(WatchEvent::Deleted(found))) => self.news(found, |_| ConfigRead::Missing),
            Some(Ok(WatchEvent::Bookmark(mark))) => (None, Some(mark.metadata.resource_version)),
            Some(Ok(WatchEvent::Error(status))) => return Err(failed(kube::Error::Api(status))),
            Some(Err(error @ kube::Error::SerdeError(_))) => return Err(failed(error)),
            Some(Err(error)) if watch.on_trial => return Err(failed(error)),
            None if watch.on_trial => {
                let problem = "the watch ended as soon as it had begun".to_owned();
                return Err(RequestError::Unusable { attempt, problem });
            }
            // That is how connections end; if there is more to it, the next one shows.
            None | Some(Err(_)) => return Ok(None),
        };
        let version = version.map_or(self.history.newest(), |version| number(&version));
        if !self.history.followed(version, read.as_ref()) {
            // A list shows the present state.
            return Ok(None);
        }
        watch.on_trial = false;
        self.recovered();
        self.place = Progress::Following(watch);
        Ok(read)
    }

    /// The reading of a changed object, and its version.
    fn news(
        &self,
        found: ConfigMap,
        read: impl FnOnce(&ConfigMap) -> ConfigRead,
    ) -> (Option<ConfigRead>, Option<String>) {
        let read = self.is_ours(&found).then(|| read(&found));
        (read, found.metadata.resource_version)
    }

    fn is_ours(&self, found: &ConfigMap) -> bool {
        found.metadata.name.as_ref() == Some(&self.name)
    }

    fn selector(&self) -> String {
        format!("metadata.name={}", self.name)
    }

    fn tell_silence(&mut self) {
        if self.told.as_ref() != Some(&Told::Unreachable) {
            let (config_map, server) = (&self.name, self.cluster.server());
            warn!(config_map, server, "API server has not answered yet, waiting for it");
            self.trouble.send_replace(Some(format!(
                "API server cannot be reached: no answer from {server} yet"
            )));
            self.told = Some(Told::Unreachable);
        }
    }

    async fn wait_after(&mut self, error: RequestError) {
        let is_first = self.pause == FIRST_PAUSE;
        if error.is_unreachable() {
            self.tell_unreachable(error.into());
        } else if !is_first {
            // One alone may be how a server goes away, or how it says that our place in the history is gone; the next
            // request tells what it was.
            self.tell_other(error.into());
        }
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    fn tell_unreachable(&mut self, failure: Failure) {
        if self.told == Some(Told::Unreachable) {
            return;
        }
        let Failure { report, hints, .. } = failure;
        let (config_map, server, hint) = (&self.name, self.cluster.server(), hints.join("; "));
        warn!(
            config_map,
            server,
            error = report,
            hint,
            "API server cannot be reached, trying until it answers; the last good configuration stays applied"
        );
        let sentence = format!("API server at {server} cannot be reached: {report}");
        self.trouble.send_replace(Some(sentence));
        self.told = Some(Told::Unreachable);
    }

    fn tell_other(&mut self, failure: Failure) {
        let Failure { report, hints, .. } = failure;
        if matches!(&self.told, Some(Told::Other(told)) if *told == report) {
            return;
        }
        let hint = (!hints.is_empty()).then(|| hints.join("; "));
        warn!(
            config_map = self.name,
            error = report,
            hint,
            "cannot watch the ConfigMap, trying again; the last good configuration stays applied"
        );
        self.trouble
            .send_replace(Some(format!("ConfigMap is not watched: {report}")));
        self.told = Some(Told::Other(report));
    }

    fn recovered(&mut self) {
        self.pause = FIRST_PAUSE;
        let config_map = &self.name;
        match self.told.take() {
            None => return,
            Some(Told::Unreachable) => info!(config_map, server = self.cluster.server(), "API server answers again"),
            Some(Told::Other(_)) => info!(config_map, "watching the ConfigMap again"),
        }
        self.trouble.send_replace(None);
    }
}
