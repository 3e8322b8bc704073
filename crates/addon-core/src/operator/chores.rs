//! The chores of a life: reads and writes that the operator itself needs, beside the work for modules. A chore is retried
//! until it succeeds, and a waiting chore is reported by name.

use std::collections::BTreeMap;

use clock::{Backoff, Tick};

use super::cx::Cx;
use super::effect::Notice;
use super::policy::Mode;
use super::query::Waiting;
use crate::failure::Failure;

/// A piece of the operator's own work, which must succeed once and is retried until it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Chore {
    /// Read the state Secret.
    LoadState,
    /// Write the last good texts of the ConfigMap into the state Secret.
    SaveState,
    /// Write the outlines of the values files into the state Secret.
    SaveValuesFiles,
    /// Write the values that global hooks have given into the state Secret.
    SaveGiven,
    /// Read the directories again.
    ReadDirectories,
    /// List the releases.
    ListReleases,
    /// Watch the releases.
    WatchReleases,
    /// Put back or forget the sections that hooks saved on trial.
    SettleSections,
    /// Ask the global hooks for their configuration.
    ConfigureGlobalHooks,
}

impl Chore {
    /// Whether the chore depends only on the API server.
    fn asks_api_server(self) -> bool {
        match self {
            Self::LoadState
            | Self::SaveState
            | Self::SaveValuesFiles
            | Self::SaveGiven
            | Self::ListReleases
            | Self::WatchReleases
            | Self::SettleSections => true,
            Self::ReadDirectories | Self::ConfigureGlobalHooks => false,
        }
    }

    /// Whether the chore is done again each time that there is something to write.
    fn comes_again(self) -> bool {
        match self {
            Self::SaveState | Self::SaveValuesFiles | Self::SaveGiven => true,
            Self::LoadState
            | Self::ReadDirectories
            | Self::ListReleases
            | Self::WatchReleases
            | Self::SettleSections
            | Self::ConfigureGlobalHooks => false,
        }
    }

    /// Whether the start goes on without waiting for this chore.
    fn is_aside(self) -> bool {
        self == Self::WatchReleases
    }

    /// The work of the chore as a text for people.
    fn describe(self, mode: Mode) -> &'static str {
        match self {
            Self::LoadState => "read the state Secret",
            Self::SaveState => "write the state Secret",
            Self::SaveValuesFiles => "write to the state Secret what the values files say",
            Self::SaveGiven => "write to the state Secret the values that global hooks gave",
            Self::ReadDirectories => "read the modules directories a second time before something is removed",
            Self::ListReleases => "list the helm releases",
            Self::WatchReleases => "watch the helm releases",
            Self::SettleSections => "put back or forget the sections that hooks saved on trial",
            Self::ConfigureGlobalHooks => match mode {
                Mode::Addons => "ask the global hooks for their configuration",
                Mode::Hooks => "ask the hooks for their configuration",
            },
        }
    }
}

/// The state of each chore that was begun in this life.
#[derive(Debug, Clone, Default)]
pub(super) struct Chores {
    progress: BTreeMap<Chore, Progress>,
}

#[derive(Debug, Clone)]
enum Progress {
    Running { failures: u32, error: Option<String> },
    Backoff { until: Tick, failures: u32, error: String },
    Done,
}

impl Chores {
    /// Whether the chore has not failed in this life.
    pub(super) fn is_first_try(&self, chore: Chore) -> bool {
        match self.progress.get(&chore) {
            None => true,
            Some(Progress::Running { failures, .. }) => *failures == 0,
            Some(Progress::Backoff { .. } | Progress::Done) => false,
        }
    }

    pub(super) fn is_done(&self, chore: Chore) -> bool {
        matches!(self.progress.get(&chore), Some(Progress::Done))
    }

    /// Whether the chore may be started now: it is not running, and it is new, its delay is over, or it can be done again.
    pub(super) fn is_due(&self, chore: Chore, now: Tick) -> bool {
        match self.progress.get(&chore) {
            None => true,
            Some(Progress::Backoff { until, .. }) => *until <= now,
            Some(Progress::Done) => chore.comes_again(),
            Some(Progress::Running { .. }) => false,
        }
    }

    /// Notes that the chore's job has started.
    pub(super) fn begins(&mut self, chore: Chore) {
        let (failures, error) = match self.progress.remove(&chore) {
            Some(Progress::Backoff { failures, error, .. }) => (failures, Some(error)),
            Some(Progress::Running { .. } | Progress::Done) | None => (0, None),
        };
        self.progress.insert(chore, Progress::Running { failures, error });
    }

    pub(super) fn done(&mut self, chore: Chore) {
        self.progress.insert(chore, Progress::Done);
    }

    /// Notes that the chore's job failed. The chore is tried again after a delay.
    pub(super) fn failed(&mut self, cx: &mut Cx, chore: Chore, failure: Failure) {
        let (failures, last) = match self.progress.remove(&chore) {
            Some(Progress::Running { failures, error }) => (failures, error),
            Some(Progress::Backoff { .. } | Progress::Done) | None => (0, None),
        };
        let retry_in = Backoff::delay(failures, cx.draw());
        let until = cx.now.tick + retry_in;
        let error = failure.report.clone();
        self.progress.insert(
            chore,
            Progress::Backoff {
                until,
                failures: failures + 1,
                error,
            },
        );
        cx.tell(Notice::StepFailed {
            step: chore.describe(cx.policy.mode).to_owned(),
            again: last.as_ref() == Some(&failure.report),
            failure,
            retry_in,
        });
    }

    /// Ends the delays of the chores that wait for the API server, because the API server answers again.
    pub(super) fn wake(&mut self, now: Tick) {
        for (chore, progress) in &mut self.progress {
            if let Progress::Backoff { until, .. } = progress
                && chore.asks_api_server()
            {
                *until = now.min(*until);
            }
        }
    }

    /// Drops the failure of a chore that is no longer needed, so that nothing waits for its delay.
    pub(super) fn give_up(&mut self, chore: Chore) {
        if matches!(self.progress.get(&chore), Some(Progress::Backoff { .. })) {
            self.progress.remove(&chore);
        }
    }

    /// The time of the next retry of a chore.
    pub(super) fn timeout(&self, mode: Mode) -> Option<(Tick, Waiting)> {
        self.progress
            .iter()
            .filter_map(|(chore, progress)| match progress {
                Progress::Backoff { until, .. } => Some((*until, Waiting::Step(chore.describe(mode).to_owned()))),
                Progress::Running { .. } | Progress::Done => None,
            })
            .min_by_key(|(until, _)| *until)
    }

    /// The chores that block further work, by name.
    pub(super) fn waiting(&self, mode: Mode) -> impl Iterator<Item = String> {
        let before = self.progress.iter().filter(|(chore, _)| !chore.is_aside());
        before.filter_map(move |(chore, progress)| match progress {
            Progress::Running { .. } => Some(chore.describe(mode).to_owned()),
            Progress::Backoff { error, failures, .. } => {
                Some(format!("{}: failed {failures} times: {error}", chore.describe(mode)))
            }
            Progress::Done => None,
        })
    }
}
