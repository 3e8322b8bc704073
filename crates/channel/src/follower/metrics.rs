//! Logs the news of the channel, and sets its metrics.
//!
//! Must never report the same fact twice: the core decides which facts are news.

use std::sync::Arc;

use channel_core::candidate::Signature;
use channel_core::choice::Target;
use channel_core::following::News;
use channel_core::reference::ImageDigest;
use telling::meters::Meters;
use telling::meters::table::channel;
use tracing::{debug, info, warn};

use super::Known;

pub(super) struct Teller {
    meters: Arc<Meters>,
}

impl Teller {
    pub(super) fn new(meters: Arc<Meters>) -> Self {
        Self { meters }
    }

    /// Reports one piece of news. Returns the number of rounds that the news finishes: 0 or 1.
    pub(super) fn tell(&self, news: &News) -> u64 {
        match news {
            News::Checked { is_answered } => {
                let result = if *is_answered { "answered" } else { "failed" };
                self.meters.add(&channel::CHECKS, [result], 1.0);
                debug!(result, "The registry was asked");
                return 1;
            }
            News::Available(target) => {
                let (tag, version) = (target.tag.as_ref().map(ToString::to_string), shown(target));
                info!(
                    tag,
                    version,
                    digest = target.digest.as_str(),
                    "Another version is available"
                );
            }
            News::Waits { target, reasons } => {
                let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
                let (version, digest) = (shown(target), target.digest.as_str());
                info!(
                    version,
                    digest,
                    reasons = reasons.join("; "),
                    "The version that is available waits"
                );
            }
            News::Unreachable(error) => warn!(error, "The registry does not answer, trying again"),
            News::Answers => info!("The registry answers again"),
            News::Missing(digests) => {
                let digests: Vec<&str> = digests.iter().map(ImageDigest::as_str).collect();
                let hint = "push it again, or a pod on another machine cannot start";
                warn!(
                    digests = digests.join(", "),
                    hint, "The registry no longer has the image of the running version"
                );
            }
        }
        0
    }

    /// Sets the metrics. Only the replica that asks the registry has them.
    pub(super) fn measure(&self, known: &Known, leads: bool) {
        let figures = known
            .installed
            .as_ref()
            .filter(|_| leads && known.status.checked.is_some());
        if figures.is_none() {
            self.meters.end(&channel::MISSING, []);
            self.meters.end(&channel::VERIFIED, []);
            return;
        }
        let missing = u32::try_from(known.status.missing.len()).unwrap_or(u32::MAX);
        self.meters.set(&channel::MISSING, [], missing.into());
        match &known.signature {
            Some(Signature::Good) => self.meters.set(&channel::VERIFIED, [], 1.0),
            Some(Signature::NotAsked | Signature::Bad(_)) => self.meters.set(&channel::VERIFIED, [], 0.0),
            None => self.meters.end(&channel::VERIFIED, []),
        }
    }
}

fn shown(target: &Target) -> Option<String> {
    target.version.as_ref().map(ToString::to_string)
}
