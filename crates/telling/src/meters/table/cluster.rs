//! The metrics of the API server, the watches and the monitors. `binding` is the name of a binding.

use addon_core::metric::DEFAULT_BUCKETS;

use crate::meters::meter::{Counter, Gauge, Histogram, Meter, Row, Unit};

const BINDING: [&str; 5] = ["module", "hook", "binding", "queue", "kind"];

pub static MONITOR_MISSING: Meter<Counter, 1> = Meter::new(
    "binding_monitor_missing_total",
    Unit::Count,
    ["binding"],
    "Snapshots that were wanted from a binding without a watch.",
);
pub static EVENTS_DROPPED: Meter<Counter, 0> = Meter::new(
    "cluster_events_dropped_total",
    Unit::Count,
    [],
    "Changes of state that no Kubernetes Event tells of, because the API server did not take it or too many waited.",
)
.of_modules();
pub static WATCH_REPLACED: Meter<Counter, 2> = Meter::new(
    "factory_informer_dead_total",
    Unit::Count,
    ["gvr", "namespace"],
    "Watches that were replaced because they had gone silent.",
);
pub static KUBE_EVENT_SECONDS: Meter<Histogram, 5> = Meter::new(
    "kube_event_duration_seconds",
    Unit::Seconds,
    BINDING,
    "Time that it took to handle one event of a binding.",
)
.of_modules();
pub static KUBE_JQ_FILTER_SECONDS: Meter<Histogram, 5> = Meter::new(
    "kube_jq_filter_duration_seconds",
    Unit::Seconds,
    BINDING,
    "Time that the jq filter of a binding took for one object.",
)
.of_modules();
pub static KUBE_SNAPSHOT_OBJECTS: Meter<Gauge, 5> = Meter::new(
    "kube_snapshot_objects",
    Unit::Count,
    BINDING,
    "Objects in the snapshot of a binding.",
)
.of_modules();
pub static KUBE_WATCH_STALE: Meter<Gauge, 2> = Meter::new(
    "kube_watch_stale_seconds",
    Unit::Seconds,
    ["kind", "namespace"],
    "Time since a watch last proved that it is alive, shown only while that is longer than it may be.",
);
pub static REQUEST_SECONDS: Meter<Histogram, 2> = Meter::new(
    "kubernetes_client_rate_limiter_latency_seconds",
    Unit::Seconds,
    ["verb", "url"],
    "Time until the API server began to answer, with what a limit of ours held the request back. In url {namespace} and {name} stand for those of objects.",
)
.up_to(&DEFAULT_BUCKETS);
pub static REQUEST_RESULT: Meter<Counter, 4> = Meter::new(
    "kubernetes_client_request_result_total",
    Unit::Count,
    ["component", "code", "method", "host"],
    "Requests to the API server by status code, <error> where there was no answer.",
);
pub static WATCH_ERRORS: Meter<Counter, 1> = Meter::new(
    "kubernetes_client_watch_errors_total",
    Unit::Count,
    ["error_type"],
    "Watches that ended with an error: expired, eof, unexpected-eof, fail or nil.",
);

pub static LEADER: Meter<Gauge, 0> = Meter::new(
    "leader",
    Unit::Count,
    [],
    "1 while this process leads, 0 while it is a standby; absent where nobody is elected.",
);

pub static REVIEWS_REFUSED: Meter<Counter, 2> = Meter::new(
    "reviews_refused_total",
    Unit::Count,
    ["reviews", "reason"],
    "Requests for reviews that no hook was asked about: unknown_path, slow, broken, too_large, too_many_parts or no_room.",
);

/// The metrics of this file, by name.
pub(super) static OWN: [Row; 12] = [
    MONITOR_MISSING.row(),
    EVENTS_DROPPED.row(),
    WATCH_REPLACED.row(),
    KUBE_EVENT_SECONDS.row(),
    KUBE_JQ_FILTER_SECONDS.row(),
    KUBE_SNAPSHOT_OBJECTS.row(),
    KUBE_WATCH_STALE.row(),
    REQUEST_SECONDS.row(),
    REQUEST_RESULT.row(),
    WATCH_ERRORS.row(),
    LEADER.row(),
    REVIEWS_REFUSED.row(),
];
