//! The table of running jobs, and the slots that bound them.

use std::collections::BTreeMap;

use super::effect::{Job, JobId};
use super::event::ReviewId;
use super::policy::Policy;
use super::task::Lane;
use crate::name::{HookId, ModuleName, Owner};
use crate::time::Tick;

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
    /// Ask the global hooks for their configuration.
    ConfigureGlobalHooks,
}

impl Chore {
    /// It needs nobody but the API server.
    pub(super) fn asks_api_server(self) -> bool {
        match self {
            Self::LoadState | Self::SaveState | Self::SaveValuesFiles | Self::ListReleases | Self::WatchReleases => {
                true
            }
            Self::ReadDirectories | Self::ConfigureGlobalHooks => false,
        }
    }

    /// Nothing of the start waits for it.
    pub(super) fn is_aside(self) -> bool {
        self == Self::WatchReleases
    }

    /// What it does, in words for people.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::LoadState => "read the state Secret",
            Self::SaveState => "write the state Secret",
            Self::SaveValuesFiles => "write to the state Secret what the values files say",
            Self::ReadDirectories => "read the modules directories a second time before something is removed",
            Self::ListReleases => "list the helm releases",
            Self::WatchReleases => "watch the helm releases",
            Self::ConfigureGlobalHooks => "ask the global hooks for their configuration",
        }
    }
}

/// Whom the end of a job concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Purpose {
    Chore(Chore),
    Lane(Lane),
    Monitors {
        lane: Lane,
        hook: HookId,
    },
    /// A standby starts the monitors of a hook.
    WarmWatch(HookId),
    /// A standby asks the hooks of a module for their configuration.
    WarmAnswer(ModuleName),
    Script(ModuleName),
    Save(Owner),
    /// Patches of a hook of this owner are held against schemas.
    Patch(Owner),
    /// So is a reading of the ConfigMap.
    Reading,
    Review(ReviewId),
    Webhooks,
}

/// What a job occupies while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    Hook,
    /// Kept for the API server's questions.
    Review,
    Helm,
    None,
}

fn slot(job: &Job, purpose: &Purpose) -> Slot {
    match job {
        Job::RunHook(_) if matches!(purpose, Purpose::Review(_)) => Slot::Review,
        Job::RunHook(_) | Job::RunEnabledScript { .. } | Job::ConfigureHooks(_) => Slot::Hook,
        Job::SyncRelease { .. } | Job::DeleteRelease { .. } | Job::EnsureConversions(_) => Slot::Helm,
        Job::LoadState
        | Job::SaveState { .. }
        | Job::SaveValuesFiles(_)
        | Job::ReadDirectories
        | Job::ListReleases
        | Job::EnsureCrds(_)
        | Job::WatchReleases { .. }
        | Job::StartMonitors { .. }
        | Job::PublishWebhooks(_)
        | Job::Vet(_)
        | Job::JudgeEdit(_)
        | Job::SaveConfig { .. } => Slot::None,
    }
}

#[derive(Debug)]
struct Running {
    purpose: Purpose,
    slot: Slot,
    started: Tick,
}

/// All running jobs.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    last: u64,
    running: BTreeMap<JobId, Running>,
    hooks: usize,
    reviews: usize,
    helms: usize,
}

impl Jobs {
    /// There is room for one more hook.
    pub(super) fn hook_slot(&self, policy: &Policy) -> bool {
        self.hooks < policy.hook_slots.max(1)
    }

    /// There is room for one more hook that the API server waits for.
    pub(super) fn review_slot(&self, policy: &Policy) -> bool {
        self.reviews < policy.review_slots.max(1)
    }

    /// There is room for one more helm job.
    pub(super) fn helm_slot(&self, policy: &Policy) -> bool {
        self.helms < policy.helm_slots.max(1)
    }

    /// Enters a job that starts now.
    pub(super) fn start(&mut self, job: &Job, purpose: Purpose, now: Tick) -> JobId {
        self.last += 1;
        let id = JobId(self.last);
        let slot = slot(job, &purpose);
        match slot {
            Slot::Hook => self.hooks += 1,
            Slot::Review => self.reviews += 1,
            Slot::Helm => self.helms += 1,
            Slot::None => {}
        }
        self.running.insert(
            id,
            Running {
                purpose,
                slot,
                started: now,
            },
        );
        id
    }

    /// From now on the job concerns somebody else.
    pub(super) fn redirect(&mut self, id: JobId, purpose: Purpose) {
        if let Some(running) = self.running.get_mut(&id) {
            running.purpose = purpose;
        }
    }

    /// A job ended: whom it concerns, and when it had begun. `None` for one that is not known.
    pub(super) fn end(&mut self, id: JobId) -> Option<(Purpose, Tick)> {
        let Running { purpose, slot, started } = self.running.remove(&id)?;
        match slot {
            Slot::Hook => self.hooks -= 1,
            Slot::Review => self.reviews -= 1,
            Slot::Helm => self.helms -= 1,
            Slot::None => {}
        }
        Some((purpose, started))
    }

    /// The job goes on, and what it occupies is free for others: nobody knows when it ends.
    pub(super) fn vacate(&mut self, id: JobId) {
        let Some(running) = self.running.get_mut(&id) else {
            return;
        };
        match std::mem::replace(&mut running.slot, Slot::None) {
            Slot::Hook => self.hooks -= 1,
            Slot::Review => self.reviews -= 1,
            Slot::Helm => self.helms -= 1,
            Slot::None => {}
        }
    }

    pub(super) fn ids(&self) -> Vec<JobId> {
        self.running.keys().copied().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.running.len()
    }
}
