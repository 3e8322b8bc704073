//! Finds the operator's Deployment and the version that its own pod runs. Must never give up because of a missing
//! right, which may be given later.

use std::time::Duration;

use addon_core::failure::Failure;
use channel_core::reference::Reference;
use channel_core::trial::replica::{Me, PodKind};
use channel_core::view::ChannelState;
use kube_access::Cluster;
use tokio::time::sleep;
use tracing::warn;

use crate::Outside;
use crate::installation::{Found, Installation};

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_secs(15);

/// Repeats until the installation is found, or it is certain that trials are impossible here.
pub(super) async fn find(cluster: &Cluster, pod: &str, outside: &Outside) -> Option<(Installation, Me)> {
    let mut told = None;
    loop {
        let trouble = match crate::installation::installation(cluster, pod).await {
            Ok(Found::In(installation)) => match me(&installation) {
                Some(me) => return Some((*installation, me)),
                None => "the digest of the image that our pod runs is not known".to_owned(),
            },
            Ok(Found::Elsewhere(why)) => {
                outside.be_off(&why);
                return None;
            }
            Err(error) => {
                let is_forbidden = error.is_forbidden();
                let Failure { report, hints, .. } = error.into();
                let why = [report].into_iter().chain(hints).collect::<Vec<_>>().join(": ");
                if is_forbidden {
                    outside.state.send_replace(ChannelState::Off { why: why.clone() });
                }
                why
            }
        };
        if told.as_ref() != Some(&trouble) {
            warn!(
                error = trouble,
                "Cannot find the Deployment and the image of our own pod, trying again"
            );
            told = Some(trouble);
        }
        sleep(PAUSE).await;
    }
}

fn me(installation: &Installation) -> Option<Me> {
    let named = Reference::parse(&installation.image);
    let named = named.ok().and_then(|reference| reference.digest);
    let digest = named.or_else(|| installation.digests.first().cloned())?;
    Some(Me {
        pod: installation.pod.clone(),
        digest,
        digests: installation.digests.clone(),
        place: if installation.is_on_trial {
            PodKind::Trial
        } else {
            PodKind::Deployment
        },
    })
}
