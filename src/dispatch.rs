//! Does the jobs of the core. Each job, from its start to its outcome, is one function of the capability that it
//! belongs to.
//!
//! A job never decides a next step and never retries; the core does both.

pub mod directories;
pub mod traced;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use addon_core::failure::{Class, Failure};
use addon_core::module::outline::ValuesFiles;
use addon_core::operator::edit::Edit;
use addon_core::operator::effect::Job;
use addon_core::operator::event::{Finished, SavedState};
use addon_core::operator::provenance::Made;
use addon_core::review::response::AdmissionResponse;
use addon_core::review::routes::Routes;
use addon_core::values::Given;
use config_map::section::{self, Section};
use hooks::{edits, enabled};
use jiff::Timestamp;
use jobs::catalogue::Catalogue;
use jobs::{Ground, unless};
use names::HookName;
use plan::planner::Planner;
use releases::sync;
use tokio_util::sync::CancellationToken;

use directories::Directories;
use webhooks::configurations::ensure::Webhooks;

/// The tools of all jobs. Clones share them.
#[derive(Debug, Clone)]
pub struct Tools {
    /// The means that all jobs share: the cluster, programs, files.
    pub ground: Arc<Ground>,
    /// Runs hooks and scripts.
    pub hooks: Arc<hooks::Tools>,
    /// Brings releases up to date; none for hooks without modules.
    pub releases: Option<releases::Tools>,
    /// Publishes webhooks.
    pub webhooks: Arc<Webhooks>,
    /// The modules directories at the start; none for hooks without modules.
    pub directories: Option<Directories>,
    /// The name of our `ConfigMap`.
    pub config_map: String,
    /// Makes the plans that are shown to people who edit the `ConfigMap`; none if that is not wanted.
    pub warner: Option<Arc<OnceLock<Planner>>>,
}

impl Tools {
    /// The tools for a job on a release.
    pub fn releases(&self) -> Result<&releases::Tools, Failure> {
        let missing = || Failure::new(Class::Defect, "a release was asked for where there are hooks alone");
        self.releases.as_ref().ok_or_else(missing)
    }

    /// The same tools with a catalogue of their own.
    #[must_use]
    pub fn with(&self, catalogue: Catalogue) -> Self {
        let ground = Arc::new(self.ground.with(catalogue));
        let hooks = hooks::Tools {
            ground: Arc::clone(&ground),
            ..(*self.hooks).clone()
        };
        let releases = self.releases.as_ref().map(|releases| releases::Tools {
            ground: Arc::clone(&ground),
            ..releases.clone()
        });
        Self {
            ground,
            hooks: Arc::new(hooks),
            releases,
            ..self.clone()
        }
    }
}

/// Does the job. Cancelling the token ends it early; the next start then finishes its unfinished writes.
pub async fn run(job: Job, tools: Arc<Tools>, cancel: CancellationToken) -> Finished {
    let (tools, cancel) = (&*tools, &cancel);
    match job {
        Job::ConfigureHooks(owner, ticket) => {
            Finished::HooksConfigured(ticket, hooks::config::ask_all(&tools.hooks, &owner, cancel).await)
        }
        Job::EnsureCrds {
            modules,
            on_trial,
            ticket,
        } => {
            let ensured = async { releases::crds::ensure(tools.releases()?, &modules, on_trial).await };
            Finished::CrdsEnsured(ticket, unless(cancel, ensured).await)
        }
        Job::EnsureConversions(of, ticket) => {
            let ensured = async { sync::ensure_conversions(tools.releases()?, &of, cancel).await };
            Finished::ConversionsEnsured(ticket, Box::pin(ensured).await)
        }
        Job::PublishWebhooks(routes, ticket) => {
            Finished::WebhooksPublished(ticket, publish(tools, &routes, cancel).await)
        }
        // Blocking work cannot be stopped; it ends by itself.
        Job::Vet(unvetted, ticket) => Finished::Vetted(ticket, Ok(blocking::run(move || unvetted.vet()).await)),
        Job::JudgeEdit(edit, ticket) => Finished::EditJudged(ticket, Ok(judge(tools, *edit, cancel).await)),
        Job::StartMonitors { hook, monitors, ticket } => {
            let started = tools.hooks.monitors.start(&hook, monitors);
            Finished::MonitorsStarted(ticket, unless(cancel, started).await)
        }
        Job::RunHook(run, ticket) => Finished::HookRan(ticket, Box::pin(hooks::run(&tools.hooks, run, cancel)).await),
        Job::RunEnabledScript {
            module,
            values,
            config_values,
            ticket,
        } => {
            let answered = enabled::run(&tools.hooks, &module, values, config_values, cancel);
            Finished::ScriptAnswered(ticket, answered.await)
        }
        Job::SyncRelease {
            module,
            values,
            asked,
            vetting,
            maintenance,
            config,
            unhealthy,
            ticket,
        } => {
            let wanted = sync::Wanted {
                values: &values,
                asked: &asked,
                maintenance,
                config,
                unhealthy,
            };
            let synced = async { sync::sync(tools.releases()?, &module, wanted, vetting, cancel).await };
            Finished::ReleaseSynced(ticket, Box::pin(synced).await)
        }
        Job::DeleteRelease { release, ticket } => {
            let deleted = async { sync::delete(tools.releases()?, &release, cancel).await };
            Finished::ReleaseDeleted(ticket, Box::pin(deleted).await)
        }
        Job::SaveConfig {
            key,
            text,
            base,
            create,
            on_trial,
            ticket,
        } => {
            let section = Section {
                key: &key,
                text,
                base: base.as_deref(),
                create,
            };
            let saved = section::save(&tools.ground, &tools.config_map, section, on_trial);
            Finished::ConfigSaved(ticket, unless(cancel, Box::pin(saved)).await)
        }
        Job::SettleSections(ruling, ticket) => {
            let settled = Box::pin(section::settle(&tools.ground, &tools.config_map, ruling));
            Finished::SectionsSettled(ticket, unless(cancel, settled).await)
        }
        Job::LoadState(ticket) => Finished::StateLoaded(ticket, unless(cancel, load(tools)).await),
        Job::SaveState {
            last_good,
            made,
            ticket,
        } => {
            let saved = unless(cancel, save(tools, &last_good, made.as_ref())).await;
            Finished::StateSaved(ticket, tools.ground.explained(saved, cancel).await)
        }
        Job::SaveGiven(given, ticket) => {
            let saved = Box::pin(save_given(tools, given));
            Finished::GivenSaved(ticket, unless(cancel, saved).await)
        }
        Job::SaveValuesFiles(files, ticket) => {
            let saved = Box::pin(save_values_files(tools, &files));
            Finished::ValuesFilesSaved(ticket, unless(cancel, saved).await)
        }
        Job::ReadDirectories(ticket) => {
            Finished::DirectoriesRead(ticket, unless(cancel, directories::read_again(tools)).await)
        }
        Job::ListReleases(ticket) => {
            let listed = async { sync::list(tools.releases()?).await };
            Finished::ReleasesListed(ticket, unless(cancel, listed).await)
        }
        Job::WatchReleases { expected, ticket } => {
            let begun = async { tools.releases()?.lookout.begin(&expected).await };
            Finished::ReleasesWatched(ticket, unless(cancel, begun).await)
        }
    }
}

/// The part of the API server's patience that is left for the way of the answer.
const WAY_BACK: Duration = Duration::from_millis(500);
/// The longest time for the plan of an edit, and the shortest that is worth a try.
const PLANNED_WITHIN: [Duration; 2] = [Duration::from_secs(2), Duration::from_millis(300)];

/// Judges an edit of the `ConfigMap`, and tells the person what it would do if that is wanted and there is time for it.
async fn judge(tools: &Tools, edit: Edit, cancel: &CancellationToken) -> AdmissionResponse {
    let begun = Instant::now();
    let planner = tools.warner.as_ref().and_then(|planner| planner.get());
    let (edited, spare) = (planner.and_then(|_| edit.edited()), edit.spare());
    let answer = edits::judge(&tools.hooks, edit, cancel).await;
    let [longest, shortest] = PLANNED_WITHIN;
    let left = spare.map(|spare| spare.saturating_sub(begun.elapsed() + WAY_BACK).min(longest));
    match (planner, edited, left) {
        (Some(planner), Some(edited), Some(left)) if answer.allowed && left >= shortest => {
            let lines = plan::warnings::of_edit(planner, edited, left, tools.ground.spawner.secrets()).await;
            Edit::foretold(answer, &lines)
        }
        _ => answer,
    }
}

async fn publish(tools: &Tools, routes: &Routes, cancel: &CancellationToken) -> Result<(), Failure> {
    let published = Box::pin(tools.webhooks.ensure(routes, Timestamp::now()));
    unless(cancel, published).await.map(drop)
}

async fn load(tools: &Tools) -> Result<SavedState, Failure> {
    Ok(saved_state::load_state(&tools.ground.cluster).await?)
}

async fn save(
    tools: &Tools,
    last_good: &BTreeMap<String, String>,
    made: Option<&Made>,
) -> Result<Vec<String>, Failure> {
    Ok(saved_state::save_last_good(&tools.ground.cluster, last_good, made).await?)
}

/// Writes the outlines of the values files.
pub async fn save_values_files(tools: &Tools, files: &ValuesFiles) -> Result<(), Failure> {
    let saved = saved_state::save_values_files(&tools.ground.cluster, files).await;
    tools.ground.explained_to_the_end(saved.map_err(Failure::from)).await
}

async fn save_given(tools: &Tools, given: BTreeMap<HookName, Given>) -> Result<(), Failure> {
    let saved = saved_state::save_given(&tools.ground.cluster, given).await;
    tools.ground.explained_to_the_end(saved.map_err(Failure::from)).await
}
