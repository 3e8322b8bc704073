//! The operator in a cluster: the image comes from a registry, the chart installs it, and its pods run on a real node.
//! A long story is played with helm 3, then a short one with helm 4. The operator has only the rights that the chart
//! gives. The health of modules is told by an operator beside the node. Needs root and the packages of a node.

mod installed {
    mod aging;
    mod channel;
    mod health;
    mod node;
    mod pod;
    mod stage;
    mod story;
}
