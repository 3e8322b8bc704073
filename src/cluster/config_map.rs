//! The one `ConfigMap` that people edit: watched, and written one key at a time.
//!
//! "Missing" is only ever said by the API server: an error, a refusal or silence is no reading at all. A write touches
//! one key, and only if that key still holds what the writer had seen.

use std::time::Duration;

use addon_core::failure::Failure;
use addon_core::operator::event::{ConfigRead, Saved};
use futures::stream::{self, BoxStream, Stream, StreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use kube::core::ObjectMeta;
use kube::runtime::watcher::{self, Event};
use tracing::{info, warn};

use super::error::RequestError;
use super::{Cluster, REQUEST_TIMEOUT};

const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// Nobody should wait longer than this for an API server that is back.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

type Watch = BoxStream<'static, watcher::Result<Event<ConfigMap>>>;

/// The stream's own state between two readings.
struct Watcher {
    cluster: Cluster,
    name: String,
    watch: Option<Watch>,
    /// The initial list is under way; what it has brought so far.
    listed: Option<ConfigRead>,
    pause: Duration,
    /// What the log was last told that we wait for.
    told: Option<String>,
}

impl Cluster {
    /// What the `ConfigMap` holds, now and after each change. The stream never ends and recovers by itself; it says in
    /// the log what it waits for, once.
    pub fn watch_config(&self, name: &str) -> impl Stream<Item = ConfigRead> + Send + use<> {
        let watcher = Watcher {
            cluster: self.clone(),
            name: name.to_owned(),
            watch: None,
            listed: None,
            pause: FIRST_PAUSE,
            told: None,
        };
        stream::unfold(watcher, |mut watcher| async move {
            let read = watcher.next().await;
            Some((read, watcher))
        })
    }

    /// What the `ConfigMap` holds at this moment.
    pub async fn read_config(&self, name: &str) -> Result<ConfigRead, RequestError> {
        let config_map = self
            .ask(
                self.attempt("get", "configmaps", name),
                self.config_maps().get_opt(name),
            )
            .await?;
        Ok(config_map.as_ref().map_or(ConfigRead::Missing, present))
    }

    /// Replaces one key, if it still holds the base; `None` stands for an absent key. A ConfigMap that is not there is
    /// made only with `create`: one with this key alone would take back all that others say.
    pub async fn save_config(
        &self,
        name: &str,
        key: &str,
        text: String,
        base: Option<&str>,
        create: bool,
    ) -> Result<Saved, RequestError> {
        let api = self.config_maps();
        let found = self
            .ask(self.attempt("get", "configmaps", name), api.get_opt(name))
            .await?;
        let current = found
            .as_ref()
            .and_then(|found| found.data.as_ref()?.get(key))
            .map(String::as_str);
        if current != base || found.is_none() && !create {
            return Ok(Saved::Conflict(found.as_ref().map_or(ConfigRead::Missing, present)));
        }
        let params = PostParams::default();
        let written = if let Some(mut config_map) = found {
            config_map.data.get_or_insert_default().insert(key.to_owned(), text);
            self.ask(
                self.attempt("update", "configmaps", name),
                api.replace(name, &params, &config_map),
            )
            .await
        } else {
            let config_map = ConfigMap {
                metadata: ObjectMeta {
                    name: Some(name.to_owned()),
                    ..ObjectMeta::default()
                },
                data: Some([(key.to_owned(), text)].into()),
                ..ConfigMap::default()
            };
            self.ask(
                self.attempt("create", "configmaps", name),
                api.create(&params, &config_map),
            )
            .await
        };
        match written {
            Ok(config_map) => Ok(Saved::Written {
                version: version(&config_map),
            }),
            // Deleted between our two requests: an update then says "not found".
            Err(error) if error.is_conflict() || error.is_not_found() => {
                Ok(Saved::Conflict(self.read_config(name).await?))
            }
            Err(error) => Err(error),
        }
    }
}

fn present(config_map: &ConfigMap) -> ConfigRead {
    ConfigRead::Present {
        version: version(config_map),
        data: config_map.data.clone().unwrap_or_default(),
    }
}

fn version(config_map: &ConfigMap) -> u64 {
    config_map
        .metadata
        .resource_version
        .as_deref()
        .and_then(|version| version.parse().ok())
        .unwrap_or(0)
}

impl Watcher {
    async fn next(&mut self) -> ConfigRead {
        loop {
            match self.step().await {
                Ok(None) => {}
                Ok(Some(read)) => {
                    self.recovered();
                    return read;
                }
                // Our place in the history is gone; that is how watches end from time to time.
                Err(error) if error.code() == Some(410) => self.watch = None,
                Err(error) => self.wait_after(error).await,
            }
        }
    }

    /// Takes one event of the watch, which is begun anew after every error so that its recovery shows.
    async fn step(&mut self) -> Result<Option<ConfigRead>, RequestError> {
        let listing = self.watch.is_none() || self.listed.is_some();
        let watch = self.watch.get_or_insert_with(|| {
            let selector = format!("metadata.name={}", self.name);
            watcher::watcher(self.cluster.config_maps(), watcher::Config::default().fields(&selector)).boxed()
        });
        let next = watch.next();
        let attempt = self.cluster.attempt("watch", "configmaps", &self.name);
        // A watch may be silent for long, a list may not.
        let event = if listing {
            let silent = RequestError::Silent {
                attempt: attempt.clone(),
                waited: REQUEST_TIMEOUT,
            };
            tokio::time::timeout(REQUEST_TIMEOUT, next).await.map_err(|_| silent)?
        } else {
            next.await
        };
        let event = match event {
            Some(Ok(event)) => event,
            Some(Err(error)) => {
                return Err(RequestError::Failed {
                    attempt,
                    source: Box::new(of_watch(error)),
                });
            }
            None => {
                return Err(RequestError::Unusable {
                    attempt,
                    problem: "the watch ended without a word".to_owned(),
                });
            }
        };
        Ok(match event {
            Event::Init => {
                self.listed = Some(ConfigRead::Missing);
                None
            }
            Event::InitApply(config_map) => {
                self.listed = Some(present(&config_map));
                None
            }
            Event::InitDone => self.listed.take(),
            Event::Apply(config_map) => Some(present(&config_map)),
            Event::Delete(_) => Some(ConfigRead::Missing),
        })
    }

    async fn wait_after(&mut self, error: RequestError) {
        self.watch = None;
        self.listed = None;
        let failure = Failure::from(error);
        if self.told.as_ref() != Some(&failure.report) {
            warn!(
                config_map = self.name,
                error = failure.report,
                hints = failure.hints.join("; "),
                "cannot watch the ConfigMap, trying again; what was last good stays in force"
            );
            self.told = Some(failure.report);
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    fn recovered(&mut self) {
        self.pause = FIRST_PAUSE;
        if self.told.take().is_some() {
            info!(config_map = self.name, "watching the ConfigMap again");
        }
    }
}

fn of_watch(error: watcher::Error) -> kube::Error {
    match error {
        watcher::Error::InitialListFailed(source)
        | watcher::Error::WatchStartFailed(source)
        | watcher::Error::WatchFailed(source) => source,
        watcher::Error::WatchError(status) => kube::Error::Api(status),
        watcher::Error::NoResourceVersion => kube::Error::Service("the answer has no resourceVersion".into()),
    }
}
