//! Runs a recorded hook again: with files of the same names and contents, the same arguments and the same variables.
//!
//! Must never carry out the output of a hook, and never write outside of the given directory.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use addon_core::failure::Failure;
use child::{Exit, Finished, Output, ProcessError, Spawner};
use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use tokio_util::sync::CancellationToken;

use super::{STDERR_LIMIT, spawn_of};
use crate::failures::not_ended;
use crate::records::record::{End, Record, RunFile};
use jobs::tmp::left;

/// The place and the program of a repeated run.
#[derive(Debug, Clone, Copy)]
pub struct Replay<'a> {
    pub spawner: &'a Spawner,
    /// The directory for the files.
    pub dir: &'a Path,
    /// The environment of the program, without the variables of the record.
    pub environment: &'a [(OsString, OsString)],
    /// The program, with links resolved.
    pub program: &'a Path,
}

/// The end of a repeated run.
#[derive(Debug)]
pub struct Replayed {
    pub end: End,
    pub took: Duration,
    /// The files that the hook wrote, or the errors of reading them.
    pub wrote: BTreeMap<RunFile, Result<String, String>>,
    /// The lines that the hook printed.
    pub printed: String,
}

impl Replay<'_> {
    /// Writes the files of the record.
    pub fn prepare(&self, record: &Record) -> io::Result<()> {
        for file in RunFile::ALL {
            let Some(named) = record.file(file) else { continue };
            let mut options = fs::OpenOptions::new();
            let mut written = options
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(self.at(&named.name))?;
            if file.is_given() {
                written.write_all(named.content.text.as_bytes())?;
            }
        }
        Ok(())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Runs the hook, and reads the files that it wrote.
    pub async fn run(&self, record: &Record, cancel: &CancellationToken) -> Result<Replayed, Failure> {
        let recorded = &record.program;
        let deadline = Duration::try_from_secs_f64(record.deadline_seconds).unwrap_or(Duration::MAX);
        let module = recorded.module.as_deref().map(Path::new);
        let mut spawn = spawn_of(self.program, module, self.environment.to_vec(), deadline);
        spawn.args.extend(recorded.arguments.iter().map(Into::into));
        let variables = recorded.variables.iter();
        spawn
            .env
            .extend(variables.map(|(name, value)| (name.into(), value.into())));
        spawn.env.extend(self.variables(record));
        if recorded.directory.is_some() {
            spawn.cwd = self.program.parent().map(Into::into);
        }
        spawn.stdout = Output::captured(STDERR_LIMIT);
        spawn.stderr = Output::captured(STDERR_LIMIT);
        let (end, finished) = match self.spawner.run(spawn, cancel).await {
            Ok(finished) => (None, finished),
            Err(ProcessError::TimedOut { finished, .. }) => (Some(End::Deadline), *finished),
            Err(error) => return Err(not_ended(&error)),
        };
        Ok(self.replayed(record, end, &finished))
    }

    fn replayed(&self, record: &Record, end: Option<End>, finished: &Finished) -> Replayed {
        let written = RunFile::ALL.into_iter().filter(|file| !file.is_given());
        let wrote = written.filter_map(|file| {
            let read = left::read(&self.at(&record.file(file)?.name));
            Some((file, read.map_err(|error| error.to_string())))
        });
        Replayed {
            end: end.unwrap_or(match finished.exit {
                Exit::Code(code) => End::ExitCode(code),
                Exit::Signal(number) => End::Signal(number),
            }),
            took: finished.usage.wall,
            wrote: wrote.collect(),
            printed: format!("{}{}", finished.stdout.text(), finished.stderr.text()),
        }
    }

    fn variables(&self, record: &Record) -> Vec<(OsString, OsString)> {
        let files = RunFile::ALL
            .into_iter()
            .filter_map(|file| Some((file, record.file(file)?)));
        let variables = files.flat_map(|(file, named)| {
            let path = self.at(&named.name);
            file.variables()
                .iter()
                .map(move |name| (OsString::from(name), path.clone().into_os_string()))
        });
        variables.collect()
    }
}
