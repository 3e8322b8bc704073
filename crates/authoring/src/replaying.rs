//! `hook replay`: runs a recorded hook again, without operator and cluster, and compares the results.

mod compare;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use addon_core::failure::Failure;
use blocking::threads::{self, NoThreads};
use child::Spawner;
use command::Hinted;
use hooks::records::record::{Content, End, Record, RunFile};
use hooks::records::{self, Damage};
use hooks::replay::{Replay, Replayed};
use settings::Environment;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::cases;
use crate::offline::with_framework;

/// Why a record is not replayed.
#[derive(Debug, Error)]
pub enum ReplayError {
    #[error("cannot read the record")]
    Read(#[source] io::Error),
    #[error("the record {} cannot be replayed: {damage}", file.display())]
    Damaged { file: PathBuf, damage: Damage },
    #[error("cannot find the program {}", path.display())]
    Program { path: PathBuf, source: io::Error },
    #[error("cannot write the files of the run")]
    Files(#[source] io::Error),
    #[error("cannot start")]
    Start(#[source] NoThreads),
    #[error("the hook cannot be run: {0}")]
    Run(Failure),
}

impl Hinted for ReplayError {
    fn hints(&self) -> Vec<String> {
        match self {
            Self::Program { .. } => {
                vec![
                    "--program names the program on this machine; the record has its path on the operator's".to_owned(),
                ]
            }
            Self::Damaged { .. } => vec!["`addon-operator hook records ID` prints a record anew".to_owned()],
            Self::Run(failure) => failure.hints.clone(),
            Self::Read(_) | Self::Files(_) | Self::Start(_) => Vec::new(),
        }
    }
}

/// The result of a replay.
#[derive(Debug)]
pub struct Report {
    title: String,
    notes: Vec<String>,
    differences: Vec<String>,
    end: End,
    took: Duration,
    printed: String,
}

impl Report {
    /// Whether the run gave the same results as the recorded run.
    pub fn is_same(&self) -> bool {
        self.differences.is_empty()
    }
}

/// Runs the hook of a record again.
pub fn replay(file: &Path, program: Option<&Path>, environment: &Environment) -> Result<Report, ReplayError> {
    let text = fs_err::read_to_string(file).map_err(ReplayError::Read)?;
    let record = records::read(&text).map_err(|damage| ReplayError::Damaged {
        file: file.to_owned(),
        damage,
    })?;
    let path = program.unwrap_or(Path::new(&record.program.path));
    let program = fs_err::canonicalize(path).map_err(|source| ReplayError::Program {
        path: path.to_owned(),
        source,
    })?;
    let tmp = tempfile::tempdir().map_err(ReplayError::Files)?;
    let dir = tmp.path().join("files");
    fs_err::create_dir(&dir).map_err(ReplayError::Files)?;
    let variables = cases::environment_without_cluster(environment, tmp.path()).map_err(ReplayError::Files)?;
    let runtime = threads::runtime().map_err(ReplayError::Start)?;
    let spawner = Spawner::new().map_err(|error| ReplayError::Start(NoThreads::Spawner(error)))?;
    let replay = Replay {
        spawner: &spawner,
        dir: &dir,
        environment: &variables,
        program: &program,
    };
    replay.prepare(&record).map_err(ReplayError::Files)?;
    let replayed = runtime.block_on(replay.run(&record, &CancellationToken::new()));
    let replayed = replayed.map_err(|failure| ReplayError::Run(with_framework(failure)))?;
    Ok(report(&record, &program, replayed))
}

fn report(record: &Record, program: &Path, replayed: Replayed) -> Report {
    Report {
        title: format!(
            "{}, recorded at {}, and {} now",
            record.title(),
            record.began,
            program.display()
        ),
        notes: notes(record),
        differences: compare::differences(record, &replayed),
        end: replayed.end,
        took: replayed.took,
        printed: replayed.printed,
    }
}

/// The reasons for which the run may differ although the program is the same.
fn notes(record: &Record) -> Vec<String> {
    let files = || {
        RunFile::ALL
            .into_iter()
            .filter_map(|file| Some((file, record.file(file)?)))
    };
    let mut notes = Vec::new();
    let masked: Vec<&str> = files()
        .filter(|(_, named)| named.content.masked)
        .map(|(file, _)| file.variable())
        .collect();
    if !masked.is_empty() {
        notes.push(format!(
            "secrets are masked in {}: the run may differ, and masked results are not compared",
            masked.join(", ")
        ));
    }
    for (file, named) in files() {
        if let Content {
            left_out: Some(why), ..
        } = &named.content
        {
            let effect = if file.is_given() {
                "the hook is given an empty file, and the run may differ"
            } else {
                "it is not compared"
            };
            notes.push(format!("{} is not in the record, {why}: {effect}", file.variable()));
        }
    }
    if let Some(failure) = &record.failure {
        notes.push(format!("the recorded run failed: {}", failure.trim_end()));
    }
    notes
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let indented = |text: &str| text.trim_end().replace('\n', "\n  ");
        writeln!(f, "{}", self.title)?;
        for note in &self.notes {
            writeln!(f, "note: {}", indented(note))?;
        }
        if self.is_same() {
            return writeln!(f, "same: {} after {:.3} s", self.end, self.took.as_secs_f64());
        }
        for difference in &self.differences {
            writeln!(f, "{}", indented(difference))?;
        }
        let printed = self.printed.trim();
        if !printed.is_empty() {
            writeln!(f, "the hook printed:\n  {}", indented(printed))?;
        }
        Ok(())
    }
}
