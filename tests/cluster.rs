//! What we do to a cluster, against a real one.

mod cluster {
    mod config_map;
    mod releases;
    mod repair;
    mod state;
    mod webhook;
    mod world;
}
