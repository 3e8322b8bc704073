//! The system calls that the standard library lacks: signals to a group, a descriptor for a child's end, and the wait
//! with its resource usage. Nothing here decides anything; every function is one call with typed arguments.
#![expect(unsafe_code, reason = "libc is the only way to these calls; each block is one call")]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{DumpableBehavior, PidfdFlags, Resource, Rlimit, WaitId, WaitIdOptions, WaitIdStatus};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::Exit;

/// The process id of a child that is not reaped, so it cannot belong to another process. It is also the
/// id of the child's process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pid(libc::pid_t);

impl Pid {
    /// The id from the kernel's number, which is at most 2^22.
    pub(super) fn new(number: u32) -> Option<Self> {
        libc::pid_t::try_from(number)
            .ok()
            .filter(|number| *number > 0)
            .map(Self)
    }

    pub(super) fn number(self) -> u32 {
        self.0.unsigned_abs()
    }

    pub(super) fn of_rustix(self) -> rustix::process::Pid {
        rustix::process::Pid::from_raw(self.0).expect("a number of a process is positive")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    Terminate,
    Kill,
}

impl Signal {
    fn of_rustix(self) -> rustix::process::Signal {
        match self {
            Self::Terminate => rustix::process::Signal::TERM,
            Self::Kill => rustix::process::Signal::KILL,
        }
    }
}

/// The kernel's report on a reaped child.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    pub(super) exit: Exit,
    pub(super) user: Duration,
    pub(super) sys: Duration,
    pub(super) max_rss_bytes: u64,
}

/// Sends the signal to every process of the group. A group that has ended is no error.
pub(super) fn signal_group(leader: Pid, signal: Signal) {
    let number = match signal {
        Signal::Terminate => libc::SIGTERM,
        Signal::Kill => libc::SIGKILL,
    };
    // SAFETY: kill takes two numbers; the leader is not reaped, so the group id belongs to no other group.
    unsafe { libc::kill(-leader.0, number) };
}

/// Makes the kernel kill the child before this process when memory runs out, so that this process can report it.
pub(super) fn die_first(child: Pid) {
    if let Err(error) = fs_err::write(format!("/proc/{}/oom_score_adj", child.number()), "1000") {
        // The child has already ended, or the file cannot be written.
        tracing::debug!(%error, "cannot make a program the first to be killed when memory runs out");
    }
}

/// A descriptor that becomes readable when the child has ended.
pub(super) fn open_pidfd(child: Pid) -> io::Result<OwnedFd> {
    Ok(rustix::process::pidfd_open(child.of_rustix(), PidfdFlags::empty())?)
}

/// A handle of a process; `None` if there is none with this id.
pub(super) fn find(pid: Pid) -> io::Result<Option<OwnedFd>> {
    match rustix::process::pidfd_open(pid.of_rustix(), PidfdFlags::empty()) {
        Ok(handle) => Ok(Some(handle)),
        Err(Errno::SRCH) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Sends the signal to the process. A process that has ended is no error.
pub(super) fn signal(handle: &OwnedFd, signal: Signal) -> io::Result<()> {
    match rustix::process::pidfd_send_signal(handle, signal.of_rustix()) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Registers the descriptor with the async runtime.
pub(super) fn watch(pidfd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` stays the same descriptor until it is dropped, and it is only ever borrowed from here on.
    Ok(unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) }?)
}

/// Reaps the child; `None` while it still runs.
pub(super) fn reap(child: Pid) -> io::Result<Option<Ended>> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are valid for writing during the call.
    let answer = unsafe { libc::wait4(child.0, &raw mut status, libc::WNOHANG, usage.as_mut_ptr()) };
    match answer {
        0 => Ok(None),
        n if n < 0 => Err(io::Error::last_os_error()),
        _ => {
            // SAFETY: rusage consists of numbers, for which zeroes are valid, and wait4 has filled it.
            let usage = unsafe { usage.assume_init() };
            Ok(Some(Ended {
                exit: exit_of(status),
                user: duration_of(usage.ru_utime),
                sys: duration_of(usage.ru_stime),
                max_rss_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024, // Linux counts in KiB
            }))
        }
    }
}

/// Whether any child has ended and is not reaped.
pub(super) fn any_zombie() -> bool {
    matches!(look_for_zombies(), Ok(Some(_)))
}

/// Whether there is any child, ended or not.
pub(super) fn has_children() -> bool {
    look_for_zombies().is_ok()
}

/// Finds a zombie without reaping it.
fn look_for_zombies() -> rustix::io::Result<Option<WaitIdStatus>> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    rustix::process::waitid(WaitId::All, options)
}

/// Ends this process at once, without any output.
pub(super) fn exit_at_once(code: i32) -> ! {
    // SAFETY: the call takes one number and does not return; no code of ours runs on the way.
    unsafe { libc::_exit(code) }
}

/// Makes orphaned descendants children of this process, as orphans are of process 1.
pub(super) fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Whether orphans become children of this process.
pub(super) fn adopts_orphans() -> bool {
    matches!(rustix::process::child_subreaper(), Ok(Some(_)))
}

/// Forbids this process and its children to write core files.
pub(super) fn write_no_core() -> io::Result<()> {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    Ok(rustix::process::setrlimit(Resource::Core, none)?)
}

/// Lets only root read the memory and the environment of this process. Its children are not protected by this.
pub(super) fn hide_memory() -> io::Result<()> {
    Ok(rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Opens a descriptor without the close-on-exec flag, as a library may do.
#[cfg(test)]
pub(super) fn open_carelessly() {
    // SAFETY: dup takes a number and returns a new descriptor, which stays open.
    assert!(unsafe { libc::dup(2) } > 2);
}

fn exit_of(status: libc::c_int) -> Exit {
    if libc::WIFSIGNALED(status) {
        Exit::Signal(libc::WTERMSIG(status))
    } else {
        Exit::Code(libc::WEXITSTATUS(status))
    }
}

fn duration_of(time: libc::timeval) -> Duration {
    Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0))
        + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
}
