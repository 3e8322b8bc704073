//! What we do to a cluster, against a real one.

mod cluster {
    mod config_map;
    mod patch;
    mod releases;
    mod repair;
    mod state;
    mod world;
}
