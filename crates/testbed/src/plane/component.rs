//! One running program of a control plane, with its log.
//!
//! A wait checks all programs at once. So a failed start shows the log of the program that died, not a time-out of
//! another one that waited for it.

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

#[derive(Debug)]
pub(crate) struct Component {
    recipe: Recipe,
    log: PathBuf,
    bound: Bound,
}

/// The command line of a program, for its first start and for a start after an outage.
#[derive(Debug)]
struct Recipe {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<String>,
    folder: PathBuf,
    network: Option<Network>,
}

impl Recipe {
    fn start(&self, log: fs::File) -> Result<Bound, ComponentError> {
        let start = || {
            let mut command = process::command(&self.program);
            // The environment is empty, because etcd also reads its flags from variables, and other programs look there
            // for a cluster.
            command.env_clear().env("PATH", environment::path());
            // There is enough memory, but there are few processors. So the heap may grow more between two collections.
            command.env("GOGC", "400");
            command.args(&self.arguments).current_dir(&self.folder);
            command
                .stdout(log.file().try_clone()?)
                .stderr(fs::File::into_parts(log).0);
            if let Some(network) = &self.network {
                network.place(&mut command);
            }
            Bound::start(command, Bond::Group)
        };
        let name = self.name;
        start().map_err(|source| ComponentError::Start { name, source })
    }
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
        let recipe = Recipe {
            name,
            program: program.to_owned(),
            arguments: arguments.to_owned(),
            folder: folder.to_owned(),
            network: network.cloned(),
        };
        let output = fs::File::create(&log).map_err(|source| ComponentError::Start { name, source })?;
        let bound = recipe.start(output)?;
        Ok(Self { recipe, log, bound })
    }

    pub(crate) fn name(&self) -> &'static str {
        self.recipe.name
    }

    /// Kills the program, and returns when it has ended.
    pub(crate) fn kill(&mut self) -> Result<(), ComponentError> {
        process::signal(self.id(), libc::SIGKILL);
        let name = self.name();
        let ended = self.bound.wait();
        ended.map(drop).map_err(|source| ComponentError::Watch { name, source })
    }

    /// Starts the program again after it has ended; its log is continued.
    pub(crate) fn again(&mut self) -> Result<(), ComponentError> {
        let name = self.name();
        let log = fs::OpenOptions::new().append(true).open(&self.log);
        self.bound = self
            .recipe
            .start(log.map_err(|source| ComponentError::Start { name, source })?)?;
        Ok(())
    }

    pub(crate) fn id(&self) -> u32 {
        self.bound.id()
    }

    pub(crate) fn check(&mut self) -> Result<(), ComponentError> {
        let name = self.name();
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

/// The last lines of a file, for a person. A file that cannot be read counts as empty.
pub(crate) fn tail(file: &Path, lines: usize) -> String {
    let text = fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let mut last: Vec<&str> = text.lines().rev().take(lines).collect();
    last.reverse();
    last.join("\n")
}

/// Long enough for a machine on which every core compiles something else.
const PATIENCE: Duration = Duration::from_secs(90);

const PAUSE: Duration = Duration::from_millis(50);

/// Waits until `probe` returns a value. Fails if one of the components ends meanwhile. A time-out shows the log of the
/// last component.
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
                .map_or(("nothing", String::new()), |last| (last.name(), last.tail()));
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
