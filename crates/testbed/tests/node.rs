//! A node on which pods are real processes. The tests need root and fail without it.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]
#![expect(clippy::disallowed_methods, reason = "a test asks the machine about itself")]

#[path = "images/machine.rs"]
mod machine;

#[path = "node/death.rs"]
mod death;

#[path = "node/end.rs"]
mod end;

#[path = "node/run.rs"]
mod run;

#[path = "node/stage.rs"]
mod stage;

#[path = "node/talk.rs"]
mod talk;

#[path = "node/wire.rs"]
mod wire;

use testbed::registry::push;
