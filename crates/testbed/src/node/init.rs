//! The processes between the agent and a container's program. They make the namespaces, and the last one becomes the
//! program.
//!
//! The first process is still in the agent's PID namespace. It starts the second as process 1 of a new one, reports the
//! id, waits for it and ends with the same exit code. The kernel kills each process when its parent ends, and the end
//! of process 1 ends all processes of the container. No thread may be started in these processes, because a namespace
//! belongs to a thread.
#![expect(
    clippy::disallowed_methods,
    reason = "who forks must be the thread that made the namespace of processes"
)]

mod root;

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use fs_err as fs;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{CapabilitySet, LinkNameSpaceType, UnshareFlags};
use rustix::thread::{Gid, Uid, set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use thiserror::Error;

use super::spec::{Identity, Spec};
use crate::process;
use crate::space;

#[derive(Debug, Error)]
enum InitError {
    #[error("cannot read what to run")]
    Spec(#[source] io::Error),
    #[error("cannot understand what to run")]
    Parse(#[from] serde_json::Error),
    #[error("cannot make namespaces")]
    Detach(#[source] io::Error),
    #[error("cannot enter the namespaces of process {process}")]
    Enter { process: u32, source: io::Error },
    #[error("cannot start the first process")]
    Fork(#[source] io::Error),
    #[error("cannot tell the id of the first process")]
    Tell(#[source] io::Error),
    #[error("cannot furnish the root")]
    Root(#[from] root::RootError),
    #[error("cannot become user {user}")]
    Identity { user: u32, source: io::Error },
    #[error("cannot go to {folder}")]
    Directory { folder: PathBuf, source: io::Error },
    #[error("there is nothing to run")]
    NoWords,
    #[error("cannot close the input")]
    Nothing(#[source] io::Error),
    #[error("cannot run {program}")]
    Run { program: String, source: io::Error },
    #[error("whoever started this is gone")]
    Abandoned,
}

/// The exit code if the container's program could not be run.
const FAILED: u8 = 128;

/// The task of `testbed pod-init`.
#[derive(Clone, Debug)]
pub enum Order {
    /// Starts the container that a file describes.
    Container(PathBuf),
    /// Starts a command in the container whose first process has this id.
    Command(PathBuf, u32, Vec<OsString>),
}

/// Runs the first process. Its exit code is that of the container's first process.
pub fn start(order: &Order) -> ExitCode {
    finish(begin(order).map(|code| ExitCode::from(process::exit_code(code))))
}

/// Runs the second process, which becomes the container's program. Returns only after an error.
pub fn become_it(order: &Order) -> ExitCode {
    finish(replace(order).map(|never| match never {}))
}

fn finish(outcome: Result<ExitCode, InitError>) -> ExitCode {
    outcome.unwrap_or_else(|error| {
        use std::io::Write as _;
        // Standard error is the container's log, where people look for the reason.
        let _ = writeln!(io::stderr(), "testbed: {}", crate::report::chain(&error));
        ExitCode::from(FAILED)
    })
}

fn read(file: &Path) -> Result<Spec, InitError> {
    Ok(serde_json::from_slice(&fs::read(file).map_err(InitError::Spec)?)?)
}

fn begin(order: &Order) -> Result<std::process::ExitStatus, InitError> {
    let mut command = Command::new("/proc/self/exe");
    command.arg("pod-process");
    match order {
        Order::Container(file) => {
            space::detach(UnshareFlags::NEWPID).map_err(InitError::Detach)?;
            command.arg(file);
        }
        Order::Command(file, target, words) => {
            enter(*target, &[("pid", LinkNameSpaceType::ProcessID)])?;
            command
                .arg("--within")
                .arg(target.to_string())
                .arg(file)
                .arg("--")
                .args(words);
        }
    }
    if matches!(order, Order::Container(_)) {
        // This pipe breaks when this process ends. So the child notices an end that came before its parent-death signal
        // was set.
        command.stdin(Stdio::piped());
    }
    let mut child = command.spawn().map_err(InitError::Fork)?;
    let pipe = child.stdin.take();
    if let Order::Container(file) = order {
        let told = file.with_extension("told");
        fs::write(&told, child.id().to_string()).map_err(InitError::Tell)?;
        fs::rename(&told, read(file)?.process_file()).map_err(InitError::Tell)?;
    }
    let status = child.wait().map_err(InitError::Fork);
    drop(pipe);
    status
}

fn replace(order: &Order) -> Result<Infallible, InitError> {
    die_with_parent(order)?;
    let (spec, words) = match order {
        Order::Container(file) => {
            let spec = read(file)?;
            space::detach(UnshareFlags::NEWNS | UnshareFlags::NEWIPC | UnshareFlags::NEWUTS)
                .map_err(InitError::Detach)?;
            root::change(&spec)?;
            let words = spec.command.iter().map(OsString::from).collect();
            (spec, words)
        }
        Order::Command(file, target, words) => {
            let spec = read(file)?;
            enter(*target, &WITHIN)?;
            (spec, words.clone())
        }
    };
    std::env::set_current_dir(&spec.directory).map_err(|source| InitError::Directory {
        folder: spec.directory.clone(),
        source,
    })?;
    assume(&spec.identity).map_err(|source| InitError::Identity {
        user: spec.identity.user,
        source,
    })?;
    // The kernel clears the parent-death signal when the user changes, so it is set again.
    die_with_parent(order)?;
    if matches!(order, Order::Container(_)) {
        read_nothing().map_err(InitError::Nothing)?;
    }
    let (program, arguments) = words.split_first().ok_or(InitError::NoWords)?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(spec.environment);
    Err(InitError::Run {
        program: program.to_string_lossy().into_owned(),
        source: command.exec(),
    })
}

/// The mount namespace is the last: after entering it, `/proc` of the machine is out of reach.
const WITHIN: [(&str, LinkNameSpaceType); 4] = [
    ("ipc", LinkNameSpaceType::InterProcessCommunication),
    ("uts", LinkNameSpaceType::HostNameAndNISDomainName),
    ("net", LinkNameSpaceType::Network),
    ("mnt", LinkNameSpaceType::Mount),
];

fn enter(target: u32, kinds: &[(&str, LinkNameSpaceType)]) -> Result<(), InitError> {
    let failed = |error: rustix::io::Errno| InitError::Enter {
        process: target,
        source: error.into(),
    };
    let open = |name: &str| {
        let path = format!("/proc/{target}/ns/{name}");
        rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(failed)
    };
    let spaces = kinds.iter().map(|(name, kind)| Ok((open(name)?, *kind)));
    let spaces: Result<Vec<_>, InitError> = spaces.collect();
    for (space, kind) in spaces? {
        rustix::thread::move_into_link_name_space(space.as_fd(), Some(kind)).map_err(failed)?;
    }
    Ok(())
}

fn die_with_parent(order: &Order) -> Result<(), InitError> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| InitError::Detach(error.into()))?;
    let abandoned = match order {
        Order::Container(_) => {
            let stdin = rustix::stdio::stdin();
            let mut polled = [PollFd::new(&stdin, PollFlags::empty())];
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            rustix::event::poll(&mut polled, Some(&now)).map_err(|error| InitError::Detach(error.into()))?;
            polled[0].revents().contains(PollFlags::HUP)
        }
        // The parent is outside of this PID namespace and so invisible. If it is gone, a visible process has taken its
        // place.
        Order::Command(..) => rustix::process::getppid().is_some(),
    };
    if abandoned { Err(InitError::Abandoned) } else { Ok(()) }
}

fn read_nothing() -> io::Result<()> {
    let nothing = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    Ok(rustix::stdio::dup2_stdin(nothing)?)
}

fn assume(identity: &Identity) -> io::Result<()> {
    for capability in CapabilitySet::all().iter() {
        if identity.capabilities & capability.bits() == 0 {
            match rustix::thread::remove_capability_from_bounding_set(capability) {
                // The running kernel may not know every capability.
                Ok(()) | Err(rustix::io::Errno::INVAL) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    let (user, group) = (Uid::from_raw(identity.user), Gid::from_raw(identity.group));
    let groups: Vec<Gid> = identity.groups.iter().map(|&group| Gid::from_raw(group)).collect();
    set_thread_groups(&groups)?;
    set_thread_res_gid(group, group, group)?;
    set_thread_res_uid(user, user, user)?;
    if identity.no_new_privileges {
        rustix::thread::set_no_new_privs(true)?;
    }
    Ok(())
}
