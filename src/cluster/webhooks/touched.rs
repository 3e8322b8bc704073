//! Watches our webhook configurations for changes and deletions by other writers, so that they are restored within
//! seconds.
//!
//! An event only starts a check: the check compares, as it does every minute anyway. So a watch that is refused or
//! silent costs only time, and an operator that has published no webhook starts no watch.

use std::collections::BTreeSet;
use std::future::{pending, ready};

use addon_core::review::routes::AdmissionKind;
use futures::stream::{self, Stream, StreamExt as _, select_all};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use tokio::sync::watch;

use super::Wanted;
use crate::cluster::Cluster;
use crate::cluster::unwatched::Unwatched;

/// Says so whenever one of the configurations is touched, as long as they are published. Never ends.
pub async fn follow<T>(
    cluster: &Cluster,
    mut published: watch::Receiver<BTreeSet<(AdmissionKind, String)>>,
    tell: impl Fn() -> T,
) where
    T: Future<Output = ()>,
{
    loop {
        let standing = published.borrow_and_update().clone();
        let touches = standing
            .iter()
            .map(|(kind, name)| touches(cluster, *kind, name).boxed());
        // Without a configuration there is nothing to be touched.
        let touches = select_all(touches).chain(stream::pending());
        tokio::select! {
            () = touches.for_each(|()| tell()) => {}
            changed = published.changed() => if changed.is_err() {
                return pending().await;
            },
        }
    }
}

/// One of them. It begins with a touch, because changes before the watch began were not seen.
fn touches(cluster: &Cluster, kind: AdmissionKind, name: &str) -> impl Stream<Item = ()> + use<> {
    let wanted = Wanted {
        kind,
        name,
        webhooks: &[],
        owner: None,
    };
    let attempt = cluster.cluster_attempt("watch", wanted.resource(), name);
    let mut trouble = Unwatched::new(attempt, "changes by other writers are reverted within a minute");
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    watcher(cluster.configurations(wanted), config)
        .default_backoff()
        .filter_map(move |event| {
            let touched = match event {
                Ok(Event::Apply(_) | Event::Delete(_) | Event::InitDone) => {
                    trouble.is_over();
                    Some(())
                }
                Ok(Event::Init | Event::InitApply(_)) => None,
                Err(error) => {
                    trouble.tell(error);
                    None
                }
            };
            ready(touched)
        })
}
