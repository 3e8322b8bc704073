//! One run of a hook without an operator, for tests of modules: with the same files, variables and parsers.
//!
//! Must never carry out the output of a hook; the caller does.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::Duration;

use addon_core::failure::{Class, Failure};
use addon_core::hook::config::ConfigVersion;
use addon_core::hook::context::{BindingContext, Snapshots};
use addon_core::object::patch::Operation;
use addon_core::values::HookDocument;
use child::{Output, Spawner};
use names::HookId;
use tokio_util::sync::CancellationToken;

use super::files::{Documents, Files, Wrote};
use super::{STDERR_LIMIT, complaint, json, select, spawn_of};
use crate::failures::{no_files, not_ended, tail};
use jobs::catalogue::Program;
use jobs::tmp::TmpDir;

/// The tools, directories and settings of rehearsals.
#[derive(Debug, Clone, Copy)]
pub struct Stage<'a> {
    /// Starts the hook.
    pub spawner: &'a Spawner,
    /// The directory for the files of the run.
    pub tmp: &'a TmpDir,
    /// The environment of the hook, without the files.
    pub environment: &'a [(OsString, OsString)],
    /// The directory of the module; none for global hooks.
    pub module: Option<&'a Path>,
    /// The deadline of a run whose binding sets none.
    pub deadline: Duration,
}

/// The contexts of a run.
#[derive(Debug, Clone)]
pub enum Told {
    /// The contexts of bindings, with their snapshots.
    Contexts {
        contexts: Vec<BindingContext>,
        version: ConfigVersion,
        snapshots: Snapshots,
    },
    /// A text that is given as it is. `is_asked` says whether the API server waits for an answer.
    Literal { text: String, is_asked: bool },
}

/// The input of a run.
#[derive(Debug)]
pub struct Input {
    pub hook: HookId,
    pub program: Program,
    pub told: Told,
    pub values: HookDocument,
    pub config_values: HookDocument,
    /// The timeout of the binding.
    pub timeout: Option<Duration>,
}

/// The end of a run.
#[derive(Debug)]
pub struct Ended {
    /// The output files of a hook that succeeded.
    pub outcome: Result<Wrote, Failure>,
    /// The object patches that are carried out although the hook failed.
    pub tolerated: Vec<Operation>,
    /// The lines that the hook printed.
    pub printed: String,
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Self {
            outcome: Err(failure),
            tolerated: Vec::new(),
            printed: String::new(),
        }
    }
}

impl Stage<'_> {
    /// Runs the hook, and reads its output.
    pub async fn run(&self, input: &Input, cancel: &CancellationToken) -> Ended {
        // Nothing else waits for this thread, so files are written and read on it.
        let files = match self.prepare(input) {
            Ok(files) => files,
            Err(error) => return no_files("no files", &error).into(),
        };
        let environment = self.environment.to_vec();
        let deadline = input.timeout.unwrap_or(self.deadline);
        let mut spawn = spawn_of(&input.program.path, self.module, environment, deadline);
        if let Some(call) = input.program.call {
            select(&mut spawn, call, &input.hook.owner);
        }
        spawn.env.extend(files.environment());
        spawn.stdout = Output::captured(STDERR_LIMIT);
        spawn.stderr = Output::captured(STDERR_LIMIT);
        let finished = match self.spawner.run(spawn, cancel).await {
            Ok(finished) => finished,
            Err(error) => return not_ended(&error).into(),
        };
        let printed = format!("{}{}", finished.stdout.text(), finished.stderr.text());
        if finished.exit.is_success() {
            return Ended {
                outcome: files.written(),
                tolerated: Vec::new(),
                printed,
            };
        }
        let report = tail(&complaint(&finished, &input.program), self.spawner.secrets());
        Ended {
            outcome: Err(Failure::new(Class::HookFailed, report)),
            tolerated: files.tolerated(),
            printed,
        }
    }

    fn prepare(&self, input: &Input) -> io::Result<Files> {
        let is_asked = match &input.told {
            Told::Literal { is_asked, .. } => *is_asked,
            Told::Contexts { contexts, .. } => contexts
                .iter()
                .any(|context| matches!(context, BindingContext::Review { .. })),
        };
        let documents = Documents {
            values: json(&input.values),
            config_values: json(&input.config_values),
            is_asked,
        };
        let files = Files::create(self.tmp, &input.hook, Some(documents))?;
        match &input.told {
            Told::Contexts {
                contexts,
                version,
                snapshots,
            } => files.tell(contexts, *version, snapshots)?,
            Told::Literal { text, .. } => files.tell_literally(text.as_bytes())?,
        }
        Ok(files)
    }
}
