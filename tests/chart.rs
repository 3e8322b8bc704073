//! The chart that installs the operator: what it renders, what it refuses, what it measures and grants, and that an operator
//! with exactly its rights does its work on a real API server. Nothing here needs an image: pods stay pending, and the
//! operator that works is the built program in the place of one of them.

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
