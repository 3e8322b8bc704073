//! The control plane that all tests of a run share.
//!
//! `testbed run -- cargo test` owns one for all test binaries and names it in `TESTBED_DIR`. Without that variable,
//! each test binary starts its own at the first use. It is never dropped, because statics are not. Its programs die
//! with the process, and the next start of a control plane removes its folder.

use std::path::PathBuf;
use std::sync::OnceLock;

use thiserror::Error;

use crate::environment;
use crate::find::{FindError, Finder, is_executable};
use crate::node::needs;
use crate::part::Part;
use crate::plane::launch::StartError;
use crate::plane::{ControlPlane, JoinError, Options};
use crate::report;

#[derive(Debug, Error)]
pub enum SharedError {
    #[error("cannot join the control plane named by TESTBED_DIR")]
    Join(#[from] JoinError),
    #[error("cannot start the control plane of this test run")]
    Start(#[from] StartError),
    #[error("cannot find a program for this test run")]
    Find(#[from] FindError),
}

/// The shared control plane. Its pods stay pending, unless the run was started with a node.
///
/// # Panics
///
/// If no control plane can be started: a test that needs one must not pass.
#[expect(clippy::panic, reason = "called by tests, which have no better way to end")]
pub fn plane() -> &'static ControlPlane {
    static PLANE: OnceLock<Result<ControlPlane, SharedError>> = OnceLock::new();
    match PLANE.get_or_init(find) {
        Ok(plane) => plane,
        Err(error) => panic!("{}", report::chain(error)),
    }
}

/// Whether a test that needs a real node has to be left out, because this machine can have none. Then a line on
/// standard error names the reason. On a build server no test is left out: there the start of the node fails, and so
/// does the test.
pub fn has_no_node() -> bool {
    let obstacle = needs::obstacle().filter(|_| !environment::is_build_server());
    if let Some(obstacle) = &obstacle {
        report::tell(&format!("a test with a real node is left out: {obstacle}"));
    }
    obstacle.is_some()
}

/// The path of a program, also of one that is not part of the shared control plane.
///
/// # Panics
///
/// If the program is neither found nor can be built, for the same reason as [`plane`].
#[expect(clippy::panic, reason = "called by tests, which have no better way to end")]
pub fn program(part: Part) -> PathBuf {
    let provided = plane().program(part);
    if is_executable(&provided) {
        return provided;
    }
    match Finder::from_environment().find(&[part]) {
        Ok(mut tools) => tools.remove(&part).map_or(provided, |found| found.file),
        Err(error) => panic!("{}", report::chain(&SharedError::Find(error))),
    }
}

fn find() -> Result<ControlPlane, SharedError> {
    match environment::plane() {
        Some(folder) => Ok(ControlPlane::join(&folder)?),
        None => Ok(ControlPlane::start(&Options::default())?),
    }
}
