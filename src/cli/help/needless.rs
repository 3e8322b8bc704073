//! The commands that cannot use a flag of their group. Must never name a command that uses the flag.

/// The commands that ask neither an operator nor a cluster.
pub(super) const ALONE: [&str; 9] = [
    "config check",
    "global test",
    "hook replay",
    "module lint",
    "module manifest",
    "module new",
    "module pull",
    "module push",
    "module test",
];

/// The commands whose answer has one form.
pub(super) const OF_ONE_FORM: [&str; 26] = [
    "channel approve",
    "channel pin",
    "channel resume",
    "channel rollback",
    "global test",
    "hook record",
    "hook replay",
    "module disable",
    "module enable",
    "module manifest",
    "module new",
    "module pull",
    "module push",
    "module release",
    "module release repair",
    "module reload",
    "module render",
    "module resume",
    "module source approve",
    "module source pin",
    "module source resume",
    "module source rollback",
    "module suspend",
    "module test",
    "module upgrade",
    "module wait",
];

/// The commands that ask the API server alone.
pub(super) const WITHOUT_SOCKET: [&str; 10] = [
    "channel pin",
    "channel resume",
    "channel rollback",
    "module release",
    "module release repair",
    "module resume",
    "module source resume",
    "module suspend",
    "module upgrade",
    "page",
];

/// The commands that ask no pod.
pub(super) const WITHOUT_POD: [&str; 11] = [
    "channel pin",
    "channel resume",
    "channel rollback",
    "module disable",
    "module enable",
    "module release",
    "module release repair",
    "module resume",
    "module source resume",
    "module suspend",
    "module upgrade",
];

/// The commands whose answer holds no values and no snapshots.
pub(super) const WITHOUT_SECRETS: [&str; 29] = [
    "channel approve",
    "channel pin",
    "channel resume",
    "channel rollback",
    "config",
    "config list",
    "config lost",
    "config set",
    "global list",
    "hook list",
    "hook record",
    "module apis",
    "module disable",
    "module enable",
    "module purge",
    "module release",
    "module release repair",
    "module reload",
    "module resource-monitor",
    "module resume",
    "module source approve",
    "module source pin",
    "module source resume",
    "module source rollback",
    "module suspend",
    "module upgrade",
    "module wait",
    "plan",
    "page",
];
