//! The table of the operator's metrics: name, unit, help, labels. The reference page is generated from it.
//!
//! Names and labels of the original are a contract with dashboards and alerts, and never change.

pub mod alone;
pub mod channel;
pub mod cluster;
pub mod health;
pub mod trials;

use super::meter::{Counter, Gauge, Histogram, Meter, Row, Sampled, Unit};

/// The bounds for operations on a queue, in seconds. They are small, because these operations are short.
const QUEUE_BUCKETS: [f64; 13] = [
    0.0, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5,
];

const HOOK: [&str; 4] = ["hook", "binding", "queue", "activation"];
const MODULE_HOOK: [&str; 5] = ["module", "hook", "binding", "queue", "activation"];

pub static BINDING_COUNT: Meter<Gauge, 2> = Meter::new(
    "binding_count",
    Unit::Count,
    ["module", "hook"],
    "Bindings of a hook; the module is empty for global hooks.",
)
.of_modules();
pub static CONFIG_VALUES_ERRORS: Meter<Counter, 0> = Meter::new(
    "config_values_errors_total",
    Unit::Count,
    [],
    "Grows by one at once and then every 5 seconds while a key of the ConfigMap cannot be used.",
)
.of_modules();
pub static CONFIGURATION_LOST: Meter<Sampled, 1> = Meter::new(
    "configuration_lost",
    Unit::Count,
    ["release"],
    "1 for every release whose module is held because the configuration that it was made with is lost; others are not there.",
)
.of_modules();
pub static CONVERGENCE_SECONDS: Meter<Counter, 1> = Meter::new(
    "convergence_seconds",
    Unit::Seconds,
    ["activation"],
    "Time spent in converges that ended.",
)
.of_modules();
pub static CONVERGENCE_TOTAL: Meter<Counter, 1> = Meter::new(
    "convergence_total",
    Unit::Count,
    ["activation"],
    "Converges that ended.",
)
.of_modules();
pub static FAILURES: Meter<Counter, 2> = Meter::new(
    "failures_total",
    Unit::Count,
    ["step", "class"],
    "Failed attempts by what was attempted and by who has to act: invalid, hook_failed, refused, unavailable, timed_out, cancelled, defect, held or blocked.",
)
.of_modules();
pub static GLOBAL_HOOK_ALLOWED_ERRORS: Meter<Counter, 4> = Meter::new(
    "global_hook_allowed_errors_total",
    Unit::Count,
    HOOK,
    "Failed runs of global hooks that their binding allows to fail.",
)
.of_modules();
pub static GLOBAL_HOOK_ERRORS: Meter<Counter, 4> = Meter::new(
    "global_hook_errors_total",
    Unit::Count,
    HOOK,
    "Failed runs of global hooks; each is retried.",
)
.of_modules();
pub static GLOBAL_HOOK_RUN_MAX_RSS: Meter<Gauge, 4> = Meter::new(
    "global_hook_run_max_rss_bytes",
    Unit::Bytes,
    HOOK,
    "Peak resident memory of the last run of a global hook, or the operator's own peak if that is larger.",
)
.of_modules();
pub static GLOBAL_HOOK_RUN_SECONDS: Meter<Histogram, 4> = Meter::new(
    "global_hook_run_seconds",
    Unit::Seconds,
    HOOK,
    "Wall time of runs of global hooks.",
)
.of_modules();
pub static GLOBAL_HOOK_RUN_SYS_CPU: Meter<Histogram, 4> = Meter::new(
    "global_hook_run_sys_cpu_seconds",
    Unit::Seconds,
    HOOK,
    "CPU time of runs of global hooks in the kernel.",
)
.of_modules();
pub static GLOBAL_HOOK_RUN_USER_CPU: Meter<Histogram, 4> = Meter::new(
    "global_hook_run_user_cpu_seconds",
    Unit::Seconds,
    HOOK,
    "CPU time of runs of global hooks in user mode.",
)
.of_modules();
pub static GLOBAL_HOOK_SUCCESS: Meter<Counter, 4> = Meter::new(
    "global_hook_success_total",
    Unit::Count,
    HOOK,
    "Runs of global hooks that succeeded.",
)
.of_modules();
pub static HELM_OPERATION_SECONDS: Meter<Histogram, 3> = Meter::new(
    "helm_operation_seconds",
    Unit::Seconds,
    ["module", "activation", "operation"],
    "Time of release steps by the most that was needed: check-upgrade (nothing to do), template (rendered the same) or upgrade.",
)
.of_modules();
pub static LIVE_TICKS: Meter<Counter, 0> = Meter::new(
    "live_ticks",
    Unit::Count,
    [],
    "Grows by one at start and every 10 seconds while the main loop answers.",
);
pub static LOG_RECORDS_LOST: Meter<Counter, 0> = Meter::new(
    "log_records_lost_total",
    Unit::Count,
    [],
    "Records of the log that were dropped, the oldest first, because nobody read the log in time.",
);
pub static MM_MODULE_INFO: Meter<Sampled, 3> = Meter::new(
    "mm_module_info",
    Unit::Count,
    ["module", "enabled", "critical"],
    "1 for every module that was found, with whether it is enabled.",
)
.of_modules();
pub static MM_MODULE_MAINTENANCE: Meter<Sampled, 2> = Meter::new(
    "mm_module_maintenance",
    Unit::Count,
    ["module", "state"],
    "1 for every module in maintenance mode: its release is left alone.",
)
.of_modules();
pub static MODULE_DELETE_ERRORS: Meter<Counter, 1> = Meter::new(
    "module_delete_errors_total",
    Unit::Count,
    ["module"],
    "Failed attempts to remove a module.",
)
.of_modules();
pub static MODULE_FAILING: Meter<Sampled, 1> = Meter::new(
    "module_failing",
    Unit::Count,
    ["module"],
    "1 for every module that failed when it was last run or removed, whose enabled script fails, or that cannot be run as it is declared; others are not there.",
)
.of_modules();
pub static MODULE_HELM_SECONDS: Meter<Histogram, 2> = Meter::new(
    "module_helm_seconds",
    Unit::Seconds,
    ["module", "activation"],
    "Time from start to end of a module's release step, whether it succeeded or not.",
)
.of_modules();
pub static MODULE_HOOK_ALLOWED_ERRORS: Meter<Counter, 5> = Meter::new(
    "module_hook_allowed_errors_total",
    Unit::Count,
    MODULE_HOOK,
    "Failed runs of module hooks that their binding allows to fail.",
)
.of_modules();
pub static MODULE_HOOK_ERRORS: Meter<Counter, 5> = Meter::new(
    "module_hook_errors_total",
    Unit::Count,
    MODULE_HOOK,
    "Failed runs of module hooks; each is retried.",
)
.of_modules();
pub static MODULE_HOOK_RUN_MAX_RSS: Meter<Gauge, 5> = Meter::new(
    "module_hook_run_max_rss_bytes",
    Unit::Bytes,
    MODULE_HOOK,
    "Peak resident memory of the last run of a module hook or enabled script, or the operator's own peak if that is larger.",
)
.of_modules();
pub static MODULE_HOOK_RUN_SECONDS: Meter<Histogram, 5> = Meter::new(
    "module_hook_run_seconds",
    Unit::Seconds,
    MODULE_HOOK,
    "Wall time of runs of module hooks.",
)
.of_modules();
pub static MODULE_HOOK_RUN_SYS_CPU: Meter<Histogram, 5> = Meter::new(
    "module_hook_run_sys_cpu_seconds",
    Unit::Seconds,
    MODULE_HOOK,
    "CPU time of runs of module hooks and enabled scripts in the kernel.",
)
.of_modules();
pub static MODULE_HOOK_RUN_USER_CPU: Meter<Histogram, 5> = Meter::new(
    "module_hook_run_user_cpu_seconds",
    Unit::Seconds,
    MODULE_HOOK,
    "CPU time of runs of module hooks and enabled scripts in user mode.",
)
.of_modules();
pub static MODULE_HOOK_SUCCESS: Meter<Counter, 5> = Meter::new(
    "module_hook_success_total",
    Unit::Count,
    MODULE_HOOK,
    "Runs of module hooks that succeeded.",
)
.of_modules();
pub static MODULE_LATE: Meter<Sampled, 1> = Meter::new(
    "module_late",
    Unit::Count,
    ["module"],
    "1 for every module whose run does not get on, so that others go on without it; others are not there.",
)
.of_modules();
pub static MODULE_OUTDATED_OBJECTS: Meter<Sampled, 4> = Meter::new(
    "module_outdated_objects",
    Unit::Count,
    ["module", "api_version", "kind", "state"],
    "Objects of a release, without helm hooks, whose kind the API server calls deprecated or does not serve (gone); absent if there are none.",
)
.of_modules();
pub static MODULE_RUN_ERRORS: Meter<Counter, 1> = Meter::new(
    "module_run_errors_total",
    Unit::Count,
    ["module"],
    "Failed runs of a module; each is retried.",
)
.of_modules();
pub static MODULE_RUN_SECONDS: Meter<Histogram, 2> = Meter::new(
    "module_run_seconds",
    Unit::Seconds,
    ["module", "activation"],
    "Time from the start of a module's run until its hooks and its release are as its values want them, or until it failed.",
)
.of_modules();
pub static LOOPS_SLOWED: Meter<Counter, 2> = Meter::new(
    "loops_slowed_total",
    Unit::Count,
    ["module", "hook"],
    "Waits of hooks that cause their own next runs, and of modules that programs switch to and fro.",
);
pub static MODULES_ABSENT_RESOURCES: Meter<Counter, 2> = Meter::new(
    "modules_absent_resources_total",
    Unit::Count,
    ["module", "resource"],
    "Objects of releases, as namespace/Kind/name, whose absence made their module run.",
)
.of_modules();
pub static MODULES_ALTERED_RESOURCES: Meter<Counter, 2> = Meter::new(
    "modules_altered_resources_total",
    Unit::Count,
    ["module", "resource"],
    "Objects of releases, as namespace/Kind/name, whose alteration by somebody made their module run.",
)
.of_modules();
pub static MODULES_DISCOVER_ERRORS: Meter<Counter, 0> = Meter::new(
    "modules_discover_errors_total",
    Unit::Count,
    [],
    "Failed attempts to find out which modules are enabled.",
)
.of_modules();
pub static MODULES_HELM_RELEASE_REDEPLOYED: Meter<Counter, 1> = Meter::new(
    "modules_helm_release_redeployed_total",
    Unit::Count,
    ["module"],
    "Releases that were not deployed any more, by another hand than ours, which made their module run.",
)
.of_modules();
pub static REMOVAL_HELD: Meter<Sampled, 1> = Meter::new(
    "removal_held",
    Unit::Count,
    ["release"],
    "1 for every release that nobody names any more and that is not removed before a person confirms it; others are not there.",
)
.of_modules();
pub static TASK_WAIT_IN_QUEUE: Meter<Counter, 4> = Meter::new(
    "task_wait_in_queue_seconds_total",
    Unit::Seconds,
    ["module", "hook", "binding", "queue"],
    "Time that tasks waited in a queue before they began.",
)
.of_modules();
pub static TASKS_QUEUE_ACTION_SECONDS: Meter<Histogram, 2> = Meter::new(
    "tasks_queue_action_duration_seconds",
    Unit::Seconds,
    ["queue_name", "queue_action"],
    "Time that an operation on a queue took; QUEUE_ACTIONS_METRICS=no switches it off.",
)
.up_to(&QUEUE_BUCKETS);
pub static TASKS_QUEUE_COMPACTED: Meter<Counter, 2> = Meter::new(
    "tasks_queue_compaction_operations_total",
    Unit::Count,
    ["queue_name", "hook"],
    "How often the tasks of a hook were merged because its queue had grown long.",
)
.telemetry();
pub static TASKS_QUEUE_BY_HOOK: Meter<Sampled, 2> = Meter::new(
    "tasks_queue_compaction_tasks_by_hook",
    Unit::Count,
    ["queue_name", "hook"],
    "Tasks of a hook in a queue, for hooks with more than 20.",
)
.telemetry();
pub static TASKS_QUEUE_HEAD_INFO: Meter<Sampled, 4> = Meter::new(
    "tasks_queue_head_info",
    Unit::Count,
    ["queue", "module", "task_type", "hook"],
    "1 for the first task of every queue that has one.",
)
.of_modules();
pub static TASKS_QUEUE_LENGTH: Meter<Sampled, 1> = Meter::new(
    "tasks_queue_length",
    Unit::Count,
    ["queue"],
    "Tasks in a queue, the running one included.",
);

/// The metrics of this file, by name.
static OWN: [Row; 44] = [
    BINDING_COUNT.row(),
    CONFIG_VALUES_ERRORS.row(),
    CONFIGURATION_LOST.row(),
    CONVERGENCE_SECONDS.row(),
    CONVERGENCE_TOTAL.row(),
    FAILURES.row(),
    GLOBAL_HOOK_ALLOWED_ERRORS.row(),
    GLOBAL_HOOK_ERRORS.row(),
    GLOBAL_HOOK_RUN_MAX_RSS.row(),
    GLOBAL_HOOK_RUN_SECONDS.row(),
    GLOBAL_HOOK_RUN_SYS_CPU.row(),
    GLOBAL_HOOK_RUN_USER_CPU.row(),
    GLOBAL_HOOK_SUCCESS.row(),
    HELM_OPERATION_SECONDS.row(),
    LIVE_TICKS.row(),
    LOG_RECORDS_LOST.row(),
    LOOPS_SLOWED.row(),
    MM_MODULE_INFO.row(),
    MM_MODULE_MAINTENANCE.row(),
    MODULE_DELETE_ERRORS.row(),
    MODULE_FAILING.row(),
    MODULE_HELM_SECONDS.row(),
    MODULE_HOOK_ALLOWED_ERRORS.row(),
    MODULE_HOOK_ERRORS.row(),
    MODULE_HOOK_RUN_MAX_RSS.row(),
    MODULE_HOOK_RUN_SECONDS.row(),
    MODULE_HOOK_RUN_SYS_CPU.row(),
    MODULE_HOOK_RUN_USER_CPU.row(),
    MODULE_HOOK_SUCCESS.row(),
    MODULE_LATE.row(),
    MODULE_OUTDATED_OBJECTS.row(),
    MODULE_RUN_ERRORS.row(),
    MODULE_RUN_SECONDS.row(),
    MODULES_ABSENT_RESOURCES.row(),
    MODULES_ALTERED_RESOURCES.row(),
    MODULES_DISCOVER_ERRORS.row(),
    MODULES_HELM_RELEASE_REDEPLOYED.row(),
    REMOVAL_HELD.row(),
    TASK_WAIT_IN_QUEUE.row(),
    TASKS_QUEUE_ACTION_SECONDS.row(),
    TASKS_QUEUE_COMPACTED.row(),
    TASKS_QUEUE_BY_HOOK.row(),
    TASKS_QUEUE_HEAD_INFO.row(),
    TASKS_QUEUE_LENGTH.row(),
];

/// All metrics; those with the same name follow each other.
pub fn all() -> Vec<&'static Row> {
    let mut rows: Vec<&Row> = OWN
        .iter()
        .chain(&alone::OWN)
        .chain(&channel::OWN)
        .chain(&cluster::OWN)
        .chain(&health::OWN)
        .chain(&trials::OWN)
        .collect();
    rows.sort_by_key(|row| row.name);
    rows
}
