//! The operator as a cluster has it: the image in a registry, installed by the chart, its pods processes of a real node; a long
//! story with helm 3, then a short one with helm 4. Nothing here has more rights than the chart gives. Needs root, and fails where
//! it does not have it.

mod installed {
    mod aging;
    mod channel;
    mod stage;
    mod story;
}
