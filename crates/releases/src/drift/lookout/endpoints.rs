//! The watches of the endpoints of Services that webhook configurations of releases call.
//!
//! Must never blame a webhook for endpoints that cannot be watched.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use addon_core::failure::Class;
use health_core::ServiceName;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::core::ApiResource;
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::debug;
use watches::lens::Lens;
use watches::own::{OwnId, OwnWatches};
use watches::selection::Selection;

use super::kind_watches::{Joined, LONGEST_PAUSE, SHORT_PAUSE, Stage};
use super::{Errand, Errands};

/// The label of the `EndpointSlices` of a Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// The watches of Services, by the name of the Service.
pub(super) struct Endpoints {
    watches: OwnWatches,
    by_service: BTreeMap<ServiceName, (OwnId, Stage)>,
}

impl Endpoints {
    pub(super) fn new(watches: OwnWatches) -> Self {
        Self {
            watches,
            by_service: BTreeMap::new(),
        }
    }

    /// Starts the missing watches, and stops those that are no longer needed. `last` is the last number that was used for
    /// a watch.
    pub(super) fn want(
        &mut self,
        services: BTreeSet<ServiceName>,
        now: Instant,
        last: &mut OwnId,
        errands: &mut Errands,
    ) {
        self.by_service.retain(|service, (id, stage)| {
            let is_kept = services.contains(service);
            if !is_kept {
                stage.give_up();
                self.watches.end(*id);
            }
            is_kept
        });
        for service in services {
            let known = self.by_service.get(&service);
            if known.is_none_or(|(_, stage)| stage.is_due(now)) {
                last.0 += 1;
                let stage = self.begin(service.clone(), *last, errands);
                self.by_service.insert(service, (*last, stage));
            }
        }
    }

    fn begin(&self, service: ServiceName, id: OwnId, errands: &mut Errands) -> Stage {
        let selection = Selection {
            resource: ApiResource::erase::<EndpointSlice>(&()),
            namespace: Some(service.namespace.clone()),
            labels: Some(format!("{SERVICE_NAME}={}", service.name)),
            fields: None,
            metadata_only: false,
            is_read: false,
        };
        let lens = Lens::through(
            "whether an endpoint is ready",
            Arc::new(|slice| Ok(json!(has_ready_endpoint(slice)))),
        );
        let watches = self.watches.clone();
        let task = errands.spawn(async move {
            let joined = watches.begin(id, lens, &selection).await;
            Errand::JoinedEndpoints(service, id, joined)
        });
        Stage::Joining(task)
    }

    /// Notes the result of a Service's first list.
    pub(super) fn joined(&mut self, service: &ServiceName, id: OwnId, joined: Joined, now: Instant) {
        let Some((_, stage)) = self.by_service.get_mut(service).filter(|(of, _)| *of == id) else {
            self.watches.end(id);
            return;
        };
        *stage = match joined {
            Ok(()) => Stage::Watched,
            Err(failure) => {
                self.watches.end(id);
                let ServiceName { namespace, name } = service;
                debug!(
                    namespace,
                    name,
                    error = failure.report,
                    "the endpoints of a Service are not watched"
                );
                let is_short = failure.class == Class::Unavailable;
                Stage::Waiting(now + if is_short { SHORT_PAUSE } else { LONGEST_PAUSE })
            }
        };
    }

    /// The Services among these that certainly have no ready endpoint.
    pub(super) fn lacking<'a>(&self, services: impl Iterator<Item = &'a ServiceName>) -> BTreeSet<ServiceName> {
        services.filter(|service| self.is_lacking(service)).cloned().collect()
    }

    fn is_lacking(&self, service: &ServiceName) -> bool {
        let Some((id, Stage::Watched)) = self.by_service.get(service) else {
            return false;
        };
        let slices = self.watches.seen(*id);
        !slices.iter().any(|(_, view)| {
            view.filter_result
                .as_ref()
                .is_some_and(|shown| shown.to_value() == true)
        })
    }

    /// Whether a first list has not ended yet.
    pub(super) fn is_listing(&self) -> bool {
        self.by_service
            .values()
            .any(|(_, stage)| matches!(stage, Stage::Joining(_)))
    }

    /// Whether a watch is one of these.
    pub(super) fn has(&self, id: OwnId) -> bool {
        self.by_service.values().any(|(of, _)| *of == id)
    }

    /// The earliest time at which a Service is tried again.
    pub(super) fn next(&self) -> Option<Instant> {
        self.by_service.values().filter_map(|(_, stage)| stage.next()).min()
    }
}

/// Whether objects of a kind call Services.
pub(super) fn is_webhook(kind: &str) -> bool {
    matches!(kind, "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration")
}

fn has_ready_endpoint(slice: &Value) -> bool {
    let endpoints = slice["endpoints"].as_array();
    // An endpoint that does not say whether it is ready counts as ready.
    endpoints.is_some_and(|all| all.iter().any(|endpoint| endpoint["conditions"]["ready"] != false))
}
