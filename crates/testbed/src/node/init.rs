//! The first process of a node: it makes the node's namespaces, starts the programs, and starts again those that end.
//!
//! There are two processes. The first makes a PID namespace, which holds only for its children. The second is process 1
//! of that namespace: it gets namespaces for mounts and for the host name, and then only starts its children and reaps
//! them. The kernel kills each of these processes when its parent ends, and with process 1 all processes of the node
//! end, containers too. Neither of the two may have a second thread, because a namespace belongs to a thread.
#![expect(
    clippy::disallowed_methods,
    reason = "the process that starts others must be the one that made their namespaces"
)]

use std::convert::Infallible;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::Duration;

use fs_err as fs;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change};
use rustix::process::{Signal, WaitOptions, set_parent_process_death_signal, wait};
use rustix::thread::UnshareFlags;
use thiserror::Error;

use super::{Node, needs};
use crate::{process, report, space};

#[derive(Debug, Error)]
enum InitError {
    #[error("cannot read about the node")]
    Read(#[source] io::Error),
    #[error("cannot make namespaces")]
    Detach(#[source] io::Error),
    #[error("cannot start the first process of the node")]
    Fork(#[source] io::Error),
    #[error("the process that started this one is gone")]
    Abandoned,
    #[error("cannot mount {place}")]
    Mount { place: &'static str, source: io::Error },
    #[error("cannot start {name}")]
    Start { name: &'static str, source: io::Error },
    #[error("cannot wait for the programs of the node")]
    Wait(#[source] io::Error),
}

/// Runs the first process, until the second one ends.
pub fn start(file: &Path) -> ExitCode {
    finish(begin(file).map(|status| ExitCode::from(process::exit_code(status))))
}

/// Runs the second process. It returns only after an error.
pub fn live(file: &Path) -> ExitCode {
    finish(run(file).map(|never| match never {}))
}

fn finish(outcome: Result<ExitCode, InitError>) -> ExitCode {
    outcome.unwrap_or_else(|error| {
        say(&report::chain(&error));
        ExitCode::FAILURE
    })
}

/// Writes a line of the node's own log.
fn say(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(io::stderr(), "node: {line}");
}

fn begin(file: &Path) -> Result<ExitStatus, InitError> {
    space::detach(UnshareFlags::NEWPID).map_err(InitError::Detach)?;
    let mut command = Command::new("/proc/self/exe");
    // The pipe breaks when this process ends. So the second process notices that end even if it has not yet asked the
    // kernel for a signal.
    command.arg("node-init").arg(file).stdin(Stdio::piped());
    let mut child = command.spawn().map_err(InitError::Fork)?;
    let pipe = child.stdin.take();
    let status = child.wait().map_err(InitError::Fork);
    drop(pipe);
    status
}

fn run(file: &Path) -> Result<Infallible, InitError> {
    die_with_parent()?;
    let node = Node::read(file).map_err(InitError::Read)?;
    space::detach(UnshareFlags::NEWNS | UnshareFlags::NEWUTS).map_err(InitError::Detach)?;
    rustix::system::sethostname(node.name.as_bytes()).map_err(|error| InitError::Detach(error.into()))?;
    furnish()?;
    let mut programs = vec![Program::start(&node, CONTAINERD)?];
    wait_for_socket(&node);
    programs.push(Program::start(&node, KUBELET)?);
    // The nodes of a control plane share one network, and so one set of rules.
    if node.is_first() {
        programs.push(Program::start(&node, PROXY)?);
    }
    keep(&node, programs)
}

fn die_with_parent() -> Result<(), InitError> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| InitError::Detach(error.into()))?;
    let stdin = io::stdin();
    let mut pipe = [rustix::event::PollFd::new(&stdin, rustix::event::PollFlags::HUP)];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    match rustix::event::poll(&mut pipe, Some(&now)) {
        Ok(0) => Ok(()),
        _ => Err(InitError::Abandoned),
    }
}

/// Folders of the machine to which programs of a node write even if they are configured with other folders. The node
/// has empty folders in their place.
const OWN: [&str; 3] = ["/run", "/var/lib", "/var/log"];

/// Settings of the machine's kernel that a kubelet would change, with the values that the kubelet wants. For the node
/// each setting is replaced by a file with this value.
const SETTINGS: [(&str, &str); 6] = [
    ("/proc/sys/kernel/keys/root_maxbytes", "25000000"),
    ("/proc/sys/kernel/keys/root_maxkeys", "1000000"),
    ("/proc/sys/kernel/panic", "10"),
    ("/proc/sys/kernel/panic_on_oops", "1"),
    ("/proc/sys/vm/overcommit_memory", "1"),
    ("/proc/sys/vm/panic_on_oom", "0"),
];

/// Makes the mounts of the node. None of them is seen outside of its namespace.
fn furnish() -> Result<(), InitError> {
    let failed = |place| {
        move |error: rustix::io::Errno| InitError::Mount {
            place,
            source: error.into(),
        }
    };
    let all = MountPropagationFlags::REC;
    mount_change("/", all | MountPropagationFlags::PRIVATE).map_err(failed("/"))?;
    // A pod may demand that mounts of its container are seen outside of the container.
    mount_change("/", all | MountPropagationFlags::SHARED).map_err(failed("/"))?;
    mount("proc", "/proc", "proc", MountFlags::empty(), None).map_err(failed("/proc"))?;
    for place in OWN {
        mount("tmpfs", place, "tmpfs", MountFlags::empty(), None).map_err(failed(place))?;
    }
    for (number, (place, value)) in SETTINGS.into_iter().enumerate() {
        let file = format!("/run/setting-{number}");
        fs::write(&file, value).map_err(|source| InitError::Mount { place, source })?;
        mount_bind(&file, place).map_err(failed(place))?;
    }
    Ok(())
}

const CONTAINERD: &str = "containerd";
const KUBELET: &str = "kubelet";
const PROXY: &str = "kube-proxy";

struct Program {
    name: &'static str,
    child: Child,
}

impl Program {
    fn start(node: &Node, name: &'static str) -> Result<Self, InitError> {
        let (file, arguments) = match name {
            KUBELET => (node.kubelet.clone(), node.kubelet_arguments()),
            PROXY => (node.proxy.clone(), node.proxy_arguments()),
            _ => (name.into(), node.containerd_arguments()),
        };
        let start = || {
            let log = fs::OpenOptions::new().create(true).append(true).open(node.log(name))?;
            let mut command = Command::new(file);
            command.args(arguments).current_dir("/").stdin(Stdio::null());
            command.env_clear().env("PATH", needs::path());
            command
                .stdout(log.file().try_clone()?)
                .stderr(fs::File::into_parts(log).0);
            command.spawn()
        };
        let child = start().map_err(|source| InitError::Start { name, source })?;
        Ok(Self { name, child })
    }
}

/// Waits until containerd answers, at most for as long as it takes on a busy machine. A kubelet without it would end
/// and be started again.
fn wait_for_socket(node: &Node) {
    let socket = node.socket();
    for _ in 0..LOOKS {
        if UnixStream::connect(&socket).is_ok() {
            return;
        }
        sleep(PAUSE);
    }
}

const LOOKS: u32 = 600;
const PAUSE: Duration = Duration::from_millis(50);

/// The pause before a program that ended is started again.
const REST: Duration = Duration::from_millis(500);

/// Reaps all children, also those that were left to process 1, and starts the node's programs again.
fn keep(node: &Node, mut programs: Vec<Program>) -> Result<Infallible, InitError> {
    loop {
        let ended = wait(WaitOptions::empty()).map_err(|error| InitError::Wait(error.into()))?;
        let Some((process, status)) = ended else { continue };
        let id = process.as_raw_nonzero().get();
        let found = programs
            .iter_mut()
            .find(|program| i32::try_from(program.child.id()) == Ok(id));
        if let Some(program) = found {
            say(&format!("{} ended ({status:?}) and is started again", program.name));
            sleep(REST);
            *program = Program::start(node, program.name)?;
        }
    }
}
