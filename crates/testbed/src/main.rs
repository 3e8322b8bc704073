//! `testbed`: starts a control plane for a person or for a command.
//!
//! Data goes to standard output, messages to standard error. The program ends only after everything that it started. If
//! it is killed, the kernel ends those processes.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use clap::{Args, Parser, Subcommand};
use testbed::find::Finder;
use testbed::kin::Kin;
use testbed::node::{init, needs};
use testbed::part::Part;
use testbed::plane::{self, ControlPlane, Options, Pods, User};
use testbed::process::{self, Asked, Bond, Bound};
use testbed::report;

/// A real Kubernetes control plane on loopback: etcd, API server, controllers, helm.
///
/// The programs are taken from `$KUBEBUILDER_ASSETS`, from `PATH` (helm and kubectl only in a fitting version), or from
/// a cache (`$TESTBED_CACHE`, by default `~/.cache/addon-operator-testbed`). What is nowhere is built there once with
/// Go, from pinned sources; that takes about six minutes on two cores.
///
/// It listens on 127.0.0.1 only, on free ports, and leaves nothing behind.
#[derive(Parser)]
#[command(name = "testbed", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a control plane, say how to use it, and run until Ctrl-C
    Up {
        #[command(flatten)]
        wishes: Wishes,
        /// Where its files go: absent or empty now, removed at the end [default: a temporary folder]
        #[arg(long)]
        dir: Option<PathBuf>,
    },
    /// Start a control plane, run a command with it, end it, and exit as the command did
    ///
    /// The command finds `KUBECONFIG` (user testbed:admin), `TESTBED_KUBECONFIG` (the same),
    /// `TESTBED_OPERATOR_KUBECONFIG` (user testbed:operator), `TESTBED_AUDIT_LOG`, `TESTBED_DIR`, and the programs
    /// first on its `PATH`. Tests that ask for the shared control plane use this one.
    Run {
        #[command(flatten)]
        wishes: Wishes,
        /// The command and its arguments
        #[arg(last = true, required = true, value_name = "CMD")]
        command: Vec<std::ffi::OsString>,
    },
    /// Find or build the programs and print where they are
    Build {
        #[command(flatten)]
        wishes: Wishes,
    },
    /// Print the variables of a running control plane, for `eval "$(testbed env)"`
    Env {
        /// Folder of the control plane, if several run
        #[arg(long)]
        dir: Option<PathBuf>,
        /// Print the variables for the user testbed:operator
        #[arg(long)]
        operator: bool,
    },
    /// Say which packages a real node lacks on this machine, and install them with apt
    ///
    /// Exits well in any case: without a node the tests and chapters that need one are left out.
    Needs {
        /// Install the missing packages (as root) [default: only name them]
        #[arg(long)]
        install: bool,
    },
    /// Start the first process of a node
    #[command(hide = true)]
    Node { file: PathBuf },
    /// Be the first process of a node
    #[command(hide = true)]
    NodeInit { file: PathBuf },
}

#[derive(Args)]
struct Wishes {
    /// Add a node on which pods become ready although nothing runs (kube-scheduler and kwok)
    #[arg(long, conflicts_with = "node")]
    kwok: bool,
    /// Add a real node (kube-scheduler, kubelet, kube-proxy and a registry; as root, with containerd); `TESTBED_PAUSE_IMAGE`
    /// names an image that it can pull
    #[arg(long)]
    node: bool,
    /// Add an OCI registry (plain HTTP, on loopback); its address is `TESTBED_REGISTRY` to commands and `env`
    #[arg(long)]
    registry: bool,
    /// Provide helm 4 too, as `helm4`
    #[arg(long)]
    helm4: bool,
}

impl Wishes {
    fn options(&self, folder: Option<PathBuf>) -> Options {
        let pods = match (self.kwok, self.node) {
            (true, _) => Pods::Alive,
            (false, true) => Pods::Running,
            (false, false) => Pods::Pending,
        };
        let tools = if self.helm4 { vec![Part::Helm4] } else { Vec::new() };
        Options {
            pods,
            registry: self.registry,
            tools,
            folder,
        }
    }
}

/// An event that the main thread waits for.
enum Event {
    Asked(Asked),
    Done(Box<Outcome>),
}

/// The result of a worker thread.
type Outcome = anyhow::Result<Option<ControlPlane>>;

fn main() -> ExitCode {
    let command = match Cli::parse().command {
        // These commands run until they are killed, and must have no other thread in their process.
        Command::Node { file } => return init::start(&file),
        Command::NodeInit { file } => return init::live(&file),
        other => other,
    };
    let (tell, events) = mpsc::channel();
    let told = tell.clone();
    let outcome = process::on_signal(move |asked| drop(told.send(Event::Asked(asked))))
        .context("cannot listen to signals")
        .and_then(|()| execute(command, &tell, &events));
    outcome.unwrap_or_else(|error| {
        say(&format!("error: {}", report::chain(error.as_ref())));
        ExitCode::FAILURE
    })
}

fn execute(command: Command, tell: &Sender<Event>, events: &Receiver<Event>) -> anyhow::Result<ExitCode> {
    match command {
        Command::Up { wishes, dir } => up(wishes.options(dir), tell, events),
        Command::Run { wishes, command } => run(wishes.options(None), &command, tell, events),
        Command::Build { wishes } => {
            let parts = wishes.options(None).parts();
            let built = work(tell, events, move || {
                let tools = Finder::from_environment().find(&parts)?;
                for (part, found) in tools {
                    writeln!(io::stdout(), "{part:<32} {} {}", found.source, found.file.display())?;
                }
                Ok(None)
            });
            Ok(built?.err().unwrap_or(ExitCode::SUCCESS))
        }
        Command::Needs { install } => Ok(needs(install)),
        Command::Node { .. } | Command::NodeInit { .. } => bail!("that must be called alone"),
        Command::Env { dir, operator } => env(dir, if operator { User::Operator } else { User::Admin }),
    }
}

/// Runs `job` on another thread, so that a signal can end it. The inner error is the exit code that belongs to the
/// signal.
fn work(
    tell: &Sender<Event>,
    events: &Receiver<Event>,
    job: impl FnOnce() -> Outcome + Send + 'static,
) -> anyhow::Result<Result<Option<ControlPlane>, ExitCode>> {
    let done = tell.clone();
    thread::spawn(move || {
        // Without this a panic would leave the main thread waiting for ever.
        let outcome = catch_unwind(AssertUnwindSafe(job));
        let outcome = outcome.unwrap_or_else(|_| Err(anyhow!("the worker panicked")));
        drop(done.send(Event::Done(Box::new(outcome))));
    });
    let mut asked = None;
    loop {
        match events.recv().context("the worker is gone")? {
            Event::Asked(Asked { signal, .. }) => {
                asked.get_or_insert(signal);
                process::interrupt();
            }
            // The job may have succeeded just when the signal came. In both cases its result is dropped here.
            Event::Done(outcome) => {
                return match asked.and_then(|signal| u8::try_from(128 + signal).ok()) {
                    Some(code) => Ok(Err(ExitCode::from(code))),
                    None => outcome.map(Ok),
                };
            }
        }
    }
}

fn started(
    options: Options,
    tell: &Sender<Event>,
    events: &Receiver<Event>,
) -> anyhow::Result<Result<ControlPlane, ExitCode>> {
    let begin = Instant::now();
    let outcome = work(tell, events, move || Ok(Some(ControlPlane::start(&options)?)))?;
    let Some(plane) = outcome.transpose() else {
        bail!("the start ended without a control plane")
    };
    if let Ok(plane) = &plane {
        say(&format!(
            "a control plane is ready at {} after {:.1} s",
            plane.server(),
            begin.elapsed().as_secs_f32()
        ));
    }
    Ok(plane)
}

fn up(options: Options, tell: &Sender<Event>, events: &Receiver<Event>) -> anyhow::Result<ExitCode> {
    let mut plane = match started(options, tell, events)? {
        Ok(plane) => plane,
        Err(code) => return Ok(code),
    };
    say("use it from another shell, for example:");
    let (kubeconfig, programs) = (plane.kubeconfig(User::Admin), plane.programs());
    let lines = format!(
        "export KUBECONFIG={}\nexport PATH={}:$PATH\n",
        kubeconfig.display(),
        programs.display()
    );
    // One write: a reader may close the pipe after the first line.
    io::stdout().write_all(lines.as_bytes())?;
    say(&format!(
        "the operator under test has {}",
        plane.kubeconfig(User::Operator).display()
    ));
    say(&format!("logs are in {}", plane.folder().display()));
    say("Ctrl-C ends it and removes everything");
    loop {
        match events.recv_timeout(LOOK) {
            Ok(Event::Asked(_)) => return Ok(ExitCode::SUCCESS),
            Ok(Event::Done(_)) | Err(RecvTimeoutError::Timeout) => plane.check()?,
            Err(RecvTimeoutError::Disconnected) => bail!("the listener to signals is gone"),
        }
    }
}

/// The interval at which `up` checks that all programs still run.
const LOOK: Duration = Duration::from_secs(1);

fn run(
    options: Options,
    command: &[std::ffi::OsString],
    tell: &Sender<Event>,
    events: &Receiver<Event>,
) -> anyhow::Result<ExitCode> {
    let Some((program, arguments)) = command.split_first() else {
        bail!("there is no command to run")
    };
    let mut plane = match started(options, tell, events)? {
        Ok(plane) => plane,
        Err(code) => return Ok(code),
    };
    let mut command = process::command(program);
    command
        .args(arguments)
        .envs(plane.environment(User::Admin))
        .stdin(std::process::Stdio::inherit());
    let kin = Kin::mark(&mut command, plane.folder());
    let mut child =
        Bound::start(command, Bond::Foreground).with_context(|| format!("cannot run {}", program.to_string_lossy()))?;
    let (id, done) = (child.id(), tell.clone());
    let waiter = thread::spawn(move || {
        let status = child.wait();
        drop(done.send(Event::Done(Box::new(Ok(None)))));
        status
    });
    loop {
        match events.recv().context("the listener to signals is gone")? {
            // The terminal has sent the signal to the command too.
            Event::Asked(Asked { by_terminal: true, .. }) => {}
            Event::Asked(Asked { signal, .. }) => process::signal(id, signal),
            Event::Done(_) => break,
        }
    }
    let ended = Vec::from_iter(kin.end());
    if !ended.is_empty() {
        say(&format!("ended what the command left: {}", ended.join(", ")));
    }
    // The command will report refused connections. This error tells their cause.
    if let Err(error) = plane.check() {
        say(&format!("error: {}", report::chain(&error)));
    }
    let Ok(status) = waiter.join() else {
        bail!("the thread that waits for the command panicked")
    };
    Ok(ExitCode::from(process::exit_code(
        status.context("cannot learn how the command ended")?,
    )))
}

fn needs(install: bool) -> ExitCode {
    if install {
        match needs::install() {
            Ok(packages) if packages.is_empty() => {}
            Ok(packages) => say(&format!("installed {}", packages.join(", "))),
            Err(error) => say(&report::chain(&error)),
        }
    }
    match needs::obstacle() {
        None => say("this machine can have a real node"),
        Some(obstacle) => say(&format!("everything with a real node is left out: {obstacle}")),
    }
    ExitCode::SUCCESS
}

fn env(folder: Option<PathBuf>, user: User) -> anyhow::Result<ExitCode> {
    let folder = match (folder, plane::running().as_slice()) {
        (Some(folder), _) => folder,
        (None, [only]) => only.clone(),
        (None, []) => bail!("no control plane runs; `testbed up` starts one"),
        (None, several) => {
            let list: Vec<String> = several
                .iter()
                .map(|folder| format!("--dir {}", folder.display()))
                .collect();
            bail!("several control planes run; choose one of: {}", list.join(", "))
        }
    };
    let plane = ControlPlane::join(&folder)?;
    for (name, value) in plane.environment(user) {
        let value = value.to_string_lossy().replace('\'', r"'\''");
        writeln!(io::stdout(), "export {name}='{value}'")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a message to standard error. A closed standard error is no reason to stop.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "testbed: {line}");
}
