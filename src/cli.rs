//! The command line: parses the arguments, runs the command, and makes the exit code.
//!
//! Data goes to standard output, messages to standard error. The debug commands know the operator only through its
//! debug socket.
#![expect(clippy::doc_markdown, reason = "the doc comments are the text of --help")]

mod completion;
mod config;
mod failure;
mod global;
mod help;
mod hook;
mod hooks;
mod module;
mod page;
mod plan;
mod post_renderer;
mod queue;
mod suspend;
mod switch;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use command::outside::typed;
use command::socket::SocketError;
use command::{Caller, CommandError, Target, print, show};
use report::Report;
use settings::{Environment, Program, StartArgs, variables};

pub use help::{OF_HOOKS, hint, parse, parse_plugin};
pub use hooks::HooksCli;

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
    /// Show what a change of the ConfigMap or of modules would do, before it is made
    #[command(after_help = plan::AFTER_HELP)]
    Plan(plan::Plan),
    /// Show global hooks and global values, and test the hooks
    Global(global::Global),
    /// Show and change settings of the running operator; check a ConfigMap
    Config(config::Config),
    /// Show and steer the version of the operator: status, approval, hold, rollback
    Channel(channel::command::Channel),
    /// Show hooks and their snapshots, record their runs, and repeat a run
    Hook(hook::Hook),
    /// Ask registries for versions of packages
    Package(package::command::Package),
    /// Judge objects that are given as text
    Object(releases::command::object::Object),
    /// Open the operator's page in a browser: forwards a port to the pod that leads, until Ctrl-C
    Page(page::Page),
    /// Find the rights that modules need
    Rbac(authoring::command::rbac::Rbac),
    /// Plan how the operator takes over releases of helm, Flux and Argo CD
    Migrate(migrate::command::Migrate),
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

/// Runs the typed command. As a plugin of kubectl it asks the operator of the kubeconfig's cluster.
pub fn run(cli: Cli, is_plugin: bool, environment: &Environment) -> ExitCode {
    let caller = Caller {
        program: Program::AddonOperator,
        is_plugin,
        environment,
    };
    if let Some(outside) = cli
        .command
        .as_ref()
        .and_then(Command::asked)
        .and_then(|target| caller.place(target))
    {
        return end_with(typed::run(&outside, &caller), &caller);
    }
    let outcome = match cli.command {
        None => return crate::app::main(&StartArgs::default(), environment),
        Some(Command::Start(args)) => return crate::app::main(&args, environment),
        Some(Command::Hooks(hooks)) => return hooks.run(is_plugin, environment),
        Some(Command::PostRenderer(post_renderer)) => return post_renderer.run(),
        Some(Command::Plan(plan)) => return end_with(plan.run(&caller), &caller),
        Some(Command::Migrate(migrate)) => return end_with(migrate.run(&caller), &caller),
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
        Some(Command::Object(object)) => object.run(&caller),
        Some(Command::Page(page)) => page.run(&caller),
        Some(Command::Raw(raw)) => raw.run(&caller),
    };
    end(outcome, &caller)
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
            | Self::Object(_)
            // The file is here, so the command goes to the pod in words of its own.
            | Self::Plan(_)
            | Self::Migrate(_)
            | Self::Page(_)
            | Self::Rbac(_)
            | Self::PostRenderer(_) => None,
        }
    }
}

/// The exit code of a command, after printing its error.
fn end(outcome: Result<(), CommandError>, caller: &Caller<'_>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(CommandError::Print(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        // The operator's error text goes to standard output too, because scripts have always read it there.
        Err(CommandError::Socket(refused @ SocketError::Refused { .. })) => {
            for hint in refused.hints() {
                drop(writeln!(io::stderr(), "hint: {}", caller.worded(hint)));
            }
            end(show(&format!("{refused}\n")), caller)
        }
        Err(error) => {
            let hints = error.hints().into_iter().map(|hint| caller.worded(&hint));
            fail(&Report::new(&error).with_hints(hints))
        }
    }
}

/// The exit code of a command that has one of its own, or that ran in the pod of an operator elsewhere.
fn end_with(outcome: Result<u8, CommandError>, caller: &Caller<'_>) -> ExitCode {
    outcome.map_or_else(|error| end(Err(error), caller), ExitCode::from)
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

#[cfg(test)]
mod tests {
    use command::outside::typed::without_way;

    use super::*;

    #[test]
    fn a_confirmation_goes_to_the_pod_too() {
        let typed = "addon-operator module purge --confirm 3 --namespace ns";
        let cli = Cli::try_parse_from(typed.split(' ')).unwrap();
        let asked = cli.command.as_ref().and_then(Command::asked);
        assert!(asked.and_then(Target::outside).is_some());
        let command = without_way(typed.split(' ').map(str::to_owned));
        assert_eq!(command.join(" "), "addon-operator module purge --confirm 3");
    }

    #[test]
    fn questions_about_sources_go_to_the_pod() {
        for (words, expected) in [
            ("status", true),
            ("check shop", true),
            ("pin shop", false),
            ("approve shop", false),
        ] {
            let typed = format!("addon-operator module source {words} --pod a");
            let cli = Cli::try_parse_from(typed.split(' ')).unwrap();
            let asked = cli.command.as_ref().and_then(Command::asked);
            assert_eq!(asked.and_then(Target::outside).is_some(), expected, "{words}");
        }
    }
}
