//! Steps in words, for people who look for a cause.

use std::collections::BTreeMap;

use addon_core::digest::Digest;
use addon_core::hook::context::BindingContext;
use addon_core::name::MonitorId;
use addon_core::operator::effect::{Effect, HookRun, Job, JobId};
use addon_core::operator::event::{ConfigRead, Done, Event, Saved};

use crate::life::{Running, Seen};
use crate::monitors;
use crate::world::{document, job_name};

/// Microseconds as seconds.
#[expect(clippy::cast_precision_loss, reason = "a run lasts hours, not centuries")]
pub fn seconds(micros: u64) -> f64 {
    micros as f64 / 1_000_000.0
}

/// An event in words.
pub fn event(event: &Event, ended: Option<&Job>) -> String {
    match event {
        Event::InventoryChanged(inventory) => {
            let names: Vec<_> = inventory.modules.iter().map(|module| module.name.as_str()).collect();
            let how = if inventory.complete { "whole" } else { "not whole" };
            format!("directories read ({how}): {}", names.join(", "))
        }
        Event::HistoryWentBack => "the history of the API server went back".to_owned(),
        Event::ConfigChanged(read) => format!("ConfigMap read: {}", config(read)),
        Event::JobFinished(id, result) => {
            let job = ended.map(job_name).unwrap_or_default();
            match result {
                Ok(done) => format!("job {id} {job} done: {}", outcome(done)),
                Err(failure) => format!("job {id} {job} failed ({}): {failure}", failure.class),
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

fn outcome(done: &Done) -> String {
    match done {
        Done::StateLoaded(state) => format!("{:?}", state.last_good),
        Done::DirectoriesRead(outline) => format!("{outline:?}"),
        Done::StateSaved(_)
        | Done::ValuesFilesSaved
        | Done::Vetted(_)
        | Done::MonitorsStarted
        | Done::WebhooksPublished
        | Done::ReleasesWatched
        | Done::ReleaseDeleted => String::new(),
        Done::EditJudged(response) => response.dump(),
        Done::ReleasesListed(list) => {
            let name = |release: &addon_core::operator::event::ReleaseSummary| {
                if release.ours {
                    release.name.clone()
                } else {
                    format!("{} (foreign)", release.name)
                }
            };
            list.iter().map(name).collect::<Vec<_>>().join(", ")
        }
        Done::SectionsSettled(settled) => format!("{settled:?}"),
        Done::CrdsEnsured(failed) => format!("but for {:?}", failed.keys()),
        Done::ConversionsEnsured(outcomes) => format!("{outcomes:?}"),
        Done::HooksConfigured(hooks) => format!("{} hooks", hooks.len()),
        Done::HookRan { output, read, .. } => {
            let patch = |patch| document(patch).to_string();
            format!(
                "values {}, config {}, read {read:?}",
                patch(&output.values),
                patch(&output.config)
            )
        }
        Done::ScriptAnswered(answer) => answer.enabled.to_string(),
        Done::ReleaseSynced(synced) => format!("{:?}, revision {}", synced.action, synced.revision),
        Done::ConfigSaved(Saved::Written { version, .. }) => format!("written at version {version}"),
        Done::ConfigSaved(Saved::Conflict(read)) => format!("conflict: {}", config(read)),
    }
}

/// An effect in words, and a digest of all of it: the words leave out what nobody reads.
pub fn effect(effect: &Effect) -> String {
    let digest = Digest::of_bytes(format!("{effect:?}").as_bytes()).to_string();
    format!("{} #{}", words(effect), &digest[..8])
}

fn words(effect: &Effect) -> String {
    match effect {
        Effect::StartJob(id, job) => format!("start job {id}: {}", job_text(job)),
        Effect::CancelJob(id) => format!("cancel job {id}"),
        Effect::Tell(notice) => format!("tell {notice:?}"),
        Effect::Reply(id, reply) => format!("reply to review {}: {reply:?}", id.0),
        Effect::StopMonitors(ids) => format!("stop monitors {ids:?}"),
        Effect::GiveUp(failure) => format!("give up: {failure}"),
        Effect::Exit => "exit".to_owned(),
    }
}

fn job_text(job: &Job) -> String {
    let name = job_name(job);
    match job {
        Job::RunHook(HookRun {
            labels,
            contexts,
            values,
            ..
        }) => {
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
        } => {
            format!(
                "{name} {key} = {text:?}, base {base:?}, on trial {on_trial:?}{}",
                if *create { ", to be created" } else { "" }
            )
        }
        Job::SaveState { last_good, .. } => format!("{name} {last_good:?}"),
        Job::SaveValuesFiles(files) => format!("{name} {files:?}"),
        Job::StartMonitors { monitors, .. } => {
            let monitors = monitors
                .iter()
                .map(|start| format!("{} {}", start.id.0, start.binding.name));
            format!("{name}: {}", monitors.collect::<Vec<_>>().join(", "))
        }
        Job::LoadState
        | Job::ReadDirectories
        | Job::ListReleases
        | Job::WatchReleases { .. }
        | Job::ConfigureHooks(_)
        | Job::PublishWebhooks(_)
        | Job::Vet(_)
        | Job::JudgeEdit(_)
        | Job::EnsureCrds { .. }
        | Job::SettleSections(_)
        | Job::EnsureConversions(_)
        | Job::RunEnabledScript { .. }
        | Job::DeleteRelease { .. } => name,
    }
}

/// Contexts in words.
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

/// States of modules and tasks in queues.
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

/// What is waited for.
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
