//! Publishes the webhooks in the API server: certificates, listeners and configurations, in an order in which no
//! request fails.
//!
//! The API server trusts the next authority before a certificate of that authority is served. It gets the address of a
//! listener only after the listener has answered the operator's own request. Publishing is repeated often, and does
//! nothing without a change.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use addon_core::failure::{Class, Failure};
use addon_core::review::registration::{self, Address};
use addon_core::review::routes::{AdmissionKind, Routes};
use certificates::clients::Clients;
use certificates::files::Files;
use certificates::material::{Material, Validity, bundle};
use certificates::probe::probe;
use certificates::tls::Tls;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube_access::Cluster;
use rustls::pki_types::CertificateDer;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::timeout;

use super::{Change, Conversion, Wanted};
use crate::configurations::kept::{texts_of, webhook_certificates};
use crate::configurations::{owning_role, publish_configuration, publish_conversion};

/// The longest wait until a listener is open.
const OPENING: Duration = Duration::from_secs(5);

/// The source of certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Files that another program writes.
    Files(Files),
    /// The operator makes them and stores them in a Secret.
    Own,
}

impl Source {
    /// Uses files if they exist, and otherwise the operator's own certificates.
    pub fn of(files: Files) -> Self {
        if files.are_absent() {
            Self::Own
        } else {
            Self::Files(files)
        }
    }
}

/// A webhook listener, as the cluster reaches it.
#[derive(Debug)]
pub struct Side {
    /// The Service of the listener.
    pub service: String,
    /// The source of the listener's certificates.
    pub source: Source,
    /// Files with the authorities of allowed clients; empty if all clients are allowed.
    pub client_ca: Vec<PathBuf>,
    /// The TLS state of the listener.
    pub tls: Tls,
    /// Authorities of earlier certificates that clients may still need.
    trusted: Mutex<Vec<CertificateDer<'static>>>,
}

impl Side {
    pub fn new(service: impl Into<String>, source: Source, client_ca: Vec<PathBuf>, tls: Tls) -> Self {
        Self {
            service: service.into(),
            source,
            client_ca,
            tls,
            trusted: Mutex::default(),
        }
    }

    /// The authorities that clients must trust, for the present and the next certificate.
    fn trust(&self, material: &Material, now: Timestamp) -> Vec<CertificateDer<'static>> {
        let mut trusted = self.trusted.lock().unwrap_or_else(PoisonError::into_inner);
        trusted.retain(|der| Validity::of(der).is_ok_and(|validity| now <= validity.until));
        for authority in material.authorities() {
            if !trusted.contains(authority) {
                trusted.push(authority.clone());
            }
        }
        trusted.clone()
    }
}

/// The settings of the webhooks, which are fixed for one life.
#[derive(Debug)]
pub struct Webhooks {
    pub cluster: Cluster,
    /// The name of both webhook configurations of hooks.
    pub configuration: String,
    /// The name of the configuration for edits of the operator's `ConfigMap`; none for hooks without modules.
    pub edits: Option<String>,
    /// The chart's cluster role, with which published objects are deleted.
    pub owner: Option<String>,
    /// The Secret with the operator's own certificates.
    pub secret: String,
    /// The published configurations, each with its name.
    pub published: watch::Sender<BTreeSet<(AdmissionKind, String)>>,
    /// The paths that the listeners answer. Requests to other paths are not read.
    pub routes: watch::Sender<Arc<Routes>>,
    /// The listener for admission.
    pub admission: Side,
    /// The listener for conversion.
    pub conversion: Side,
}

impl Webhooks {
    /// Publishes exactly these routes. They must be complete: webhooks that are not in them are removed from the
    /// cluster. If one part fails the others are still done, and the first failure is returned.
    pub async fn ensure(&self, routes: &Routes, now: Timestamp) -> Result<Vec<Change>, Failure> {
        self.answer(routes);
        let mut changes = Vec::new();
        let admission = Box::pin(self.ensure_admission(routes, now, &mut changes)).await;
        let conversion = Box::pin(self.ensure_conversion(routes, now, &mut changes)).await;
        for change in &changes {
            tracing::info!(%change, "Webhooks are published");
        }
        admission.and(conversion).map(|()| changes)
    }

    /// Makes the listeners answer these routes, before the API server gets the address.
    fn answer(&self, routes: &Routes) {
        self.routes.send_if_modified(|answered| {
            let differ = **answered != *routes;
            if differ {
                *answered = Arc::new(routes.clone());
            }
            differ
        });
    }

    async fn ensure_admission(
        &self,
        routes: &Routes,
        now: Timestamp,
        changes: &mut Vec<Change>,
    ) -> Result<(), Failure> {
        if !routes.admits() {
            self.note_published(BTreeSet::new());
            for part in self.parts() {
                self.publish(part, &[], None, changes).await?;
            }
            return Ok(());
        }
        let owner = match &self.owner {
            Some(name) => Some(owning_role(&self.cluster, name).await?),
            None => None,
        };
        let ready = Box::pin(self.ready(&self.admission, now)).await?;
        let (mut refused, mut edits) = (None, Ok(None));
        let mut standing = BTreeSet::new();
        for part in self.parts() {
            let webhooks = part.webhooks(routes, &ready.address);
            if !webhooks.is_empty() {
                standing.insert((part.kind, part.name.to_owned()));
            }
            let published = self.publish(part, &webhooks, owner.as_ref(), changes).await;
            match part.subject {
                Subject::Hooks => refused = refused.or(published?),
                // The API server does not wait for this webhook, so its failure must not stop the others.
                Subject::Edits => edits = published,
            }
        }
        self.note_published(standing);
        self.swap(&self.admission, &ready).await?;
        refused.or(edits?).map_or(Ok(()), Err)
    }

    /// Records the published configurations. Their watches restart only after a change.
    fn note_published(&self, standing: BTreeSet<(AdmissionKind, String)>) {
        self.published.send_if_modified(|known| {
            let differ = *known != standing;
            *known = standing;
            differ
        });
    }

    /// All configurations that the operator may have published.
    fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let of_hooks = AdmissionKind::ALL.map(|kind| Part {
            kind,
            name: &self.configuration,
            subject: Subject::Hooks,
        });
        let of_edits = self.edits.as_deref().map(|name| Part {
            kind: AdmissionKind::Validating,
            name,
            subject: Subject::Edits,
        });
        of_hooks.into_iter().chain(of_edits)
    }

    /// Publishes a configuration. Logs the parts that were refused.
    async fn publish(
        &self,
        Part { kind, name, .. }: Part<'_>,
        webhooks: &[Value],
        owner: Option<&OwnerReference>,
        changes: &mut Vec<Change>,
    ) -> Result<Option<Failure>, Failure> {
        let wanted = Wanted {
            kind,
            name,
            webhooks,
            owner,
        };
        let published = publish_configuration(&self.cluster, wanted).await?;
        changes.extend(published.change);
        Ok(published.refused.map(Failure::from))
    }

    async fn ensure_conversion(
        &self,
        routes: &Routes,
        now: Timestamp,
        changes: &mut Vec<Change>,
    ) -> Result<(), Failure> {
        if routes.conversions().next().is_none() {
            return Ok(());
        }
        let ready = Box::pin(self.ready(&self.conversion, now)).await?;
        let (mut missing, mut failed) = (None, Ok::<(), Failure>(()));
        for (crd, stanza) in registration::conversions(routes, &ready.address) {
            match publish_conversion(&self.cluster, &crd, &stanza).await {
                Ok(Conversion::AsWanted) => {}
                Ok(Conversion::Changed(change)) => changes.push(change),
                Ok(Conversion::Undefined) => {
                    let report = format!("cannot convert '{crd}': its CustomResourceDefinition does not exist yet");
                    missing = missing.or(Some(Failure::new(Class::Unavailable, report)));
                }
                Err(error) => failed = failed.and(Err(error.into())),
            }
        }
        failed?;
        self.swap(&self.conversion, &ready).await?;
        missing.map_or(Ok(()), Err)
    }

    /// Makes sure that the listener is open, and that clients can verify it with the CA bundle that is published next.
    async fn ready(&self, side: &Side, now: Timestamp) -> Result<Ready, Failure> {
        let material = self.material(side, now).await?;
        if side.tls.served().is_none() {
            serve(side, &material)?;
        }
        side.tls.want();
        let bundle = bundle(&side.trust(&material, now));
        let ca = bundle.ok_or_else(|| Failure::defect("checked certificates have no authority"))?;
        let address = Address {
            namespace: self.cluster.namespace().to_owned(),
            service: side.service.clone(),
            ca,
        };
        let ready = Ready { address, material };
        match self.probe(side, &ready).await {
            // The present certificate may have expired during the wait; then the next one is used.
            Err(_) if side.tls.served().as_ref() != Some(&ready.material) => {
                serve(side, &ready.material)?;
                self.probe(side, &ready).await?;
            }
            probed => probed?,
        }
        Ok(ready)
    }

    async fn material(&self, side: &Side, now: Timestamp) -> Result<Material, Failure> {
        let texts = match &side.source {
            Source::Files(files) => files.read()?,
            Source::Own => {
                let names = [&self.admission, &self.conversion].map(|side| self.host(side));
                let kept = Box::pin(webhook_certificates(&self.cluster, &self.secret, &names, now)).await?;
                texts_of(&self.cluster, &self.secret, &kept)
            }
        };
        Ok(Material::read(&texts, now)?)
    }

    async fn probe(&self, side: &Side, ready: &Ready) -> Result<(), Failure> {
        let opened = timeout(OPENING, side.tls.opened()).await;
        let opened = opened.unwrap_or_else(|_| Err("it is not opened".to_owned()));
        let address = opened.map_err(|why| {
            let report = format!("no listener for the service '{}': {why}", side.service);
            Failure::new(Class::Unavailable, report)
        })?;
        let asks_clients = side.tls.asks_clients();
        Ok(probe(address, &self.host(side), &ready.address.ca, asks_clients).await?)
    }

    /// Serves the newest certificate. Called only after all clients trust it.
    async fn swap(&self, side: &Side, ready: &Ready) -> Result<(), Failure> {
        if serve(side, &ready.material)? {
            self.probe(side, ready).await?;
        }
        Ok(())
    }

    /// The host name by which the API server verifies the listener.
    fn host(&self, side: &Side) -> String {
        format!("{}.{}.svc", side.service, self.cluster.namespace())
    }
}

/// A webhook configuration in the cluster.
#[derive(Debug, Clone, Copy)]
struct Part<'a> {
    kind: AdmissionKind,
    name: &'a str,
    subject: Subject,
}

#[derive(Debug, Clone, Copy)]
enum Subject {
    /// The configuration for admission by hooks.
    Hooks,
    /// The configuration for edits of the operator's `ConfigMap`.
    Edits,
}

impl Part<'_> {
    fn webhooks(self, routes: &Routes, address: &Address) -> Vec<Value> {
        match self.subject {
            Subject::Hooks => registration::webhooks(routes, self.kind, address),
            Subject::Edits => registration::edit_webhooks(routes, address),
        }
    }
}

struct Ready {
    address: Address,
    material: Material,
}

/// Serves the certificate. Returns whether anything has changed.
fn serve(side: &Side, material: &Material) -> Result<bool, Failure> {
    let clients = Clients::read(&side.client_ca)?;
    let served = side.tls.serve(material, clients);
    served.map_err(|error| Failure::of(Class::Invalid, &error))
}
