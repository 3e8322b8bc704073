//! `module`: the list of modules, the state of each with its reason, and its values.

mod apis;
mod health;
mod objects;
mod overview;
mod purge;
pub(super) mod status;
mod wait;

use authoring::command::lint::{Lint, Manifest};
use authoring::command::new::New;
use authoring::command::test::Test;
use clap::{Args, Subcommand};
use command::paint::{Paint, columns};
use command::socket::{Socket, SocketError, encode};
use command::watch::Watching;
use command::{Caller, CommandError, Output, Target, print, show};
use jiff::Timestamp;
use package::command::{Pull, Push};
use plan::command::Diff;
use releases::command::events::Events;
use releases::command::history::History;
use releases::command::logs::Logs;
use releases::command::repair::Release;
use releases::command::upgrade::Upgrade;
use sources::command::Source;

use super::failure::Refusal;
use super::suspend::Suspend;
use super::switch::{Switch, Way};

#[derive(Debug, Args)]
pub(super) struct Module {
    #[command(subcommand)]
    command: ModuleCommand,
    #[command(flatten)]
    target: Target,
    /// Format of the answer [default: yaml; of get, tree, why, events, apis, purge, history and diff: text; of patches: json]
    #[arg(short, long, value_enum, global = true)]
    output: Option<Output>,
}

#[derive(Debug, Subcommand)]
enum ModuleCommand {
    #[command(flatten)]
    Ask(Question),
    #[command(flatten)]
    Act(Deed),
}

/// The commands that ask the running operator.
#[derive(Debug, Subcommand)]
enum Question {
    /// List the enabled modules; with `-o wide` all modules, their states and waits
    List(Watching),
    /// Show everything about a module: state, release, hooks, waits
    Get(OneModule),
    /// Print the objects of a module's release with their health, those first that do not do their work
    Tree(OneModule),
    /// Explain the state of a module and its waits
    Why(OneModule),
    /// Wait until modules are healthy, ready or gone
    #[command(after_help = "Exit code 1: a module is not there, or the time is over.")]
    Wait(wait::Wait),
    /// Print the effective values of a module
    Values(Section),
    /// Print a module's section of the ConfigMap
    Config(Section),
    /// Print the manifest that a module's chart renders to now
    Render(Render),
    /// Print the patches of hooks to a module's values
    Patches(Named),
    /// Show the removals that are held because too many came at once, or confirm them
    Purge(purge::Purge),
    /// List the kinds in releases that a version of Kubernetes calls deprecated or does not have
    #[command(after_help = "Exit code 1: a kind is gone in that version, or the record of a release cannot be read.")]
    Apis(apis::Apis),
    /// Read a module's directory again: the module begins a new life with its files, and no other module does
    Reload(Named),
    /// Print the watched objects of the modules' releases
    ResourceMonitor {
        /// Ignored, as in the original
        #[arg(hide = true)]
        module: Option<String>,
    },
    /// Print the snapshots of a module's hooks
    Snapshots(Named),
}

/// The commands that need no running operator.
#[derive(Debug, Subcommand)]
enum Deed {
    /// Switch a module on in the ConfigMap
    Enable(Switch),
    /// Switch a module off in the ConfigMap, after a list of the objects that this deletes
    Disable(Switch),
    /// Leave the objects of a module to people: the operator neither changes nor restores them until `resume`
    Suspend(Suspend),
    /// Have the operator maintain the objects of a module again
    Resume(Suspend),
    /// Show the reason for which an upgrade is held, or let it delete or replace objects
    Upgrade(Upgrade),
    /// List the Kubernetes Events about a module, its objects and their pods, the newest last
    Events(Events),
    /// Show the newest lines of a module's pods, and the output of its hooks
    #[command(after_help = "Exit code 1: there is no line.")]
    Logs(Logs),
    /// List the revisions of a module's release, newest first
    History(History),
    /// Show the objects and fields in which two revisions of a module's release differ
    Diff(Diff),
    /// Show and repair helm's records of a module's release
    Release(Release),
    /// Show and steer the versions of modules that come from registries
    Source(Source),
    /// Look for mistakes in a module's files: hooks, values, chart, schemas
    Lint(Lint),
    /// Play the cases in a module's directory tests: hooks, values, schemas and chart, without a cluster
    Test(Test),
    /// Write the files of a new module, with tests; --from-chart wraps a chart
    New(New),
    /// Print the manifest of a modules directory: the files that must be there when the operator starts
    Manifest(Manifest),
    /// Push a module's directory to a registry, and print the digest
    Push(Push),
    /// Pull a module from a registry into a directory: ours, an image that holds a module, or a chart of Helm
    Pull(Pull),
}

#[derive(Debug, Args)]
struct Named {
    /// Name of the module
    module: String,
}

#[derive(Debug, Args)]
struct Section {
    /// Name of the module
    module: String,
    /// Print the global section, too
    #[arg(short, long)]
    global: bool,
}

#[derive(Debug, Args)]
struct Render {
    /// Name of the module
    module: String,
    /// Print the output also when it is no valid YAML
    #[arg(long)]
    debug: bool,
    /// Print the difference to the objects in the cluster instead
    #[arg(long)]
    diff: bool,
}

/// The arguments of a command about one module, and the flags for repeating its output.
#[derive(Debug, Args)]
struct OneModule {
    /// Name of the module
    module: String,
    #[command(flatten)]
    watching: Watching,
}

/// `why` as a command of its own, because it is needed so often.
#[derive(Debug, Args)]
pub(super) struct Why {
    #[command(flatten)]
    standing: OneModule,
    #[command(flatten)]
    pub(super) target: Target,
    /// Format of the answer
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
}

impl Module {
    /// The operator that the command asks, unless it needs none.
    pub(super) fn asked(&self) -> Option<&Target> {
        match &self.command {
            ModuleCommand::Ask(_) => Some(&self.target),
            ModuleCommand::Act(Deed::Source(source)) => source.only_asks().then_some(&self.target),
            ModuleCommand::Act(_) => None,
        }
    }

    pub(super) fn run(self, caller: &Caller<'_>) -> Result<(), CommandError> {
        let Self {
            command,
            target,
            output,
        } = self;
        let question = match command {
            ModuleCommand::Act(Deed::Enable(switch)) => return switch.run(Way::On, &target, caller),
            ModuleCommand::Act(Deed::Disable(switch)) => return switch.run(Way::Off, &target, caller),
            ModuleCommand::Act(Deed::Suspend(suspend)) => return suspend.run(false, &target, caller),
            ModuleCommand::Act(Deed::Resume(suspend)) => return suspend.run(true, &target, caller),
            ModuleCommand::Act(Deed::Upgrade(upgrade)) => return upgrade.run(&target, caller),
            ModuleCommand::Act(Deed::Events(events)) => return events.run(&target, output, caller),
            ModuleCommand::Act(Deed::Logs(logs)) => return logs.run(&target, caller),
            ModuleCommand::Act(Deed::History(history)) => return history.run(&target, output, caller),
            ModuleCommand::Act(Deed::Diff(diff)) => return diff.run(&target, output, caller),
            ModuleCommand::Act(Deed::Release(release)) => return release.run(&target, caller),
            ModuleCommand::Act(Deed::Source(source)) => return source.run(&target, output, caller),
            ModuleCommand::Act(Deed::Manifest(manifest)) => return manifest.run(),
            ModuleCommand::Act(Deed::Push(push)) => return push.run(caller),
            ModuleCommand::Act(Deed::Pull(pull)) => return pull.run(caller),
            ModuleCommand::Act(Deed::Lint(lint)) => return lint.run(caller, output),
            ModuleCommand::Act(Deed::Test(test)) => return test.run(caller),
            ModuleCommand::Act(Deed::New(new)) => return new.run(),
            ModuleCommand::Ask(question) => question,
        };
        let socket = target.socket(caller)?;
        let paint = Paint::of(caller.environment);
        let form = output.unwrap_or(Output::Yaml).extension();
        let answer = match question {
            Question::List(watching) => return list(&socket, &watching, output, paint),
            Question::Get(standing) => {
                return standing.print(&socket, output, |_, status| {
                    status::full(status, Timestamp::now(), paint) + &objects::tree(&socket, &status.name, paint)
                });
            }
            Question::Tree(standing) => {
                return standing.print(&socket, output, |_, status| {
                    objects::whole(&socket, &status.name, paint)
                });
            }
            Question::Why(standing) => return standing.why(&socket, output, paint),
            Question::Wait(wait) => return wait.run(&socket),
            Question::Values(section) => section.read(&socket, "values", form),
            Question::Config(section) => section.read(&socket, "config", form),
            Question::Render(render) => render.read(&socket),
            // JSON by default as in the original, because scripts read it with jq.
            Question::Patches(named) => named.read(&socket, "patches", output.unwrap_or(Output::Json).extension()),
            Question::Apis(apis) => return apis.run(&socket, output, paint),
            Question::Purge(purge) => return purge.run(&socket, output.unwrap_or(Output::Text)),
            Question::Reload(named) => return named.reload(&socket),
            Question::ResourceMonitor { module: _ } => socket.get(&format!("/module/resource-monitor.{form}")),
            Question::Snapshots(named) => named.read(&socket, "snapshots", form),
        };
        show(&answer?)
    }
}

impl Why {
    pub(super) fn run(self, caller: &Caller<'_>) -> Result<(), CommandError> {
        let socket = self.target.socket(caller)?;
        self.standing
            .why(&socket, Some(self.output), Paint::of(caller.environment))
    }
}

fn list(socket: &Socket, watching: &Watching, output: Option<Output>, paint: Paint) -> Result<(), CommandError> {
    let output = output.unwrap_or(Output::Yaml);
    watching.print(|| {
        Ok(match output {
            Output::Wide => overview::table(&status::read(socket)?, Timestamp::now(), paint, columns()),
            Output::Text | Output::Json | Output::Yaml => {
                socket.get(&format!("/module/list.{}", output.extension()))? + "\n"
            }
        })
    })
}

impl OneModule {
    fn why(&self, socket: &Socket, output: Option<Output>, paint: Paint) -> Result<(), CommandError> {
        self.print(socket, output, |modules, status| status::why(modules, status, paint))
    }

    fn print(
        &self,
        socket: &Socket,
        output: Option<Output>,
        text: impl Fn(&[status::Status], &status::Status) -> String,
    ) -> Result<(), CommandError> {
        let Self { module, watching } = self;
        watching.print(|| match output {
            None | Some(Output::Text | Output::Wide) => {
                let modules = status::read(socket)?;
                match status::find(&modules, module) {
                    Ok(found) => Ok(text(&modules, found)),
                    Err(missing) => purge::why(socket, module)?.ok_or(missing),
                }
            }
            Some(form @ (Output::Json | Output::Yaml)) => {
                let path = format!("/module/{}/status.{}", encode(module), form.extension());
                Ok(socket.get(&path)?)
            }
        })
    }
}

impl Named {
    fn reload(&self, socket: &Socket) -> Result<(), CommandError> {
        match socket.post_patiently("/module/reload", &[("module", &self.module)]) {
            Ok(answer) => print(&answer),
            Err(SocketError::Refused { message, .. }) => Err(Refusal::NotReloaded { message }.into()),
            Err(error) => Err(error.into()),
        }
    }

    fn read(&self, socket: &Socket, document: &str, form: &str) -> Result<String, SocketError> {
        let module = encode(&self.module);
        socket.get(&format!("/module/{module}/{document}.{form}"))
    }
}

impl Section {
    fn read(&self, socket: &Socket, document: &str, form: &str) -> Result<String, SocketError> {
        let Self { module, global } = self;
        let global = if *global { "?global=true" } else { "" };
        let module = encode(module);
        socket.get(&format!("/module/{module}/{document}.{form}{global}"))
    }
}

impl Render {
    fn read(&self, socket: &Socket) -> Result<String, SocketError> {
        let Self { module, debug, diff } = self;
        let module = encode(module);
        socket.get_patiently(&format!("/module/{module}/render?debug={debug}&diff={diff}"))
    }
}
