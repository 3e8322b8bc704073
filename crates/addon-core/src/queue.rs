//! Lanes of tasks. Each lane is first in, first out, and its head is retried in place. This file knows neither hooks
//! nor modules.
//!
//! A task leaves its lane in exactly one of three ways: done, merged into the task before it, or dropped for a reason.
//! The [`Ledger`] counts all of them, so that no task can vanish unnoticed.

mod entry;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use clock::Tick;

use crate::failure::Failure;

pub use entry::{Entry, State};

/// Counts of tasks by how they came and left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Tasks that were queued.
    pub pushed: u64,
    /// Tasks that left because they were done.
    pub done: u64,
    /// Tasks that left because they became part of the task before them.
    pub merged: u64,
    /// Tasks that left without being run.
    pub dropped: u64,
}

/// All lanes.
#[derive(Debug, Clone)]
pub struct Queues<L, T, S> {
    lanes: BTreeMap<L, VecDeque<Entry<T, S>>>,
    sequence: u64,
    ledger: Ledger,
}

impl<L: Ord + Clone, T, S: Copy> Default for Queues<L, T, S> {
    fn default() -> Self {
        Self {
            lanes: BTreeMap::new(),
            sequence: 0,
            ledger: Ledger::default(),
        }
    }
}

impl<L: Ord + Clone, T, S: Copy> Queues<L, T, S> {
    /// Appends a task to a lane. A lane is created with its first task.
    pub fn push(&mut self, lane: L, task: T, now: Tick) {
        self.sequence += 1;
        self.ledger.pushed += 1;
        let entry = Entry {
            task,
            queued: now,
            begun: false,
            failures: 0,
            faults: 0,
            error: None,
            since: now,
            state: State::Ready,
            ready_since: self.sequence,
            lacks: None,
        };
        self.lanes.entry(lane).or_default().push_back(entry);
    }

    /// Puts tasks before all other tasks of a lane, and keeps the order of `tasks`. No task of the lane may be running.
    pub fn push_front(&mut self, lane: &L, tasks: Vec<T>, now: Tick) {
        for task in tasks.into_iter().rev() {
            self.push(lane.clone(), task, now);
            if let Some(tasks) = self.lanes.get_mut(lane) {
                tasks.rotate_right(1);
            }
        }
    }

    /// Creates a lane that is shown even while it is empty.
    pub fn open(&mut self, lane: L) {
        self.lanes.entry(lane).or_default();
    }

    /// Removes a lane that is empty.
    pub fn close(&mut self, lane: &L) {
        if self.lanes.get(lane).is_some_and(VecDeque::is_empty) {
            self.lanes.remove(lane);
        }
    }

    /// The head of a lane.
    pub fn head(&self, lane: &L) -> Option<&Entry<T, S>> {
        self.lanes.get(lane)?.front()
    }

    /// The head of a lane, to be changed.
    pub fn head_mut(&mut self, lane: &L) -> Option<&mut Entry<T, S>> {
        self.lanes.get_mut(lane)?.front_mut()
    }

    /// All tasks of a lane.
    pub fn tasks(&self, lane: &L) -> impl ExactSizeIterator<Item = &Entry<T, S>> {
        self.lanes.get(lane).map(VecDeque::iter).unwrap_or_default()
    }

    /// The tasks of a lane behind its head.
    pub fn behind_head(&self, lane: &L) -> impl Iterator<Item = &Entry<T, S>> {
        self.lanes.get(lane).into_iter().flat_map(|tasks| tasks.iter().skip(1))
    }

    /// All lanes with their tasks, in the order of the lanes.
    pub fn lanes(&self) -> impl Iterator<Item = (&L, &VecDeque<Entry<T, S>>)> {
        self.lanes.iter()
    }

    /// The lanes whose heads may start now, each with the slot that its head lacked. The head that has been ready longest
    /// comes first. A head that lacked a slot is left out if `is_free` says that the slot is still not free.
    pub fn ready(&self, is_free: impl Fn(S) -> bool) -> Vec<(L, Option<S>)> {
        let heads = self
            .lanes
            .iter()
            .filter_map(|(lane, tasks)| Some((lane, tasks.front()?)));
        let ready = heads.filter(|(_, head)| head.state == State::Ready && head.lacks.is_none_or(&is_free));
        let mut ready: Vec<_> = ready.collect();
        ready.sort_unstable_by_key(|(_, head)| head.ready_since);
        ready
            .into_iter()
            .map(|(lane, head)| (lane.clone(), head.lacks))
            .collect()
    }

    /// Notes that the ready head of the lane needs a slot and found none.
    pub fn lack(&mut self, lane: &L, slot: S) {
        if let Some(head) = self.head_mut(lane) {
            head.lacks = Some(slot);
        }
    }

    /// Ends the back-offs and holds whose time has come.
    pub fn wake(&mut self, now: Tick) {
        for tasks in self.lanes.values_mut() {
            if let Some(head) = tasks.front_mut()
                && let State::Backoff(until) | State::Held(until) = head.state
                && until <= now
            {
                self.sequence += 1;
                head.grows_ready(self.sequence);
            }
        }
    }

    /// The next wait that ends by time, and its lane.
    pub fn next_wake(&self) -> Option<(Tick, &L)> {
        self.lanes
            .iter()
            .filter_map(|(lane, tasks)| match tasks.front()?.state {
                State::Backoff(until) | State::Held(until) => Some((until, lane)),
                State::Ready | State::Running | State::Parked => None,
            })
            .min_by_key(|(until, _)| *until)
    }

    /// Begins the head of the lane. Returns the head if it had not begun before.
    pub fn begin(&mut self, lane: &L) -> Option<&Entry<T, S>> {
        let head = self.lanes.get_mut(lane)?.front_mut()?;
        let first = !head.begun;
        head.begun = true;
        first.then_some(head)
    }

    /// Notes that the head of the lane has a running job.
    pub fn running(&mut self, lane: &L, now: Tick) {
        self.enter(lane, State::Running, now);
    }

    /// Makes the head of the lane wait until [`Queues::resume`] is called.
    pub fn park(&mut self, lane: &L, now: Tick) {
        self.enter(lane, State::Parked, now);
    }

    /// Makes the head of the lane wait until the given time.
    pub fn hold(&mut self, lane: &L, until: Tick, now: Tick) {
        self.enter(lane, State::Held(until), now);
    }

    fn enter(&mut self, lane: &L, state: State, now: Tick) {
        if let Some(head) = self.head_mut(lane) {
            (head.state, head.since, head.lacks) = (state, now, None);
        }
    }

    /// Makes the head begin anew once its running job has ended.
    pub fn renew(&mut self, lane: &L, now: Tick) {
        if let Some(head) = self.head_mut(lane) {
            (head.begun, head.queued, head.lacks) = (false, now, None);
        }
    }

    /// Lets the head of the lane continue: its job succeeded, the event that it waited for came, or its back-off is cut short.
    pub fn resume(&mut self, lane: &L) {
        self.sequence += 1;
        let sequence = self.sequence;
        if let Some(head) = self.head_mut(lane) {
            head.grows_ready(sequence);
        }
    }

    /// Forgets the failures of the head, because its attempt went well so far.
    pub fn succeeded(&mut self, lane: &L) {
        if let Some(head) = self.head_mut(lane) {
            (head.failures, head.faults) = (0, 0);
            head.error = None;
        }
    }

    /// Notes a failure of the head, which is retried after the delay. Returns the number of failures in a row.
    pub fn fail(&mut self, lane: &L, now: Tick, delay: Duration, failure: &Failure) -> u32 {
        let Some(head) = self.head_mut(lane) else { return 0 };
        head.failures += 1;
        head.faults += u32::from(failure.class.is_fault());
        head.error = Some(failure.report.clone());
        head.state = State::Backoff(now + delay);
        head.failures
    }

    /// Removes the head, which is done.
    pub fn finish(&mut self, lane: &L) -> Option<T> {
        let tasks = self.lanes.get_mut(lane)?;
        let entry = tasks.pop_front()?;
        if tasks.is_empty() {
            // Each module has a lane, and most lanes are empty most of the time.
            tasks.shrink_to_fit();
        }
        self.ledger.done += 1;
        self.next_moves_up(lane);
        Some(entry.task)
    }

    /// Moves the head of a lane, with its state, into an empty lane. False if there is no head, or the other lane is not empty.
    pub fn move_head(&mut self, from: &L, to: L) -> bool {
        if self.head(&to).is_some() {
            return false;
        }
        let Some(entry) = self.lanes.get_mut(from).and_then(VecDeque::pop_front) else {
            return false;
        };
        self.lanes.entry(to).or_default().push_back(entry);
        self.next_moves_up(from);
        true
    }

    /// Ranks the task that has become the head of the lane behind the heads that were ready before it.
    fn next_moves_up(&mut self, lane: &L) {
        self.sequence += 1;
        let sequence = self.sequence;
        if let Some(next) = self.head_mut(lane) {
            next.ready_since = sequence;
            next.lacks = None;
        }
    }

    /// Takes the tasks that directly follow the head, as long as `belongs` holds. The caller merges them into the head.
    pub fn merge_following(&mut self, lane: &L, mut belongs: impl FnMut(&T, &T) -> bool) -> Vec<T> {
        let mut taken = Vec::new();
        let Some(tasks) = self.lanes.get_mut(lane) else {
            return taken;
        };
        while tasks.len() > 1 && belongs(&tasks[0].task, &tasks[1].task) {
            let Some(next) = tasks.remove(1) else { break };
            self.ledger.merged += 1;
            taken.push(next.task);
        }
        taken
    }

    /// Merges all matching tasks without a running job into the first of them. Returns the number of tasks that became
    /// part of that task.
    pub fn merge_all(
        &mut self,
        lane: &L,
        mut matches: impl FnMut(&T) -> bool,
        merge: impl FnOnce(&mut T, Vec<T>),
    ) -> usize {
        let Some(tasks) = self.lanes.get_mut(lane) else {
            return 0;
        };
        let mut first = None;
        let mut taken = Vec::new();
        let mut kept = VecDeque::with_capacity(tasks.len());
        for entry in tasks.drain(..) {
            if entry.state == State::Running || !matches(&entry.task) {
                kept.push_back(entry);
            } else if first.is_none() {
                first = Some(kept.len());
                kept.push_back(entry);
            } else {
                taken.push(entry.task);
            }
        }
        let count = taken.len();
        if let Some(first) = first.and_then(|index| kept.get_mut(index)) {
            merge(&mut first.task, taken);
        }
        *tasks = kept;
        self.ledger.merged += count as u64;
        count
    }

    /// Drops the matching tasks without a running job. Returns their number.
    pub fn drop_waiting(&mut self, lane: &L, mut matches: impl FnMut(&T) -> bool) -> usize {
        let Some(tasks) = self.lanes.get_mut(lane) else {
            return 0;
        };
        let before = tasks.len();
        tasks.retain(|entry| entry.state == State::Running || !matches(&entry.task));
        let dropped = before - tasks.len();
        self.ledger.dropped += dropped as u64;
        dropped
    }

    /// The counts of all tasks.
    pub fn ledger(&self) -> Ledger {
        self.ledger
    }

    /// The number of tasks in all lanes.
    pub fn len(&self) -> usize {
        self.lanes.values().map(VecDeque::len).sum()
    }

    /// Whether the lanes have no tasks.
    pub fn is_empty(&self) -> bool {
        self.lanes.values().all(VecDeque::is_empty)
    }
}

#[cfg(test)]
mod tests;
