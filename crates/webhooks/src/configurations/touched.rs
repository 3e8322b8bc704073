//! Watches the operator's webhook configurations for changes by other writers, so that they are restored within
//! seconds.
//!
//! An event only starts a check, which also runs every minute. So a watch that fails costs only time, and without
//! published webhooks there is no watch.

use std::collections::BTreeSet;
use std::future::{pending, ready};

use addon_core::review::routes::AdmissionKind;
use futures::stream::{self, Stream, StreamExt as _, select_all};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube_access::Cluster;
use tokio::sync::watch;
use watches::unwatched::Unwatched;

use super::Wanted;
use crate::configurations;

/// Calls `tell` whenever a published configuration is changed. Never ends.
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
        // Without published configurations the stream `touches` never ends.
        let touches = select_all(touches).chain(stream::pending());
        tokio::select! {
            () = touches.for_each(|()| tell()) => {}
            changed = published.changed() => if changed.is_err() {
                return pending().await;
            },
        }
    }
}

/// The changes of one configuration. The stream begins with an item, because earlier changes were not observed.
fn touches(cluster: &Cluster, kind: AdmissionKind, name: &str) -> impl Stream<Item = ()> + use<> {
    let wanted = Wanted {
        kind,
        name,
        webhooks: &[],
        owner: None,
    };
    let attempt = cluster.attempt_in(None, "watch", wanted.resource(), name);
    let mut trouble = Unwatched::new(attempt, "changes by other writers are reverted within a minute");
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    watcher(configurations::configurations(cluster, wanted), config)
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
