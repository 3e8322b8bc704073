//! The chart that installs the operator: its rendering, the values that it refuses, its metrics rules and rights. An
//! operator with exactly these rights has to do its work on a real API server. No image is needed: pods stay pending,
//! and the built program runs in the place of one of them.

mod chart {
    mod accounts;
    mod channel;
    mod channel_rights;
    mod config_map;
    mod configurations;
    mod generated;
    mod kinds;
    mod measured;
    mod notes;
    mod page;
    mod rendering;
    mod rights;
    mod stage;
    mod tool;
    mod versions;
}
