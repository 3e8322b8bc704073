//! The settings that decisions depend on. The shell reads them from flags and variables; the core never reads these itself.

use std::time::Duration;

use jiff::tz::TimeZone;
use names::{HookId, Owner};

use crate::failure::Failure;
use crate::hook::config::HookKind;
use crate::hook::in_text::HookInText;
use crate::module::enabling::Extenders;

/// The kind of service of the program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// Modules, with global hooks and hooks of their own.
    #[default]
    Addons,
    /// Hooks alone: no modules, no values, no releases, and one queue `main` strictly in order.
    Hooks,
}

impl Mode {
    /// The kind of a hook with this owner.
    pub fn kind(self, owner: &Owner) -> HookKind {
        match self {
            Self::Addons => HookKind::from(owner),
            Self::Hooks => HookKind::Standalone,
        }
    }

    /// The hook in the form in which texts name it.
    pub(super) fn told(self, hook: &HookId) -> HookInText<'_> {
        HookInText::of(hook, self.kind(&hook.owner))
    }

    /// The failure with the name of its hook added, worded as in the original.
    pub(super) fn of_hook(self, HookId { owner, name }: &HookId, failure: Failure) -> Failure {
        match (owner, self) {
            (_, Self::Hooks) => failure.within(format_args!("{name} FAILED")),
            (Owner::Global, Self::Addons) => failure.within(format_args!("global hook '{name}' failed")),
            (Owner::Module(_), Self::Addons) => failure.within(format_args!("module hook '{name}' failed")),
        }
    }
}

/// When the API server asks us about edits of our ConfigMap before it makes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Edits {
    /// The API server never asks, because there is no ConfigMap.
    #[default]
    Unasked,
    /// The API server asks as long as it also asks hooks for admission: then the address at which it reaches us is
    /// known.
    WithHooks {
        /// The name of the ConfigMap.
        config_map: String,
    },
    /// The API server always asks: an admin has configured the address at which it reaches us.
    Always {
        /// The name of the ConfigMap.
        config_map: String,
    },
}

impl Edits {
    /// The name of the ConfigMap, if the API server has to ask about its edits.
    pub(super) fn config_map(&self, asks_hooks: bool) -> Option<&str> {
        match self {
            Self::WithHooks { config_map } if asks_hooks => Some(config_map),
            Self::Always { config_map } => Some(config_map),
            Self::WithHooks { .. } | Self::Unasked => None,
        }
    }
}

/// The condition under which the operator acts on the cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Leadership {
    /// The operator acts from the start: there is no other replica.
    #[default]
    Alone,
    /// The operator acts while this replica leads.
    Elected,
}

/// Whether this version is on trial. A version on trial must not do things that the version before could not undo.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnTrial {
    /// The version is not on trial: people chose it, or its trial is passed.
    #[default]
    No,
    /// The version is on trial until the trial is passed: our pod is the pod of a trial.
    Yes,
}

/// The settings of an admin that the core's decisions depend on.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Whether the operator runs modules, or global hooks alone.
    pub mode: Mode,
    /// The condition under which the operator acts on the cluster.
    pub leadership: Leadership,
    /// Whether this version is on trial when it starts.
    pub on_trial: OnTrial,
    /// A failing module or enabled script holds back everything behind it, as in the original.
    pub strict_order: bool,
    /// How many hooks and scripts may run at a time; at least 1.
    pub hook_slots: usize,
    /// How many hooks may run at a time for the API server, in addition to `hook_slots`; at least 1. These slots are
    /// separate, because helm may wait for the API server, and the API server for the hook.
    pub review_slots: usize,
    /// The condition under which the API server asks the operator about edits of the ConfigMap.
    pub edits: Edits,
    /// How many helm jobs may run at a time; at least 1.
    pub helm_slots: usize,
    /// How long one hook may run if neither its binding nor its hook has a deadline.
    pub hook_deadline: Duration,
    /// The time for which other modules wait for a module that hangs, and for which a run keeps its slot to itself.
    pub patience: Duration,
    /// How long running jobs may go on after a shutdown was asked for, before they are cancelled.
    pub shutdown_grace: Duration,
    /// Whether releases are watched: their damage, and the health of their objects.
    pub watches_releases: bool,
    /// A release that is never purged (`HELM_IGNORE_RELEASE`).
    pub ignore_release: Option<String>,
    /// The sources of verdicts on modules, in their order.
    pub extenders: Extenders,
    /// The zone in which crontabs are read.
    pub time_zone: TimeZone,
}

impl Policy {
    /// The deadline of a run: `said` by its hook or binding, or else the default.
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
            watches_releases: false,
            ignore_release: None,
            extenders: Extenders::default(),
            time_zone: TimeZone::UTC,
        }
    }
}
