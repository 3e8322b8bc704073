//! `channel`: shows and steers the version of the operator.
#![expect(clippy::doc_markdown, reason = "the doc comments are the text of --help")]

pub mod plan;

use clap::{Args, Subcommand};
use command::outside::typed;
use command::question::{ask, change, say};
use command::socket::SocketError;
use command::watch::Watching;
use command::{Caller, CommandError, Output, Target, print, show};

use plan::{Approval, Available, ChannelError, Plan, Site};

#[derive(Debug, Args)]
pub struct Channel {
    #[command(subcommand)]
    command: ChannelCommand,
    #[command(flatten)]
    target: Target,
    /// Format of the status
    #[arg(short, long, value_enum, default_value = "text", global = true)]
    output: Output,
}

#[derive(Debug, Subcommand)]
enum ChannelCommand {
    #[command(flatten)]
    Ask(Question),
    #[command(flatten)]
    Act(Deed),
}

/// The commands that ask the running operator.
#[derive(Debug, Subcommand)]
enum Question {
    /// Show the running and the wanted version, the reasons of a wait, and the next step
    Status(Watching),
    /// Make the operator ask the registry at once, and show the status
    Check,
}

/// The commands that edit the ConfigMap and need no running operator.
#[derive(Debug, Subcommand)]
enum Deed {
    /// Approve a version: it skips mode, delay and the memory of a failed trial, but still waits for a window
    #[command(
        after_help = "The command adds the digests to releaseApproved. A version that needs an approval waits until then. Other versions \
                      are not affected."
    )]
    Approve {
        /// Digests of the versions; without one the available version
        #[arg(value_name = "DIGEST")]
        digests: Vec<String>,
        /// Withdraw the approval
        #[arg(long)]
        take_back: bool,
        #[command(flatten)]
        place: ConfigMapPlace,
    },
    /// Hold a version until `channel resume`
    #[command(
        after_help = "The command sets releaseChannel to the digest. An operator that is not pinned follows the channel."
    )]
    Pin {
        /// Digest of the version to hold; a version that does not run is tried first. Without it the running version is held
        digest: Option<String>,
        #[command(flatten)]
        place: ConfigMapPlace,
    },
    /// Follow the channel again after a pin, a rollback or an image that was set by hand
    #[command(
        after_help = "The command removes a digest from releaseChannel, or sets releaseChannel to --channel. It notes on the Deployment \
                      that the image is not held. A held version stays, and a stopped channel (UpdateStopped) stays stopped, until this \
                      command runs."
    )]
    Resume {
        /// The tag or range of versions to follow [default: releaseChannel, or the tag of the operator's own image]
        #[arg(long, value_name = "TAG|RANGE")]
        channel: Option<String>,
        #[command(flatten)]
        place: ConfigMapPlace,
    },
    /// Return at once to the former image, and hold it
    #[command(
        after_help = "The command sets releaseChannel and the image of the Deployment, with your own rights and without a trial. The \
                      operator need not run. By itself the operator returns to the former version only after a failed trial."
    )]
    Rollback {
        /// Digest of the version to return to; without it the former image
        digest: Option<String>,
        #[command(flatten)]
        place: ConfigMapPlace,
    },
}

/// The flags that name the ConfigMap and the Deployment.
#[derive(Debug, Args)]
struct ConfigMapPlace {
    /// Skip the question whether to go on
    #[arg(short, long)]
    yes: bool,
    /// Name of the ConfigMap [env: ADDON_OPERATOR_CONFIG_MAP] [default: addon-operator]
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    config_map: Option<String>,
    /// Name of the operator's Deployment; without it the one with the operator's labels
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    deployment: Option<String>,
}

impl Channel {
    /// The operator that the command asks, unless it needs none.
    pub fn asked(&self) -> Option<&Target> {
        match self.command {
            ChannelCommand::Ask(_) => Some(&self.target),
            ChannelCommand::Act(_) => None,
        }
    }

    pub fn run(self, caller: &Caller<'_>) -> Result<(), CommandError> {
        let Self {
            command,
            target,
            output,
        } = self;
        let path = format!("/channel/status.{}", output.extension());
        match command {
            ChannelCommand::Ask(Question::Status(watching)) => {
                let socket = target.socket(caller)?;
                watching.print(|| Ok(socket.get(&path)?))
            }
            ChannelCommand::Ask(Question::Check) => {
                let socket = target.socket(caller)?;
                socket.post_patiently("/channel/check", &[]).map_err(not_asked)?;
                show(socket.get(&path)?.trim_end_matches('\n'))
            }
            ChannelCommand::Act(deed) => deed.run(&target, caller),
        }
    }
}

impl Deed {
    fn run(self, target: &Target, caller: &Caller<'_>) -> Result<(), CommandError> {
        match self {
            Self::Approve {
                mut digests,
                take_back,
                place,
            } => {
                if digests.is_empty() {
                    let command = ["channel", "status", "-o", "json"];
                    let status = typed::report(target, caller, "/channel/status.json", &command)?;
                    let available = Available::read(&status)?;
                    say(&format!("Available is {}\n", available.name))?;
                    digests.push(available.digest);
                }
                let approval = if take_back {
                    Approval::TakenBack
                } else {
                    Approval::Given
                };
                place.carry_out(target, caller, |site| Ok(site.approve(&digests, approval)?))
            }
            Self::Pin { digest, place } => place.carry_out(target, caller, |site| Ok(site.pin(digest.as_deref())?)),
            Self::Resume { channel, place } => {
                place.carry_out(target, caller, |site| Ok(site.resume(channel.as_deref())?))
            }
            Self::Rollback { digest, place } => {
                place.carry_out(target, caller, |site| Ok(site.rollback(digest.as_deref())?))
            }
        }
    }
}

impl ConfigMapPlace {
    /// Shows the effects, asks the person, and makes the change.
    fn carry_out(
        self,
        target: &Target,
        caller: &Caller<'_>,
        plan: impl FnOnce(Site) -> Result<Plan, CommandError>,
    ) -> Result<(), CommandError> {
        let Self {
            yes,
            config_map,
            deployment,
        } = self;
        let args = target.start_args(config_map);
        let plan = plan(Site::reach(&args, caller.environment, deployment)?)?;
        let edit = plan.edit();
        if plan.is_done() {
            return print(&format!("{} is {} already", edit.key, edit.wanted()));
        }
        if edit.is_done() {
            say(&format!("{} stays {}\n", edit.key, edit.wanted()))?;
        } else {
            say(&change(&plan.place(), edit))?;
        }
        for line in plan.besides() {
            say(&format!("{line}\n"))?;
        }
        if !yes {
            ask()?;
        }
        print(&plan.carry_out()?.join("\n"))
    }
}

/// Turns a refusal into a failure: for this command it is no answer.
fn not_asked(error: SocketError) -> CommandError {
    match error {
        SocketError::Refused { message, .. } => ChannelError::NotChecked { message }.into(),
        error => CommandError::Socket(error),
    }
}
