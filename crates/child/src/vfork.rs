//! Starts a program in a child that borrows the operator's memory until it runs the program. An ordinary fork copies
//! the table of the operator's memory, and each page that the operator changes afterwards faults: with 1,000 modules
//! that takes 2 ms for each hook. The child must neither allocate, lock nor panic, and must let no signal handler run:
//! all that would happen in the operator's memory.
#![expect(
    unsafe_code,
    reason = "the standard library cannot start a child that dies with its parent, without copying the memory map"
)]

use std::convert::Infallible;
use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::io::Errno;
use rustix::process::{Pid as KernelPid, Signal as KernelSignal, WaitId, WaitIdOptions};

use super::program::{Program, Theirs, pointers};
use super::sys::Pid;

/// The child's stack, in units of 16 bytes. The child only makes system calls.
const STACK: usize = (64 << 10) / size_of::<u128>();
/// The largest number of a signal.
const LAST_SIGNAL: c_int = 64;
/// The child's exit code if it could not run the program; no code reads it.
const NOT_RUN: c_int = 127;

/// The cell for the process id of a child that is being started: zero until there is a child, and set before the child
/// runs.
pub(super) type PidCell = AtomicI32;

/// The orders of a child, which it only reads, and a cell for its error: zero as long as there is none.
struct Orders<'a> {
    files: &'a [CString],
    args: &'a [*const c_char],
    env: &'a [*const c_char],
    cwd: Option<&'a CString>,
    streams: [BorrowedFd<'a>; 3],
    parent: Option<KernelPid>,
    refused: AtomicI32,
}

/// Runs the program in a new child: the leader of a process group, with these streams and no other descriptor, and
/// killed when the calling *thread* ends. Returns when the child runs the program or has failed. If the file system
/// hangs, this call hangs as long. The process id is stored as soon as there is a child.
pub(super) fn start(program: &Program, theirs: &Theirs, cell: &PidCell) -> io::Result<Pid> {
    let (args, env) = (pointers(&program.args), pointers(&program.env));
    let mut orders = Orders {
        files: &program.files,
        args: &args,
        env: &env,
        cwd: program.cwd.as_ref(),
        streams: theirs.all(),
        parent: Some(rustix::process::getpid()),
        refused: AtomicI32::new(0),
    };
    let mut stack = Box::<[u128]>::new_uninit_slice(STACK);
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PARENT_SETTID | libc::SIGCHLD;
    let blocked = Blocked::all();
    // SAFETY: this thread stands still until the child runs the program or ends (CLONE_VFORK), so everything that the
    // child borrows outlives it. The child has a stack of its own; its end is aligned to 16 bytes. `live` only makes
    // system calls, and its signal handlers are blocked. The cell is valid for writing during the call.
    let answer = unsafe {
        libc::clone(
            live,
            stack.as_mut_ptr_range().end.cast(),
            flags,
            (&raw mut orders).cast(),
            cell.as_ptr(),
        )
    };
    let answer = if answer < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(answer)
    };
    drop(blocked);
    let pid =
        Pid::new(answer?.unsigned_abs()).ok_or_else(|| io::Error::other("the kernel gave an impossible number"))?;
    match orders.refused.into_inner() {
        0 => Ok(pid),
        code => {
            bury(pid)?;
            Err(io::Error::from_raw_os_error(code))
        }
    }
}

/// Waits for a child that did not run its program.
fn bury(child: Pid) -> io::Result<()> {
    loop {
        match rustix::process::waitid(WaitId::Pid(child.of_rustix()), WaitIdOptions::EXITED) {
            Err(Errno::INTR) => {}
            ended => return Ok(ended.map(drop)?),
        }
    }
}

/// All signals are blocked for this thread, until this is dropped.
struct Blocked(libc::sigset_t);

impl Blocked {
    fn all() -> Self {
        let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: sigfillset initialises the first set, from which the second call reads; that one initialises the
        // other set. Neither can fail with these arguments.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            Self(before.assume_init())
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the set is initialised, and no earlier one is asked for.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut()) };
    }
}

/// The whole life of a child until it runs the program.
extern "C" fn live(orders: *mut c_void) -> c_int {
    // SAFETY: `start` gives its orders, which it does not touch before this child has ended or runs the program.
    let orders = unsafe { &*orders.cast::<Orders<'_>>() };
    let Err(error) = become_the_program(orders);
    orders.refused.store(error.raw_os_error(), Ordering::Relaxed);
    // SAFETY: ends the child alone, without any code of ours.
    unsafe { libc::_exit(NOT_RUN) }
}

fn become_the_program(orders: &Orders<'_>) -> Result<Infallible, Errno> {
    forget_handlers();
    rustix::process::setpgid(None, None)?;
    let [stdin, stdout, stderr] = orders.streams;
    rustix::stdio::dup2_stdin(stdin)?;
    rustix::stdio::dup2_stdout(stdout)?;
    rustix::stdio::dup2_stderr(stderr)?;
    if let Some(cwd) = orders.cwd {
        rustix::process::chdir(cwd.as_c_str())?;
    }
    // An old kernel lacks the call; then `O_CLOEXEC` has already closed everything, so the answer does not matter.
    // SAFETY: a plain system call without pointers; it only marks descriptors of the child.
    unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    rustix::process::set_parent_process_death_signal(Some(KernelSignal::KILL))?;
    // The parent may have ended before the line above; then no signal will be sent.
    if rustix::process::getppid() != orders.parent {
        return Err(Errno::SRCH);
    }
    unblock();
    Err(run(orders))
}

/// Gives every signal with a handler its default action, and SIGPIPE too, which the standard library ignores. The
/// table of handlers is the child's own.
fn forget_handlers() {
    for signal in 1..=LAST_SIGNAL {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: the pointer is valid for writing; a structure of zeroes is the default action. For signals that
        // cannot be asked for the call fails and changes nothing.
        unsafe {
            let asked = libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
            let handler = (*action.as_ptr()).sa_sigaction;
            let is_caught = handler != libc::SIG_DFL && handler != libc::SIG_IGN;
            if asked == 0 && (is_caught || signal == libc::SIGPIPE) {
                let default = MaybeUninit::<libc::sigaction>::zeroed();
                libc::sigaction(signal, default.as_ptr(), std::ptr::null_mut());
            }
        }
    }
}

/// Unblocks all signals: a program gets the mask of its parent.
fn unblock() {
    let mut none = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set from which the second call reads.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
    }
}

/// Runs the first of the files that is there. The error of a file that may not be run is returned only if no other file
/// is found.
fn run(orders: &Orders<'_>) -> Errno {
    let mut refused = Errno::NOENT;
    for file in orders.files {
        // SAFETY: both lists end with a null pointer, and all texts with a zero byte.
        unsafe { libc::execve(file.as_ptr(), orders.args.as_ptr(), orders.env.as_ptr()) };
        match last_error() {
            Errno::NOENT | Errno::NOTDIR => {}
            Errno::ACCESS => refused = Errno::ACCESS,
            other => return other,
        }
    }
    refused
}

/// The error of the last system call. The child and its thread of the operator share the cell, and the thread stands
/// still.
fn last_error() -> Errno {
    // SAFETY: the function returns a valid pointer to a number of this thread.
    Errno::from_raw_os_error(unsafe { *libc::__errno_location() })
}
