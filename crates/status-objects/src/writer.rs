//! The writer: sends what the ledger finds due, one request at a time.
//!
//! No part of the operator waits for it. Without the kinds or the rights the log says so once, and the next try comes after a long pause.

use std::collections::BTreeMap;
use std::future::pending;
use std::time::Duration;

use jiff::Timestamp;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject};
use kube_access::Cluster;
use kube_access::error::RequestError;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};

use crate::ledger::{Ledger, Write};
use crate::sheet::{Key, Kind, Sheet, Sheets};

/// The group and version of the kinds.
const API_VERSION: &str = "addon-operator.io/v1";
/// The owner of all fields.
const MANAGER: &str = "addon-operator-status";
/// The pause after a failed request.
const AGAIN: Duration = Duration::from_secs(10);
/// The pause after a request that cannot succeed until a person changes the cluster.
const REFUSED: Duration = Duration::from_mins(5);

impl Kind {
    const ALL: [Self; 2] = [Self::Module, Self::Operator];

    fn resource(self) -> ApiResource {
        let (kind, plural) = match self {
            Self::Module => ("Module", "modules"),
            Self::Operator => ("Operator", "operators"),
        };
        ApiResource {
            group: "addon-operator.io".to_owned(),
            version: "v1".to_owned(),
            api_version: API_VERSION.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        }
    }
}

/// Writes the objects until the future is dropped. It begins once there are sheets.
pub async fn run(cluster: Cluster, mut sheets: watch::Receiver<Sheets>) {
    let mut writer = Writer {
        cluster,
        ledger: Ledger::default(),
        has_complained: false,
    };
    if sheets.changed().await.is_err() {
        return pending().await;
    }
    let mut rest = None;
    while let Err(error) = writer.find().await {
        sleep_until(writer.failed(&error)).await;
    }
    loop {
        writer.ledger.want(&sheets.borrow_and_update(), Instant::now());
        if rest.is_none_or(|until| until <= Instant::now()) {
            rest = writer.write().await;
        }
        let next = rest.or_else(|| writer.ledger.next());
        tokio::select! {
            changed = sheets.changed() => if changed.is_err() { return pending().await },
            () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
        }
    }
}

struct Writer {
    cluster: Cluster,
    ledger: Ledger,
    /// Whether the last request failed, and the log says so.
    has_complained: bool,
}

impl Writer {
    /// Finds the objects of the process before, so that these are neither written again nor left behind.
    async fn find(&mut self) -> Result<(), RequestError> {
        let mut objects = BTreeMap::new();
        for kind in Kind::ALL {
            let (api, attempt) = (
                self.api(kind),
                self.cluster.attempt("list", &kind.resource().plural, ""),
            );
            for object in self.cluster.ask(attempt, api.list(&ListParams::default())).await? {
                let name = object.metadata.name.unwrap_or_default();
                let status = object.data.get("status").cloned().unwrap_or_default();
                objects.insert(Key { kind, name }, kind.read(status));
            }
        }
        self.ledger.found(objects);
        Ok(())
    }

    /// Writes all that is due. Returns the end of the pause after a failure.
    async fn write(&mut self) -> Option<Instant> {
        while let Some(write) = self.ledger.due(Instant::now(), Timestamp::now()) {
            match self.send(&write).await {
                Ok(()) => {
                    self.ledger.wrote(write, Instant::now());
                    if std::mem::take(&mut self.has_complained) {
                        info!("Status objects are written again");
                    }
                }
                Err(error) => return Some(self.failed(&error)),
            }
        }
        None
    }

    /// Logs the first failure after a success, and returns the time of the next request.
    fn failed(&mut self, error: &RequestError) -> Instant {
        let is_news = !std::mem::replace(&mut self.has_complained, true);
        let pause = if error.is_not_found() {
            let hint = "apply the CRDs of the chart, or switch status objects off: --status-objects=false";
            if is_news {
                info!(
                    hint,
                    "Status objects are not written: the cluster does not serve their kinds"
                );
            }
            REFUSED
        } else if error.is_forbidden() {
            let hint = "grant the rights of the chart's role, or switch status objects off: --status-objects=false";
            if is_news {
                warn!(error = %error, hint, "Status objects are not written");
            }
            REFUSED
        } else {
            if is_news {
                warn!(error = %error, "Status objects are not written until the API server takes them");
            }
            AGAIN
        };
        Instant::now() + pause
    }

    async fn send(&self, write: &Write) -> Result<(), RequestError> {
        match write {
            Write::Put(key, sheet) => {
                let plural = key.kind.resource().plural;
                let object = json!({
                    "apiVersion": API_VERSION, "kind": key.kind.resource().kind,
                    "metadata": {"name": key.name, "namespace": self.cluster.namespace()},
                    "status": sheet,
                });
                let api = self.api(key.kind);
                let params = PatchParams::apply(MANAGER).force();
                let patch = Patch::Apply(&object);
                let attempt = self.cluster.attempt("patch", &plural, &key.name);
                self.cluster.ask(attempt, api.patch(&key.name, &params, &patch)).await?;
            }
            Write::Delete(key) => {
                let attempt = self.cluster.attempt("delete", &key.kind.resource().plural, &key.name);
                let api = self.api(key.kind);
                let deleted = self
                    .cluster
                    .ask(attempt, api.delete(&key.name, &DeleteParams::default()))
                    .await;
                if let Err(error) = deleted.map(drop)
                    && !error.is_not_found()
                {
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn api(&self, kind: Kind) -> Api<DynamicObject> {
        Api::namespaced_with(self.cluster.client(), self.cluster.namespace(), &kind.resource())
    }
}

impl Kind {
    /// The sheet in the status of an object. Fields that cannot be read count as empty: they are written anew.
    fn read(self, status: serde_json::Value) -> Sheet {
        match self {
            Self::Module => Sheet::Module(serde_json::from_value(status).unwrap_or_default()),
            Self::Operator => Sheet::Operator(serde_json::from_value(status).unwrap_or_default()),
        }
    }
}
