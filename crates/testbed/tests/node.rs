//! A real node: what the testbed adds to kubelet and containerd. Kubernetes itself is not tested here. The tests need
//! root and the packages of `make node-packages`.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

#[path = "node/death.rs"]
mod death;

#[path = "node/stage.rs"]
mod stage;

#[path = "node/trouble.rs"]
mod trouble;

#[path = "node/wire.rs"]
mod wire;

use testbed::registry::{programs, push};
