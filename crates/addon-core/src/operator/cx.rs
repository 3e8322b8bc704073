//! The context that every state machine is given: the time, the settings, and the lists of effects and notices.
//!
//! Must never hold anything that one machine knows and another does not.

use std::collections::VecDeque;

use clock::{Jitter, Now, Tick};

use super::effect::{Effect, Notice};
use super::policy::Policy;

/// The number of effects for which room is kept between two events.
const EFFECTS: usize = 64;

/// The time of the event that is being handled, the settings, and the effects and notices that the operator has put out.
#[derive(Debug, Clone)]
pub(super) struct Cx {
    /// The time of the event.
    pub(super) now: Now,
    /// The settings of an admin.
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

    /// The next random number for the spread of delays.
    pub(super) fn draw(&mut self) -> u64 {
        self.jitter.draw()
    }

    /// Queues a notice for people.
    pub(super) fn tell(&mut self, notice: Notice) {
        self.effect(Effect::Tell(notice));
    }

    /// Queues a notice for people before everything else that follows from the event.
    pub(super) fn tell_first(&mut self, notice: Notice) {
        self.effects.push_front(Effect::Tell(notice));
    }

    /// Queues an effect after all earlier ones.
    pub(super) fn effect(&mut self, effect: Effect) {
        self.effects.push_back(effect);
    }

    /// The next effect to carry out.
    pub(super) fn poll_effect(&mut self) -> Option<Effect> {
        let next = self.effects.pop_front();
        if next.is_none() {
            // A start puts out effects for every module at once, and later events put out few.
            self.effects.shrink_to(EFFECTS);
        }
        next
    }
}
