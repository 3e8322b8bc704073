//! The metrics that exist only for hooks without modules, or have other labels there. `binding` is the name of a
//! binding.

use crate::meters::meter::{Counter, Gauge, Histogram, Meter, Row, Unit};

const RUN: [&str; 3] = ["hook", "binding", "queue"];

pub static HOOK_ENABLE_ERRORS: Meter<Counter, 1> = Meter::new(
    "hook_enable_kubernetes_bindings_errors_total",
    Unit::Count,
    ["hook"],
    "Failed attempts to start the watches of a hook; each is retried.",
)
.of_hooks_alone();
pub static HOOK_ENABLE_SECONDS: Meter<Gauge, 1> = Meter::new(
    "hook_enable_kubernetes_bindings_seconds",
    Unit::Seconds,
    ["hook"],
    "Time that it took to start the watches of a hook.",
)
.of_hooks_alone();
pub static HOOK_ENABLE_SUCCESS: Meter<Gauge, 1> = Meter::new(
    "hook_enable_kubernetes_bindings_success",
    Unit::Count,
    ["hook"],
    "How often the watches of a hook were started.",
)
.of_hooks_alone();
pub static HOOK_RUN_ALLOWED_ERRORS: Meter<Counter, 3> = Meter::new(
    "hook_run_allowed_errors_total",
    Unit::Count,
    RUN,
    "Failed runs that their binding allows to fail.",
)
.of_hooks_alone();
pub static HOOK_RUN_ERRORS: Meter<Counter, 3> = Meter::new(
    "hook_run_errors_total",
    Unit::Count,
    RUN,
    "Failed runs; each is retried.",
)
.of_hooks_alone();
pub static HOOK_RUN_MAX_RSS: Meter<Gauge, 3> = Meter::new(
    "hook_run_max_rss_bytes",
    Unit::Bytes,
    RUN,
    "Peak resident memory of a hook's last run, or the operator's own peak if that is larger.",
)
.of_hooks_alone();
pub static HOOK_RUN_SECONDS: Meter<Histogram, 3> =
    Meter::new("hook_run_seconds", Unit::Seconds, RUN, "Wall time of a hook's runs.").of_hooks_alone();
pub static HOOK_RUN_SUCCESS: Meter<Counter, 3> =
    Meter::new("hook_run_success_total", Unit::Count, RUN, "Runs that succeeded.").of_hooks_alone();
pub static HOOK_RUN_SYS_CPU: Meter<Histogram, 3> = Meter::new(
    "hook_run_sys_cpu_seconds",
    Unit::Seconds,
    RUN,
    "CPU time of a hook's runs in the kernel.",
)
.of_hooks_alone();
pub static HOOK_RUN_USER_CPU: Meter<Histogram, 3> = Meter::new(
    "hook_run_user_cpu_seconds",
    Unit::Seconds,
    RUN,
    "CPU time of a hook's runs in user mode.",
)
.of_hooks_alone();
pub static KUBE_EVENT_SECONDS: Meter<Histogram, 3> = Meter::new(
    "kube_event_duration_seconds",
    Unit::Seconds,
    RUN,
    "Time that it took to handle one event of a binding.",
)
.of_hooks_alone();
pub static KUBE_JQ_FILTER_SECONDS: Meter<Histogram, 3> = Meter::new(
    "kube_jq_filter_duration_seconds",
    Unit::Seconds,
    RUN,
    "Time that the jq filter of a binding took for one object.",
)
.of_hooks_alone();
pub static KUBE_SNAPSHOT_OBJECTS: Meter<Gauge, 3> = Meter::new(
    "kube_snapshot_objects",
    Unit::Count,
    RUN,
    "Objects in the snapshot of a binding.",
)
.of_hooks_alone();
pub static TASK_WAIT: Meter<Counter, 3> = Meter::new(
    "task_wait_in_queue_seconds_total",
    Unit::Seconds,
    RUN,
    "Time that tasks waited in a queue before they began.",
)
.of_hooks_alone();

/// The metrics of this file, by name.
pub(super) static OWN: [Row; 14] = [
    HOOK_ENABLE_ERRORS.row(),
    HOOK_ENABLE_SECONDS.row(),
    HOOK_ENABLE_SUCCESS.row(),
    HOOK_RUN_ALLOWED_ERRORS.row(),
    HOOK_RUN_ERRORS.row(),
    HOOK_RUN_MAX_RSS.row(),
    HOOK_RUN_SECONDS.row(),
    HOOK_RUN_SUCCESS.row(),
    HOOK_RUN_SYS_CPU.row(),
    HOOK_RUN_USER_CPU.row(),
    KUBE_EVENT_SECONDS.row(),
    KUBE_JQ_FILTER_SECONDS.row(),
    KUBE_SNAPSHOT_OBJECTS.row(),
    TASK_WAIT.row(),
];
