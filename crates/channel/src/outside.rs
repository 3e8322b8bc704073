//! The ways between the channel and the rest of the program, also before the cluster is connected.

use std::sync::{Arc, OnceLock};

use addon_core::operator::event::TrialStage;
use channel_core::view::ChannelState;
use leadership::standing::ActingRole;
use listeners::Loop;
use telling::meters::Meters;
use telling::notices::announcements::channel::ChannelAnnouncer;
use tokio::sync::watch;
use tracing::info;

use crate::bell::Bell;
use crate::follower::Followed;

/// The answer about a channel in a program that follows none.
const NOT_FOLLOWED: &str = "this program follows no channel";

/// The ways between the channel and the rest of the program. Clones share everything.
#[derive(Debug, Clone)]
pub struct Outside {
    /// Asks the loop, and sends events to it.
    pub doors: Loop,
    /// Counts what the channel does.
    pub meters: Arc<Meters>,
    /// The role of this replica.
    pub standing: watch::Sender<ActingRole>,
    /// The stage of the last trial; none while it is not known.
    pub stage: watch::Sender<Option<TrialStage>>,
    /// Makes the follower ask the registry at once.
    pub bell: Bell,
    /// The state of following.
    pub followed: watch::Sender<Followed>,
    /// The state of the channel for commands and metrics.
    pub state: watch::Sender<ChannelState>,
    /// The name of the operator's Deployment, once it is known.
    pub deployment: Arc<OnceLock<String>>,
    /// Announces news of the channel as Events, if Events are on.
    pub announcer: Arc<OnceLock<ChannelAnnouncer>>,
}

impl Outside {
    /// Nothing is followed yet.
    pub fn new(doors: &Loop, meters: &Arc<Meters>, standing: &watch::Sender<ActingRole>) -> Self {
        Self {
            doors: doors.clone(),
            meters: Arc::clone(meters),
            standing: standing.clone(),
            stage: watch::Sender::new(None),
            bell: Bell::default(),
            followed: watch::Sender::default(),
            state: watch::Sender::new(ChannelState::Off {
                why: NOT_FOLLOWED.to_owned(),
            }),
            deployment: Arc::default(),
            announcer: Arc::default(),
        }
    }

    /// An announcer for news of the channel; if Events are off, it only counts them.
    pub(crate) fn announcer(&self) -> ChannelAnnouncer {
        let announcer = self.announcer.get().cloned();
        announcer.unwrap_or_else(|| ChannelAnnouncer::silent(Arc::clone(&self.meters)))
    }

    /// Publishes that nothing is followed, and why.
    pub(crate) fn be_off(&self, why: &str) {
        info!(reason = why, "The registry is not asked for other versions");
        self.bell.unhang(why);
        self.state.send_replace(ChannelState::Off { why: why.to_owned() });
        self.followed.send_replace(Followed::Off { why: why.to_owned() });
    }
}
