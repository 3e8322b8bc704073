//! The only place that starts a process. Every process started here dies with this one, however this one ends.
//!
//! Linux can signal a child when its parent ends, but means the *thread* that forked it. Test threads end early, so one
//! thread that lives as long as the process makes all forks. Each child leads a process group of its own, unless it
//! must keep the terminal. So Ctrl-C does not reach it directly, and its own children can be ended with it.
#![expect(clippy::disallowed_methods, reason = "processes are started here")]
#![expect(
    unsafe_code,
    reason = "what happens between fork and exec, and signals, exist only in libc"
)]

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use fs_err as fs;

/// Describes a process to be started. Its standard input is empty by default.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    command
}

/// The way in which a child ends with this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bond {
    /// The child leads its own group and is killed when this process ends.
    Group,
    /// Like `Group`, but the child gets this signal, because it has to clean up.
    PoliteGroup(i32),
    /// The child shares our group and so the terminal. When this process ends it gets SIGTERM.
    Foreground,
}

/// A child. Dropping the value kills and reaps it, together with its group if it leads one.
#[derive(Debug)]
pub struct Bound {
    child: Child,
    bond: Bond,
    /// After the child is reaped its id may belong to another process, which must get no signal.
    reaped: bool,
}

impl Bound {
    /// Starts the child.
    pub fn start(mut command: Command, bond: Bond) -> io::Result<Self> {
        let signal = match bond {
            Bond::Group => libc::SIGKILL,
            Bond::PoliteGroup(signal) => signal,
            Bond::Foreground => libc::SIGTERM,
        };
        if bond != Bond::Foreground {
            command.process_group(0);
        }
        let parent = std::process::id();
        // SAFETY: the closure runs between fork and exec and makes only async-signal-safe calls on its own memory.
        unsafe { command.pre_exec(move || follow_parent(signal, parent)) };
        Ok(Self {
            child: forker().start(command)?,
            bond,
            reaped: false,
        })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Takes the child's standard input. None if that is not a pipe or was taken before.
    #[cfg(test)]
    pub(crate) fn take_stdin(&mut self) -> Option<std::process::ChildStdin> {
        self.child.stdin.take()
    }

    /// Takes the child's standard output. None if that is not a pipe or was taken before.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Takes the child's standard error. None if that is not a pipe or was taken before.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// The child's exit status if it has ended; does not wait.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = self.child.try_wait()?;
        self.reaped |= status.is_some();
        Ok(status)
    }

    /// Waits for the child's end.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait()?;
        self.reaped = true;
        Ok(status)
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        if self.bond != Bond::Foreground {
            signal_group(self.child.id(), libc::SIGKILL);
        }
        // Neither call can fail while the child is not reaped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes the command's process enter a network namespace.
pub(crate) fn place(command: &mut Command, network: Arc<OwnedFd>) {
    let enter = move || {
        // SAFETY: a plain system call, async-signal-safe, on a descriptor that the closure keeps open.
        match unsafe { libc::setns(network.as_raw_fd(), libc::CLONE_NEWNET) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure runs between fork and exec and makes one async-signal-safe call.
    unsafe { command.pre_exec(enter) };
}

/// Runs a command to its end with the given standard input and returns its exit status and output. [`interrupt`] ends
/// the commands that are running. Commands that start later, such as those of a clean-up, run to their end.
pub fn run(mut command: Command, input: Option<&[u8]>) -> io::Result<Output> {
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut bound = Bound::start(command, Bond::Group)?;
    let stdin = bound.child.stdin.take();
    let (stdout, stderr) = (bound.child.stdout.take(), bound.child.stderr.take());
    let (group, late) = (bound.id(), interrupted());
    thread::scope(|scope| {
        // Dropped when the command has ended.
        let (over, runs) = mpsc::channel::<()>();
        scope.spawn(move || {
            while runs.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                if interrupted() && !late {
                    signal_group(group, libc::SIGKILL);
                }
            }
        });
        if let (Some(mut stdin), Some(input)) = (stdin, input) {
            // A program that stops reading early breaks the pipe. Its exit status tells more than this error.
            scope.spawn(move || drop(stdin.write_all(input)));
        }
        let errors = scope.spawn(move || drain(stderr));
        let stdout = drain(stdout)?;
        let stderr = errors
            .join()
            .map_err(|_| io::Error::other("the reader of standard error panicked"))??;
        let status = bound.wait();
        drop(over);
        Ok(Output {
            status: status?,
            stdout,
            stderr,
        })
    })
}

fn drain(pipe: Option<impl io::Read>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        pipe.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// The exit code of a process that has ended but is not reaped yet; none if a signal ended it.
pub fn code_of(id: u32) -> Option<i32> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let has_ended = text.rsplit(')').next()?.trim_start().starts_with('Z');
    let status: i32 = text.split_ascii_whitespace().next_back()?.parse().ok()?;
    (has_ended && libc::WIFEXITED(status)).then_some(libc::WEXITSTATUS(status))
}

/// Sends a signal to one process.
pub fn signal(process: u32, signal: i32) {
    if let Ok(process) = i32::try_from(process) {
        // SAFETY: `kill` takes plain numbers. It fails only if the process has already ended, which needs no report.
        unsafe { libc::kill(process, signal) };
    }
}

fn signal_group(leader: u32, signal: i32) {
    if let Ok(leader) = i32::try_from(leader) {
        // SAFETY: as in `signal`.
        unsafe { libc::killpg(leader, signal) };
    }
}

/// The exit code that a shell would report.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Runs in the child before exec: makes the child end with its parent and unblocks its signals.
fn follow_parent(signal: i32, parent: u32) -> io::Result<()> {
    // SAFETY: plain system calls, async-signal-safe; `set` is initialised by `sigemptyset` before it is read.
    unsafe {
        let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(set.as_mut_ptr());
        // This process blocks the signals that it waits for. A child must not inherit that mask.
        libc::sigprocmask(libc::SIG_SETMASK, set.as_ptr(), std::ptr::null_mut());
        if libc::prctl(libc::PR_SET_PDEATHSIG, signal) != 0 {
            return Err(io::Error::last_os_error());
        }
        // If the parent ended before the line above, the parent-death signal will never come.
        if u32::try_from(libc::getppid()) != Ok(parent) {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
    }
    Ok(())
}

/// The thread that makes all forks. It is never joined and lives as long as the process.
struct Forker {
    orders: Mutex<Sender<Order>>,
}

struct Order {
    command: Command,
    reply: Sender<io::Result<Child>>,
}

impl Forker {
    fn start(&self, command: Command) -> io::Result<Child> {
        let gone = || io::Error::other("the thread that starts processes is gone");
        let (reply, answer) = mpsc::channel();
        let orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner).clone();
        orders.send(Order { command, reply }).map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())?
    }
}

fn forker() -> &'static Forker {
    static FORKER: OnceLock<Forker> = OnceLock::new();
    FORKER.get_or_init(|| {
        let (orders, inbox) = mpsc::channel::<Order>();
        let fork = move || {
            for Order { mut command, reply } in inbox {
                // The receiver is gone only if the asking thread is gone. Then the child is ended here.
                if let Err(mpsc::SendError(Ok(mut orphan))) = reply.send(command.spawn()) {
                    let _ = orphan.kill();
                    let _ = orphan.wait();
                }
            }
        };
        thread::Builder::new()
            .name("testbed-forker".to_owned())
            .spawn(fork)
            .expect("a process that cannot have one more thread cannot run a control plane");
        Forker {
            orders: Mutex::new(orders),
        }
    })
}

/// The interval at which a running command is ended after an interruption.
const LOOK: Duration = Duration::from_millis(50);

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Makes every running start and build give up soon.
pub fn interrupt() {
    INTERRUPTED.store(true, Ordering::SeqCst);
}

pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// A signal that asks the program to end.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub signal: i32,
    /// Whether the terminal sent the signal, and so sent it to the whole foreground group.
    pub by_terminal: bool,
}

/// Calls `tell` for each SIGINT, SIGTERM and SIGHUP. It has to be called first in `main`: threads that exist earlier do
/// not block these signals and would let them kill the process.
pub fn on_signal(tell: impl Fn(Asked) + Send + 'static) -> io::Result<()> {
    // SAFETY: `set` is initialised by `sigemptyset` before it is read, and lives as long as the calls.
    let set = unsafe {
        let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(set.as_mut_ptr());
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        let set = set.assume_init();
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        set
    };
    let listen = move || {
        loop {
            // SAFETY: `info` is plain data that the call fills in; zeroes are valid for it.
            let (signal, info) = unsafe {
                let mut info = std::mem::zeroed::<libc::siginfo_t>();
                (libc::sigwaitinfo(&raw const set, &raw mut info), info)
            };
            if signal > 0 {
                tell(Asked {
                    signal,
                    by_terminal: info.si_code == libc::SI_KERNEL,
                });
            }
        }
    };
    thread::Builder::new()
        .name("testbed-signals".to_owned())
        .spawn(listen)
        .map(drop)
}

/// The command line as a person would type it, for messages.
pub(crate) fn shown(program: &str, arguments: &[OsString]) -> String {
    let mut line = program.to_owned();
    for argument in arguments {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_a_process_is_known_before_it_is_waited_for() {
        let mut shell = command("sh").args(["-c", "exit 75"]).spawn().unwrap();
        let ended = || Ok::<_, String>(code_of(shell.id()));
        let code = crate::wait::wait_until(Duration::from_secs(30), "an end", ended).unwrap();
        assert_eq!(code, 75);
        assert_eq!(code_of(std::process::id()), None, "we have not ended");
        shell.wait().unwrap();
    }

    #[test]
    fn a_large_input_and_a_large_output_do_not_block_each_other() {
        let input = vec![b'x'; 1 << 20];
        let output = run(command("cat"), Some(&input)).unwrap();
        assert!(output.status.success());
        assert_eq!(output.stdout.len(), input.len());
    }

    #[test]
    fn a_child_outlives_the_thread_that_asked_for_it() {
        let mut cat = command("cat");
        cat.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut bound = thread::spawn(move || Bound::start(cat, Bond::Group).unwrap())
            .join()
            .unwrap();
        let mut stdin = bound.child.stdin.take().unwrap();
        stdin.write_all(b"alive").unwrap();
        drop(stdin);
        assert_eq!(drain(bound.child.stdout.take()).unwrap(), b"alive");
        assert!(bound.wait().unwrap().success());
    }

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        let mut killed = Bound::start(command("cat"), Bond::Group).unwrap();
        assert_eq!(exit_code(killed.wait().unwrap()), 0, "cat reads an empty input");
        let mut sleeper = command("sleep");
        sleeper.arg("600");
        let mut sleeper = Bound::start(sleeper, Bond::Group).unwrap();
        signal(sleeper.id(), libc::SIGTERM);
        assert_eq!(exit_code(sleeper.wait().unwrap()), 143);
    }
}
