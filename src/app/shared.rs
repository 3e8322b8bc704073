//! The values that parts outside of the loop share: answers and news, also before the cluster is connected.
//!
//! Must never hold anything that a decision depends on.

use std::sync::{Arc, OnceLock};

use ::channel::answers::Channel;
use child::Spawner;
use hooks::past::LastRuns;
use hooks::records::{self, Recorder};
use intake::answers::Reloader;
use leadership::Concerned;
use leadership::standing::ActingRole;
use listeners::Loop;
use plan::planner::Planner;
use releases::answers::charts::Charts;
use releases::drift::lookout::Lookout;
use releases::outdated::Board;
use report::secrets::Secrets;
use settings::Settings;
use sources::requests::Sources;
use telling::meters::Meters;
use telling::telemetry::Spools;
use tokio::sync::watch;
use watches::Monitors;

use super::config_events::ConfigEvents;
use crate::serve::probe;

/// The values that answers need, also before the cluster is connected.
#[derive(Clone)]
pub(super) struct Outside {
    pub(super) doors: Loop,
    pub(super) meters: Arc<Meters>,
    pub(super) trouble: probe::Trouble,
    pub(super) monitors: Arc<OnceLock<Monitors>>,
    pub(super) lookout: Arc<OnceLock<Lookout>>,
    /// The outdated kinds in releases.
    pub(super) outdated: Board,
    pub(super) charts: Arc<OnceLock<Charts>>,
    /// Makes plans.
    pub(super) planner: Arc<OnceLock<Planner>>,
    /// Reads directories of modules again.
    pub(super) reloader: Arc<OnceLock<Reloader>>,
    /// Reports about the sources of modules.
    pub(super) sources: Arc<OnceLock<Sources>>,
    pub(super) recorder: Recorder,
    pub(super) past: LastRuns,
    pub(super) events: ConfigEvents,
    pub(super) secrets: Secrets,
    pub(super) spools: Spools,
    pub(super) standing: watch::Sender<ActingRole>,
    /// The news that the state of the operator may have changed.
    pub(super) stirred: watch::Sender<()>,
    /// The means of the code that follows the channel.
    pub(super) channel: channel::Outside,
}

impl Outside {
    pub(super) fn new(
        settings: &Settings,
        doors: &Loop,
        meters: &Arc<Meters>,
        trouble: probe::Trouble,
        (secrets, spools): (&Secrets, &Spools),
    ) -> Self {
        let standing = watch::Sender::new(ActingRole::Seeks { trouble: None });
        Self {
            doors: doors.clone(),
            meters: Arc::clone(meters),
            trouble,
            monitors: Arc::default(),
            lookout: Arc::default(),
            outdated: Board::default(),
            charts: Arc::default(),
            planner: Arc::default(),
            reloader: Arc::default(),
            sources: Arc::default(),
            past: LastRuns::default(),
            recorder: Recorder::new(settings.tmp_dir.join(records::DIR), secrets.clone()),
            events: ConfigEvents::default(),
            secrets: secrets.clone(),
            spools: spools.clone(),
            channel: channel::Outside::new(doors, meters, &standing),
            standing,
            stirred: watch::Sender::default(),
        }
    }

    /// The state of the channel for commands and metrics.
    pub(super) fn channel(&self) -> Channel {
        Channel {
            state: self.channel.state.subscribe(),
            bell: self.channel.bell.clone(),
        }
    }

    pub(super) fn concerned(&self, spawner: &Spawner) -> Concerned {
        Concerned {
            doors: self.doors.clone(),
            meters: Arc::clone(&self.meters),
            standing: self.standing.clone(),
            warrant: spawner.warrant().clone(),
            spools: self.spools.clone(),
        }
    }
}
