//! The namespaces that a selector finds, as a changing set of watches.
//!
//! Objects of a new namespace enter the snapshot without an event, and their later changes are reported. Objects of a
//! namespace that no longer matches leave the snapshot without an event, because they still exist. Must never give up a
//! namespace because one list failed.

use std::collections::BTreeMap;
use std::sync::Arc;

use addon_core::failure::Failure;
use addon_core::hook::config::{KubernetesBinding, LabelSelector};
use futures::future::try_join_all;
use kube::core::{ApiResource, GroupVersionKind};
use names::{ModuleName, MonitorId};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::ledger::outlet::{Moved, Outlet};
use crate::ledger::{Key, Target};
use crate::observation::Labels;
use crate::selection::{self, Selection};
use crate::shared::{Seat, Shared};
use crate::trouble::Pause;

/// One monitor and the namespaces in which it watches.
pub(super) struct Namespaces {
    shared: Arc<Shared>,
    id: MonitorId,
    binding: KubernetesBinding,
    resource: ApiResource,
    labels: Arc<Labels>,
    moves: mpsc::UnboundedReceiver<Moved>,
    within: BTreeMap<String, Within>,
    joining: JoinSet<(String, Vec<Seat>)>,
}

/// The progress in a namespace.
enum Within {
    /// The objects of the namespace are being listed.
    Joining(AbortHandle),
    /// The objects of the namespace are watched.
    Watching(Vec<Seat>),
}

impl Namespaces {
    /// Finds the present namespaces and lists their objects. If one list fails, all fail.
    pub(super) async fn start(
        shared: &Arc<Shared>,
        id: MonitorId,
        binding: &KubernetesBinding,
        selector: &LabelSelector,
        resource: ApiResource,
        labels: Arc<Labels>,
    ) -> Result<Self, Failure> {
        let (door, moves) = mpsc::unbounded_channel();
        let key = Key::Namespaces(id);
        let target = Target::of_namespaces(Outlet::Namespaces(door), Arc::clone(&labels), shared.token());
        shared.ledger().enter(key, target);
        let selection = Selection {
            resource: ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Namespace")),
            namespace: None,
            labels: selection::labels(selector),
            fields: None,
            metadata_only: false,
            is_read: false,
        };
        shared.join(key, &selection).await?;
        let mut set = Self {
            shared: Arc::clone(shared),
            id,
            binding: binding.clone(),
            resource,
            labels,
            moves,
            within: BTreeMap::new(),
            joining: JoinSet::new(),
        };
        // Namespaces that change from now on are also in the queue of moves; handling them twice does no harm.
        let present = shared.ledger().target(key).map(Target::names).unwrap_or_default();
        let joins = present.into_iter().map(|namespace| async {
            let places = set.join(&namespace).await?;
            Ok::<_, Failure>((namespace, Within::Watching(places)))
        });
        let joined = try_join_all(joins).await?;
        set.within = joined.into_iter().collect();
        Ok(set)
    }

    async fn join(&self, namespace: &str) -> Result<Vec<Seat>, Failure> {
        let selections = selection::of_binding(&self.binding, &self.resource, Some(namespace));
        join_all(&self.shared, self.id, &selections).await
    }

    /// Follows the changes of the set until the monitor is stopped.
    pub(super) fn follow(self, end: CancellationToken) {
        let shared = Arc::clone(&self.shared);
        shared.run(end, self.run(), |_| {});
    }

    async fn run(mut self) {
        loop {
            tokio::select! {
                moved = self.moves.recv() => match moved {
                    Some(Moved { namespace, present: true }) => self.came(namespace),
                    Some(Moved { namespace, present: false }) => self.went(&namespace),
                    None => return,
                },
                Some(joined) = self.joining.join_next() => self.joined(joined),
            }
        }
    }

    fn came(&mut self, namespace: String) {
        if self.within.contains_key(&namespace) {
            return;
        }
        let selections = selection::of_binding(&self.binding, &self.resource, Some(&namespace));
        let (shared, id, labels) = (Arc::clone(&self.shared), self.id, Arc::clone(&self.labels));
        let name = namespace.clone();
        let join = async move {
            let places = join_at_last(&shared, id, &selections, &labels).await;
            (name, places)
        };
        self.within.insert(namespace, Within::Joining(self.joining.spawn(join)));
    }

    fn went(&mut self, namespace: &str) {
        match self.within.remove(namespace) {
            Some(Within::Joining(task)) => task.abort(),
            Some(Within::Watching(places)) => places.into_iter().for_each(Seat::leave),
            None => {}
        }
    }

    fn joined(&mut self, joined: Result<(String, Vec<Seat>), tokio::task::JoinError>) {
        match joined {
            Ok((namespace, places)) => match self.within.get_mut(&namespace) {
                Some(within) => *within = Within::Watching(places),
                // The namespace stopped matching meanwhile.
                None => places.into_iter().for_each(Seat::leave),
            },
            Err(error) => {
                if let Ok(panic) = error.try_into_panic() {
                    std::panic::resume_unwind(panic);
                }
            }
        }
    }
}

/// Joins all selections, or none.
pub(super) async fn join_all(
    shared: &Arc<Shared>,
    id: MonitorId,
    selections: &[Selection],
) -> Result<Vec<Seat>, Failure> {
    try_join_all(
        selections
            .iter()
            .map(|selection| shared.join(Key::Monitor(id), selection)),
    )
    .await
}

/// Repeats the attempt to join a watch until it succeeds.
async fn join_at_last(shared: &Arc<Shared>, id: MonitorId, selections: &[Selection], labels: &Labels) -> Vec<Seat> {
    let mut pause = Pause::default();
    let mut told = None;
    loop {
        match join_all(shared, id, selections).await {
            Ok(places) => return places,
            Err(failure) => {
                let namespace = selections.first().and_then(|selection| selection.namespace.as_deref());
                let Labels { hook, binding, .. } = labels;
                let error = failure.report;
                if told.as_ref() != Some(&error) {
                    let module = hook.owner.module().map(ModuleName::as_str);
                    warn!(
                        hook = hook.name.as_str(),
                        module, binding, namespace, error, "cannot list the objects of a new namespace, trying again"
                    );
                    told = Some(error);
                }
                sleep(pause.next(None)).await;
            }
        }
    }
}
