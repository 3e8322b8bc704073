//! Finds out whether the leader has ended, from the status of its pod. The status is read on demand; a watch tells when
//! to read.
//!
//! A watch event only leads to a read, and only the status that is read counts. The end of another pod must never count
//! as the leader's.

use std::time::Duration;

use channel_core::leadership::lease::Holder;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::Pod;
use kube_access::Cluster;
use settings::leadership::{address_in, pod_in};
use tracing::debug;

use crate::holder::HolderPod;
use crate::holder::pod_news;

pub(super) struct HolderWatch {
    cluster: Cluster,
    watched: Option<Watched>,
}

struct Watched {
    /// The holder's name in the lease.
    holder: String,
    pod: HolderPod,
    news: BoxStream<'static, Pod>,
}

impl HolderWatch {
    pub(super) fn new(cluster: Cluster) -> Self {
        Self { cluster, watched: None }
    }

    /// Watches the pod of this holder from now on, if it has one.
    pub(super) fn follow(&mut self, holder: Option<&str>) {
        if self.watched.as_ref().map(|watched| watched.holder.as_str()) == holder {
            return;
        }
        self.watched = holder.and_then(|holder| {
            let pod = HolderPod::new(pod_in(holder)?, address_in(holder));
            Some(Watched {
                holder: holder.to_owned(),
                news: pod_news(&self.cluster, pod.name()).boxed(),
                pod,
            })
        });
    }

    /// Returns when the watch shows a sign that the holder has ended.
    pub(super) async fn sign(&mut self) {
        if let Some(watched) = &mut self.watched {
            while let Some(pod) = watched.news.next().await {
                if watched.pod.see(Some(&pod)) {
                    return;
                }
            }
        }
        std::future::pending::<()>().await;
    }

    /// Whether the holder has ended, by the present status of its pod.
    pub(super) async fn ask(&mut self, holder: &str, within: Duration) -> Holder {
        self.follow(Some(holder));
        let Some(watched) = &mut self.watched else {
            return Holder::Unknown;
        };
        match crate::holder::pod(&self.cluster, watched.pod.name(), within).await {
            Ok(pod) if watched.pod.see(pod.as_ref()) => Holder::Gone,
            Ok(_) => Holder::Unknown,
            Err(error) => {
                debug!(%error, "cannot read the pod of the leader, its failure shows by the lease alone");
                Holder::Unknown
            }
        }
    }
}
