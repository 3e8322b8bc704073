//! The progress of the start, from an operator that knows nothing to the first converge.
//!
//! Must never let any work begin before everything that it may depend on is known.

use super::chores::{Chore, Chores};
use super::event::SavedState;

/// The facts that the start has found out so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Startup {
    has_global_hooks: bool,
    state: Option<SavedState>,
    /// Whether the state of the life before was applied. From then on the readings of the ConfigMap are applied in
    /// their order, because an early reading may hold the last good text of a key.
    restored: bool,
    /// Whether the start-up tasks are in the queue.
    begun: bool,
}

impl Startup {
    /// Notes that the directories were read.
    pub(super) fn found(&mut self, has_global_hooks: bool) {
        self.has_global_hooks = has_global_hooks;
    }

    pub(super) fn has_global_hooks(&self) -> bool {
        self.has_global_hooks
    }

    /// Whether the configurations of the global hooks are known, or there are no global hooks.
    pub(super) fn knows_global_hooks(&self, chores: &Chores) -> bool {
        !self.has_global_hooks || chores.is_done(Chore::ConfigureGlobalHooks)
    }

    /// Notes the contents of the state Secret.
    pub(super) fn state_loaded(&mut self, state: SavedState) {
        self.state = Some(state);
    }

    /// Returns the contents of the state Secret, once. `None` before they are known, and afterwards.
    pub(super) fn restore(&mut self) -> Option<SavedState> {
        let state = self.state.take()?;
        self.restored = true;
        Some(state)
    }

    pub(super) fn is_restored(&self) -> bool {
        self.restored
    }

    /// Notes that the start-up tasks are in the queue.
    pub(super) fn begin(&mut self) {
        self.begun = true;
    }

    pub(super) fn has_begun(&self) -> bool {
        self.begun
    }
}
