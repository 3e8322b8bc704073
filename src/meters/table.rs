//! The table of our metrics: name, unit, help, labels. The reference page is made from it.
//!
//! Names and labels that the original had are a contract with dashboards and alerts and never change.

use std::marker::PhantomData;

/// What the numbers count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Things or occurrences.
    Count,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
}

/// How a meter is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts durations by size.
    Histogram,
    /// A gauge that is taken anew at each scrape.
    Sampled,
}

/// Ties a marker type to the way its meters are kept.
pub trait Kept {
    /// The way.
    const KIND: Kind;
}

/// Marks meters that only grow.
#[derive(Debug)]
pub enum Counter {}
/// Marks meters that go up and down.
#[derive(Debug)]
pub enum Gauge {}
/// Marks meters that count durations by size.
#[derive(Debug)]
pub enum Histogram {}
/// Marks gauges that are taken anew at each scrape.
#[derive(Debug)]
pub enum Sampled {}

impl Kept for Counter {
    const KIND: Kind = Kind::Counter;
}

impl Kept for Gauge {
    const KIND: Kind = Kind::Gauge;
}

impl Kept for Histogram {
    const KIND: Kind = Kind::Histogram;
}

impl Kept for Sampled {
    const KIND: Kind = Kind::Sampled;
}

/// One metric with `N` labels.
#[derive(Debug)]
pub struct Meter<K, const N: usize> {
    /// The name without prefix.
    pub name: &'static str,
    /// What is counted.
    pub unit: Unit,
    /// One sentence for people.
    pub help: &'static str,
    /// The names of its labels.
    pub labels: [&'static str; N],
    kind: PhantomData<K>,
}

/// A meter without its types, for lists.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The name without prefix.
    pub name: &'static str,
    /// How it is kept.
    pub kind: Kind,
    /// What is counted.
    pub unit: Unit,
    /// One sentence for people.
    pub help: &'static str,
    /// The names of its labels.
    pub labels: &'static [&'static str],
}

impl<K: Kept, const N: usize> Meter<K, N> {
    const fn new(name: &'static str, unit: Unit, labels: [&'static str; N], help: &'static str) -> Self {
        Self {
            name,
            unit,
            help,
            labels,
            kind: PhantomData,
        }
    }

    const fn row(&'static self) -> Row {
        Row {
            name: self.name,
            kind: K::KIND,
            unit: self.unit,
            help: self.help,
            labels: &self.labels,
        }
    }
}

const HOOK: [&str; 4] = ["hook", "binding", "queue", "activation"];
const MODULE_HOOK: [&str; 5] = ["module", "hook", "binding", "queue", "activation"];

pub static BINDING_COUNT: Meter<Gauge, 2> = Meter::new(
    "binding_count",
    Unit::Count,
    ["module", "hook"],
    "Bindings of a hook; the module is empty for global hooks.",
);
pub static CONFIG_VALUES_ERRORS: Meter<Counter, 0> = Meter::new(
    "config_values_errors_total",
    Unit::Count,
    [],
    "Grows by one at once and then every 5 seconds while a key of the ConfigMap cannot be used.",
);
pub static CONVERGENCE_SECONDS: Meter<Counter, 1> = Meter::new(
    "convergence_seconds",
    Unit::Seconds,
    ["activation"],
    "Time spent in converges that ended.",
);
pub static CONVERGENCE_TOTAL: Meter<Counter, 1> = Meter::new(
    "convergence_total",
    Unit::Count,
    ["activation"],
    "Converges that ended.",
);
pub static FAILURES: Meter<Counter, 2> = Meter::new(
    "failures_total",
    Unit::Count,
    ["step", "class"],
    "Failed attempts by what was attempted and by who has to act: invalid, hook_failed, refused, unavailable, timed_out, cancelled or defect.",
);
pub static GLOBAL_HOOK_ALLOWED_ERRORS: Meter<Counter, 4> = Meter::new(
    "global_hook_allowed_errors_total",
    Unit::Count,
    HOOK,
    "Failed runs of global hooks that their binding allows to fail.",
);
pub static GLOBAL_HOOK_ERRORS: Meter<Counter, 4> = Meter::new(
    "global_hook_errors_total",
    Unit::Count,
    HOOK,
    "Failed runs of global hooks; each is retried.",
);
pub static GLOBAL_HOOK_RUN_MAX_RSS: Meter<Gauge, 4> = Meter::new(
    "global_hook_run_max_rss_bytes",
    Unit::Bytes,
    HOOK,
    "Peak resident memory of the last run of a global hook.",
);
pub static GLOBAL_HOOK_RUN_SECONDS: Meter<Histogram, 4> = Meter::new(
    "global_hook_run_seconds",
    Unit::Seconds,
    HOOK,
    "Wall time of runs of global hooks.",
);
pub static GLOBAL_HOOK_RUN_SYS_CPU: Meter<Histogram, 4> = Meter::new(
    "global_hook_run_sys_cpu_seconds",
    Unit::Seconds,
    HOOK,
    "CPU time of runs of global hooks in the kernel.",
);
pub static GLOBAL_HOOK_RUN_USER_CPU: Meter<Histogram, 4> = Meter::new(
    "global_hook_run_user_cpu_seconds",
    Unit::Seconds,
    HOOK,
    "CPU time of runs of global hooks in user mode.",
);
pub static GLOBAL_HOOK_SUCCESS: Meter<Counter, 4> = Meter::new(
    "global_hook_success_total",
    Unit::Count,
    HOOK,
    "Runs of global hooks that succeeded.",
);
pub static HELM_OPERATION_SECONDS: Meter<Histogram, 3> = Meter::new(
    "helm_operation_seconds",
    Unit::Seconds,
    ["module", "activation", "operation"],
    "Time of release steps by the most that was needed: check-upgrade (nothing to do), template (rendered the same) or upgrade.",
);
pub static LIVE_TICKS: Meter<Counter, 0> = Meter::new(
    "live_ticks",
    Unit::Count,
    [],
    "Grows by one at start and every 10 seconds while the main loop answers.",
);
pub static MM_MODULE_INFO: Meter<Sampled, 3> = Meter::new(
    "mm_module_info",
    Unit::Count,
    ["module", "enabled", "critical"],
    "1 for every module that was found, with whether it is enabled.",
);
pub static MODULE_DELETE_ERRORS: Meter<Counter, 1> = Meter::new(
    "module_delete_errors_total",
    Unit::Count,
    ["module"],
    "Failed attempts to remove a module.",
);
pub static MODULE_HELM_SECONDS: Meter<Histogram, 2> = Meter::new(
    "module_helm_seconds",
    Unit::Seconds,
    ["module", "activation"],
    "Time from start to end of a module's release step.",
);
pub static MODULE_HOOK_ALLOWED_ERRORS: Meter<Counter, 5> = Meter::new(
    "module_hook_allowed_errors_total",
    Unit::Count,
    MODULE_HOOK,
    "Failed runs of module hooks that their binding allows to fail.",
);
pub static MODULE_HOOK_ERRORS: Meter<Counter, 5> = Meter::new(
    "module_hook_errors_total",
    Unit::Count,
    MODULE_HOOK,
    "Failed runs of module hooks; each is retried.",
);
pub static MODULE_HOOK_RUN_MAX_RSS: Meter<Gauge, 5> = Meter::new(
    "module_hook_run_max_rss_bytes",
    Unit::Bytes,
    MODULE_HOOK,
    "Peak resident memory of the last run of a module hook or enabled script.",
);
pub static MODULE_HOOK_RUN_SECONDS: Meter<Histogram, 5> = Meter::new(
    "module_hook_run_seconds",
    Unit::Seconds,
    MODULE_HOOK,
    "Wall time of runs of module hooks.",
);
pub static MODULE_HOOK_RUN_SYS_CPU: Meter<Histogram, 5> = Meter::new(
    "module_hook_run_sys_cpu_seconds",
    Unit::Seconds,
    MODULE_HOOK,
    "CPU time of runs of module hooks and enabled scripts in the kernel.",
);
pub static MODULE_HOOK_RUN_USER_CPU: Meter<Histogram, 5> = Meter::new(
    "module_hook_run_user_cpu_seconds",
    Unit::Seconds,
    MODULE_HOOK,
    "CPU time of runs of module hooks and enabled scripts in user mode.",
);
pub static MODULE_HOOK_SUCCESS: Meter<Counter, 5> = Meter::new(
    "module_hook_success_total",
    Unit::Count,
    MODULE_HOOK,
    "Runs of module hooks that succeeded.",
);
pub static MODULE_RUN_ERRORS: Meter<Counter, 1> = Meter::new(
    "module_run_errors_total",
    Unit::Count,
    ["module"],
    "Failed runs of a module; each is retried.",
);
pub static MODULE_RUN_SECONDS: Meter<Histogram, 2> = Meter::new(
    "module_run_seconds",
    Unit::Seconds,
    ["module", "activation"],
    "Time from the start of a module's run until its hooks and its release are as its values want them.",
);
pub static MODULES_DISCOVER_ERRORS: Meter<Counter, 0> = Meter::new(
    "modules_discover_errors_total",
    Unit::Count,
    [],
    "Failed attempts to find out which modules are enabled.",
);
pub static TASK_WAIT_IN_QUEUE: Meter<Counter, 4> = Meter::new(
    "task_wait_in_queue_seconds_total",
    Unit::Seconds,
    ["module", "hook", "binding", "queue"],
    "Time that tasks waited in a queue before they began.",
);
pub static TASKS_QUEUE_HEAD_INFO: Meter<Sampled, 4> = Meter::new(
    "tasks_queue_head_info",
    Unit::Count,
    ["queue", "module", "task_type", "hook"],
    "1 for the first task of every queue that has one.",
);
pub static TASKS_QUEUE_LENGTH: Meter<Sampled, 1> = Meter::new(
    "tasks_queue_length",
    Unit::Count,
    ["queue"],
    "Tasks in a queue, the running one included.",
);

/// All of them, by name.
pub static ALL: [Row; 30] = [
    BINDING_COUNT.row(),
    CONFIG_VALUES_ERRORS.row(),
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
    MM_MODULE_INFO.row(),
    MODULE_DELETE_ERRORS.row(),
    MODULE_HELM_SECONDS.row(),
    MODULE_HOOK_ALLOWED_ERRORS.row(),
    MODULE_HOOK_ERRORS.row(),
    MODULE_HOOK_RUN_MAX_RSS.row(),
    MODULE_HOOK_RUN_SECONDS.row(),
    MODULE_HOOK_RUN_SYS_CPU.row(),
    MODULE_HOOK_RUN_USER_CPU.row(),
    MODULE_HOOK_SUCCESS.row(),
    MODULE_RUN_ERRORS.row(),
    MODULE_RUN_SECONDS.row(),
    MODULES_DISCOVER_ERRORS.row(),
    TASK_WAIT_IN_QUEUE.row(),
    TASKS_QUEUE_HEAD_INFO.row(),
    TASKS_QUEUE_LENGTH.row(),
];
