//! Notes the end of a run and its last lines, and for a hook that is recorded also its files and its output.
//!
//! Without a record no file is read. Must never make a run fail: a file that cannot be read is noted as such.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use addon_core::failure::Failure;
use addon_core::hook::config::batch::Call;
use addon_core::hook::context::BindingContext;
use addon_core::operator::effect::HookRun;
use child::{Captured, Exit, Finished, ProcessError, Spawn};
use jiff::Timestamp;
use names::HookId;
use report::secrets::Secrets;
use tokio::task::spawn_blocking;

use super::files::Files;
use super::{Program, STDERR_LIMIT};
use crate::Tools;
use crate::past::{self, LastRun, LastRuns, Tail};
use crate::records::record::{self, End, RunFile, VARIABLES};
use crate::records::{Inputs, Printed, Raw, RawFile, Recorder};
use jobs::tmp::TmpFile;

/// A run that goes on, for its record and as the hook's last run.
pub(super) struct Recording {
    hook: HookId,
    past: LastRuns,
    secrets: Secrets,
    began: Timestamp,
    binding: String,
    tail: Tail,
    /// The end of the program and the time that it took, once it has ended.
    ended: Option<(End, Duration)>,
    /// None if the hook is not recorded.
    notes: Option<Box<Notes>>,
}

/// The notes about a run.
struct Notes {
    recorder: Recorder,
    raw: Raw,
}

impl Recording {
    /// Begins a record if the hook is recorded.
    pub(super) fn begin(tools: &Tools, run: &HookRun) -> Self {
        let labels = &run.labels;
        let binding = if labels.binding_name.is_empty() {
            labels.cause.key().to_owned()
        } else {
            labels.binding_name.clone()
        };
        Self {
            hook: run.hook.clone(),
            past: tools.past.clone(),
            secrets: tools.ground.spawner.secrets().clone(),
            began: Timestamp::now(),
            binding,
            tail: Tail::default(),
            ended: None,
            notes: tools
                .recorder
                .begins(&run.hook)
                .then(|| Box::new(Notes::begin(tools, run))),
        }
    }

    /// A receiver of lines that notes the last ones, and passes all on to another one.
    pub(super) fn beside(&self, sink: impl FnMut(&str) + Send + 'static) -> impl FnMut(&str) + Send + 'static {
        self.tail.beside(sink)
    }

    /// The number of bytes of standard output to keep.
    pub(super) fn stdout_limit(&self) -> usize {
        if self.notes.is_some() { STDERR_LIMIT } else { 0 }
    }

    /// Notes the program and the files that it is given.
    pub(super) async fn given(
        &mut self,
        files: Files,
        program: &Program,
        module: Option<&Path>,
        spawn: &Spawn,
    ) -> Files {
        self.began = Timestamp::now();
        let Some(notes) = &mut self.notes else { return files };
        notes.raw.began = self.began;
        notes.raw.program = described(program, module, spawn);
        self.read(files, RunFile::is_given).await
    }

    /// Notes the end of the program and the files that it wrote.
    pub(super) async fn wrote(&mut self, files: Files, finished: &Result<Finished, ProcessError>) -> Files {
        let (end, finished) = match finished {
            Ok(finished) => match finished.exit {
                Exit::Code(code) => (End::ExitCode(code), Some(finished)),
                Exit::Signal(number) => (End::Signal(number), Some(finished)),
            },
            Err(ProcessError::TimedOut { finished, .. }) => (End::Deadline, Some(&**finished)),
            Err(ProcessError::Start { .. } | ProcessError::Stuck { .. }) => (End::NotStarted, None),
            // The hook did not cause the end of this run.
            Err(ProcessError::Wait { .. } | ProcessError::Cancelled { .. }) => return files,
        };
        let took = finished.map_or(Duration::ZERO, |finished| finished.usage.wall);
        self.ended = Some((end, took));
        let Some(notes) = &mut self.notes else { return files };
        (notes.raw.end, notes.raw.took) = (end, took);
        if let Some(finished) = finished {
            notes.raw.stdout = printed(&finished.stdout);
            notes.raw.stderr = printed(&finished.stderr);
        }
        self.read(files, |file| !file.is_given()).await
    }

    async fn read(&mut self, files: Files, which: impl Fn(RunFile) -> bool + Send + 'static) -> Files {
        let Some(notes) = &mut self.notes else { return files };
        let (files, noted) = blocking::run(move || {
            let listed = files.listed().into_iter().filter(|(file, _)| which(*file));
            let noted: Vec<RawFile> = listed.map(|(file, at)| noted(file, at)).collect();
            (files, noted)
        })
        .await;
        notes.raw.files.extend(noted);
        files
    }

    /// Keeps the run as the hook's last one. Starts to write the record, and does not wait for the end of the write.
    pub(super) fn end(self, failure: Option<&Failure>) {
        let failure = failure.map(|failure| &failure.report);
        if let Some((end, took)) = self.ended {
            let run = LastRun {
                binding: self.binding,
                began: self.began,
                took,
                end,
                failure: failure.map(|report| past::cut(report, &self.secrets)),
                output: self.tail.lines(&self.secrets),
            };
            self.past.keep(self.hook, run);
        }
        let Some(notes) = self.notes else { return };
        let Notes { recorder, mut raw } = *notes;
        if self.ended.is_some() {
            raw.failure = failure.cloned();
            // The disk may hang, and nothing depends on the record.
            drop(spawn_blocking(move || recorder.keep(raw)));
        } else {
            recorder.did_not_begin(&raw.hook);
        }
    }
}

impl Notes {
    fn begin(tools: &Tools, run: &HookRun) -> Self {
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
        Self {
            recorder: tools.recorder.clone(),
            raw,
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
