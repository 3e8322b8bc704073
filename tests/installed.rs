//! The operator in a cluster: the image comes from a registry, the chart installs it, and its pods are processes on a
//! real node. A long story is played with helm 3, then a short one with helm 4. The operator has only the rights that
//! the chart gives. Needs root and fails without it.

mod installed {
    mod aging;
    mod channel;
    mod stage;
    mod story;
}
