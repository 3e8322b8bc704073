//! The command line: parses the arguments, runs the command, and makes the exit code.
//!
//! Data goes to standard output, messages to standard error. The debug commands know the operator only through its
//! debug socket.
#![expect(clippy::doc_markdown, reason = "the doc comments are the text of --help")]

mod channel;
mod completion;
mod config;
mod failure;
mod global;
mod help;
mod hook;
mod hooks;
mod lint;
mod module;
mod new;
mod outside;
mod package;
mod paint;
mod post_renderer;
mod queue;
mod rbac;
mod repair;
mod socket;
mod source;
mod switch;
mod table;
mod test;
mod upgrade;
mod watch;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use report::Report;
use settings::{Environment, Program, StartArgs, variables};

use crate::app::outside::Outside;
use failure::CommandError;
pub use help::{OF_HOOKS, hint, parse};
pub use hooks::HooksCli;
use socket::{Socket, SocketError};

/// The exit code of a command that failed.
pub const FAILED: u8 = 1;
/// The exit code for an invalid command line; the same as the original's, and equal to that of a failure.
pub const USAGE: u8 = 1;

const AFTER_HELP: &str = "\
Exit codes:
  0        done; for start: stopped after SIGTERM or SIGINT
  1        failed, or wrong command line; the reason is on standard error or in the log
  70       a defect of the operator
  75       ended by itself: the lease had run out before all hooks and helm runs had ended
  128 + N  ended at once by a second signal N

Called without a command it starts the operator with the settings of the environment.";

/// Keeps a Kubernetes cluster's add-ons as they should be.
#[derive(Debug, Parser)]
#[command(name = "addon-operator", version, after_help = AFTER_HELP, disable_help_subcommand = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the operator: install, update and remove modules until told to stop
    #[command(after_help = variables::OF_MODULES)]
    Start(Box<StartArgs>),
    /// Print name and version
    Version,
    /// Serve a directory of hooks without modules, as shell-operator does
    Hooks(hooks::Hooks),
    /// Show queues and their tasks
    Queue(queue::Queue),
    /// Show and switch modules: state, waits, values, patches, held removals
    Module(module::Module),
    /// Explain the state of a module and its waits
    Why(module::Why),
    /// Show global hooks and global values, and test the hooks
    Global(global::Global),
    /// Show and change settings of the running operator; check a ConfigMap
    Config(config::Config),
    /// Show and steer the version of the operator: status, approval, hold, rollback
    Channel(channel::Channel),
    /// Show hooks and their snapshots, record their runs, and repeat a run
    Hook(hook::Hook),
    /// Ask registries for versions of packages
    Package(package::Package),
    /// Find the rights that modules need
    Rbac(rbac::Rbac),
    /// Print the answer of the debug socket to a path
    Raw(Raw),
    /// Print a script that completes commands and flags in a shell
    Completion(completion::Completion),
    /// Add labels to the manifests on standard input; helm calls this
    #[command(hide = true)]
    PostRenderer(post_renderer::PostRenderer),
}

#[derive(Debug, Args)]
struct Raw {
    /// The path, `/discovery` lists them
    path: String,
    #[command(flatten)]
    target: Target,
}

/// The flags that name the running operator.
#[derive(Debug, Args)]
struct Target {
    /// Socket of the running operator [env: DEBUG_UNIX_SOCKET] [default: /var/run/PROGRAM/debug.socket]
    #[arg(long, value_name = "FILE", global = true)]
    debug_unix_socket: Option<String>,
    /// Show secrets in values, snapshots and charts; without it they are masked
    #[arg(long, global = true)]
    show_secrets: bool,
    /// Namespace of the operator. With a flag of this group the command asks the operator's pod through the API server
    /// [default: the kubeconfig's]
    #[arg(long, global = true, help_heading = "Cluster")]
    namespace: Option<String>,
    /// Name of the operator's pod; without it the one with the operator's labels
    #[arg(long, value_name = "NAME", global = true, help_heading = "Cluster")]
    pod: Option<String>,
    /// Path of the kubeconfig file [env: KUBE_CONFIG, then KUBECONFIG]
    #[arg(long, value_name = "FILE", global = true, help_heading = "Cluster")]
    kube_config: Option<String>,
    /// Context of the kubeconfig [env: KUBE_CONTEXT] [default: its current context]
    #[arg(long, value_name = "NAME", global = true, help_heading = "Cluster")]
    kube_context: Option<String>,
}

/// The output format. The variants need no help text of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
    Yaml,
    Wide,
}

impl Output {
    /// The name of the format for the operator; the widest table is requested as text.
    fn extension(self) -> &'static str {
        match self {
            Self::Text | Self::Wide => "text",
            Self::Json => "json",
            Self::Yaml => "yaml",
        }
    }
}

/// Runs the typed command.
pub fn run(cli: Cli, environment: &Environment) -> ExitCode {
    let caller = Caller {
        program: Program::AddonOperator,
        environment,
    };
    if let Some(outside) = cli.command.as_ref().and_then(Command::asked).and_then(Target::outside) {
        return outside::run(&outside, &caller);
    }
    let outcome = match cli.command {
        None => return crate::app::main(&StartArgs::default(), environment),
        Some(Command::Start(args)) => return crate::app::main(&args, environment),
        Some(Command::Hooks(hooks)) => return hooks.run(environment),
        Some(Command::PostRenderer(post_renderer)) => return post_renderer.run(),
        Some(Command::Version) => print(concat!("addon-operator ", env!("CARGO_PKG_VERSION"), "\n")),
        Some(Command::Queue(queue)) => queue.run(&caller),
        Some(Command::Module(module)) => module.run(&caller),
        Some(Command::Why(why)) => why.run(&caller),
        Some(Command::Completion(completion)) => completion.run::<Cli>(),
        Some(Command::Global(global)) => global.run(&caller),
        Some(Command::Config(config)) => config.run(&caller),
        Some(Command::Channel(channel)) => channel.run(&caller),
        Some(Command::Hook(hook)) => hook.run(&caller),
        Some(Command::Rbac(rbac)) => rbac.run(&caller),
        Some(Command::Package(package)) => package.run(&caller),
        Some(Command::Raw(raw)) => raw.run(&caller),
    };
    end(outcome)
}

impl Command {
    /// The operator that the command asks, if it asks one.
    fn asked(&self) -> Option<&Target> {
        match self {
            Self::Queue(queue) => Some(&queue.target),
            Self::Module(module) => module.asked(),
            Self::Why(why) => Some(&why.target),
            Self::Global(global) => global.asked(),
            Self::Config(config) => config.asked(),
            Self::Channel(channel) => channel.asked(),
            Self::Hook(hook) => hook.asked(),
            Self::Raw(raw) => Some(&raw.target),
            Self::Start(_)
            | Self::Version
            | Self::Hooks(_)
            | Self::Completion(_)
            | Self::Package(_)
            | Self::Rbac(_)
            | Self::PostRenderer(_) => None,
        }
    }
}

/// The exit code of a command, after printing its error.
fn end(outcome: Result<(), CommandError>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(CommandError::Print(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        // The operator's error text goes to standard output too, because scripts have always read it there.
        Err(CommandError::Socket(refused @ SocketError::Refused { .. })) => {
            refused
                .hints()
                .iter()
                .for_each(|hint| drop(writeln!(io::stderr(), "hint: {hint}")));
            end(show(&format!("{refused}\n")))
        }
        Err(error) => fail(&Report::new(&error).with_hints(error.hints())),
    }
}

impl Raw {
    fn run(self, caller: &Caller<'_>) -> Result<(), CommandError> {
        let Self { path, target } = self;
        show(&target.socket(caller)?.get(&path)?)
    }
}

/// Prints why the program ends.
pub fn fail(report: &Report) -> ExitCode {
    // Without standard error only the exit code tells the failure.
    drop(write!(io::stderr(), "{report}"));
    ExitCode::from(FAILED)
}

/// The name by which the program was called, and its environment.
struct Caller<'a> {
    program: Program,
    environment: &'a Environment,
}

impl Target {
    /// The start arguments that lead to the same cluster, for commands that edit its ConfigMap themselves.
    fn start_args(&self, config_map: Option<String>) -> StartArgs {
        let mut args = StartArgs {
            namespace: self.namespace.clone(),
            config_map,
            ..StartArgs::default()
        };
        args.shared.kube_config.clone_from(&self.kube_config);
        args.shared.kube_context.clone_from(&self.kube_context);
        args
    }

    /// The place of the operator, if flags name one outside.
    fn outside(&self) -> Option<Outside> {
        let outside = Outside {
            namespace: self.namespace.clone(),
            pod: self.pod.clone(),
            kube_config: self.kube_config.clone(),
            kube_context: self.kube_context.clone(),
        };
        (outside != Outside::default()).then_some(outside)
    }

    fn socket(&self, caller: &Caller<'_>) -> Result<Socket, CommandError> {
        let flag = self.debug_unix_socket.as_deref();
        let path = settings::debug_socket(caller.program, flag, caller.environment)?;
        Ok(Socket::new(path, self.show_secrets))
    }
}

/// Prints the operator's answer with an additional line break, as the original does.
fn show(answer: &str) -> Result<(), CommandError> {
    print(&format!("{answer}\n"))
}

/// Prints data, with a line break at its end.
fn print(data: &str) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    let end = if data.is_empty() || data.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    write!(out, "{data}{end}")
        .and_then(|()| out.flush())
        .map_err(CommandError::Print)
}
