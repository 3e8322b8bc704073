//! Tests of the code that reads and changes a cluster (the crates of capabilities), against a real cluster.

mod cluster {
    mod accounts;
    mod adoption;
    mod asked;
    mod campaign;
    mod channel;
    mod config_map;
    mod damaged_records;
    mod dead_webhook;
    mod events;
    mod hanging;
    #[expect(clippy::unwrap_used, reason = "what only tests call has no better way to end")]
    mod hook_tools;
    mod installation;
    mod late_writes;
    mod leftovers;
    mod monitor;
    mod monitor_faults;
    mod monitor_gate;
    mod monitor_kinds;
    mod monitor_stage;
    mod monitor_wire;
    mod pace;
    mod patch;
    mod releases;
    mod removals;
    mod repair;
    mod replacement;
    mod state;
    mod state_trial;
    mod taken_over;
    #[expect(clippy::unwrap_used, reason = "what only tests call has no better way to end")]
    mod tools;
    mod torn;
    mod trial_sections;
    mod upgrade_brake;
    mod watched;
    mod webhook;
    mod withheld;
    mod world;
}
