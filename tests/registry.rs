//! Our client asks a real registry, mostly through a guard that makes it as hard as registries elsewhere do.

mod registry {
    mod admission;
    mod asking;
    mod candidates;
    mod follower;
    mod harm;
    mod stage;
    mod ways;
}
