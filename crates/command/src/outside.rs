//! Runs a command in the pod of an operator that runs elsewhere, and passes its output on.
//!
//! Only users with the right to run programs in that pod see anything, and the operator opens no port for this. Must
//! never run another command than the one that the person typed.

pub mod typed;

use std::io::{self, Write as _};

use blocking::threads;
use kube_access::pods::{PodError, Stream};
use settings::{ConfigurationError, Environment, HooksArgs, Machine, Program, Settings, StartArgs};
use thiserror::Error;
use tokio::signal::unix::{SignalKind, signal};

use crate::reach::{self, ReachError};
use crate::{Caller, Hinted};

/// The escape sequence that shows a terminal's main screen again, after a watching command has ended.
const FIRST_SCREEN: &str = "\u{1b}[?1049l";
const OTHER_SCREEN: &[u8] = b"\x1b[?1049h";

/// The place at which a command finds the operator: its pod, namespace and cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outside {
    pub namespace: Option<String>,
    /// The name of the operator's pod; `None` to find the pod by its labels.
    pub pod: Option<String>,
    pub kube_config: Option<String>,
    pub kube_context: Option<String>,
}

/// Why the command was not run in the pod.
#[derive(Debug, Error)]
pub enum OutsideError {
    #[error(transparent)]
    Reach(#[from] ReachError),
    #[error("cannot wait for Ctrl-C")]
    Signal(#[source] io::Error),
    #[error(transparent)]
    Pod(#[from] PodError),
    #[error("the operator in its pod gave no answer: {0}")]
    NoAnswer(String),
}

impl OutsideError {
    /// The cause, if the error is that the output could not be written here.
    pub fn unheard(&self) -> Option<&io::Error> {
        match self {
            Self::Pod(PodError::Tell(error)) => Some(error),
            _ => None,
        }
    }
}

impl Hinted for OutsideError {
    fn hints(&self) -> Vec<String> {
        match self {
            Self::Reach(error) => error.hints(),
            Self::Pod(PodError::Request(failure)) => failure.hints.clone(),
            Self::Pod(PodError::None { .. }) => {
                vec![
                    "--namespace names the namespace to search, and --pod the pod, without regard to its labels"
                        .to_owned(),
                ]
            }
            Self::Pod(PodError::Several { .. }) => vec!["--pod names the pod".to_owned()],
            Self::Pod(PodError::Broken { .. } | PodError::NotRun { .. } | PodError::Tell(_))
            | Self::NoAnswer(_)
            | Self::Signal(_) => Vec::new(),
        }
    }
}

/// Runs the command in the operator's pod, and returns its exit code.
pub fn run(
    outside: &Outside,
    caller: &Caller<'_>,
    command: Vec<String>,
    input: Option<&str>,
) -> Result<u8, OutsideError> {
    let (program, environment) = (caller.program, caller.environment);
    let runtime = threads::runtime().map_err(ReachError::Start)?;
    let code = runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt()).map_err(OutsideError::Signal)?;
        let mut relay = Relay {
            caller,
            elsewhere: false,
        };
        let mut tell = |stream, bytes: &[u8]| relay.tell(stream, bytes);
        let ended = tokio::select! {
            code = told(outside, program, command, input, environment, &mut tell) => code,
            // The program in the pod ends when its output has no reader.
            _ = interrupt.recv() => Ok(0),
        };
        relay.leave();
        ended
    });
    runtime.shutdown_background();
    code
}

/// The exit code and the output of the command in the pod. Its messages are passed on.
pub fn outcome(
    outside: &Outside,
    caller: &Caller<'_>,
    command: Vec<String>,
    input: Option<&str>,
) -> Result<(u8, String), OutsideError> {
    let runtime = threads::runtime().map_err(ReachError::Start)?;
    let mut said = Vec::new();
    let mut relay = Relay {
        caller,
        elsewhere: false,
    };
    let mut tell = |stream, bytes: &[u8]| match stream {
        Stream::Stdout => {
            said.extend_from_slice(bytes);
            Ok(())
        }
        Stream::Stderr => relay.tell(stream, bytes),
    };
    let told = told(outside, caller.program, command, input, caller.environment, &mut tell);
    let code = runtime.block_on(told);
    runtime.shutdown_background();
    Ok((code?, String::from_utf8_lossy(&said).into_owned()))
}

/// The output of the command in the pod, if it succeeds.
pub fn answer(
    outside: &Outside,
    program: Program,
    command: Vec<String>,
    environment: &Environment,
) -> Result<String, OutsideError> {
    let runtime = threads::runtime().map_err(ReachError::Start)?;
    let (mut said, mut complaint) = (Vec::new(), Vec::new());
    let mut tell = |stream, bytes: &[u8]| {
        match stream {
            Stream::Stdout => said.extend_from_slice(bytes),
            Stream::Stderr => complaint.extend_from_slice(bytes),
        }
        Ok(())
    };
    let code = runtime.block_on(told(outside, program, command, None, environment, &mut tell));
    runtime.shutdown_background();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim_end().to_owned();
    match code? {
        0 => Ok(text(said)),
        _ => Err(OutsideError::NoAnswer(text([said, complaint].concat()))),
    }
}

async fn told(
    outside: &Outside,
    program: Program,
    command: Vec<String>,
    input: Option<&str>,
    environment: &Environment,
    tell: &mut impl FnMut(Stream, &[u8]) -> io::Result<()>,
) -> Result<u8, OutsideError> {
    let settings = settings(outside, program, environment).map_err(ReachError::Settings)?;
    let cluster = reach::cluster(&settings, environment).await?;
    let (name, lease) = (program.name(), program.lease());
    let place = cluster.find_program(name, lease, outside.pod.as_deref()).await?;
    Ok(cluster.run_in(&place, command, input, tell).await?)
}

fn settings(outside: &Outside, program: Program, environment: &Environment) -> Result<Settings, ConfigurationError> {
    let Outside {
        namespace,
        pod: _,
        kube_config,
        kube_context,
    } = outside.clone();
    match program {
        Program::AddonOperator => {
            let mut args = StartArgs {
                namespace,
                ..StartArgs::default()
            };
            (args.shared.kube_config, args.shared.kube_context) = (kube_config, kube_context);
            Settings::check(&args, environment, &Machine::this())
        }
        Program::ShellOperator => {
            let mut args = HooksArgs {
                namespace,
                ..HooksArgs::default()
            };
            (args.shared.kube_config, args.shared.kube_context) = (kube_config, kube_context);
            Settings::check_hooks(&args, environment, &Machine::this())
        }
    }
}

/// Writes the output of the program in the pod here.
#[derive(Debug)]
struct Relay<'a> {
    caller: &'a Caller<'a>,
    /// Whether the terminal shows its alternate screen.
    elsewhere: bool,
}

impl Relay<'_> {
    fn tell(&mut self, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        match stream {
            Stream::Stdout => {
                self.elsewhere |= bytes.starts_with(OTHER_SCREEN);
                let mut out = io::stdout().lock();
                out.write_all(bytes).and_then(|()| out.flush())
            }
            // Hints are there. A part that ends within a letter is passed on as it is.
            Stream::Stderr => match str::from_utf8(bytes) {
                Ok(text) => io::stderr().write_all(self.caller.worded(text).as_bytes()),
                Err(_) => io::stderr().write_all(bytes),
            },
        }
    }

    /// Shows the main screen again.
    fn leave(&self) {
        if self.elsewhere {
            // Without a terminal no screen has to be restored.
            drop(writeln!(io::stdout(), "{FIRST_SCREEN}"));
        }
    }
}
