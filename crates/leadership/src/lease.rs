//! The lease that replicas share: it is read, watched, and replaced only at exactly the version that was read.
//!
//! Never decides who leads, never retries, and is exempt from the rate limit: a leader that waited in the queue would
//! lose the lease.

use std::future::ready;
use std::time::Duration;

use channel_core::leadership::lease::{Holder, Record, Sighting, Writing, Written};
use channel_core::reference::ImageDigest;
use futures::stream::{Stream, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Api;
use kube::api::PostParams;
use kube::core::ObjectMeta;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube_access::Cluster;
use kube_access::error::RequestError;
use tracing::warn;

use watches::unwatched::Unwatched;

const RESOURCE: &str = "leases.coordination.k8s.io";
/// The annotation with the version that may take the lease as soon as it is released.
const ENTITLED: &str = "addon-operator/entitled";

/// A lease in the operator's namespace.
#[derive(Debug)]
pub struct SharedLease {
    cluster: Cluster,
    name: String,
    /// The lease as last read; a write keeps the fields of other writers.
    seen: Option<Lease>,
}

/// The lease with this name. No request is made yet.
pub fn lease(cluster: &Cluster, name: &str) -> SharedLease {
    SharedLease {
        cluster: cluster.clone(),
        name: name.to_owned(),
        seen: None,
    }
}

impl SharedLease {
    fn api(&self) -> Api<Lease> {
        Api::namespaced(self.cluster.open(), self.cluster.namespace())
    }

    /// Reads the lease; none if it does not exist.
    pub async fn read(&mut self, within: Duration) -> Result<Option<Sighting>, RequestError> {
        let attempt = self.cluster.attempt("get", RESOURCE, &self.name);
        let api = self.api();
        let found = self
            .cluster
            .within(within)
            .ask(attempt, api.get_opt(&self.name))
            .await?;
        let sighting = found.as_ref().map(sighting);
        self.seen = found;
        Ok(sighting)
    }

    /// Writes the lease if it is unchanged. After an error it is unknown whether it was written.
    pub async fn write(&mut self, writing: &Writing, within: Duration) -> Result<Written, RequestError> {
        let (api, patient) = (self.api(), self.cluster.within(within));
        let lease = self.lease(writing);
        let params = PostParams::default();
        let verb = if writing.over.is_some() { "update" } else { "create" };
        let attempt = self.cluster.attempt(verb, RESOURCE, &self.name);
        let written = if writing.over.is_some() {
            patient.ask(attempt, api.replace(&self.name, &params, &lease)).await
        } else {
            patient.ask(attempt, api.create(&params, &lease)).await
        };
        match written {
            Ok(lease) => {
                let version = version(&lease);
                self.seen = Some(lease);
                Ok(Written::Through(version))
            }
            Err(error) if error.is_conflict() || error.is_not_found() && writing.over.is_some() => {
                Ok(Written::Conflict)
            }
            Err(error) => Err(error),
        }
    }

    fn lease(&self, writing: &Writing) -> Lease {
        let Record {
            holder,
            lasts,
            acquired,
            renewed,
            transitions,
            entitled,
        } = &writing.record;
        let seen = self
            .seen
            .as_ref()
            .filter(|seen| writing.over.as_ref() == Some(&version(seen)));
        let mut metadata = ObjectMeta {
            name: Some(self.name.clone()),
            namespace: Some(self.cluster.namespace().to_owned()),
            resource_version: writing.over.clone(),
            ..seen.map(|seen| seen.metadata.clone()).unwrap_or_default()
        };
        let annotations = metadata.annotations.get_or_insert_default();
        match entitled {
            Some(version) => annotations.insert(ENTITLED.to_owned(), version.to_string()),
            None => annotations.remove(ENTITLED),
        };
        let spec = LeaseSpec {
            holder_identity: Some(holder.clone()),
            // The API server refuses zero, so an empty duration is left out.
            lease_duration_seconds: Some(i32::try_from(lasts.as_secs()).unwrap_or(i32::MAX)).filter(|lasts| *lasts > 0),
            acquire_time: Some(MicroTime(*acquired)),
            renew_time: Some(MicroTime(*renewed)),
            lease_transitions: Some(i32::try_from(*transitions).unwrap_or(i32::MAX)),
            ..LeaseSpec::default()
        };
        Lease {
            metadata,
            spec: Some(spec),
        }
    }

    /// The lease after each change. Changes may come late or get lost, so this only makes the next read happen sooner.
    pub fn news(&self) -> impl Stream<Item = Sighting> + Send + use<> {
        let config = watcher::Config::default().fields(&format!("metadata.name={}", self.name));
        let attempt = self.cluster.attempt("watch", RESOURCE, &self.name);
        let mut trouble = Unwatched::new(attempt, "it is looked at from time to time");
        watcher(self.api(), config).default_backoff().filter_map(move |event| {
            ready(match event {
                Ok(Event::Apply(lease) | Event::InitApply(lease)) => Some(sighting(&lease)),
                Ok(Event::InitDone | Event::Delete(_)) => {
                    trouble.is_over();
                    None
                }
                Ok(Event::Init) => None,
                Err(error) => {
                    trouble.tell(error);
                    None
                }
            })
        })
    }
}

fn version(lease: &Lease) -> String {
    lease.metadata.resource_version.clone().unwrap_or_default()
}

/// The entitled version. An annotation without a valid digest counts as none, and the next write removes it.
fn entitled(lease: &Lease) -> Option<ImageDigest> {
    let text = lease.metadata.annotations.as_ref()?.get(ENTITLED)?;
    let version = ImageDigest::parse(text);
    version
        .inspect_err(|error| warn!(annotation = ENTITLED, %error, "An annotation of the lease has no effect"))
        .ok()
}

/// The contents of a lease. Missing fields count as empty: a lease without a holder is free.
fn sighting(lease: &Lease) -> Sighting {
    let spec = lease.spec.clone().unwrap_or_default();
    let time = |time: Option<MicroTime>| time.map_or(Timestamp::UNIX_EPOCH, |time| time.0);
    let seconds = spec.lease_duration_seconds.unwrap_or_default();
    Sighting {
        version: version(lease),
        record: Record {
            holder: spec.holder_identity.unwrap_or_default(),
            lasts: Duration::from_secs(u64::try_from(seconds).unwrap_or_default()),
            acquired: time(spec.acquire_time),
            renewed: time(spec.renew_time),
            transitions: u32::try_from(spec.lease_transitions.unwrap_or_default()).unwrap_or_default(),
            entitled: entitled(lease),
        },
        holder: Holder::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn an_annotation_that_names_no_version_entitles_nobody() {
        let digest = format!("sha256:{:064x}", 7);
        for (text, wanted) in [
            (digest.as_str(), ImageDigest::parse(&digest).ok()),
            ("v1.4", None),
            ("", None),
        ] {
            let annotations = BTreeMap::from([(ENTITLED.to_owned(), text.to_owned())]);
            let metadata = ObjectMeta {
                annotations: Some(annotations),
                ..ObjectMeta::default()
            };
            let lease = Lease { metadata, spec: None };
            assert_eq!(sighting(&lease).record.entitled, wanted, "{text}");
        }
        assert_eq!(sighting(&Lease::default()).record.entitled, None);
    }
}
