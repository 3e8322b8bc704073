//! The settings that decisions depend on. The shell reads them from flags and variables; the core never does.

use std::time::Duration;

use jiff::tz::TimeZone;

/// What the program serves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// Modules, with global hooks and hooks of their own.
    #[default]
    Addons,
    /// Hooks alone: no modules, no values, no releases, and one queue `main` strictly in order.
    Hooks,
}

/// When the operator acts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Leadership {
    /// From the start: there is no other one.
    #[default]
    Alone,
    /// From when it is told that it leads, until it is told that it does not.
    Elected,
}

/// What an admin chose, as far as the core decides by it.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Whether there are modules at all.
    pub mode: Mode,
    /// Whether it is to act from the start.
    pub leadership: Leadership,
    /// A failing module or enabled script holds back everything behind it, as in the original.
    pub strict_order: bool,
    /// How many hooks and scripts may run at a time; at least 1.
    pub hook_slots: usize,
    /// How many more hooks may run at a time when the API server asks: helm may wait for it, and it for us; at least 1.
    pub review_slots: usize,
    /// How many helm jobs may run at a time; at least 1.
    pub helm_slots: usize,
    /// How long one hook may run unless its binding says otherwise.
    pub hook_deadline: Duration,
    /// How long running jobs may go on after a shutdown was asked for, before they are cancelled.
    pub shutdown_grace: Duration,
    /// Releases are watched, and restored when somebody else damages them.
    pub restores: bool,
    /// A release that is never purged (`HELM_IGNORE_RELEASE`).
    pub ignore_release: Option<String>,
    /// The zone in which crontabs are read.
    pub time_zone: TimeZone,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            mode: Mode::Addons,
            leadership: Leadership::Alone,
            strict_order: false,
            hook_slots: 4,
            review_slots: 2,
            helm_slots: 2,
            hook_deadline: Duration::from_mins(30),
            shutdown_grace: Duration::from_secs(10),
            restores: false,
            ignore_release: None,
            time_zone: TimeZone::UTC,
        }
    }
}
