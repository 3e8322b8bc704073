//! One running program of a control plane, with its log.
//!
//! Waiting here watches all programs at once, so that a start fails with the log of the one that died and not with a
//! time-out of the one that waited for it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use fs_err as fs;
use thiserror::Error;

use crate::environment;
use crate::process::{self, Bond, Bound};
use crate::space::Network;

#[derive(Debug, Error)]
pub enum ComponentError {
    #[error("cannot start {name}")]
    Start { name: &'static str, source: io::Error },
    #[error("{name} ended ({status}); the end of its log:\n{tail}")]
    Died {
        name: &'static str,
        status: ExitStatus,
        tail: String,
    },
    #[error(
        "waited {} s for {what}; last seen: {seen}; the end of the log of {name}:\n{tail}",
        .waited.as_secs()
    )]
    Late {
        what: &'static str,
        waited: Duration,
        seen: String,
        name: &'static str,
        tail: String,
    },
    #[error("cannot watch {name}")]
    Watch { name: &'static str, source: io::Error },
    #[error("the start was interrupted")]
    Interrupted,
}

impl ComponentError {
    /// Whether somebody else took a port between our looking for free ones and the use of it.
    pub(crate) fn is_taken_port(&self) -> bool {
        matches!(self, Self::Died { tail, .. } if tail.contains("address already in use"))
    }
}

#[derive(Debug)]
pub(crate) struct Component {
    name: &'static str,
    log: PathBuf,
    bound: Bound,
}

impl Component {
    pub(crate) fn start(
        name: &'static str,
        program: &Path,
        arguments: &[String],
        folder: &Path,
        network: Option<&Network>,
    ) -> Result<Self, ComponentError> {
        let log = folder.join(format!("{name}.log"));
        let start = || {
            let output = fs::File::create(&log)?;
            let mut command = process::command(program);
            // etcd takes any flag from a variable too, and the others look for clusters in theirs.
            command.env_clear().env("PATH", environment::path());
            command.args(arguments).current_dir(folder);
            command
                .stdout(output.file().try_clone()?)
                .stderr(fs::File::into_parts(output).0);
            if let Some(network) = network {
                network.place(&mut command);
            }
            Bound::start(command, Bond::Group)
        };
        let bound = start().map_err(|source| ComponentError::Start { name, source })?;
        Ok(Self { name, log, bound })
    }

    pub(crate) fn id(&self) -> u32 {
        self.bound.id()
    }

    pub(crate) fn check(&mut self) -> Result<(), ComponentError> {
        let name = self.name;
        match self.bound.ended() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(ComponentError::Died {
                name,
                status,
                tail: self.tail(),
            }),
            Err(source) => Err(ComponentError::Watch { name, source }),
        }
    }

    fn tail(&self) -> String {
        tail(&self.log, 15)
    }
}

/// The last lines of a file, for people; unreadable counts as empty.
pub(crate) fn tail(file: &Path, lines: usize) -> String {
    let text = fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let mut last: Vec<&str> = text.lines().rev().take(lines).collect();
    last.reverse();
    last.join("\n")
}

/// Long enough for a machine that compiles something else on every core.
const PATIENCE: Duration = Duration::from_secs(90);

const PAUSE: Duration = Duration::from_millis(50);

/// Waits until `probe` finds what is waited for, while all components live. The last one is the one that makes it true.
pub(crate) fn wait_for<T, E: std::fmt::Display>(
    components: &mut [Component],
    what: &'static str,
    mut probe: impl FnMut() -> Result<T, E>,
) -> Result<T, ComponentError> {
    let started = Instant::now();
    loop {
        let seen = match probe() {
            Ok(value) => return Ok(value),
            Err(error) => error.to_string(),
        };
        for component in components.iter_mut() {
            component.check()?;
        }
        if process::interrupted() {
            return Err(ComponentError::Interrupted);
        }
        let waited = started.elapsed();
        if waited > PATIENCE {
            let (name, tail) = components
                .last()
                .map_or(("nothing", String::new()), |last| (last.name, last.tail()));
            return Err(ComponentError::Late {
                what,
                waited,
                seen,
                name,
                tail,
            });
        }
        std::thread::sleep(PAUSE);
    }
}
