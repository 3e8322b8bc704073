//! The tools of the jobs that run hooks.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jobs::Ground;
use jobs::acting::Acting;
use objects::Patcher;
use telling::meters::Meters;
use watches::Monitors;

use crate::past::LastRuns;
use crate::records::Recorder;
use crate::relay::Style;

/// The tools of the jobs that run hooks. Clones share them.
#[derive(Debug, Clone)]
pub struct Tools {
    /// The ground of all jobs.
    pub ground: Arc<Ground>,
    pub monitors: Monitors,
    /// Carries out object patches of hooks.
    pub patcher: Patcher,
    /// Keeps the metrics of hooks.
    pub meters: Arc<Meters>,
    /// The directory of hooks without modules; none with modules.
    pub hooks_dir: Option<PathBuf>,
    /// The deadline of an enabled script.
    pub script_deadline: Duration,
    /// The settings for the output of hooks and scripts in the log.
    pub relay: Style,
    /// Records runs of hooks on demand.
    pub recorder: Recorder,
    /// The last run of each hook.
    pub past: LastRuns,
}

impl Tools {
    /// The patcher that acts under the account of a job.
    pub(crate) fn patcher(&self, acting: &Acting<'_>) -> Patcher {
        match acting.account() {
            Some(account) => self.patcher.acting_as(account),
            None => self.patcher.clone(),
        }
    }
}
