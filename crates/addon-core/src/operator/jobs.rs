//! The running jobs, and the slots that limit their number.

use std::collections::BTreeMap;
use std::time::Duration;

use clock::Tick;
use names::Owner;

use super::cx::Cx;
use super::effect::{Effect, Job, JobId};
use super::policy::{Mode, Policy};
use super::query::SlotReport;
use super::task::{Lane, Slot};
use super::ticket::{RunFor, Ticket};

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
        | Job::SaveGiven(..)
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

/// The subject of a job with a slot; a text for people.
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
                Lane::Global | Lane::Named(_) | Lane::Aside(_) => "the converge".to_owned(),
            }
        }
        Job::ConfigureHooks(Owner::Global, _)
        | Job::LoadState(_)
        | Job::SaveState { .. }
        | Job::SaveValuesFiles(..)
        | Job::SaveGiven(..)
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

/// The number of extra slots, for each configured hook slot, that are lent while jobs with hook slots hang. A waiting
/// process costs little.
const LENT_HOOK_SLOTS: usize = 8;
/// The number of extra slots, for each configured helm slot, that are lent. It is small, because helm needs much
/// memory.
const LENT_HELM_SLOTS: usize = 1;

#[derive(Debug, Clone)]
struct Running {
    /// The subject of the job; a text for people.
    words: String,
    slot: Slot,
    /// Whether the job judges an edit of the ConfigMap.
    judges: bool,
    started: Tick,
    /// The job has held its slot for so long that the slot is lent to other jobs.
    late: bool,
}

/// A job that has a slot.
#[derive(Debug)]
pub(super) struct Holder<'a> {
    /// The subject of the job; a text for people.
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

    /// Whether the slot may be lent. Review slots are never lent, because the API server's own deadline is shorter.
    fn may_lend(&self) -> bool {
        matches!(self.slot, Slot::Hook | Slot::Helm)
    }
}

/// All running jobs.
#[derive(Debug, Clone, Default)]
pub(super) struct Jobs {
    last: u64,
    running: BTreeMap<JobId, Running>,
}

impl Jobs {
    /// Whether a slot of this kind is free.
    pub(super) fn has_room(&self, slot: Slot, policy: &Policy) -> bool {
        let (slots, lent) = bounds(slot, policy);
        let (timely, late) = self.count(slot);
        timely + late.saturating_sub(lent) < slots
    }

    /// Of the kinds of slots that heads of lanes use, the kinds with a free slot now.
    pub(super) fn free(&self, policy: &Policy) -> Vec<Slot> {
        let of_heads = [Slot::Hook, Slot::Helm].into_iter();
        of_heads.filter(|slot| self.has_room(*slot, policy)).collect()
    }

    /// Whether no slot of this kind is free and all jobs with such slots hang.
    pub(super) fn all_hang(&self, slot: Slot, policy: &Policy) -> bool {
        !self.has_room(slot, policy) && self.count(slot).0 == 0
    }

    /// Of the kinds of slots that heads of lanes use, the kinds without a free slot because all jobs with such slots
    /// hang.
    pub(super) fn hanging(&self, policy: &Policy) -> Vec<Slot> {
        let of_heads = [Slot::Hook, Slot::Helm].into_iter();
        of_heads.filter(|slot| self.all_hang(*slot, policy)).collect()
    }

    /// The numbers of jobs with a slot of this kind: first of jobs that are not late, then of late jobs.
    fn count(&self, slot: Slot) -> (usize, usize) {
        let late = |running: &&Running| running.late;
        let holders = || self.running.values().filter(|running| running.slot == slot);
        let late = holders().filter(late).count();
        (holders().count() - late, late)
    }

    /// The jobs with a slot of this kind, the oldest first.
    pub(super) fn holders(&self, slot: Slot) -> impl Iterator<Item = Holder<'_>> {
        let running = self.running.values().filter(move |running| running.slot == slot);
        running.map(Running::holder)
    }

    /// The subjects of all jobs but those that judge edits, for people. No change follows from a judgement.
    pub(super) fn subjects(&self) -> Vec<String> {
        let running = self.running.values().filter(|running| !running.judges);
        running.map(|running| running.words.clone()).collect()
    }

    /// The slots by kind, with the jobs that hold them.
    pub(super) fn slots(&self, policy: &Policy) -> Vec<SlotReport> {
        let kinds = [(Slot::Helm, "helm"), (Slot::Hook, "hook"), (Slot::Review, "review")];
        let report = |(slot, kind)| SlotReport {
            kind,
            number: bounds(slot, policy).0,
            jobs: self.holders(slot).map(|holder| holder.words.to_owned()).collect(),
        };
        kinds.map(report).into()
    }

    pub(super) fn holder(&self, id: JobId) -> Option<Holder<'_>> {
        self.running.get(&id).map(Running::holder)
    }

    /// Marks the jobs that have held their slots for longer than `patience`, so that these slots are lent. Returns the
    /// newly marked jobs.
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

    /// The time at which the next job will have held its slot for too long. Only jobs count whose kind of slot has no
    /// free slot.
    pub(super) fn next_late(&self, policy: &Policy) -> Option<(Tick, Holder<'_>)> {
        let scarce = |running: &&Running| !self.has_room(running.slot, policy);
        let timely = self
            .running
            .values()
            .filter(|running| running.may_lend() && !running.late);
        let first = timely.filter(scarce).min_by_key(|running| running.started)?;
        Some((first.started + policy.patience, first.holder()))
    }

    /// Starts a job. `job` makes it from its ticket.
    pub(super) fn begin<W>(&mut self, cx: &mut Cx, wanted_by: W, job: impl FnOnce(Ticket<W>) -> Job) -> JobId {
        self.last += 1;
        let id = JobId(self.last);
        let job = job(Ticket::new(id, wanted_by));
        let running = Running {
            words: describe(&job, cx.policy.mode),
            slot: slot(&job),
            judges: matches!(job, Job::JudgeEdit(..)),
            started: cx.now.tick,
            late: false,
        };
        self.running.insert(id, running);
        cx.effect(Effect::StartJob(job));
        id
    }

    /// Removes a job that ended. Returns the time of its start; `None` for an unknown job.
    pub(super) fn end(&mut self, id: JobId) -> Option<Tick> {
        Some(self.running.remove(&id)?.started)
    }

    /// Frees the slot of a job that goes on: it is unknown when the job will end.
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

/// The number of slots of this kind, and how many more may be lent.
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
