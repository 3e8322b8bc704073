//! Notes the files and the output of a run for its record, if its hook is recorded.
//!
//! Without a record nothing is read or kept. Must never make a run fail: a file that cannot be read is noted as such.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use addon_core::failure::Failure;
use addon_core::hook::config::batch::Call;
use addon_core::hook::context::BindingContext;
use addon_core::operator::effect::HookRun;
use child::{Captured, Exit, Finished, ProcessError, Spawn};
use jiff::Timestamp;
use tokio::task::spawn_blocking;

use super::files::Files;
use super::{Program, STDERR_LIMIT};
use crate::Tools;
use crate::records::record::{self, End, RunFile, VARIABLES};
use crate::records::{Inputs, Printed, Raw, RawFile, Recorder};
use jobs::tmp::TmpFile;

/// The record of a run while the run goes on.
pub(super) struct Recording(Option<Box<Notes>>);

/// The notes about a run.
struct Notes {
    recorder: Recorder,
    raw: Raw,
    /// Whether the program has ended, or could not be started.
    is_over: bool,
}

impl Recording {
    /// Begins a record if the hook is recorded.
    pub(super) fn begin(tools: &Tools, run: &HookRun) -> Self {
        if !tools.recorder.begins(&run.hook) {
            return Self(None);
        }
        let raw = Raw {
            hook: run.hook.clone(),
            cause: run.labels.cause.key().to_owned(),
            binding: run.labels.binding_name.clone(),
            queue: run.labels.queue.clone(),
            began: Timestamp::now(),
            took: Duration::ZERO,
            deadline: run.deadline,
            program: record::Program {
                path: String::new(),
                arguments: Vec::new(),
                module: None,
                directory: None,
                variables: BTreeMap::new(),
            },
            inputs: inputs(tools, run),
            files: Vec::new(),
            end: End::NotStarted,
            failure: None,
            stdout: Printed::default(),
            stderr: Printed::default(),
        };
        Self(Some(Box::new(Notes {
            recorder: tools.recorder.clone(),
            raw,
            is_over: false,
        })))
    }

    /// The number of bytes of standard output to keep.
    pub(super) fn stdout_limit(&self) -> usize {
        if self.0.is_some() { STDERR_LIMIT } else { 0 }
    }

    /// Notes the program and the files that it is given.
    pub(super) async fn given(
        &mut self,
        files: Files,
        program: &Program,
        module: Option<&Path>,
        spawn: &Spawn,
    ) -> Files {
        let Some(notes) = &mut self.0 else { return files };
        notes.raw.began = Timestamp::now();
        notes.raw.program = described(program, module, spawn);
        self.read(files, RunFile::is_given).await
    }

    /// Notes the end of the program and the files that it wrote.
    pub(super) async fn wrote(&mut self, files: Files, finished: &Result<Finished, ProcessError>) -> Files {
        let Some(notes) = &mut self.0 else { return files };
        let finished = match finished {
            Ok(finished) => {
                notes.raw.end = match finished.exit {
                    Exit::Code(code) => End::ExitCode(code),
                    Exit::Signal(number) => End::Signal(number),
                };
                Some(finished)
            }
            Err(ProcessError::TimedOut { finished, .. }) => {
                notes.raw.end = End::Deadline;
                Some(&**finished)
            }
            Err(ProcessError::Start { .. } | ProcessError::Stuck { .. }) => None,
            // The hook did not cause the end of this run.
            Err(ProcessError::Wait { .. } | ProcessError::Cancelled { .. }) => return files,
        };
        notes.is_over = true;
        if let Some(finished) = finished {
            notes.raw.took = finished.usage.wall;
            notes.raw.stdout = printed(&finished.stdout);
            notes.raw.stderr = printed(&finished.stderr);
        }
        self.read(files, |file| !file.is_given()).await
    }

    async fn read(&mut self, files: Files, which: impl Fn(RunFile) -> bool + Send + 'static) -> Files {
        let Some(notes) = &mut self.0 else { return files };
        let (files, noted) = blocking::run(move || {
            let listed = files.listed().into_iter().filter(|(file, _)| which(*file));
            let noted: Vec<RawFile> = listed.map(|(file, at)| noted(file, at)).collect();
            (files, noted)
        })
        .await;
        notes.raw.files.extend(noted);
        files
    }

    /// Starts to write the record, and does not wait for the end of the write.
    pub(super) fn end(self, failure: Option<&Failure>) {
        let Some(notes) = self.0 else { return };
        let Notes {
            recorder,
            mut raw,
            is_over,
        } = *notes;
        if is_over {
            raw.failure = failure.map(|failure| failure.report.clone());
            // The disk may hang, and nothing depends on the record.
            drop(spawn_blocking(move || recorder.keep(raw)));
        } else {
            recorder.did_not_begin(&raw.hook);
        }
    }
}

fn noted(file: RunFile, at: &TmpFile) -> RawFile {
    let name = at.path().file_name().unwrap_or_default();
    RawFile {
        file,
        name: name.to_string_lossy().into_owned(),
        text: at.read().map_err(|error| format!("all of it: {error}")),
    }
}

fn printed(captured: &Captured) -> Printed {
    (captured.text(), captured.dropped)
}

fn described(program: &Program, module: Option<&Path>, spawn: &Spawn) -> record::Program {
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let is_ours = |name: &str| program.call.is_some() && VARIABLES.contains(&name);
    let variables = spawn.env.iter().filter_map(|(name, value)| {
        let name = name.to_str().filter(|name| is_ours(name))?;
        Some((name.to_owned(), value.to_string_lossy().into_owned()))
    });
    record::Program {
        path: path(&program.path),
        arguments: program.call.map(Call::arguments).unwrap_or_default(),
        module: module.map(path),
        directory: spawn.cwd.as_deref().map(path),
        variables: variables.collect(),
    }
}

/// The facts about the contexts by which they are masked.
fn inputs(tools: &Tools, run: &HookRun) -> Inputs {
    let secret = |kind: &str| kind.eq_ignore_ascii_case("secret");
    let is_secret = |context: &BindingContext| match context {
        BindingContext::Event { name, .. } => secret(&name.kind),
        BindingContext::Review { review, .. } => review.as_str().contains("\"Secret\""),
        BindingContext::Stage { .. } | BindingContext::Schedule(_) | BindingContext::Synchronization(_) => false,
    };
    let contexts = run.contexts.iter().enumerate();
    let of_secrets = run.snapshots.iter().filter(|(_, id)| {
        let monitor = tools.monitors.describe(**id);
        monitor.is_some_and(|monitor| monitor.of_secrets)
    });
    Inputs {
        secrecy: run.secrecy.clone(),
        secret_bindings: of_secrets.map(|(name, _)| name.as_str().to_owned()).collect(),
        secret_contexts: contexts
            .filter(|(_, context)| is_secret(context))
            .map(|(place, _)| place)
            .collect::<BTreeSet<_>>(),
    }
}
