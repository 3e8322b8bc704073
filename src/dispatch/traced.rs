//! Spans for jobs. They never show more of a job than names.

use std::sync::Arc;

use addon_core::operator::effect::Job;
use addon_core::operator::event::Finished;
use names::{HookId, ModuleName, Owner};
use tokio_util::sync::CancellationToken;
use traces::{Attributes, Ending, Traces};

use super::Tools;

/// Does the job within a span.
pub async fn run(traces: Traces, job: Job, tools: Arc<Tools>, cancel: CancellationToken) -> Finished {
    let (name, attributes) = told(&job);
    let work = Box::pin(super::run(job, tools, cancel));
    traces.whole(name, || attributes, work, ending).await
}

fn ending(finished: &Finished) -> Ending {
    match finished.failure() {
        None => Ending::Well,
        Some(failure) => Ending::Badly(failure.class.label().to_owned()),
    }
}

fn told(job: &Job) -> (&'static str, Attributes) {
    match job {
        Job::LoadState(_) => ("load state", Vec::new()),
        Job::SaveState { .. } => ("save state", Vec::new()),
        Job::SaveValuesFiles(..) => ("save what values files say", Vec::new()),
        Job::SaveGiven(..) => ("save the values of global hooks", Vec::new()),
        Job::ReadDirectories(_) => ("read directories", Vec::new()),
        Job::ListReleases(_) => ("list releases", Vec::new()),
        Job::EnsureCrds { modules, .. } => ("ensure CRDs", of_modules(modules.iter())),
        Job::EnsureConversions(of, _) => (
            "ensure conversions",
            of_modules(of.iter().map(|conversions| &conversions.module)),
        ),
        Job::WatchReleases { .. } => ("watch releases", Vec::new()),
        Job::ConfigureHooks(owner, _) => ("configure hooks", of_owner(owner)),
        Job::PublishWebhooks(..) => ("publish webhooks", Vec::new()),
        Job::JudgeEdit(..) => ("judge edit", Vec::new()),
        Job::Vet(..) => ("vet values", Vec::new()),
        Job::StartMonitors { hook, .. } => ("start monitors", of_hook(hook)),
        Job::RunHook(run, _) => {
            let mut attributes = of_hook(&run.hook);
            attributes.push(("binding", run.labels.cause.to_string()));
            attributes.push(("binding.name", run.labels.binding_name.clone()));
            attributes.push(("queue", run.labels.queue.clone()));
            attributes.retain(|(_, value)| !value.is_empty());
            ("run hook", attributes)
        }
        Job::RunEnabledScript { module, .. } => ("run enabled script", of_modules([module].into_iter())),
        Job::SyncRelease { module, .. } => ("sync release", of_modules([module].into_iter())),
        Job::DeleteRelease { release, .. } => ("delete release", vec![("release", release.clone())]),
        Job::SettleSections(..) => ("settle sections", Vec::new()),
        Job::SaveConfig { key, .. } => ("save config", vec![("section", key.clone())]),
    }
}

fn of_modules<'a>(modules: impl Iterator<Item = &'a ModuleName>) -> Attributes {
    let names: Vec<String> = modules.map(ToString::to_string).collect();
    vec![("module", names.join(","))]
}

fn of_owner(owner: &Owner) -> Attributes {
    match owner {
        Owner::Global => Vec::new(),
        Owner::Module(module) => of_modules([module].into_iter()),
    }
}

fn of_hook(hook: &HookId) -> Attributes {
    let mut attributes = of_owner(&hook.owner);
    attributes.push(("hook", hook.name.to_string()));
    attributes
}
