//! A task in its lane, with the state of its attempts. Must never change the order of a lane.

use std::time::Duration;

use clock::Tick;

/// The state of the head of a lane. Tasks behind the head are always `Ready`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The head may start as soon as there is a slot for it.
    Ready,
    /// A job of the head is running.
    Running,
    /// The head waits for an event and not for a time. The part that brings the event wakes the head.
    Parked,
    /// The head failed and is retried at this time.
    Backoff(Tick),
    /// The head has not failed, but must not start before this time.
    Held(Tick),
}

/// A task in its lane. `S` names the kinds of slots that heads need.
#[derive(Debug, Clone)]
pub struct Entry<T, S> {
    /// The task itself.
    pub task: T,
    /// The time at which the task was queued.
    pub queued: Tick,
    /// Whether an attempt has done some of the task's work.
    pub begun: bool,
    /// The number of failed attempts in a row.
    pub failures: u32,
    /// How many of them were faults.
    pub faults: u32,
    /// The error of the last failed attempt, until an attempt succeeds.
    pub error: Option<String>,
    /// The time since which the task has been running, parked or held.
    pub since: Tick,
    pub(super) state: State,
    pub(super) ready_since: u64,
    pub(super) lacks: Option<S>,
}

impl<T, S: Copy> Entry<T, S> {
    /// The state of the task.
    pub fn state(&self) -> State {
        self.state
    }

    /// The slot that was not free when the ready task was tried last.
    pub fn lacks(&self) -> Option<S> {
        self.lacks
    }

    /// The time until the task's wait ends.
    pub fn wait(&self, now: Tick) -> Duration {
        match self.state {
            State::Backoff(until) | State::Held(until) => until - now,
            State::Ready | State::Running | State::Parked => Duration::ZERO,
        }
    }

    /// Whether an attempt at the task has begun and not failed.
    pub fn is_active(&self) -> bool {
        self.begun && !matches!(self.state, State::Backoff(_))
    }

    pub(super) fn grows_ready(&mut self, sequence: u64) {
        self.state = State::Ready;
        self.ready_since = sequence;
        self.lacks = None;
    }
}
