//! The log records with more than a few fields.

use std::time::Duration;

use addon_core::failure::{Class, Failure};
use addon_core::operator::effect::{HealthNews, HeldFor, HookLabels, Slowed, StandIn};
use addon_core::operator::event::{Drift, SyncAction, Usage};
use addon_core::operator::policy::Mode;
use addon_core::release::Status;
use names::{HookId, ModuleName, Owner};
use tracing::{debug, error, info, warn};

pub(super) fn health_turned(HealthNews { module, unhealthy }: &HealthNews) {
    if let Some(reason) = unhealthy {
        warn!(module = module.as_str(), reason, "Module is not healthy");
    } else {
        info!(module = module.as_str(), "Module is healthy again");
    }
}

pub(super) fn release_drifted(module: &ModuleName, drift: &Drift, times: u32) {
    let module = module.as_str();
    match drift {
        Drift::Absent(object) => warn!(
            module,
            resource = object,
            times,
            "An object of the release is absent, the module is run to restore it"
        ),
        Drift::Altered { object, field } => warn!(
            module,
            resource = object,
            field,
            times,
            "Another writer altered an object of the release, the module is run to restore it"
        ),
        Drift::Status(status) => warn!(
            module,
            status = status.map_or("absent", Status::word),
            times,
            "The release is in an unexpected status, the module is run to restore it"
        ),
    }
}

pub(super) fn stand_in(stand_in: &StandIn) {
    match stand_in {
        StandIn::Serves { hook, as_of, error } => warn!(
            hook = hook.name.as_str(),
            %as_of,
            error,
            "A global hook {}, modules run with the values of its last good run, and these remove none",
            error.as_ref().map_or("does not end", |_| "fails")
        ),
        StandIn::Moves { hook, .. } => info!(
            hook = hook.name.as_str(),
            "The run of the global hook goes on beside the modules"
        ),
        StandIn::Ends { hook } => info!(
            hook = hook.name.as_str(),
            "The global hook has succeeded, its values are those of now"
        ),
    }
}

pub(super) fn slowed(slowed: &Slowed) {
    match slowed {
        Slowed::Hook {
            hook,
            deed,
            times,
            next_in,
        } => warn!(
            hook = hook.name.as_str(),
            module = hook.owner.module().map(ModuleName::as_str),
            deed,
            times,
            next_in_seconds = next_in.as_secs(),
            "A hook causes its own next run again and again, the run waits"
        ),
        Slowed::Switch {
            module,
            enabled,
            by,
            times,
            next_in,
        } => warn!(
            module = module.as_str(),
            enabled,
            by,
            times,
            next_in_seconds = next_in.as_secs(),
            "A module is switched again and again, it keeps its state for a while"
        ),
    }
}

pub(super) fn values_file_lost(file: &str, modules: &[ModuleName]) {
    let modules: Vec<_> = modules.iter().map(ModuleName::as_str).collect();
    warn!(
        path = file,
        modules = modules.join(","),
        hint = "put the file back and start the operator again; if the file should hold no values, write {} into it",
        "Values file was there before and is missing or empty now, so modules that it switched on stay on"
    );
}

pub(super) fn hooks_configured(owner: &Owner, bindings: &[(HookId, usize)]) {
    info!(
        module = owner.module().map(ModuleName::as_str),
        hooks = bindings.len(),
        "Loaded config"
    );
    for (hook, bindings) in bindings {
        debug!(
            hook = hook.name.as_str(),
            module = module_of(hook),
            bindings,
            "Hook is configured"
        );
    }
}

/// The fields of a run in log records, under the names that each program uses.
pub(super) struct Run<'a> {
    hook: &'a str,
    module: Option<&'a str>,
    binding: Option<&'a str>,
    binding_name: Option<&'a str>,
    queue: Option<&'a str>,
    event: Option<&'a str>,
    task: Option<&'static str>,
}

impl<'a> Run<'a> {
    pub(super) fn of(mode: Mode, hook: &'a HookId, labels: &'a HookLabels) -> Self {
        let HookLabels {
            cause,
            binding_name,
            queue,
            activation,
        } = labels;
        let binding = cause.key();
        let run = Self {
            hook: hook.name.as_str(),
            module: hook.owner.module().map(ModuleName::as_str),
            binding: Some(binding),
            binding_name: filled(binding_name).filter(|name| *name != binding),
            queue: filled(queue),
            event: filled(activation),
            task: None,
        };
        match mode {
            Mode::Addons => run,
            Mode::Hooks => Self {
                binding: filled(binding_name),
                binding_name: None,
                event: Some(binding),
                task: Some("HookRun"),
                ..run
            },
        }
    }
}

/// One record about a run, with additional fields.
macro_rules! record {
    ($level:ident, $run:expr, { $($field:tt)* }, $message:literal) => {
        $level!(
            hook = $run.hook,
            module = $run.module,
            binding = $run.binding,
            binding.name = $run.binding_name,
            queue = $run.queue,
            event = $run.event,
            task = $run.task,
            $($field)*
            $message
        )
    };
}

pub(super) fn hook_started(run: &Run<'_>) {
    record!(info, run, {}, "Execute hook");
}

pub(super) fn hook_succeeded(run: &Run<'_>, usage: Usage) {
    record!(info, run, { seconds = seconds(usage.wall), }, "Hook executed successfully");
}

pub(super) fn hook_allowed_to_fail(run: &Run<'_>, failure: &Failure) {
    let (error, class) = (&failure.report, failure.class.label());
    record!(info, run, { error, class, }, "Hook failed, but allowed to fail");
}

pub(super) fn hook_failed(run: &Run<'_>, failure: &Failure, failures: u32, retry_in: Option<Duration>) {
    if failure.class == Class::Cancelled {
        record!(info, run, {}, "Hook is cancelled");
        return;
    }
    let (error, class, hint) = (&failure.report, failure.class.label(), hint(failure));
    let retry_in_seconds = retry_in.map(seconds);
    record!(
        error,
        run,
        { error, class, hint, failures, retry_in_seconds, },
        "Hook failed. Will retry after delay."
    );
}

pub(super) fn script_failed(module: &ModuleName, failure: &Failure, retry_in: Duration) {
    error!(
        module = module.as_str(),
        error = failure.report,
        class = failure.class.label(),
        hint = hint(failure),
        retry_in_seconds = seconds(retry_in),
        "Enabled script failed. The module stays as it is until the script answers."
    );
}

pub(super) fn module_ready(module: &ModuleName, action: Option<SyncAction>, took: Duration, activation: &str) {
    let release = action.map(word);
    info!(
        module = module.as_str(),
        release,
        event = filled(activation),
        seconds = seconds(took),
        "Module is ready"
    );
}

pub(super) fn module_failed(module: &ModuleName, step: &str, failure: &Failure, failures: u32, retry_in: Duration) {
    if failure.class == Class::Cancelled {
        info!(module = module.as_str(), step, "ModuleRun is cancelled");
        return;
    }
    if matches!(failure.class, Class::Held | Class::Blocked) {
        warn!(
            module = module.as_str(),
            reason = failure.report,
            hint = hint(failure),
            "Upgrade is held. It goes on when the reason is gone, or when a person allows it."
        );
        return;
    }
    error!(
        module = module.as_str(),
        step,
        error = failure.report,
        class = failure.class.label(),
        hint = hint(failure),
        failures,
        retry_in_seconds = seconds(retry_in),
        "ModuleRun failed. Requeue task to retry after delay."
    );
}

pub(super) fn module_delete_failed(module: &ModuleName, failure: &Failure, retry_in: Duration) {
    error!(
        module = module.as_str(),
        error = failure.report,
        class = failure.class.label(),
        hint = hint(failure),
        retry_in_seconds = seconds(retry_in),
        "ModuleDelete failed. Requeue task to retry after delay."
    );
}

pub(super) fn sections_put_back(config_map: &str, keys: &[String], edited: &[String]) {
    info!(
        config_map,
        keys = keys.join(","),
        edited = edited.join(","),
        "Sections that hooks saved on trial are put back, unless they were edited since"
    );
}

pub(super) fn purge_held(releases: &[String], reason: HeldFor) {
    let (releases, told) = (releases.join(","), reason.to_string());
    match reason {
        HeldFor::Directories | HeldFor::Changed => warn!(
            releases,
            reason = told,
            hint = "put the modules back and start the operator again, or confirm with `addon-operator module purge --confirm`",
            "Releases without a module are kept"
        ),
        HeldFor::Confirmation { .. } => warn!(
            releases,
            reason = told,
            hint = "put back the flag or file that named them, set the flag to false to remove them, or confirm with `addon-operator module purge --confirm`",
            "Releases whose modules are no longer named are kept"
        ),
    }
}

pub(super) fn purge_failed(release: &str, failure: &Failure, retry_in: Duration) {
    error!(
        release,
        error = failure.report,
        class = failure.class.label(),
        hint = hint(failure),
        retry_in_seconds = seconds(retry_in),
        "ModulePurge failed. Requeue task to retry after delay."
    );
}

pub(super) fn module_blocked(module: &ModuleName, failure: &Failure) {
    // Files that are not pulled from the registry yet arrive without the help of a person, so this is no error.
    if failure.class == Class::Unavailable {
        return info!(
            module = module.as_str(),
            reason = failure.report,
            "Module waits for its files"
        );
    }
    error!(
        module = module.as_str(),
        error = failure.report,
        class = failure.class.label(),
        hint = hint(failure),
        "Module cannot be run as it is declared"
    );
}

pub(super) fn step_failed(step: &str, failure: &Failure, again: bool, retry_in: Duration) {
    // An unavailable server usually comes back, so repetitions are logged at the debug level.
    if failure.class == Class::Unavailable {
        if again {
            debug!(step, error = failure.report, "Step waits on");
        } else {
            warn!(
                step,
                error = failure.report,
                class = failure.class.label(),
                hint = hint(failure),
                retry_in_seconds = seconds(retry_in),
                "Step waits, and is tried until it succeeds."
            );
        }
        return;
    }
    error!(
        step,
        error = failure.report,
        class = failure.class.label(),
        hint = hint(failure),
        retry_in_seconds = seconds(retry_in),
        "Step failed. Will retry after delay."
    );
}

pub(super) fn converge_finished(reason: &str, took: Duration, failing: &[ModuleName]) {
    if failing.is_empty() {
        info!(trigger = reason, seconds = seconds(took), "Converge modules finished");
        return;
    }
    let modules: Vec<&str> = failing.iter().map(ModuleName::as_str).collect();
    warn!(
        trigger = reason,
        seconds = seconds(took),
        modules = modules.join(","),
        "Converge modules finished, but some modules still fail"
    );
}

pub(super) fn helm_finished(module: &ModuleName, action: SyncAction, took: Duration) {
    debug!(
        module = module.as_str(),
        release = word(action),
        seconds = seconds(took),
        "Release step is finished"
    );
}

fn word(action: SyncAction) -> &'static str {
    match action {
        SyncAction::Unchanged => "unchanged",
        SyncAction::Recorded => "recorded",
        SyncAction::Upgraded => "upgraded",
    }
}

/// Seconds, rounded to the millisecond for people.
pub(super) fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1000.0).round() / 1000.0
}

fn module_of(hook: &HookId) -> Option<&str> {
    hook.owner.module().map(ModuleName::as_str)
}

/// The text; none if it is empty, so that the record has no empty field.
fn filled(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn hint(failure: &Failure) -> Option<String> {
    (!failure.hints.is_empty()).then(|| failure.hints.join("; "))
}
