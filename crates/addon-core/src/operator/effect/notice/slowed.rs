//! The notices about loops: programs that cause their own next work too often, so that it waits.

use std::time::Duration;

use crate::name::{HookId, ModuleName};

/// The work that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Slowed {
    /// A hook causes its own next run, or the next run of its module.
    Hook {
        /// The hook.
        hook: HookId,
        /// The deed that causes the run, as the end of the sentence "the hook ...".
        deed: String,
        /// How often in a row the hook has done it.
        times: u32,
        /// The time until the run, unless a change by others comes first.
        next_in: Duration,
    },
    /// Programs switch a module to and fro, so that it keeps its state.
    Switch {
        /// The module.
        module: ModuleName,
        /// The state that it keeps.
        enabled: bool,
        /// The source of the verdict that has to wait.
        by: String,
        /// The number of switches within ten minutes.
        times: usize,
        /// The time until the next switch, unless a person edits the flag in the ConfigMap.
        next_in: Duration,
    },
}
