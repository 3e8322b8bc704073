//! From an empty value to the first converge: how far the start has come.
//!
//! Must never let anything run before all is known that it may depend on.

use super::chores::{Chore, Chores};
use super::event::SavedState;

/// What start-up has found out so far.
#[derive(Debug, Default)]
pub(super) struct Startup {
    has_global_hooks: bool,
    state: Option<SavedState>,
    /// What was in force in the life before counts again, and so do readings of the ConfigMap, each in turn: an early one
    /// may hold the last good text of a key.
    restored: bool,
    /// The start-up tasks are in the queue.
    begun: bool,
}

impl Startup {
    /// The directories were read.
    pub(super) fn found(&mut self, has_global_hooks: bool) {
        self.has_global_hooks = has_global_hooks;
    }

    pub(super) fn has_global_hooks(&self) -> bool {
        self.has_global_hooks
    }

    /// The global hooks have said what they want, if there are any.
    pub(super) fn knows_global_hooks(&self, chores: &Chores) -> bool {
        !self.has_global_hooks || chores.is_done(Chore::ConfigureGlobalHooks)
    }

    /// The state Secret as it was.
    pub(super) fn state_loaded(&mut self, state: SavedState) {
        self.state = Some(state);
    }

    /// The state, once: what was in force in the life before counts from now on. Nothing while it is not known.
    pub(super) fn restore(&mut self) -> Option<SavedState> {
        let state = self.state.take()?;
        self.restored = true;
        Some(state)
    }

    pub(super) fn is_restored(&self) -> bool {
        self.restored
    }

    /// The start-up tasks are in the queue.
    pub(super) fn begin(&mut self) {
        self.begun = true;
    }

    pub(super) fn has_begun(&self) -> bool {
        self.begun
    }
}
