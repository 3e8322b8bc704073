//! The cause of a hook's run. Decisions match on the variants. The key is only a label for people and metrics, so a
//! decision must never compare keys.

use std::fmt;

use super::config::Stage;
use super::context::{Ask, BindingContext};

/// The kind of binding that causes a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A stage of the operator or of a module.
    Stage(Stage),
    /// A time of a crontab.
    Schedule,
    /// Objects of the cluster: the existing ones in a first run, or a change.
    Objects,
    /// A validating review.
    Validating,
    /// A mutating review.
    Mutating,
    /// A request to convert objects to another version.
    Conversion,
}

impl Cause {
    /// The key of the binding in a hook's configuration.
    pub fn key(self) -> &'static str {
        match self {
            Self::Stage(stage) => stage.key(),
            Self::Schedule => "schedule",
            Self::Objects => "kubernetes",
            Self::Validating => "kubernetesValidating",
            Self::Mutating => "kubernetesMutating",
            Self::Conversion => "kubernetesCustomResourceConversion",
        }
    }

    /// Whether the run belongs to a stage of a removal.
    pub fn is_removal(self) -> bool {
        match self {
            Self::Stage(Stage::BeforeDeleteHelm | Stage::AfterDeleteHelm) => true,
            Self::Stage(
                Stage::OnStartup | Stage::BeforeAll | Stage::AfterAll | Stage::BeforeHelm | Stage::AfterHelm,
            )
            | Self::Schedule
            | Self::Objects
            | Self::Validating
            | Self::Mutating
            | Self::Conversion => false,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

impl From<&BindingContext> for Cause {
    fn from(context: &BindingContext) -> Self {
        match context {
            BindingContext::Stage { stage, .. } => Self::Stage(*stage),
            BindingContext::Schedule(_) => Self::Schedule,
            BindingContext::Synchronization(_) | BindingContext::Event { .. } => Self::Objects,
            BindingContext::Review { ask, .. } => match ask {
                Ask::Validating => Self::Validating,
                Ask::Mutating => Self::Mutating,
                Ask::Conversion { .. } => Self::Conversion,
            },
        }
    }
}
