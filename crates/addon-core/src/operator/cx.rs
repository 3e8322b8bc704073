//! The context of every machine: the moment, the settings, and the ways out.
//!
//! Must never hold anything that one machine knows and another does not.

use std::collections::VecDeque;

use super::effect::{Effect, Notice};
use super::policy::Policy;
use crate::time::{Jitter, Now, Tick};

/// The moment of the event that is being handled, the settings, and all that the operator asks of the world.
#[derive(Debug)]
pub(super) struct Cx {
    /// The time of the event.
    pub(super) now: Now,
    /// What an admin chose.
    pub(super) policy: Policy,
    jitter: Jitter,
    effects: VecDeque<Effect>,
}

impl Cx {
    pub(super) fn new(seed: u64, policy: Policy) -> Self {
        Self {
            now: Now {
                tick: Tick::ZERO,
                wall: jiff::Timestamp::UNIX_EPOCH,
            },
            policy,
            jitter: Jitter::new(seed),
            effects: VecDeque::new(),
        }
    }

    /// The next draw that spreads delays.
    pub(super) fn draw(&mut self) -> u64 {
        self.jitter.draw()
    }

    /// Tells people.
    pub(super) fn tell(&mut self, notice: Notice) {
        self.effect(Effect::Tell(notice));
    }

    /// Tells people before all that follows from the event.
    pub(super) fn tell_first(&mut self, notice: Notice) {
        self.effects.push_front(Effect::Tell(notice));
    }

    /// Asks for something to be done after all that was asked for before.
    pub(super) fn effect(&mut self, effect: Effect) {
        self.effects.push_back(effect);
    }

    /// The next thing to do.
    pub(super) fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }
}
