//! The jobs: all work that takes time. Each job of the core is one function from its start to its outcome.
//!
//! A job never decides a next step and never retries; the core does both. Jobs share only [`Tools`].

mod acting;
pub mod catalogue;
pub mod config;
pub mod crds;
pub mod directories;
pub mod editions;
mod edits;
pub mod enabled;
mod explained;
pub mod hook;
pub mod release;
pub mod state;
pub mod tmp;
pub mod traced;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use addon_core::failure::{Class, Failure};
use addon_core::operator::effect::Job;
use addon_core::operator::event::Finished;
use addon_core::review::routes::Routes;
use addon_core::values::vetted::Vetting;
use child::{ProcessError, Spawner};
use jiff::Timestamp;
use kube_access::Cluster;
use report::secrets::Secrets;
use telling::meters::Meters;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::cluster::drift::lookout::Lookout;
use crate::cluster::patch::Patcher;
use crate::cluster::webhooks::ensure::Webhooks;
use crate::helm::Helm;
use crate::records::Recorder;
use catalogue::Catalogue;
use directories::Directories;
use hook::relay::Style;
use release::holds::Holds;
use tmp::TmpDir;
use watches::Monitors;

/// The tools of all jobs.
#[derive(Debug)]
pub struct Tools {
    pub cluster: Cluster,
    /// Helm; none for hooks without modules.
    pub helm: Option<Helm>,
    /// Publishes webhooks.
    pub webhooks: Webhooks,
    /// Watches objects for hooks.
    pub monitors: Monitors,
    /// Watches releases; none for hooks without modules.
    pub lookout: Option<Lookout>,
    /// Carries out object patches of hooks.
    pub patcher: Patcher,
    /// Keeps the metrics of hooks.
    pub meters: Arc<Meters>,
    /// The modules directories at the start; none for hooks without modules.
    pub directories: Option<Directories>,
    /// The directory of hooks without modules; none with modules.
    pub hooks_dir: Option<PathBuf>,
    /// Starts hooks and scripts.
    pub spawner: Spawner,
    /// The paths of hooks, scripts and charts, and the hooks that executables have listed.
    pub catalogue: watch::Sender<Arc<Catalogue>>,
    /// Temporary files for child processes.
    pub tmp: Arc<TmpDir>,
    /// The environment of hooks and scripts: the operator's own, with a `KUBECONFIG` for its cluster.
    pub environment: Vec<(OsString, OsString)>,
    /// The name of our `ConfigMap`.
    pub config_map: String,
    /// The deadline of an enabled script.
    pub script_deadline: Duration,
    /// The settings for the output of hooks and scripts in the log.
    pub relay: Style,
    /// The releases that jobs work on right now.
    pub holds: Holds,
    /// Records runs of hooks on demand.
    pub recorder: Recorder,
}

impl Tools {
    /// Helm, for a job on a release.
    fn helm(&self) -> Result<&Helm, Failure> {
        let missing = || Failure::new(Class::Defect, "a release was asked for where there are hooks alone");
        self.helm.as_ref().ok_or_else(missing)
    }

    fn lookout(&self) -> Result<&Lookout, Failure> {
        let missing = || Failure::new(Class::Defect, "releases were to be watched where there are hooks alone");
        self.lookout.as_ref().ok_or_else(missing)
    }

    /// Whether damaged releases are repaired.
    pub fn restores(&self) -> bool {
        self.lookout.as_ref().is_some_and(Lookout::restores)
    }
}

/// Does the job. Cancelling the token ends it early; the next start then finishes its unfinished writes.
pub async fn run(job: Job, tools: Arc<Tools>, cancel: CancellationToken) -> Finished {
    let shared = tools;
    let (tools, cancel) = (&*shared, &cancel);
    match job {
        Job::ConfigureHooks(owner, ticket) => {
            Finished::HooksConfigured(ticket, hook::config::ask_all(tools, &owner, cancel).await)
        }
        Job::EnsureCrds {
            modules,
            on_trial,
            ticket,
        } => Finished::CrdsEnsured(ticket, unless(cancel, crds::ensure(tools, &modules, on_trial)).await),
        Job::EnsureConversions(of, ticket) => {
            let ensured = Box::pin(release::ensure_conversions(tools, &of, cancel));
            Finished::ConversionsEnsured(ticket, ensured.await)
        }
        Job::PublishWebhooks(routes, ticket) => {
            Finished::WebhooksPublished(ticket, publish(tools, &routes, cancel).await)
        }
        // Blocking work cannot be stopped; it ends by itself.
        Job::Vet(unvetted, ticket) => Finished::Vetted(ticket, Ok(blocking::run(move || unvetted.vet()).await)),
        Job::JudgeEdit(edit, ticket) => Finished::EditJudged(ticket, Ok(edits::judge(tools, *edit, cancel).await)),
        Job::StartMonitors { hook, monitors, ticket } => {
            let started = tools.monitors.start(&hook, monitors);
            Finished::MonitorsStarted(ticket, unless(cancel, started).await)
        }
        Job::RunHook(run, ticket) => Finished::HookRan(ticket, Box::pin(hook::run(&shared, run, cancel)).await),
        Job::RunEnabledScript {
            module,
            values,
            config_values,
            ticket,
        } => {
            let answered = enabled::run(&shared, &module, values, config_values, cancel);
            Finished::ScriptAnswered(ticket, answered.await)
        }
        Job::SyncRelease {
            module,
            values,
            asked,
            vetting,
            maintenance,
            config,
            ticket,
        } => {
            let wanted = release::Wanted {
                values: &values,
                asked: &asked,
                maintenance,
                config,
            };
            let synced = Box::pin(release::sync(tools, &module, wanted, vetting, cancel));
            Finished::ReleaseSynced(ticket, synced.await)
        }
        Job::DeleteRelease { release, ticket } => {
            Finished::ReleaseDeleted(ticket, Box::pin(release::delete(tools, &release, cancel)).await)
        }
        Job::SaveConfig {
            key,
            text,
            base,
            create,
            on_trial,
            ticket,
        } => {
            let saved = config::save(tools, &key, text, base.as_deref(), create, on_trial);
            Finished::ConfigSaved(ticket, unless(cancel, Box::pin(saved)).await)
        }
        Job::SettleSections(ruling, ticket) => {
            let settled = Box::pin(config::settle(tools, ruling));
            Finished::SectionsSettled(ticket, unless(cancel, settled).await)
        }
        Job::LoadState(ticket) => Finished::StateLoaded(ticket, unless(cancel, state::load(tools)).await),
        Job::SaveState {
            last_good,
            made,
            ticket,
        } => {
            let saved = state::save(tools, &last_good, made.as_ref());
            let saved = unless(cancel, saved).await;
            Finished::StateSaved(ticket, tools.explained(saved, cancel).await)
        }
        Job::SaveGiven(given, ticket) => {
            let saved = Box::pin(state::save_given(tools, given));
            Finished::GivenSaved(ticket, unless(cancel, saved).await)
        }
        Job::SaveValuesFiles(files, ticket) => {
            let saved = Box::pin(state::save_values_files(tools, &files));
            Finished::ValuesFilesSaved(ticket, unless(cancel, saved).await)
        }
        Job::ReadDirectories(ticket) => {
            Finished::DirectoriesRead(ticket, unless(cancel, directories::read_again(tools)).await)
        }
        Job::ListReleases(ticket) => Finished::ReleasesListed(ticket, unless(cancel, release::list(tools)).await),
        Job::WatchReleases { expected, ticket } => {
            let begun = async { tools.lookout()?.begin(&expected).await };
            Finished::ReleasesWatched(ticket, unless(cancel, begun).await)
        }
    }
}

async fn publish(tools: &Tools, routes: &Routes, cancel: &CancellationToken) -> Result<(), Failure> {
    let published = Box::pin(tools.webhooks.ensure(routes, Timestamp::now()));
    unless(cancel, published).await.map(drop)
}

/// Does the work unless it is cancelled before.
async fn unless<T>(cancel: &CancellationToken, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::select! {
        outcome = work => outcome,
        () = cancel.cancelled() => Err(Failure::new(Class::Cancelled, "the job was cancelled")),
    }
}

/// Validates the values for helm: values that violate their schema must never reach helm.
async fn vet_for_helm(vetting: Option<Box<Vetting>>) -> Result<(), Failure> {
    let Some(vetting) = vetting else { return Ok(()) };
    let vetted = blocking::run(move || vetting.for_helm()).await;
    vetted.map_err(|unfit| Failure::of(Class::Invalid, &unfit))
}

/// The failure of a hook or script that did not run to its end.
fn not_ended(error: &ProcessError) -> Failure {
    match error {
        ProcessError::Start { program, hint, source } => {
            let report = format!("cmd start: {}: {source}", program.display());
            let class = if error.is_shortage() {
                Class::Unavailable
            } else {
                Class::HookFailed
            };
            let failure = Failure::new(class, report);
            match hint {
                Some(hint) => failure.hint(hint),
                None if !program.exists() => failure.hint("its file was there at the start: put it back"),
                None => failure,
            }
        }
        ProcessError::Stuck { program, waited } => {
            let report = format!("cmd start: {}: nothing happened within {waited:?}", program.display());
            let failure = Failure::new(Class::Unavailable, report);
            error.hint().into_iter().fold(failure, Failure::hint)
        }
        ProcessError::Wait { source, .. } => Failure::new(Class::Defect, format!("cmd wait: {source}")),
        ProcessError::TimedOut { deadline, .. } => Failure::new(
            Class::TimedOut,
            format!("it did not end within {deadline:?} and was ended"),
        ),
        ProcessError::Cancelled { .. } => Failure::new(Class::Cancelled, "it was cancelled"),
    }
}

/// The failure of a run whose files cannot be created.
fn no_files(what: &str, error: &io::Error) -> Failure {
    let failure = Failure::new(Class::Unavailable, format!("{what}: {error}"));
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => failure.hint(
            "nothing more fits where files of hooks are: --tmp-dir or ADDON_OPERATOR_TMP_DIR chooses another place",
        ),
        _ => child::exhausted(error).into_iter().fold(failure, Failure::hint),
    }
}

/// The end of a long text, where programs usually print their error.
fn tail(text: &str, secrets: &Secrets) -> String {
    const LONGEST: usize = 4000;
    let text = secrets.before_cut(text.trim(), LONGEST);
    match text.char_indices().rev().nth(LONGEST) {
        Some((start, _)) => format!("…{}", &text[start..]),
        None => text.into_owned(),
    }
}

#[cfg(test)]
mod tests;
