//! Network namespaces: creates, configures and enters them.
//!
//! A namespace lives as long as a handle or a process in it. Its interfaces, routes and connections end with it. So
//! this module never cleans up, and must never give a name to anything that outlives the handle.
#![expect(
    unsafe_code,
    reason = "leaving a namespace is unsafe for the table of files, which nobody leaves here"
)]

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::Command;
use std::sync::Arc;
use std::thread;

use rustix::fs::{Mode, OFlags};
use rustix::thread::{LinkNameSpaceType, UnshareFlags};
use thiserror::Error;

use crate::environment;
use crate::process;

#[derive(Debug, Error)]
pub enum SpaceError {
    #[error("cannot make a network namespace")]
    Make(#[source] io::Error),
    #[error("cannot enter a network namespace")]
    Enter(#[source] io::Error),
    #[error("cannot run ip")]
    Tool(#[source] io::Error),
    #[error("ip refuses to furnish a network namespace: {0}")]
    Furnish(String),
}

impl SpaceError {
    /// Steps by which a person can solve the problem.
    pub fn hints(&self) -> Vec<String> {
        vec![match self {
            Self::Make(_) | Self::Enter(_) => {
                "pods are processes in namespaces of their own; for that the testbed must \
                                               run as root, with the capabilities SYS_ADMIN and NET_ADMIN, on a kernel \
                                               with namespaces, bridge, veth and overlayfs"
                    .to_owned()
            }
            Self::Tool(_) => "install iproute2, which brings the program ip".to_owned(),
            Self::Furnish(_) => "the kernel must offer bridge and veth devices".to_owned(),
        }]
    }
}

/// A handle of a network namespace.
#[derive(Clone, Debug)]
pub(crate) struct Network(Arc<OwnedFd>);

impl Network {
    /// Creates a network namespace. It has only a loopback device, which is down.
    pub(crate) fn create() -> Result<Self, SpaceError> {
        let made = aside(|| {
            detach(UnshareFlags::NEWNET)?;
            Ok(rustix::fs::open(
                "/proc/thread-self/ns/net",
                OFlags::RDONLY | OFlags::CLOEXEC,
                Mode::empty(),
            )?)
        });
        made.map(|descriptor| Self(Arc::new(descriptor)))
            .map_err(SpaceError::Make)
    }

    /// Makes the command's process enter the namespace.
    pub(crate) fn place(&self, command: &mut Command) {
        process::place(command, Arc::clone(&self.0));
    }

    /// Moves the calling thread into the namespace for good.
    pub(crate) fn enter(&self) -> Result<(), SpaceError> {
        rustix::thread::move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|error| SpaceError::Enter(error.into()))
    }

    /// Runs a closure on a thread inside of the namespace.
    pub(crate) fn within<T: Send>(&self, job: impl FnOnce() -> io::Result<T> + Send) -> Result<T, SpaceError> {
        aside(|| {
            self.enter().map_err(io::Error::other)?;
            job()
        })
        .map_err(SpaceError::Enter)
    }

    /// Runs the commands of `ip`, one a line, in the namespace.
    pub(crate) fn furnish(&self, orders: &str) -> Result<(), SpaceError> {
        let mut command = ip();
        self.place(&mut command);
        carry_out(command, orders)
    }
}

fn ip() -> Command {
    let mut command = process::command("ip");
    // `ip` is often in a folder that is on the `PATH` of root only.
    let mut path = environment::path();
    path.push(OsString::from(":/usr/sbin:/sbin"));
    command.args(["-batch", "-"]).env_clear().env("PATH", path);
    command
}

fn carry_out(command: Command, orders: &str) -> Result<(), SpaceError> {
    let output = process::run(command, Some(orders.as_bytes())).map_err(SpaceError::Tool)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(SpaceError::Furnish(said.trim().replace('\n', "; ")))
}

/// Gives the calling thread new namespaces of its own.
pub(crate) fn detach(flags: UnshareFlags) -> io::Result<()> {
    debug_assert!(
        !flags.contains(UnshareFlags::FILES),
        "a thread must see the files of all others"
    );
    // SAFETY: the call is unsafe only if it unshares the table of open files, which stays shared here.
    unsafe { rustix::thread::unshare_unsafe(flags) }.map_err(io::Error::from)
}

/// Runs `job` on a new thread, which may change its namespace.
fn aside<T: Send>(job: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let outcome = thread::scope(|scope| scope.spawn(job).join());
    outcome.unwrap_or_else(|_| Err(io::Error::other("the thread that was to enter a namespace panicked")))
}
