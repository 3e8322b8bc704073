//! The chores of a life: what has to be found out or written beside all that modules want. A chore is retried until it succeeds,
//! and says by name what it waits for.

use std::collections::BTreeMap;

use super::cx::Cx;
use super::effect::Notice;
use super::policy::Mode;
use super::query::Waiting;
use crate::failure::Failure;
use crate::time::{Backoff, Tick};

/// Something of our own that must succeed once, and is retried until it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Chore {
    /// Read our state.
    LoadState,
    /// Write our state.
    SaveState,
    /// Write what the values files say.
    SaveValuesFiles,
    /// Read the directories again.
    ReadDirectories,
    /// List the releases.
    ListReleases,
    /// Watch the releases.
    WatchReleases,
    /// Put back or forget what hooks saved on trial.
    SettleSections,
    /// Ask the global hooks for their configuration.
    ConfigureGlobalHooks,
}

impl Chore {
    /// It needs nobody but the API server.
    fn asks_api_server(self) -> bool {
        match self {
            Self::LoadState
            | Self::SaveState
            | Self::SaveValuesFiles
            | Self::ListReleases
            | Self::WatchReleases
            | Self::SettleSections => true,
            Self::ReadDirectories | Self::ConfigureGlobalHooks => false,
        }
    }

    /// It is done anew whenever something is to be written.
    fn comes_again(self) -> bool {
        match self {
            Self::SaveState | Self::SaveValuesFiles => true,
            Self::LoadState
            | Self::ReadDirectories
            | Self::ListReleases
            | Self::WatchReleases
            | Self::SettleSections
            | Self::ConfigureGlobalHooks => false,
        }
    }

    /// Nothing of the start waits for it.
    fn is_aside(self) -> bool {
        self == Self::WatchReleases
    }

    /// What it does, in words for people.
    fn describe(self, mode: Mode) -> &'static str {
        match self {
            Self::LoadState => "read the state Secret",
            Self::SaveState => "write the state Secret",
            Self::SaveValuesFiles => "write to the state Secret what the values files say",
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

/// How far each chore has come that was begun in this life.
#[derive(Debug, Default)]
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
    /// It has not failed in this life.
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

    /// It has not been done, and neither runs nor waits for its time.
    pub(super) fn is_due(&self, chore: Chore, now: Tick) -> bool {
        match self.progress.get(&chore) {
            None => true,
            Some(Progress::Backoff { until, .. }) => *until <= now,
            Some(Progress::Done) => chore.comes_again(),
            Some(Progress::Running { .. }) => false,
        }
    }

    /// Its job has started.
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

    /// Its job failed. It is tried again after a while.
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

    /// The API server answers: what waits for it need not wait for its time.
    pub(super) fn wake(&mut self, now: Tick) {
        for (chore, progress) in &mut self.progress {
            if let Progress::Backoff { until, .. } = progress
                && chore.asks_api_server()
            {
                *until = now.min(*until);
            }
        }
    }

    /// Nobody needs it any more, so that a delay of it is waited for by nobody.
    pub(super) fn give_up(&mut self, chore: Chore) {
        if matches!(self.progress.get(&chore), Some(Progress::Backoff { .. })) {
            self.progress.remove(&chore);
        }
    }

    /// When the next one is tried again.
    pub(super) fn timeout(&self, mode: Mode) -> Option<(Tick, Waiting)> {
        self.progress
            .iter()
            .filter_map(|(chore, progress)| match progress {
                Progress::Backoff { until, .. } => Some((*until, Waiting::Step(chore.describe(mode).to_owned()))),
                Progress::Running { .. } | Progress::Done => None,
            })
            .min_by_key(|(until, _)| *until)
    }

    /// The chores that hold us up, by name.
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
