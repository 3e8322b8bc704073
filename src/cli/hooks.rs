//! The binary as a server of hooks without modules: `addon-operator hooks …`, or called by the name `shell-operator`.

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use command::outside::typed;
use command::{Caller, Target, print};
use settings::{Environment, HooksArgs, Program, variables};

use super::{AFTER_HELP, Raw, completion, config, end, end_with, hook, queue};

/// Runs the hooks of a directory when something happens in a Kubernetes cluster.
#[derive(Debug, Parser)]
#[command(name = "shell-operator", version, after_help = AFTER_HELP, disable_help_subcommand = true)]
pub struct HooksCli {
    #[command(subcommand)]
    command: Option<HooksCommand>,
}

#[derive(Debug, Args)]
#[command(after_help = "Called without a command it starts with the settings of the environment.")]
pub(super) struct Hooks {
    #[command(subcommand)]
    command: Option<HooksCommand>,
}

#[derive(Debug, Subcommand)]
enum HooksCommand {
    /// Run the hooks of a directory until told to stop
    #[command(after_help = variables::OF_HOOKS)]
    Start(Box<HooksArgs>),
    /// Print name and version
    Version,
    /// Show queues and their tasks
    Queue(queue::Queue),
    /// Show hooks and their snapshots, record their runs, and repeat a run
    Hook(hook::Hook),
    /// Show and change settings of the running operator; check a ConfigMap
    Config(config::Config),
    /// Print a script that completes commands and flags in a shell
    Completion(completion::Completion),
    /// Print the answer of the debug socket to a path
    Raw(Raw),
}

impl Hooks {
    pub(super) fn run(self, is_plugin: bool, environment: &Environment) -> ExitCode {
        run(self.command, is_plugin, environment)
    }
}

impl HooksCli {
    /// Runs the typed command.
    pub fn run(self, environment: &Environment) -> ExitCode {
        run(self.command, false, environment)
    }
}

impl HooksCommand {
    fn asked(&self) -> Option<&Target> {
        match self {
            Self::Queue(queue) => Some(&queue.target),
            Self::Hook(hook) => hook.asked(),
            Self::Config(config) => config.asked(),
            Self::Raw(raw) => Some(&raw.target),
            Self::Start(_) | Self::Version | Self::Completion(_) => None,
        }
    }
}

fn run(command: Option<HooksCommand>, is_plugin: bool, environment: &Environment) -> ExitCode {
    let caller = Caller {
        program: Program::ShellOperator,
        is_plugin,
        environment,
    };
    if let Some(outside) = command
        .as_ref()
        .and_then(HooksCommand::asked)
        .and_then(|target| caller.place(target))
    {
        return end_with(typed::run(&outside, &caller), &caller);
    }
    let outcome = match command {
        None => return crate::app::serve_hooks(&HooksArgs::default(), environment),
        Some(HooksCommand::Start(args)) => return crate::app::serve_hooks(&args, environment),
        Some(HooksCommand::Version) => print(concat!(
            "shell-operator ",
            env!("CARGO_PKG_VERSION"),
            "\njqFilter implementation: using jaq\n"
        )),
        Some(HooksCommand::Queue(queue)) => queue.run(&caller),
        Some(HooksCommand::Hook(hook)) => hook.run(&caller),
        Some(HooksCommand::Config(config)) => config.run(&caller),
        Some(HooksCommand::Completion(completion)) => completion.run::<HooksCli>(),
        Some(HooksCommand::Raw(raw)) => raw.run(&caller),
    };
    end(outcome, &caller)
}
