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
pub(super) const OF_ONE_FORM: [&str; 24] = [
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
    "module source approve",
    "module source pin",
    "module source resume",
    "module source rollback",
    "module test",
    "module upgrade",
    "module wait",
];

/// The commands that ask the API server alone.
pub(super) const WITHOUT_SOCKET: [&str; 7] = [
    "channel pin",
    "channel resume",
    "channel rollback",
    "module release",
    "module release repair",
    "module source resume",
    "module upgrade",
];

/// The commands that ask no pod.
pub(super) const WITHOUT_POD: [&str; 9] = [
    "channel pin",
    "channel resume",
    "channel rollback",
    "module disable",
    "module enable",
    "module release",
    "module release repair",
    "module source resume",
    "module upgrade",
];

/// The commands whose answer holds no values and no snapshots.
pub(super) const WITHOUT_SECRETS: [&str; 25] = [
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
    "module source approve",
    "module source pin",
    "module source resume",
    "module source rollback",
    "module upgrade",
    "module wait",
];
