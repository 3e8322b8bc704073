//! The settings that decisions depend on. The shell reads them from flags and variables; the core never does.

use std::time::Duration;

use jiff::tz::TimeZone;

use crate::failure::Failure;
use crate::hook::config::HookKind;
use crate::hook::in_text::HookInText;
use crate::module::enabling::Extenders;
use crate::name::{HookId, Owner};

/// What the program serves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// Modules, with global hooks and hooks of their own.
    #[default]
    Addons,
    /// Hooks alone: no modules, no values, no releases, and one queue `main` strictly in order.
    Hooks,
}

impl Mode {
    /// The kind of a hook of this owner.
    pub fn kind(self, owner: &Owner) -> HookKind {
        match self {
            Self::Addons => HookKind::from(owner),
            Self::Hooks => HookKind::Standalone,
        }
    }

    /// The hook as texts name it.
    pub(super) fn told(self, hook: &HookId) -> HookInText<'_> {
        hook.told(self.kind(&hook.owner))
    }

    /// The failure with the name of its hook, as the original words it.
    pub(super) fn of_hook(self, HookId { owner, name }: &HookId, failure: Failure) -> Failure {
        match (owner, self) {
            (_, Self::Hooks) => failure.within(format_args!("{name} FAILED")),
            (Owner::Global, Self::Addons) => failure.within(format_args!("global hook '{name}' failed")),
            (Owner::Module(_), Self::Addons) => failure.within(format_args!("module hook '{name}' failed")),
        }
    }
}

/// When the API server is to ask us about edits of our ConfigMap before it makes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Edits {
    /// Never: there is no ConfigMap.
    #[default]
    Unasked,
    /// As long as it asks hooks whether something may be done: then it is known how we are reached.
    WithHooks {
        /// The name of the ConfigMap.
        config_map: String,
    },
    /// From the start to the end: somebody has said how we are reached.
    Always {
        /// The name of the ConfigMap.
        config_map: String,
    },
}

impl Edits {
    /// The name of the ConfigMap, if it is to ask.
    pub(super) fn config_map(&self, asks_hooks: bool) -> Option<&str> {
        match self {
            Self::WithHooks { config_map } if asks_hooks => Some(config_map),
            Self::Always { config_map } => Some(config_map),
            Self::WithHooks { .. } | Self::Unasked => None,
        }
    }
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

/// Whether this version may do what the one before could not take back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnTrial {
    /// Yes: people chose it, or it has passed.
    #[default]
    No,
    /// Our pod is that of a trial: not before we are told that it is passed.
    Yes,
}

/// What an admin chose, as far as the core decides by it.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Whether there are modules at all.
    pub mode: Mode,
    /// Whether it is to act from the start.
    pub leadership: Leadership,
    /// Whether this version is on trial when it starts.
    pub on_trial: OnTrial,
    /// A failing module or enabled script holds back everything behind it, as in the original.
    pub strict_order: bool,
    /// How many hooks and scripts may run at a time; at least 1.
    pub hook_slots: usize,
    /// How many more hooks may run at a time when the API server asks: helm may wait for it, and it for us; at least 1.
    pub review_slots: usize,
    /// When edits of the ConfigMap are asked about.
    pub edits: Edits,
    /// How many helm jobs may run at a time; at least 1.
    pub helm_slots: usize,
    /// How long one hook may run unless its binding says otherwise.
    pub hook_deadline: Duration,
    /// How long others wait for a module that does not get on, and how long a run keeps its slot to itself.
    pub patience: Duration,
    /// How long running jobs may go on after a shutdown was asked for, before they are cancelled.
    pub shutdown_grace: Duration,
    /// Releases are watched, and restored when somebody else damages them.
    pub restores: bool,
    /// A release that is never purged (`HELM_IGNORE_RELEASE`).
    pub ignore_release: Option<String>,
    /// The sources of verdicts on modules, in their order.
    pub extenders: Extenders,
    /// The zone in which crontabs are read.
    pub time_zone: TimeZone,
}

impl Policy {
    /// How long a run may take whose hook or binding says this.
    pub(super) fn deadline_of(&self, said: Option<Duration>) -> Duration {
        said.unwrap_or(self.hook_deadline)
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            mode: Mode::Addons,
            leadership: Leadership::Alone,
            on_trial: OnTrial::No,
            strict_order: false,
            hook_slots: 4,
            review_slots: 2,
            edits: Edits::Unasked,
            helm_slots: 2,
            hook_deadline: Duration::from_mins(30),
            patience: Duration::from_mins(1),
            shutdown_grace: Duration::from_secs(10),
            restores: false,
            ignore_release: None,
            extenders: Extenders::default(),
            time_zone: TimeZone::UTC,
        }
    }
}
