//! The outcomes of jobs: one variant for each kind of job. Each outcome brings back the ticket of its job.

use std::collections::BTreeMap;

use names::{HookName, ModuleName, MonitorId, Owner};

use super::{
    CrdObstacle, ObjectWritten, ReleaseSummary, ReviewId, Reworked, Saved, SavedState, ScriptAnswer, Settled, Synced,
    Usage,
};
use crate::failure::Failure;
use crate::hook::config::HookConfig;
use crate::hook::output::HookOutput;
use crate::module::outline::Outline;
use crate::operator::effect::{Job, JobId};
use crate::operator::task::Lane;
use crate::operator::ticket::{AskFor, AtHead, RunFor, Ticket, VetFor, WatchFor};
use crate::review::response::{AdmissionResponse, HookResponse};
use crate::values::vetted::Vetted;

/// The end of a job, with its outcome. A panic becomes a failure of class `Defect`.
#[derive(Debug, Clone)]
pub enum Finished {
    /// The state Secret as it was read.
    StateLoaded(Ticket<()>, Result<SavedState, Failure>),
    /// The state Secret was written, without these keys, which were too large for it.
    StateSaved(Ticket<()>, Result<Vec<String>, Failure>),
    /// The outlines of the common values files were written.
    ValuesFilesSaved(Ticket<()>, Result<(), Failure>),
    /// The values that global hooks have given were written.
    GivenSaved(Ticket<()>, Result<(), Failure>),
    /// The modules directories were read again.
    DirectoriesRead(Ticket<()>, Result<Outline, Failure>),
    /// All releases of the namespace.
    ReleasesListed(Ticket<()>, Result<Vec<ReleaseSummary>, Failure>),
    /// The CRDs are installed, except those of the modules that are listed here.
    CrdsEnsured(Ticket<AtHead>, Result<BTreeMap<ModuleName, CrdObstacle>, Failure>),
    /// The conversion webhooks were published, or not: the result for each module.
    ConversionsEnsured(
        Ticket<AtHead>,
        Result<BTreeMap<ModuleName, Result<(), Failure>>, Failure>,
    ),
    /// All releases of the namespace are watched from now on.
    ReleasesWatched(Ticket<()>, Result<(), Failure>),
    /// All hooks of the owner answered `--config` with valid configurations.
    HooksConfigured(Ticket<AskFor>, Result<Vec<(HookName, HookConfig)>, Failure>),
    /// The API server is configured to ask our hooks.
    WebhooksPublished(Ticket<()>, Result<(), Failure>),
    /// Values were checked against their schemas.
    Vetted(Ticket<VetFor>, Result<Vetted, Failure>),
    /// An edit of the ConfigMap was judged.
    EditJudged(Ticket<ReviewId>, Result<AdmissionResponse, Failure>),
    /// All monitors of the job are watching, and have listed their objects.
    MonitorsStarted(Ticket<WatchFor>, Result<(), Failure>),
    /// The hook exited with 0 and its outputs could be read.
    HookRan(Ticket<RunFor>, Result<HookRan, Failure>),
    /// The enabled script answered.
    ScriptAnswered(Ticket<ModuleName>, Result<ScriptAnswer, Failure>),
    /// The release is in the state of its values.
    ReleaseSynced(Ticket<AtHead>, Result<Synced, Failure>),
    /// The release is gone. The texts tell the changes of helm's records.
    ReleaseDeleted(Ticket<AtHead>, Result<Reworked, Failure>),
    /// The write of a section ended, or did not happen because the ConfigMap had changed.
    ConfigSaved(Ticket<Owner>, Result<Saved, Failure>),
    /// The sections that hooks saved on trial were put back or forgotten.
    SectionsSettled(Ticket<()>, Result<Settled, Failure>),
}

/// The outcome of a hook's run.
#[derive(Debug, Clone, Default)]
pub struct HookRan {
    /// The patches of values and config values that the hook wrote.
    pub output: HookOutput,
    /// The resources that the process used.
    pub usage: Usage,
    /// The answer for the API server, if the hook ran for a review.
    pub response: Box<HookResponse>,
    /// For each snapshot, the number of the last change that it included when it was read.
    pub read: BTreeMap<MonitorId, u64>,
    /// The objects that the hook's patches wrote.
    pub wrote: Vec<ObjectWritten>,
}

/// Evaluates the same expression for the outcome of every kind of job.
macro_rules! of_each {
    ($finished:expr, $ticket:pat, $result:pat => $then:expr) => {
        match $finished {
            Finished::StateLoaded($ticket, $result) => $then,
            Finished::StateSaved($ticket, $result) => $then,
            Finished::ValuesFilesSaved($ticket, $result) => $then,
            Finished::GivenSaved($ticket, $result) => $then,
            Finished::DirectoriesRead($ticket, $result) => $then,
            Finished::ReleasesListed($ticket, $result) => $then,
            Finished::CrdsEnsured($ticket, $result) => $then,
            Finished::ConversionsEnsured($ticket, $result) => $then,
            Finished::ReleasesWatched($ticket, $result) => $then,
            Finished::HooksConfigured($ticket, $result) => $then,
            Finished::WebhooksPublished($ticket, $result) => $then,
            Finished::Vetted($ticket, $result) => $then,
            Finished::EditJudged($ticket, $result) => $then,
            Finished::MonitorsStarted($ticket, $result) => $then,
            Finished::HookRan($ticket, $result) => $then,
            Finished::ScriptAnswered($ticket, $result) => $then,
            Finished::ReleaseSynced($ticket, $result) => $then,
            Finished::ReleaseDeleted($ticket, $result) => $then,
            Finished::ConfigSaved($ticket, $result) => $then,
            Finished::SectionsSettled($ticket, $result) => $then,
        }
    };
}

impl Finished {
    /// The id of the job.
    pub fn id(&self) -> JobId {
        of_each!(self, ticket, _ => ticket.id())
    }

    /// The failure of the job; `None` if it succeeded.
    pub fn failure(&self) -> Option<&Failure> {
        of_each!(self, _, result => result.as_ref().err())
    }

    /// The end of the same job with this failure as its outcome.
    #[must_use]
    pub fn failing(mut self, failure: Failure) -> Self {
        of_each!(&mut self, _, result => *result = Err(failure));
        self
    }
}

impl Job {
    /// The id of the job.
    pub fn id(&self) -> JobId {
        match self {
            Self::LoadState(ticket)
            | Self::SaveState { ticket, .. }
            | Self::SaveValuesFiles(_, ticket)
            | Self::SaveGiven(_, ticket)
            | Self::ReadDirectories(ticket)
            | Self::ListReleases(ticket)
            | Self::WatchReleases { ticket, .. }
            | Self::PublishWebhooks(_, ticket)
            | Self::SettleSections(_, ticket) => ticket.id(),
            Self::EnsureCrds { ticket, .. }
            | Self::EnsureConversions(_, ticket)
            | Self::SyncRelease { ticket, .. }
            | Self::DeleteRelease { ticket, .. } => ticket.id(),
            Self::ConfigureHooks(_, ticket) => ticket.id(),
            Self::Vet(_, ticket) => ticket.id(),
            Self::JudgeEdit(_, ticket) => ticket.id(),
            Self::StartMonitors { ticket, .. } => ticket.id(),
            Self::RunHook(_, ticket) => ticket.id(),
            Self::RunEnabledScript { ticket, .. } => ticket.id(),
            Self::SaveConfig { ticket, .. } => ticket.id(),
        }
    }

    /// Whether the job belongs to a global hook that a stand-in serves for and that runs in a lane of its own.
    pub fn is_aside(&self) -> bool {
        let head = match self {
            Self::RunHook(_, ticket) => match ticket.wanted_by() {
                RunFor::Head(head) => head,
                RunFor::Review(_) => return false,
            },
            Self::StartMonitors { ticket, .. } => match ticket.wanted_by() {
                WatchFor::Head(head, _) => head,
                WatchFor::Warmth(_) => return false,
            },
            _ => return false,
        };
        matches!(head.0, Lane::Aside(_))
    }

    /// The outcome that reports the failure of the given job.
    pub fn failed(&self, failure: Failure) -> Finished {
        match self {
            Self::LoadState(ticket) => Finished::StateLoaded(ticket.clone(), Err(failure)),
            Self::SaveState { ticket, .. } => Finished::StateSaved(ticket.clone(), Err(failure)),
            Self::SaveValuesFiles(_, ticket) => Finished::ValuesFilesSaved(ticket.clone(), Err(failure)),
            Self::SaveGiven(_, ticket) => Finished::GivenSaved(ticket.clone(), Err(failure)),
            Self::ReadDirectories(ticket) => Finished::DirectoriesRead(ticket.clone(), Err(failure)),
            Self::ListReleases(ticket) => Finished::ReleasesListed(ticket.clone(), Err(failure)),
            Self::EnsureCrds { ticket, .. } => Finished::CrdsEnsured(ticket.clone(), Err(failure)),
            Self::EnsureConversions(_, ticket) => Finished::ConversionsEnsured(ticket.clone(), Err(failure)),
            Self::WatchReleases { ticket, .. } => Finished::ReleasesWatched(ticket.clone(), Err(failure)),
            Self::ConfigureHooks(_, ticket) => Finished::HooksConfigured(ticket.clone(), Err(failure)),
            Self::PublishWebhooks(_, ticket) => Finished::WebhooksPublished(ticket.clone(), Err(failure)),
            Self::Vet(_, ticket) => Finished::Vetted(ticket.clone(), Err(failure)),
            Self::JudgeEdit(_, ticket) => Finished::EditJudged(ticket.clone(), Err(failure)),
            Self::StartMonitors { ticket, .. } => Finished::MonitorsStarted(ticket.clone(), Err(failure)),
            Self::RunHook(_, ticket) => Finished::HookRan(ticket.clone(), Err(failure)),
            Self::RunEnabledScript { ticket, .. } => Finished::ScriptAnswered(ticket.clone(), Err(failure)),
            Self::SyncRelease { ticket, .. } => Finished::ReleaseSynced(ticket.clone(), Err(failure)),
            Self::DeleteRelease { ticket, .. } => Finished::ReleaseDeleted(ticket.clone(), Err(failure)),
            Self::SaveConfig { ticket, .. } => Finished::ConfigSaved(ticket.clone(), Err(failure)),
            Self::SettleSections(_, ticket) => Finished::SectionsSettled(ticket.clone(), Err(failure)),
        }
    }
}
