//! Our registry client against a real registry, mostly through a guard that adds the difficulties of public registries.

mod registry {
    mod admission;
    mod asking;
    mod candidates;
    mod choosing;
    mod follower;
    mod harm;
    mod packages;
    mod stage;
    mod ways;
}
