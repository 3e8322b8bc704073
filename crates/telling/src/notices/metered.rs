//! The metrics that a notice changes.

use std::time::Duration;

use addon_core::failure::Failure;
use addon_core::hook::cause::Cause;
use addon_core::operator::effect::{HookLabels, Notice, Slowed};
use addon_core::operator::event::{Drift, SyncAction, Usage};
use names::{HookId, ModuleName, Owner};

use crate::meters;
use crate::meters::Meters;
use crate::meters::bindings::Enabled;
use crate::meters::queues::QueueAction;
use crate::meters::table;
use crate::meters::table::alone;

pub(super) fn count(notice: &Notice, meters: &Meters, decided_in: Duration) {
    match notice {
        Notice::HooksConfigured { owner: _, bindings } => {
            for (hook, number) in bindings {
                let module = hook.owner.module().map_or("", ModuleName::as_str);
                meters.set(
                    &table::BINDING_COUNT,
                    [module, hook.name.as_str()],
                    meters::count(*number),
                );
            }
        }
        Notice::HookSucceeded { hook, labels, usage } => {
            ended(meters, hook, labels, End::Success);
            ran(meters, hook, labels, usage.wall);
            used(meters, hook, labels, *usage);
        }
        Notice::HookFailed {
            hook,
            labels,
            failure,
            took,
            allowed,
            ..
        } => {
            ended(meters, hook, labels, if *allowed { End::Allowed } else { End::Error });
            ran(meters, hook, labels, *took);
            failed(meters, "hook", failure);
        }
        Notice::ScriptAnswered { module, usage } => script_used(meters, module, *usage),
        Notice::ScriptFailed { failure, .. } => {
            meters.add(&table::MODULES_DISCOVER_ERRORS, [], 1.0);
            failed(meters, "enabled script", failure);
        }
        Notice::ModuleReady {
            module,
            took,
            activation,
            ..
        } => {
            meters.observe(&table::MODULE_RUN_SECONDS, [module.as_str(), activation], *took);
        }
        Notice::ModuleFailed {
            module,
            step,
            failure,
            took,
            helm,
            activation,
            ..
        } => {
            meters.add(&table::MODULE_RUN_ERRORS, [module.as_str()], 1.0);
            meters.observe(&table::MODULE_RUN_SECONDS, [module.as_str(), activation], *took);
            if let Some(helm) = helm {
                meters.observe(&table::MODULE_HELM_SECONDS, [module.as_str(), activation], *helm);
            }
            failed(meters, step, failure);
        }
        Notice::HelmFinished {
            module,
            action,
            took,
            activation,
        } => {
            meters.observe(&table::MODULE_HELM_SECONDS, [module.as_str(), activation], *took);
            let labels = [module.as_str(), activation, operation(*action)];
            meters.observe(&table::HELM_OPERATION_SECONDS, labels, *took);
        }
        Notice::ModuleDeleteFailed { module, failure, .. } => {
            meters.add(&table::MODULE_DELETE_ERRORS, [module.as_str()], 1.0);
            failed(meters, "delete", failure);
        }
        Notice::ReleaseDrifted { module, drift, .. } => match drift {
            Drift::Absent(object) => {
                meters.add(&table::MODULES_ABSENT_RESOURCES, [module.as_str(), object], 1.0);
            }
            Drift::Altered { object, field: _ } => {
                meters.add(&table::MODULES_ALTERED_RESOURCES, [module.as_str(), object], 1.0);
            }
            Drift::Status(_) => meters.add(&table::MODULES_HELM_RELEASE_REDEPLOYED, [module.as_str()], 1.0),
        },
        Notice::PurgeFailed { failure, .. } => failed(meters, "purge", failure),
        Notice::ModuleBlocked { failure, .. } => failed(meters, "declaration", failure),
        Notice::StepFailed { failure, .. } => failed(meters, "own step", failure),
        Notice::ConvergeFinished { took, first, .. } => {
            let activation = if *first { "OperatorStartup" } else { "" };
            meters.add(&table::CONVERGENCE_SECONDS, [activation], took.as_secs_f64());
            meters.add(&table::CONVERGENCE_TOTAL, [activation], 1.0);
        }
        Notice::ConfigRejected { .. } => meters.add(&table::CONFIG_VALUES_ERRORS, [], 1.0),
        Notice::TaskWaited {
            queue,
            hook,
            module,
            binding,
            waited,
        } => {
            let module = module.as_ref().map_or("", ModuleName::as_str);
            let hook = hook.as_ref().map_or("", |hook| hook.name.as_str());
            let (queue, waited) = (queue.as_str(), waited.as_secs_f64());
            meters.add(&table::TASK_WAIT_IN_QUEUE, [module, hook, binding, queue], waited);
            meters.add(&alone::TASK_WAIT, [hook, binding, queue], waited);
            meters.queue_action(queue, QueueAction::GetFirst, decided_in);
        }
        Notice::MonitorsStarted { hook, took } => meters.bindings_enabled(hook, *took, Enabled::Succeeded),
        Notice::Slowed(slowed) => {
            let (module, hook) = match slowed {
                Slowed::Hook { hook, .. } => (hook.owner.module().map_or("", ModuleName::as_str), hook.name.as_str()),
                Slowed::Switch { module, .. } => (module.as_str(), ""),
            };
            meters.add(&table::LOOPS_SLOWED, [module, hook], 1.0);
        }
        Notice::MonitorsFailed { hook, .. } => meters.bindings_enabled(hook, Duration::ZERO, Enabled::Failed),
        Notice::TasksCompacted { queue, hook, .. } => meters.queue_compacted(queue.as_str(), hook.name.as_str()),
        Notice::ModuleDeleted { module } => meters.forget_hook_metrics(&module.clone().into()),
        Notice::SecretsChanged(_)
        | Notice::HookStarted { .. }
        | Notice::ReviewClash(_)
        | Notice::SchedulesEnabled { .. }
        | Notice::EventsUnlocked { .. }
        | Notice::StandIn(_)
        | Notice::ScriptLate { .. }
        | Notice::RunLate { .. }
        | Notice::ModuleLate { .. }
        | Notice::HealthTurned(_)
        | Notice::ModuleSwitched { .. }
        | Notice::ObjectsAdopted { .. }
        | Notice::RecordRewritten { .. }
        | Notice::ObjectsReplaced { .. }
        | Notice::ReleasePurged { .. }
        | Notice::PurgeHeld { .. }
        | Notice::PurgeConfirmed { .. }
        | Notice::ValuesFileLost { .. }
        | Notice::ModuleHeld { .. }
        | Notice::ConvergeStarted { .. }
        | Notice::ConfigApplied { .. }
        | Notice::SectionsNotKept { .. }
        | Notice::ConfigMissing
        | Notice::ConfigLost { .. }
        | Notice::ConfigLossAnswered
        | Notice::ConfigUnknown { .. }
        | Notice::ModuleWaitsForTrial { .. }
        | Notice::TrialPassed
        | Notice::SectionsPutBack { .. }
        | Notice::ModuleRenewed { .. }
        | Notice::FilesRefused { .. }
        | Notice::TasksDropped { .. }
        | Notice::ShuttingDown { .. } => {}
    }
}

fn failed(meters: &Meters, step: &str, failure: &Failure) {
    meters.add(&table::FAILURES, [step, failure.class.label()], 1.0);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Success,
    Allowed,
    Error,
}

/// Counts a run. All three counters get an update, so that each exists from the first run on.
fn ended(meters: &Meters, hook: &HookId, named: &HookLabels, end: End) {
    let by = |wanted| if end == wanted { 1.0 } else { 0.0 };
    let HookLabels {
        cause,
        queue,
        activation,
        binding_name: _,
    } = named;
    match &hook.owner {
        Owner::Global => {
            let labels = [hook.name.as_str(), cause.key(), queue, activation];
            meters.add(&table::GLOBAL_HOOK_SUCCESS, labels, by(End::Success));
            meters.add(&table::GLOBAL_HOOK_ALLOWED_ERRORS, labels, by(End::Allowed));
            meters.add(&table::GLOBAL_HOOK_ERRORS, labels, by(End::Error));
            let labels = alone_labels(hook, named);
            meters.add(&alone::HOOK_RUN_SUCCESS, labels, by(End::Success));
            meters.add(&alone::HOOK_RUN_ALLOWED_ERRORS, labels, by(End::Allowed));
            meters.add(&alone::HOOK_RUN_ERRORS, labels, by(End::Error));
        }
        Owner::Module(module) => {
            let labels = [module.as_str(), hook.name.as_str(), cause.key(), queue, activation];
            meters.add(&table::MODULE_HOOK_SUCCESS, labels, by(End::Success));
            meters.add(&table::MODULE_HOOK_ALLOWED_ERRORS, labels, by(End::Allowed));
            meters.add(&table::MODULE_HOOK_ERRORS, labels, by(End::Error));
        }
    }
}

/// Records the duration of a run, whatever its end.
fn ran(meters: &Meters, hook: &HookId, named: &HookLabels, took: Duration) {
    let HookLabels {
        cause,
        queue,
        activation,
        binding_name: _,
    } = named;
    match &hook.owner {
        Owner::Global => {
            let labels = [hook.name.as_str(), cause.key(), queue, activation];
            meters.observe(&table::GLOBAL_HOOK_RUN_SECONDS, labels, took);
            meters.observe(&alone::HOOK_RUN_SECONDS, alone_labels(hook, named), took);
        }
        Owner::Module(module) => {
            let labels = [module.as_str(), hook.name.as_str(), cause.key(), queue, activation];
            meters.observe(&table::MODULE_HOOK_RUN_SECONDS, labels, took);
        }
    }
}

fn used(meters: &Meters, hook: &HookId, named: &HookLabels, usage: Usage) {
    let HookLabels {
        cause,
        queue,
        activation,
        binding_name: _,
    } = named;
    match &hook.owner {
        Owner::Global => {
            let labels = [hook.name.as_str(), cause.key(), queue, activation];
            meters.observe(&table::GLOBAL_HOOK_RUN_USER_CPU, labels, usage.user);
            meters.observe(&table::GLOBAL_HOOK_RUN_SYS_CPU, labels, usage.system);
            meters.set(&table::GLOBAL_HOOK_RUN_MAX_RSS, labels, meters::bytes(usage.max_rss));
            let labels = alone_labels(hook, named);
            meters.observe(&alone::HOOK_RUN_USER_CPU, labels, usage.user);
            meters.observe(&alone::HOOK_RUN_SYS_CPU, labels, usage.system);
            meters.set(&alone::HOOK_RUN_MAX_RSS, labels, meters::bytes(usage.max_rss));
        }
        Owner::Module(module) => {
            let labels = [module.as_str(), hook.name.as_str(), cause.key(), queue, activation];
            meters.observe(&table::MODULE_HOOK_RUN_USER_CPU, labels, usage.user);
            meters.observe(&table::MODULE_HOOK_RUN_SYS_CPU, labels, usage.system);
            meters.set(&table::MODULE_HOOK_RUN_MAX_RSS, labels, meters::bytes(usage.max_rss));
        }
    }
}

/// The labels of a run without modules: the name of its binding and its queue. A run at the start has neither.
fn alone_labels<'a>(hook: &'a HookId, named: &'a HookLabels) -> [&'a str; 3] {
    match named.cause {
        Cause::Stage(_) => [hook.name.as_str(), "", ""],
        Cause::Schedule | Cause::Objects | Cause::Validating | Cause::Mutating | Cause::Conversion => {
            [hook.name.as_str(), &named.binding_name, &named.queue]
        }
    }
}

/// The original's name of the last step.
fn operation(action: SyncAction) -> &'static str {
    match action {
        SyncAction::Unchanged => "check-upgrade",
        SyncAction::Recorded => "template",
        SyncAction::Upgraded => "upgrade",
    }
}

/// Records the resource usage of an enabled script, as that of a hook called `enabled`.
fn script_used(meters: &Meters, module: &ModuleName, usage: Usage) {
    let labels = [module.as_str(), "enabled", "enabled", "", ""];
    meters.observe(&table::MODULE_HOOK_RUN_USER_CPU, labels, usage.user);
    meters.observe(&table::MODULE_HOOK_RUN_SYS_CPU, labels, usage.system);
    meters.set(&table::MODULE_HOOK_RUN_MAX_RSS, labels, meters::bytes(usage.max_rss));
}
