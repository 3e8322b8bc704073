//! The lanes: the queues of tasks, the hooks that their heads run, and how often hooks may run.
//!
//! Knows no module, no values and no ConfigMap: the ways know these, and advance the heads. Must never let a task
//! overtake another one of its lane.

mod doing;
mod overflow;
mod rate;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

pub(super) use self::doing::{Doing, Fate};
pub(super) use self::rate::Admission;
use clock::{Backoff, Tick};
use names::{HookName, ModuleName, QueueName};

use self::rate::Rates;
use super::cx::Cx;
use super::effect::{Job, JobId, Notice};
use super::jobs::Jobs;
use super::task::{Entry, HookTask, Lane, Slot, Task};
use super::ticket::{AtHead, Ticket};
use crate::failure::{Class, Failure};
use crate::queue::{Ledger, Queues, State};

/// All lanes, and the work of their heads.
#[derive(Debug, Clone, Default)]
pub(super) struct Lanes {
    queues: Queues<Lane, Task, Slot>,
    /// The hooks that the heads of lanes run.
    doing: BTreeMap<Lane, Doing>,
    rates: Rates,
    /// The time at which the last task left each queue.
    left: BTreeMap<QueueName, Tick>,
}

/// The contents of the lanes.
impl Lanes {
    pub(super) fn head(&self, lane: &Lane) -> Option<&Entry> {
        self.queues.head(lane)
    }

    /// Whether the head of the lane has not begun.
    pub(super) fn begins(&self, lane: &Lane) -> bool {
        self.head(lane).is_some_and(|head| !head.begun)
    }

    pub(super) fn tasks(&self, lane: &Lane) -> impl ExactSizeIterator<Item = &Entry> {
        self.queues.tasks(lane)
    }

    pub(super) fn behind_head(&self, lane: &Lane) -> impl Iterator<Item = &Entry> {
        self.queues.behind_head(lane)
    }

    /// All lanes with their tasks, in the order of the lanes.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Lane, &VecDeque<Entry>)> {
        self.queues.lanes()
    }

    /// All lanes with their heads.
    pub(super) fn heads(&self) -> impl Iterator<Item = (&Lane, &Entry)> {
        self.queues
            .lanes()
            .filter_map(|(lane, tasks)| Some((lane, tasks.front()?)))
    }

    /// The lanes whose heads may advance now, each with the slot that its head lacked until now.
    pub(super) fn ready(&self, free: &[Slot]) -> Vec<(Lane, Option<Slot>)> {
        self.queues.ready(|slot| free.contains(&slot))
    }

    /// The time since which an empty queue is empty.
    pub(super) fn idle_since(&self, queue: &QueueName) -> Tick {
        self.left.get(queue).copied().unwrap_or(Tick::ZERO)
    }

    pub(super) fn ledger(&self) -> Ledger {
        self.queues.ledger()
    }

    /// Whether the head of the lane is a hook task, and not a run or converge that has a hook as one of its steps.
    pub(super) fn stands_by_itself(&self, lane: &Lane) -> bool {
        self.head(lane).is_some_and(|head| head.task.as_hook().is_some())
    }

    /// The module whose run or removal is at the head of a lane.
    pub(super) fn module_at(&self, lane: &Lane) -> Option<ModuleName> {
        self.head(lane)?.task.module_at_work().cloned()
    }

    /// Whether a run or a removal of the module has begun and not ended.
    pub(super) fn is_at_work(&self, module: &ModuleName) -> bool {
        let head = self.head(&Lane::Module(module.clone()));
        head.is_some_and(|head| head.task.module_at_work().is_some() && head.is_active())
    }

    /// Whether the removal of this module is in its lane.
    pub(super) fn is_being_deleted(&self, module: &ModuleName) -> bool {
        let lane = Lane::Module(module.clone());
        self.tasks(&lane).any(|entry| entry.task.is_removal())
    }

    /// Whether tasks of this global hook wait in a lane of their own.
    pub(super) fn is_aside(&self, hook: &HookName) -> bool {
        self.head(&Lane::Aside(hook.clone())).is_some()
    }

    /// Whether the purge of this release is in its lane.
    pub(super) fn is_purged(&self, release: &str) -> bool {
        self.head(&Lane::Release(release.to_owned())).is_some()
    }

    /// The time for which the head of a lane has not advanced, as the end of a sentence; empty while that time is short.
    pub(super) fn describe_time(cx: &Cx, head: &Entry) -> String {
        let since = match head.state() {
            State::Running | State::Parked | State::Held(_) => head.since,
            State::Ready | State::Backoff(_) => return String::new(),
        };
        let time = cx.now.tick - since;
        if time < cx.policy.patience {
            return String::new();
        }
        format!(", for {}s", time.as_secs())
    }
}

/// Tasks come and go.
impl Lanes {
    /// Appends a task to a lane.
    pub(super) fn push(&mut self, cx: &Cx, lane: Lane, task: Task) {
        self.queues.push(lane, task, cx.now.tick);
    }

    /// Puts tasks before all other tasks of a lane, and keeps the order of `tasks`.
    pub(super) fn push_front(&mut self, cx: &Cx, lane: &Lane, tasks: Vec<Task>) {
        self.queues.push_front(lane, tasks, cx.now.tick);
    }

    /// Puts the task of a run into its module's lane, unless the head of that lane is a run that will begin anew.
    pub(super) fn let_run(&mut self, cx: &Cx, task: Task, module: &ModuleName) {
        let lane = Lane::Module(module.clone());
        self.queues.drop_waiting(&lane, Task::is_run);
        if !self.head(&lane).is_some_and(|head| head.task.is_run()) {
            self.push(cx, lane, task);
        }
    }

    /// Drops the waiting tasks that match, in all queues.
    pub(super) fn drop_tasks(&mut self, cx: &mut Cx, reason: &'static str, matches: impl Fn(&Task) -> bool) {
        let lanes: Vec<Lane> = self.queues.lanes().map(|(lane, _)| lane.clone()).collect();
        for lane in lanes {
            let count = self.queues.drop_waiting(&lane, &matches);
            if count > 0 {
                self.left.insert(lane.queue(), cx.now.tick);
                cx.tell(Notice::TasksDropped {
                    queue: lane.queue(),
                    count,
                    reason,
                });
            }
        }
    }

    /// Drops the waiting purges of the releases that match.
    pub(super) fn drop_purges(&mut self, cx: &mut Cx, reason: &'static str, matches: impl Fn(&str) -> bool) {
        self.drop_tasks(cx, reason, |task| task.purged().is_some_and(&matches));
    }

    /// Drops the runs and removals of modules that have no running job. Returns the modules with a lane, and the number
    /// of dropped tasks.
    pub(super) fn drop_waiting_runs(&mut self, cx: &Cx) -> (Vec<ModuleName>, usize) {
        let lanes: Vec<Lane> = self.queues.lanes().map(|(lane, _)| lane.clone()).collect();
        let (mut modules, mut count) = (Vec::new(), 0);
        for lane in lanes {
            let Lane::Module(module) = &lane else { continue };
            count += self.queues.drop_waiting(&lane, |task| task.module_at_work().is_some());
            self.queues.close(&lane);
            modules.push(module.clone());
        }
        if count > 0 {
            self.left.insert(QueueName::main(), cx.now.tick);
        }
        (modules, count)
    }

    /// Takes the first `count` tasks behind the head out of the lane, to make them part of the head.
    pub(super) fn merge_into_head(&mut self, lane: &Lane, mut count: usize) -> Vec<Task> {
        self.queues.merge_following(lane, |_, _| {
            let takes = count > 0;
            count = count.saturating_sub(1);
            takes
        })
    }

    /// The hook's run at the head of a lane, to be changed.
    pub(super) fn head_hook_mut(&mut self, lane: &Lane) -> Option<&mut HookTask> {
        match &mut self.queues.head_mut(lane)?.task {
            Task::Hook(task) => Some(task),
            Task::EnableKubernetes(_)
            | Task::EnableSchedules(_)
            | Task::AwaitFirstRuns
            | Task::Converge(_)
            | Task::ModuleRun { .. }
            | Task::ModuleDelete { .. }
            | Task::Purge { .. } => None,
        }
    }

    /// Removes the head, which is done.
    pub(super) fn finish(&mut self, cx: &Cx, lane: &Lane) -> Option<Task> {
        self.left.insert(lane.queue(), cx.now.tick);
        self.queues.finish(lane)
    }

    /// Moves the head, which goes on running, into an empty lane. False if the lane `to` is not empty.
    pub(super) fn move_head(&mut self, from: &Lane, to: &Lane) -> bool {
        self.queues.move_head(from, to.clone())
    }

    /// Forgets a lane that is empty.
    pub(super) fn close(&mut self, lane: &Lane) {
        self.queues.close(lane);
    }
}

/// Heads advance, wait and fail.
impl Lanes {
    /// Ends the waits of heads whose time has come.
    pub(super) fn wake(&mut self, cx: &Cx) {
        self.queues.wake(cx.now.tick);
    }

    /// Lets the head of a lane advance.
    pub(super) fn resume(&mut self, lane: &Lane) {
        self.queues.resume(lane);
    }

    /// Makes the head of a lane wait until `resume` is called.
    pub(super) fn park(&mut self, cx: &Cx, lane: &Lane) {
        self.queues.park(lane, cx.now.tick);
    }

    /// Lets the parked head of a lane be tried again, if `is_such` holds for its task.
    pub(super) fn wake_parked(&mut self, lane: &Lane, is_such: impl FnOnce(&Task) -> bool) {
        let head = self.head(lane);
        if head.is_some_and(|head| head.state() == State::Parked && is_such(&head.task)) {
            self.resume(lane);
        }
    }

    /// Whether a slot is free for the head of the lane. If not, the head is not tried again before a slot is free.
    pub(super) fn finds_slot(&mut self, cx: &Cx, jobs: &Jobs, lane: &Lane, slot: Slot) -> bool {
        let is_free = jobs.has_room(slot, &cx.policy);
        if !is_free {
            self.queues.lack(lane, slot);
        }
        is_free
    }

    /// Ends the head's wait for a time or for a slot at once.
    pub(super) fn cut_wait_short(&mut self, lane: &Lane) {
        let waits = |head: &Entry| matches!(head.state(), State::Backoff(_) | State::Held(_)) || head.lacks().is_some();
        if self.head(lane).is_some_and(waits) {
            self.resume(lane);
        }
    }

    /// Tries the head of a lane again at once, if it has failed.
    pub(super) fn retry(&mut self, lane: &Lane) {
        if self
            .head(lane)
            .is_some_and(|head| matches!(head.state(), State::Backoff(_)))
        {
            self.resume(lane);
        }
    }

    /// Makes the run or the removal at the head of the module's lane begin anew at once, as if it had just been queued.
    pub(super) fn begin_anew(&mut self, cx: &Cx, lane: &Lane) {
        let head = self.head(lane).filter(|head| head.begun);
        if head.is_some_and(|head| head.task.module_at_work().is_some()) {
            self.queues.renew(lane, cx.now.tick);
            self.queues.succeeded(lane);
            self.queues.resume(lane);
        }
    }

    /// Whether a job of the lane's head is running.
    pub(super) fn is_running(&self, lane: &Lane) -> bool {
        self.head(lane).is_some_and(|head| head.state() == State::Running)
    }

    /// Whether a job of the module's run or removal is running, or a job that purges a release with the module's name.
    pub(super) fn is_in_step(&self, module: &ModuleName) -> bool {
        let lanes = [Lane::Module(module.clone()), Lane::Release(module.to_string())];
        let running = lanes.iter().filter(|lane| self.is_running(lane));
        let mut heads = running.filter_map(|lane| self.head(lane));
        heads.any(|head| head.task.as_hook().is_none())
    }

    /// Makes the head begin anew once its running job has ended.
    pub(super) fn renew(&mut self, cx: &Cx, lane: &Lane) {
        self.queues.renew(lane, cx.now.tick);
    }

    /// Forgets the failures of the head, because its attempt went well so far.
    pub(super) fn succeeded(&mut self, lane: &Lane) {
        self.queues.succeeded(lane);
    }

    /// Begins the head of a lane. True if it had not begun before.
    pub(super) fn begin_head(&mut self, cx: &mut Cx, lane: &Lane) -> bool {
        let Some(head) = self.queues.begin(lane) else {
            return false;
        };
        cx.tell(Notice::TaskWaited {
            queue: lane.queue(),
            hook: head.task.hook().cloned(),
            module: head.task.module().cloned(),
            binding: head.task.binding(cx.policy.mode),
            waited: cx.now.tick - head.queued,
        });
        true
    }

    /// Notes that the head of a lane waits for a job that was started earlier.
    pub(super) fn running(&mut self, cx: &Cx, lane: &Lane) {
        self.queues.running(lane, cx.now.tick);
    }

    /// Starts a job for the head of a lane.
    pub(super) fn start_job<W: From<AtHead>>(
        &mut self,
        cx: &mut Cx,
        jobs: &mut Jobs,
        lane: &Lane,
        job: impl FnOnce(Ticket<W>) -> Job,
    ) -> JobId {
        self.running(cx, lane);
        jobs.begin(cx, AtHead(lane.clone()).into(), job)
    }

    /// Delays the head of a lane after a failure. Returns the number of failures in a row and the delay.
    pub(super) fn back_off(&mut self, cx: &mut Cx, lane: &Lane, failure: &Failure) -> (u32, Duration) {
        let delay = self.pause(cx, lane, failure);
        let failures = self.queues.fail(lane, cx.now.tick, delay, failure);
        (failures, delay)
    }

    /// The delay of a failed head. A job that ran into its deadline held a slot for long and would do so again, so its
    /// delays grow up to the time that it ran. In the global lane the delays do not grow so long, because everything
    /// waits for that lane.
    fn pause(&self, cx: &mut Cx, lane: &Lane, failure: &Failure) -> Duration {
        let head = self.head(lane);
        let failures = head.map_or(0, |head| head.failures);
        let running = head.filter(|head| head.state() == State::Running);
        let took = running.map_or(Duration::ZERO, |head| cx.now.tick - head.since);
        let delay = Backoff::delay(failures, cx.draw());
        let hung = failure.class == Class::TimedOut && took >= cx.policy.patience;
        if hung && *lane != Lane::Global {
            delay.max(Backoff::after_deadline(failures, took))
        } else {
            delay
        }
    }

    /// The next time at which a waiting head may advance, and its lane.
    fn next_wake(&self) -> Option<(Tick, &Lane)> {
        self.queues.next_wake()
    }
}
