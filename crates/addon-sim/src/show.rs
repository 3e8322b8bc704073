//! Steps as texts, for people who look for a cause.

use std::collections::BTreeMap;

use addon_core::digest::Digest;
use addon_core::hook::context::BindingContext;
use addon_core::module::Edition;
use addon_core::operator::effect::{Effect, HookRun, Job, JobId};
use addon_core::operator::event::{ConfigRead, Event, Finished, HookRan, Saved};
use names::MonitorId;

use crate::life::{Running, Seen};
use crate::monitors;
use crate::world::{document, job_name};

/// Microseconds as seconds.
#[expect(clippy::cast_precision_loss, reason = "a run lasts hours, not centuries")]
pub fn seconds(micros: u64) -> f64 {
    micros as f64 / 1_000_000.0
}

/// The text of an event.
pub fn event(event: &Event, ended: Option<&Job>) -> String {
    match event {
        Event::InventoryChanged(inventory) => {
            let names: Vec<_> = inventory.modules.iter().map(|module| module.name.as_str()).collect();
            let how = if inventory.complete { "whole" } else { "not whole" };
            format!("directories read ({how}): {}", names.join(", "))
        }
        Event::ModuleRead(Edition(number), _, module) => format!("module {} read again ({number})", module.name),
        Event::CopiesRead => "the kept copies of modules were read".to_owned(),
        Event::HistoryWentBack => "the history of the API server went back".to_owned(),
        Event::ConfigChanged(read) => format!("ConfigMap read: {}", config(read)),
        Event::JobFinished(finished) => {
            let (id, job) = (finished.id(), ended.map(job_name).unwrap_or_default());
            match finished.failure() {
                None => format!("job {id} {job} done: {}", outcome(finished)),
                Some(failure) => format!("job {id} {job} failed ({}): {failure}", failure.class),
            }
        }
        Event::ObjectChanged(change) => {
            format!(
                "monitor {} tells change {}: {:?} {}",
                change.monitor.0, change.seq, change.event, change.name
            )
        }
        Event::ReviewRequested(id, asked) => format!("review {} of {}", id.0, asked.path),
        Event::WebhooksTouched => "webhooks touched".to_owned(),
        Event::LossConfirmed => "a person confirms that the configuration is lost".to_owned(),
        Event::HealthSeen(sight) => format!(
            "health of {} in revision {}: {:?}",
            sight.release, sight.revision, sight.seen
        ),
        Event::ReleaseSeen(sight) => format!("release {} seen: {:?}", sight.release, sight.drift),
        Event::PurgeConfirmed(names) => format!("removals are confirmed: {names:?}"),
        Event::TrialSeen(stage) => format!("the trial of a version: {stage:?}"),
        Event::LedByAnother => "another one leads".to_owned(),
        Event::Elected => "leads".to_owned(),
        Event::Deposed => "leads no more".to_owned(),
        Event::TimerFired => "timer".to_owned(),
        Event::ShutdownRequested => "asked to stop".to_owned(),
    }
}

fn config(read: &ConfigRead) -> String {
    match read {
        ConfigRead::Missing => "there is none".to_owned(),
        ConfigRead::Present {
            version,
            data,
            provenance,
        } => {
            let made = if provenance.is_as_made(data) { ", as made" } else { "" };
            format!("version {version}, {data:?}{made}")
        }
    }
}

/// The text of a successful job's outcome.
fn outcome(finished: &Finished) -> String {
    match finished {
        Finished::StateLoaded(_, Ok(state)) => format!("{:?}", state.last_good),
        Finished::DirectoriesRead(_, Ok(outline)) => format!("{outline:?}"),
        Finished::StateSaved(..)
        | Finished::ValuesFilesSaved(..)
        | Finished::GivenSaved(..)
        | Finished::Vetted(..)
        | Finished::MonitorsStarted(..)
        | Finished::WebhooksPublished(..)
        | Finished::ReleasesWatched(..)
        | Finished::ReleaseDeleted(..) => String::new(),
        Finished::EditJudged(_, Ok(response)) => response.dump(),
        Finished::ReleasesListed(_, Ok(list)) => {
            let name = |release: &addon_core::operator::event::ReleaseSummary| {
                if release.ours {
                    release.name.clone()
                } else {
                    format!("{} (foreign)", release.name)
                }
            };
            list.iter().map(name).collect::<Vec<_>>().join(", ")
        }
        Finished::SectionsSettled(_, Ok(settled)) => format!("{settled:?}"),
        Finished::CrdsEnsured(_, Ok(failed)) => format!("but for {:?}", failed.keys()),
        Finished::ConversionsEnsured(_, Ok(outcomes)) => format!("{outcomes:?}"),
        Finished::HooksConfigured(_, Ok(hooks)) => format!("{} hooks", hooks.len()),
        Finished::HookRan(_, Ok(HookRan { output, read, .. })) => {
            let patch = |patch| document(patch).to_string();
            format!(
                "values {}, config {}, read {read:?}",
                patch(&output.values),
                patch(&output.config)
            )
        }
        Finished::ScriptAnswered(_, Ok(answer)) => answer.enabled.to_string(),
        Finished::ReleaseSynced(_, Ok(synced)) => format!("{:?}, revision {}", synced.action, synced.revision),
        Finished::ConfigSaved(_, Ok(Saved::Written { version, .. })) => format!("written at version {version}"),
        Finished::ConfigSaved(_, Ok(Saved::Conflict(read))) => format!("conflict: {}", config(read)),
        Finished::StateLoaded(_, Err(failure))
        | Finished::DirectoriesRead(_, Err(failure))
        | Finished::EditJudged(_, Err(failure))
        | Finished::ReleasesListed(_, Err(failure))
        | Finished::SectionsSettled(_, Err(failure))
        | Finished::CrdsEnsured(_, Err(failure))
        | Finished::ConversionsEnsured(_, Err(failure))
        | Finished::HooksConfigured(_, Err(failure))
        | Finished::HookRan(_, Err(failure))
        | Finished::ScriptAnswered(_, Err(failure))
        | Finished::ReleaseSynced(_, Err(failure))
        | Finished::ConfigSaved(_, Err(failure)) => failure.to_string(),
    }
}

/// The text of an effect, with a digest of the whole effect, because the text leaves details out.
pub fn effect(effect: &Effect) -> String {
    let digest = Digest::of_bytes(format!("{effect:?}").as_bytes()).to_string();
    format!("{} #{}", words(effect), &digest[..8])
}

fn words(effect: &Effect) -> String {
    match effect {
        Effect::StartJob(job) => format!("start job {}: {}", job.id(), job_text(job)),
        Effect::CancelJob(id) => format!("cancel job {id}"),
        Effect::Tell(notice) => format!("tell {notice:?}"),
        Effect::Reply(id, reply) => format!("reply to review {}: {reply:?}", id.0),
        Effect::TakeUpFiles(module, Edition(number)) => format!("take up the files of {module} ({number})"),
        Effect::JudgeFiles(module, Edition(number), verdict) => {
            format!("judge the files of {module} ({number}): {verdict:?}")
        }
        Effect::StopMonitors(ids) => format!("stop monitors {ids:?}"),
        Effect::GiveUp(failure) => format!("give up: {failure}"),
        Effect::Exit => "exit".to_owned(),
    }
}

fn job_text(job: &Job) -> String {
    let name = job_name(job);
    match job {
        Job::RunHook(
            HookRun {
                labels,
                contexts,
                values,
                ..
            },
            _,
        ) => {
            let queue = &labels.queue;
            format!(
                "{name} for {} in {queue}, {}, values {}",
                labels.cause,
                told(contexts),
                document(values)
            )
        }
        Job::SyncRelease { values, .. } => format!("{name} with {}", document(values)),
        Job::SaveConfig {
            key,
            text,
            base,
            create,
            on_trial,
            ..
        } => {
            format!(
                "{name} {key} = {text:?}, base {base:?}, on trial {on_trial:?}{}",
                if *create { ", to be created" } else { "" }
            )
        }
        Job::SaveState { last_good, .. } => format!("{name} {last_good:?}"),
        Job::SaveGiven(given, _) => format!("{name} {given:?}"),
        Job::SaveValuesFiles(files, _) => format!("{name} {files:?}"),
        Job::StartMonitors { monitors, .. } => {
            let monitors = monitors
                .iter()
                .map(|start| format!("{} {}", start.id.0, start.binding.name));
            format!("{name}: {}", monitors.collect::<Vec<_>>().join(", "))
        }
        Job::LoadState(_)
        | Job::ReadDirectories(_)
        | Job::ListReleases(_)
        | Job::WatchReleases { .. }
        | Job::ConfigureHooks(..)
        | Job::PublishWebhooks(..)
        | Job::Vet(..)
        | Job::JudgeEdit(..)
        | Job::EnsureCrds { .. }
        | Job::SettleSections(..)
        | Job::EnsureConversions(..)
        | Job::RunEnabledScript { .. }
        | Job::DeleteRelease { .. } => name,
    }
}

/// The text of contexts.
fn told(contexts: &[BindingContext]) -> String {
    let told = contexts.iter().map(|context| match context {
        BindingContext::Synchronization(told) => format!("all of {}", told.binding),
        BindingContext::Event { told, object, .. } => {
            let (monitor, seq) = monitors::told(object).unwrap_or((MonitorId(0), 0));
            format!("{} {}/{seq}", told.binding, monitor.0)
        }
        _ => context.binding().to_owned(),
    });
    told.collect::<Vec<_>>().join(" + ")
}

/// The texts of the modules' states and of the queues' tasks.
pub fn states(seen: &Seen) -> Vec<String> {
    let modules = seen.modules.values().map(|module| {
        let on = if module.enabled { "on" } else { "off" };
        let error = module
            .error
            .as_ref()
            .map(|error| format!(", failed: {error}"))
            .unwrap_or_default();
        format!("{} {on} ({}) {}{error}", module.name, module.enabled_by, module.state)
    });
    let queues = seen.queues.iter().filter(|queue| !queue.tasks.is_empty()).map(|queue| {
        let tasks: Vec<_> = queue.tasks.iter().map(|task| task.description.as_str()).collect();
        format!("queue {} [{}]: {}", queue.name, queue.status, tasks.join(" | "))
    });
    modules.chain(queues).collect()
}

/// The texts of the waits.
pub fn waits(seen: &Seen, clock: u64, running: &BTreeMap<JobId, Running>) -> Vec<String> {
    let timer = seen
        .timeout
        .iter()
        .map(|(at, why)| format!("{:.3}s for {why:?}", seconds(at.saturating_sub(clock))));
    let status = seen.status.waiting.iter().cloned();
    let modules = seen.modules.values().filter(|module| !module.waits_for.is_empty());
    let modules = modules.map(|module| format!("{} waits for {}", module.name, module.waits_for));
    let jobs = running
        .iter()
        .map(|(id, running)| format!("job {id} {}", job_name(&running.job)));
    timer.chain(status).chain(modules).chain(jobs).collect()
}
