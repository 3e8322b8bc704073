//! Turns the operator's notices into log records, metrics and Kubernetes Events; no other code does this.
//!
//! Messages are constant sentences, some of which people use in alerts; facts are fields. Must never log values,
//! patches or other input and output of hooks.

pub mod announcements;
mod metered;
pub mod pacing;
mod records;

use std::sync::Arc;
use std::time::Duration;

use addon_core::operator::effect::Notice;
use addon_core::operator::policy::Mode;
use names::ModuleName;
use report::secrets::Secrets;
use tracing::{debug, error, info, warn};

use crate::meters::Meters;
use announcements::Announcer;
use records::{Run, seconds};

/// The receivers of notices.
#[derive(Debug)]
pub struct Notices {
    meters: Arc<Meters>,
    mode: Mode,
    /// The name of the ConfigMap, which the core does not know.
    config_map: String,
    announcer: Option<Announcer>,
    secrets: Secrets,
}

impl Notices {
    /// Receivers that update these meters. Notices about the `ConfigMap` use this name.
    pub fn new(meters: Arc<Meters>, mode: Mode, config_map: String) -> Self {
        Self {
            meters,
            mode,
            config_map,
            announcer: None,
            secrets: Secrets::default(),
        }
    }

    /// Adds Kubernetes Events.
    #[must_use]
    pub fn announced_by(self, announcer: Announcer) -> Self {
        Self {
            announcer: Some(announcer),
            ..self
        }
    }

    /// Masks these secrets.
    #[must_use]
    pub fn hiding(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    /// Logs the notice, counts it, and announces it if it is news. `decided_in` is the duration of the decision.
    pub fn tell(&mut self, notice: &Notice, decided_in: Duration) {
        if let Notice::SecretsChanged(known) = notice {
            self.secrets.learn(Arc::clone(known));
        }
        metered::count(notice, &self.meters, decided_in);
        log(notice, self.mode, &self.config_map);
        if let Some(announcer) = &mut self.announcer {
            announcer.hear(notice);
        }
    }
}

fn log(notice: &Notice, mode: Mode, config_map: &str) {
    match notice {
        // New secrets for masking need no record. The jobs have logged the rewritten records and the replaced objects.
        Notice::SecretsChanged(_) | Notice::RecordRewritten { .. } | Notice::ObjectsReplaced { .. } => {}
        Notice::HooksConfigured { owner, bindings } => records::hooks_configured(owner, bindings),
        Notice::HookStarted { hook, labels } => records::hook_started(&Run::of(mode, hook, labels)),
        Notice::HookSucceeded { hook, labels, usage } => {
            records::hook_succeeded(&Run::of(mode, hook, labels), *usage);
        }
        Notice::HookFailed {
            hook,
            labels,
            failure,
            took: _,
            allowed,
            attempts,
            retry_in,
        } => {
            let run = Run::of(mode, hook, labels);
            if *allowed {
                records::hook_allowed_to_fail(&run, failure);
            } else {
                records::hook_failed(&run, failure, *attempts, *retry_in);
            }
        }
        Notice::MonitorsStarted { hook, .. } => {
            info!(
                hook = hook.name.as_str(),
                "Kubernetes bindings for hook are enabled successfully"
            );
        }
        Notice::Slowed(slowed) => records::slowed(slowed),
        Notice::StandIn(stand_in) => records::stand_in(stand_in),
        Notice::MonitorsFailed { hook, failure, .. } => error!(
            hook = hook.name.as_str(),
            error = failure.report,
            class = failure.class.label(),
            "Kubernetes bindings for hook are not enabled"
        ),
        Notice::ReviewClash(failure) => error!(
            error = failure.report,
            "Two hooks want the same webhook, and only the first is asked"
        ),
        Notice::SchedulesEnabled { hook } => {
            info!(
                hook = hook.name.as_str(),
                "Schedule binding for hook enabled successfully"
            );
        }
        Notice::EventsUnlocked { hook, .. } => info!(hook = hook.name.as_str(), "Unlock kubernetes.Event tasks"),
        Notice::TasksCompacted { queue, hook, count } => {
            info!(
                queue = queue.as_str(),
                hook = hook.name.as_str(),
                count,
                "Binding contexts from are dropped from queue"
            );
        }
        Notice::ScriptAnswered { module, usage } => {
            debug!(
                module = module.as_str(),
                seconds = seconds(usage.wall),
                "Enabled script answered"
            );
        }
        Notice::ScriptFailed {
            module,
            failure,
            retry_in,
        } => records::script_failed(module, failure, *retry_in),
        Notice::ScriptLate { module, waited } => warn!(
            module = module.as_str(),
            seconds = seconds(*waited),
            "Enabled script has not answered yet. Its module stays as it is until it answers, other modules continue."
        ),
        Notice::RunLate { run, waited } => warn!(
            run,
            seconds = seconds(*waited),
            "A run takes long. Its slot is lent to other runs."
        ),
        Notice::ModuleLate { module, waits_for } => warn!(
            module = module.as_str(),
            waits_for,
            "Module run does not progress. Other modules continue without it, and the run counts when it ends."
        ),
        Notice::HealthTurned(news) => records::health_turned(news),
        Notice::ModuleSwitched {
            module,
            enabled,
            reason,
        } => {
            let message = if *enabled {
                "Module is enabled"
            } else {
                "Module is disabled"
            };
            info!(module = module.as_str(), reason, "{message}");
        }
        Notice::ModuleReady {
            module,
            action,
            took,
            activation,
        } => {
            records::module_ready(module, *action, *took, activation);
        }
        Notice::ModuleFailed {
            module,
            step,
            failure,
            attempts,
            retry_in,
            ..
        } => {
            records::module_failed(module, step, failure, *attempts, *retry_in);
        }
        Notice::HelmFinished {
            module,
            action,
            took,
            activation: _,
        } => records::helm_finished(module, *action, *took),
        Notice::ModuleDeleted { module } => info!(module = module.as_str(), "Module is removed"),
        Notice::ModuleDeleteFailed {
            module,
            failure,
            retry_in,
        } => {
            records::module_delete_failed(module, failure, *retry_in);
        }
        Notice::ReleaseDrifted { module, drift, times } => records::release_drifted(module, drift, *times),
        Notice::ObjectsAdopted { module, objects } => info!(
            module = module.as_str(),
            objects = objects.join(","),
            "Module takes over objects that it did not create, they stay when the module is removed"
        ),
        Notice::ReleasePurged { release } => info!(release, "Release without a module is removed"),
        Notice::PurgeFailed {
            release,
            failure,
            retry_in,
        } => records::purge_failed(release, failure, *retry_in),
        Notice::PurgeHeld { releases, reason } => records::purge_held(releases, *reason),
        Notice::PurgeConfirmed { releases } => {
            info!(releases = releases.join(","), "Held removals are confirmed");
        }
        Notice::ValuesFileLost { file, modules } => records::values_file_lost(file, modules),
        Notice::ModuleBlocked { module, failure } => records::module_blocked(module, failure),
        Notice::ModuleHeld { module, reason } => {
            warn!(module = module.as_str(), reason, "Module waits for another module");
        }
        Notice::ConvergeStarted { reason } => info!(trigger = reason, "Converge modules started"),
        Notice::ConvergeFinished {
            reason,
            took,
            first,
            failing,
        } => {
            records::converge_finished(reason, *took, failing);
            if *first {
                info!("first converge is finished. Operator is ready now.");
            }
        }
        Notice::ConfigRejected { key, message } => {
            error!(
                config_map,
                key,
                error = message,
                hint = "correct this key, the new value is applied at once",
                "ConfigMap key cannot be used, its last good value stays applied"
            );
        }
        Notice::ConfigApplied { keys } => info!(config_map, keys = keys.join(","), "ConfigMap is applied"),
        Notice::SectionsNotKept { keys } => warn!(
            config_map,
            keys = keys.join(","),
            hint = "shorten these sections: the last good ones are kept in a Secret, which holds 1 MiB",
            "Sections are too large to be stored, a restart cannot fall back to them when the ConfigMap is broken or gone"
        ),
        Notice::ConfigMissing => warn!(
            config_map,
            "ConfigMap is not found, the last good configuration stays applied"
        ),
        Notice::ConfigLost { releases } => error!(
            config_map,
            releases = releases.join(","),
            hint = "create the ConfigMap again, or `addon-operator config lost --confirm` if it is gone for good",
            "Configuration is lost, modules that were released with it are neither upgraded nor removed"
        ),
        Notice::ConfigLossAnswered => info!(config_map, "Modules whose configuration was lost are managed again"),
        Notice::ModuleWaitsForTrial { module, reason } => {
            warn!(module = module.as_str(), reason, "Module waits for the end of a trial");
        }
        Notice::TrialPassed => info!("This version has passed its trial, modules that waited for the trial continue"),
        Notice::SectionsPutBack { keys, edited } => records::sections_put_back(config_map, keys, edited),
        Notice::ConfigUnknown { keys } => {
            warn!(
                config_map,
                keys = keys.join(","),
                "ConfigMap has values for unknown modules"
            );
        }
        Notice::StepFailed {
            step,
            failure,
            again,
            retry_in,
        } => records::step_failed(step, failure, *again, *retry_in),
        Notice::ModuleRenewed { module } => {
            info!(
                module = module.as_str(),
                "Module begins a new life with the files that were read again"
            );
        }
        Notice::FilesRefused { module, failure } => {
            let module = module.as_str();
            warn!(
                module,
                error = failure.report,
                "Files that were read again cannot be used, the module goes on with those before"
            );
        }
        Notice::TasksDropped { queue, count, reason } => {
            info!(queue = queue.as_str(), count, reason, "Tasks are dropped from queue");
        }
        Notice::TaskWaited {
            queue,
            hook,
            module,
            binding,
            waited,
        } => debug!(
            queue = queue.as_str(),
            hook = hook.as_ref().map(|hook| hook.name.as_str()),
            module = module.as_ref().map(ModuleName::as_str),
            binding,
            seconds = seconds(*waited),
            "Task waited in queue"
        ),
        Notice::ShuttingDown { running } => info!(running, "Shutdown begins, nothing new is started"),
    }
}

#[cfg(test)]
mod tests;
