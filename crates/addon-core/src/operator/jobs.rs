//! The table of running jobs, and the slots that bound them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::cx::Cx;
use super::effect::{Effect, Job, JobId};
use super::policy::{Mode, Policy};
use super::task::Lane;
use super::ticket::{RunFor, Ticket};
use crate::name::Owner;
use crate::time::Tick;

/// What a job occupies while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    Hook,
    /// Kept for the API server's questions.
    Review,
    Helm,
    None,
}

fn slot(job: &Job) -> Slot {
    match job {
        Job::RunHook(_, ticket) => match ticket.wanted_by() {
            RunFor::Head(_) => Slot::Hook,
            RunFor::Review(_) => Slot::Review,
        },
        Job::RunEnabledScript { .. } | Job::ConfigureHooks(..) => Slot::Hook,
        Job::SyncRelease { .. } | Job::DeleteRelease { .. } | Job::EnsureConversions(..) => Slot::Helm,
        Job::LoadState(_)
        | Job::SaveState { .. }
        | Job::SaveValuesFiles(..)
        | Job::ReadDirectories(_)
        | Job::ListReleases(_)
        | Job::EnsureCrds { .. }
        | Job::WatchReleases { .. }
        | Job::StartMonitors { .. }
        | Job::PublishWebhooks(..)
        | Job::Vet(..)
        | Job::JudgeEdit(..)
        | Job::SaveConfig { .. }
        | Job::SettleSections(..) => Slot::None,
    }
}

/// What a job that has a slot is about, in words for people.
fn describe(job: &Job, mode: Mode) -> String {
    match job {
        Job::RunHook(run, _) => mode.told(&run.hook).to_string(),
        Job::RunEnabledScript { module, .. } => format!("the enabled script of module '{module}'"),
        Job::ConfigureHooks(Owner::Module(module), _) => {
            format!("the configuration of the hooks of module '{module}'")
        }
        Job::SyncRelease { ticket, .. } | Job::DeleteRelease { ticket, .. } | Job::EnsureConversions(_, ticket) => {
            match &ticket.wanted_by().0 {
                Lane::Module(name) => format!("the release of module '{name}'"),
                Lane::Release(release) => format!("the release '{release}'"),
                Lane::Global | Lane::Named(_) => "the converge".to_owned(),
            }
        }
        Job::ConfigureHooks(Owner::Global, _)
        | Job::LoadState(_)
        | Job::SaveState { .. }
        | Job::SaveValuesFiles(..)
        | Job::ReadDirectories(_)
        | Job::ListReleases(_)
        | Job::EnsureCrds { .. }
        | Job::WatchReleases { .. }
        | Job::StartMonitors { .. }
        | Job::PublishWebhooks(..)
        | Job::Vet(..)
        | Job::JudgeEdit(..)
        | Job::SaveConfig { .. }
        | Job::SettleSections(..) => "the operator".to_owned(),
    }
}

/// So many times the slots of hooks are lent while those who hold them do not get on: a process that waits costs little.
const LENT_HOOK_SLOTS: usize = 8;
/// Likewise for helm, which costs memory.
const LENT_HELM_SLOTS: usize = 1;

#[derive(Debug)]
struct Running {
    /// What it is about.
    words: String,
    slot: Slot,
    started: Tick,
    /// It has held its slot for so long that this is lent to others.
    late: bool,
}

/// A job that has a slot.
#[derive(Debug)]
pub(super) struct Holder<'a> {
    /// What it is about.
    pub(super) words: &'a str,
    pub(super) since: Tick,
}

impl Running {
    fn holder(&self) -> Holder<'_> {
        Holder {
            words: &self.words,
            since: self.started,
        }
    }

    /// Its slot may be lent. The API server waits for no more than its own deadline.
    fn may_lend(&self) -> bool {
        matches!(self.slot, Slot::Hook | Slot::Helm)
    }
}

/// All running jobs.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    last: u64,
    running: BTreeMap<JobId, Running>,
}

impl Jobs {
    /// There is room for one more hook.
    pub(super) fn hook_slot(&self, policy: &Policy) -> bool {
        self.has_room(Slot::Hook, policy)
    }

    /// There is room for one more hook that the API server waits for.
    pub(super) fn review_slot(&self, policy: &Policy) -> bool {
        self.has_room(Slot::Review, policy)
    }

    /// There is room for one more helm job.
    pub(super) fn helm_slot(&self, policy: &Policy) -> bool {
        self.has_room(Slot::Helm, policy)
    }

    fn has_room(&self, slot: Slot, policy: &Policy) -> bool {
        let (slots, lent) = bounds(slot, policy);
        let (timely, late) = self.count(slot);
        timely + late.saturating_sub(lent) < slots
    }

    /// There is no room, and whoever holds it does not get on.
    pub(super) fn all_hang(&self, slot: Slot, policy: &Policy) -> bool {
        !self.has_room(slot, policy) && self.count(slot).0 == 0
    }

    /// How many jobs hold a slot of this kind, and how many more have held one for long.
    fn count(&self, slot: Slot) -> (usize, usize) {
        let late = |running: &&Running| running.late;
        let holders = || self.running.values().filter(|running| running.slot == slot);
        let late = holders().filter(late).count();
        (holders().count() - late, late)
    }

    /// The jobs that have a slot of this kind, the longest first.
    pub(super) fn holders(&self, slot: Slot) -> impl Iterator<Item = Holder<'_>> {
        let running = self.running.values().filter(move |running| running.slot == slot);
        running.map(Running::holder)
    }

    pub(super) fn holder(&self, id: JobId) -> Option<Holder<'_>> {
        self.running.get(&id).map(Running::holder)
    }

    /// The slots of those who have held them for so long are lent from now on; returns who became late by that.
    pub(super) fn grow_late(&mut self, now: Tick, patience: Duration) -> Vec<JobId> {
        let running = self.running.iter_mut();
        let due =
            running.filter(|(_, running)| running.may_lend() && !running.late && running.started + patience <= now);
        let mark = |(id, running): (&JobId, &mut Running)| {
            running.late = true;
            *id
        };
        due.map(mark).collect()
    }

    /// When the next one will have held its slot for so long, of the jobs that another one may wait for.
    pub(super) fn next_late(&self, policy: &Policy) -> Option<(Tick, Holder<'_>)> {
        let scarce = |running: &&Running| !self.has_room(running.slot, policy);
        let timely = self
            .running
            .values()
            .filter(|running| running.may_lend() && !running.late);
        let first = timely.filter(scarce).min_by_key(|running| running.started)?;
        Some((first.started + policy.patience, first.holder()))
    }

    /// Starts the job that is made with its ticket.
    pub(super) fn begin<W>(&mut self, cx: &mut Cx, wanted_by: W, job: impl FnOnce(Ticket<W>) -> Job) -> JobId {
        self.last += 1;
        let id = JobId(self.last);
        let job = job(Ticket::new(id, wanted_by));
        let running = Running {
            words: describe(&job, cx.policy.mode),
            slot: slot(&job),
            started: cx.now.tick,
            late: false,
        };
        self.running.insert(id, running);
        cx.effect(Effect::StartJob(job));
        id
    }

    /// A job ended: returns when it had begun, `None` for one that is not known.
    pub(super) fn end(&mut self, id: JobId) -> Option<Tick> {
        Some(self.running.remove(&id)?.started)
    }

    /// The job goes on, and what it occupies is free for others: nobody knows when it ends.
    pub(super) fn vacate(&mut self, id: JobId) {
        if let Some(running) = self.running.get_mut(&id) {
            running.slot = Slot::None;
        }
    }

    pub(super) fn ids(&self) -> Vec<JobId> {
        self.running.keys().copied().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.running.len()
    }
}

/// How many slots there are, and how many more are lent.
fn bounds(slot: Slot, policy: &Policy) -> (usize, usize) {
    let (slots, times) = match slot {
        Slot::Hook => (policy.hook_slots, LENT_HOOK_SLOTS),
        Slot::Helm => (policy.helm_slots, LENT_HELM_SLOTS),
        Slot::Review => (policy.review_slots, 0),
        Slot::None => (usize::MAX, 0),
    };
    let slots = slots.max(1);
    (slots, slots.saturating_mul(times))
}
