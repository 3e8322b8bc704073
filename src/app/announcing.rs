//! Writes Kubernetes Events: it takes announcements from a channel, one request at a time, at their own pace.
//!
//! No part waits for it. An Event that cannot be written is counted and dropped, and the log has the first failure
//! after each success. If the right to write Events is missing, the next attempt comes after a long pause.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use addon_core::failure::Failure;
use jiff::Timestamp;
use kube_access::Cluster;
use kube_access::error::RequestError;
use kube_access::events::{Object, Regarding, Saying};
use report::secrets::Secrets;
use telling::meters::Meters;
use telling::meters::table::cluster::EVENTS_DROPPED;
use telling::notices::announcements::{About, Announcement, Weight};
use telling::notices::pacing::{Due, Pacing};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::warn;

use crate::driver::alarm;

/// How long the identity of the `ConfigMap` is cached.
const SAME_OBJECT: Duration = Duration::from_mins(1);
/// The pause after the API server refused an Event.
const REFUSED_PAUSE: Duration = Duration::from_mins(10);

/// Writes Events about one `ConfigMap` and one Deployment.
#[derive(Debug)]
pub struct Writer {
    pub cluster: Cluster,
    pub config_map: String,
    /// The name of the operator's Deployment, once it is known.
    pub deployment: Arc<OnceLock<String>>,
    /// The name of the operator's pod, if it runs in a cluster.
    pub pod: Option<String>,
    pub meters: Arc<Meters>,
    /// Secrets that must not occur in an Event.
    pub secrets: Secrets,
}

/// The state that the writer of Events keeps between requests.
#[derive(Debug, Default)]
struct Memory {
    regarding: BTreeMap<About, (Regarding, Instant)>,
    refused_until: Option<Instant>,
    /// Whether the last attempt to write an Event failed, and the failure was logged.
    complained: bool,
}

impl Writer {
    /// Writes the announcements until the future is dropped.
    pub async fn run(self, mut announcements: mpsc::Receiver<Announcement>) {
        let mut pacing = Pacing::default();
        let mut memory = Memory::default();
        loop {
            let next = pacing.next(Instant::now());
            tokio::select! {
                announcement = announcements.recv() => match announcement {
                    Some(announcement) => pacing.take(announcement, Timestamp::now()),
                    // The loop has ended, and the other parts will end soon.
                    None => pending().await,
                },
                () = alarm(next) => {}
            }
            while let Some(due) = pacing.due(Instant::now()) {
                self.write(&mut memory, &due).await;
            }
        }
    }

    async fn write(&self, memory: &mut Memory, due: &Due) {
        if memory.refused_until.is_some_and(|until| Instant::now() < until) {
            return self.lost(due);
        }
        memory.refused_until = None;
        match self.say(memory, due).await {
            Ok(()) => memory.complained = false,
            Err(error) => {
                self.lost(due);
                memory.regarding.clear();
                if error.code() == Some(403) {
                    memory.refused_until = Some(Instant::now() + REFUSED_PAUSE);
                }
                if !std::mem::replace(&mut memory.complained, true) {
                    complain(error);
                }
            }
        }
    }

    async fn say(&self, memory: &mut Memory, due: &Due) -> Result<(), RequestError> {
        let (now, about) = (Instant::now(), due.announcement.about);
        let seen = memory
            .regarding
            .remove(&about)
            .filter(|(_, seen)| now < *seen + SAME_OBJECT);
        let seen = match seen {
            Some(seen) => seen,
            None => (self.regarding(about).await?, now),
        };
        let (regarding, _) = memory.regarding.entry(about).insert_entry(seen).into_mut();
        let announcement = &due.announcement;
        let saying = Saying {
            subject: &announcement.subject,
            reason: announcement.reason,
            action: announcement.action,
            weight: match announcement.weight {
                Weight::Normal => "Normal",
                Weight::Warning => "Warning",
            },
            note: &self.secrets.masked(&announcement.note),
            last: due.last,
        };
        self.cluster.say(regarding, &saying, due.times, due.first).await
    }

    /// The object that Events are about. News of the Deployment are about the operator's pod if the Deployment is
    /// unknown or must not be read.
    async fn regarding(&self, about: About) -> Result<Regarding, RequestError> {
        let pod = self.pod.as_deref();
        let config_map = Object::ConfigMap(&self.config_map);
        let object = match (about, self.deployment.get()) {
            (About::ConfigMap, _) => config_map,
            (About::Deployment, Some(deployment)) => {
                match self.cluster.regarding(Object::Deployment(deployment), pod).await {
                    Err(error) if error.code() == Some(403) => pod.map_or(config_map, Object::Pod),
                    outcome => return outcome,
                }
            }
            (About::Deployment, None) => pod.map_or(config_map, Object::Pod),
        };
        self.cluster.regarding(object, pod).await
    }

    fn lost(&self, due: &Due) {
        self.meters.add(&EVENTS_DROPPED, [], f64::from(due.times));
    }
}

fn complain(error: RequestError) {
    let failure = Failure::from(error);
    let hint = (!failure.hints.is_empty()).then(|| failure.hints.join("; "));
    warn!(
        error = failure.report,
        class = failure.class.label(),
        hint,
        "Kubernetes Events cannot be written, the log alone reports these changes"
    );
}
