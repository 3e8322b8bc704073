//! Runs hooks and enabled scripts: their files, their output, the patches of objects that they ask for, and records of runs.
//!
//! If a hook fails, only the object patches that ask for it are carried out. Must never decide about values: patches of
//! values go back to the core with the outcome.
//!
//! ```text
//!   Job::RunHook --> run --> files      values, contexts, snapshots
//!                     |  --> child      the process; relay: its output in the log
//!                     |  --> files      patches of values and objects, metrics, the answer of a review
//!                     |  --> objects    patches of objects, in their order
//!                     |  --> past       the last run of each hook: its end, its last lines
//!                     v  --> records    the files of the run, on demand
//!                  HookRan --> the core                   answers   snapshots and records, for commands
//! ```
//!
//! Begin with `run`.

pub mod answers;
pub mod batch;
pub mod config;
pub mod edits;
pub mod enabled;
mod failures;
mod files;
pub mod filters;
pub mod past;
mod recording;
pub mod records;
pub mod rehearsal;
pub mod relay;
pub mod replay;
pub mod settings_check;
mod tools;
pub mod trial;
mod wanted;

/// Lets code that unit tests share with tests of the program use the same crate name.
#[cfg(test)]
extern crate self as hooks;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use addon_core::failure::{Class, Failure};
use addon_core::hook::config::batch::{Call, message};
use addon_core::hook::context::{BindingContext, Snapshots};
use addon_core::hook::output::HookOutput;
use addon_core::metric::Parsed;
use addon_core::operator::effect::{HookLabels, HookRun};
use addon_core::operator::event::{HookRan, ObjectWritten, Usage};
use addon_core::review::response::HookResponse;
use child::{Finished, Output, ProcessError, Spawn};
use disk::is_executable;
use jobs::acting::Acting;
use jobs::catalogue::{Catalogue, Program};
use jobs::unless;
use names::{BindingName, GLOBAL_KEY, HookId, ModuleName, MonitorId, Owner};
use serde::Serialize;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use watches::{Monitors, Reading};

use failures::{no_files, not_ended, tail};
pub use files::Wrote;
use files::{Documents, Files};
use recording::Recording;
use relay::{LabelSet, Labels, Stream};
pub use tools::Tools;

pub(crate) const STDERR_LIMIT: usize = 64 << 10;

/// Runs one hook. Its output counts only if its exit code is 0.
pub async fn run(tools: &Arc<Tools>, run: HookRun, cancel: &CancellationToken) -> Result<HookRan, Failure> {
    let mut recording = Recording::begin(tools, &run);
    let ran = perform(tools, run, cancel, &mut recording).await;
    recording.end(ran.as_ref().err());
    ran
}

async fn perform(
    tools: &Arc<Tools>,
    mut run: HookRun,
    cancel: &CancellationToken,
    recording: &mut Recording,
) -> Result<HookRan, Failure> {
    if !wanted::keep_wanted(&tools.monitors, &mut run) {
        return Ok(HookRan::default());
    }
    let catalogue = tools.ground.catalogue.borrow().clone();
    let program = catalogue.hook(&run.hook)?;
    let acting = unless(cancel, tools.ground.acting(&run.hook.owner, run.deadline)).await?;
    let mut spawn = command(&acting, &catalogue, &run.hook.owner, &program, run.deadline, cancel).await?;
    let lines = Labels::of_hook(&run.hook, &run.labels, tools.relay, tools.ground.spawner.secrets());
    let (hook, labels) = (run.hook.clone(), run.labels.clone());
    let prepared = {
        let tools = Arc::clone(tools);
        blocking::run(move || prepare(&tools, &run, Monitors::snapshot_for_run)).await
    };
    let (files, read) = prepared.map_err(|error| no_files("no files", &error))?;
    if tools.hooks_dir.is_some() {
        // A hook without modules expects its own directory as working directory.
        spawn.cwd = spawn.program.parent().map(Into::into);
    }
    spawn.env.extend(files.environment());
    spawn.stdout = Output::lines(recording.beside(lines.sink(Stream::Stdout))).and_captured(recording.stdout_limit());
    spawn.stderr = Output::lines(recording.beside(lines.sink(Stream::Stderr))).and_captured(STDERR_LIMIT);
    let files = recording
        .given(files, &program, catalogue.dir(&hook.owner)?, &spawn)
        .await;
    let finished = tools.ground.spawner.run(spawn, cancel).await;
    let files = recording.wrote(files, &finished).await;
    let finished = finished.map_err(|error| cut_short(&error, &labels))?;
    if !finished.exit.is_success() {
        let complaint = complaint(&finished, &program);
        return Err(ended_badly(tools, &acting, complaint, files, cancel).await);
    }
    let taken = take_over(tools, &acting, &hook, files, cancel).await;
    if taken.is_err() {
        acting.forget();
    }
    let taken = tools.ground.explained(taken, cancel).await;
    let Taken {
        output,
        response,
        wrote,
    } = taken?;
    Ok(HookRan {
        output,
        usage: usage(finished.usage),
        response: Box::new(response),
        read,
        wrote,
    })
}

/// The failure of a run that was ended early. For a missed deadline it names the setting.
fn cut_short(error: &ProcessError, labels: &HookLabels) -> Failure {
    let failure = not_ended(error);
    if failure.class == Class::TimedOut {
        let more = "for a hook that needs longer, set 'timeout' in its binding, or in 'settings' for all of its runs";
        failure.within(Bound(labels)).hint(more)
    } else {
        failure
    }
}

/// The binding of a run for messages: its type, and its name if it has one.
struct Bound<'a>(&'a HookLabels);

impl fmt::Display for Bound<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HookLabels {
            cause, binding_name, ..
        } = self.0;
        write!(f, "{cause}")?;
        if binding_name.is_empty() || binding_name == cause.key() {
            Ok(())
        } else {
            write!(f, " '{binding_name}'")
        }
    }
}

/// The way to read the snapshots for a run.
type Snapshot = fn(&Monitors, &HookId, &[MonitorId]) -> Vec<Option<Reading>>;

/// Writes the files of a run. Snapshots are read last, just before the process starts.
fn prepare(tools: &Tools, run: &HookRun, snapshot: Snapshot) -> io::Result<(Files, BTreeMap<MonitorId, u64>)> {
    let documents = match tools.hooks_dir {
        Some(_) => None,
        None => Some(Documents {
            values: json(&run.values),
            config_values: json(&run.config_values),
            is_asked: run
                .contexts
                .iter()
                .any(|context| matches!(context, BindingContext::Review { .. })),
        }),
    };
    let files = Files::create(&tools.ground.tmp, &run.hook, documents)?;
    let (shown, read) = look(tools, &run.hook, &run.snapshots, snapshot);
    files.tell(&run.contexts, run.version, &shown)?;
    Ok((files, read))
}

/// The parts of a hook's output about which the loop decides, and the objects that were written.
struct Taken {
    output: HookOutput,
    response: HookResponse,
    wrote: Vec<ObjectWritten>,
}

/// Applies the output of a successful hook, except the parts about which the loop decides.
async fn take_over(
    tools: &Tools,
    acting: &Acting<'_>,
    hook: &HookId,
    files: Files,
    cancel: &CancellationToken,
) -> Result<Taken, Failure> {
    let Wrote {
        values,
        metrics,
        response,
        objects,
    } = blocking::run(move || files.written()).await?;
    // The two originals apply the parts in different orders, which shows if a patch fails.
    let patcher = tools.patcher(acting).counting();
    if tools.hooks_dir.is_some() {
        patcher.apply(&objects, cancel).await?;
        show(tools, hook, metrics);
    } else {
        show(tools, hook, metrics);
        patcher.apply(&objects, cancel).await?;
    }
    Ok(Taken {
        output: values,
        response,
        wrote: patcher.take_written(),
    })
}

/// The snapshots for a run, all of the same moment. A stopped monitor has none.
fn look(
    tools: &Tools,
    hook: &HookId,
    wanted: &BTreeMap<BindingName, MonitorId>,
    snapshot: Snapshot,
) -> (Snapshots, BTreeMap<MonitorId, u64>) {
    let ids: Vec<MonitorId> = wanted.values().copied().collect();
    let (mut shown, mut read) = (Snapshots::new(), BTreeMap::new());
    for ((binding, id), reading) in wanted.iter().zip(snapshot(&tools.monitors, hook, &ids)) {
        match reading {
            Some(Reading { objects, seq }) => {
                shown.insert(binding.clone(), objects);
                read.insert(*id, seq);
            }
            None => tools.meters.monitor_missing(binding.as_str()),
        }
    }
    (shown, read)
}

/// The failure of a hook. Carries out the object patches that count even after a failure.
async fn ended_badly(
    tools: &Tools,
    acting: &Acting<'_>,
    complaint: String,
    files: Files,
    cancel: &CancellationToken,
) -> Failure {
    acting.forget();
    let report = match tools.relay.labels {
        LabelSet::Modules => tail(&complaint, tools.ground.spawner.secrets()),
        // Alerts of hooks without modules match the hook's own text.
        LabelSet::HooksAlone => complaint,
    };
    let failure = Failure::new(Class::HookFailed, report);
    let tolerated = blocking::run(move || files.tolerated()).await;
    match tools.patcher(acting).apply(&tolerated, cancel).await {
        Ok(()) => failure,
        Err(also) => Failure {
            report: format!("{}; {}", failure.report, also.report),
            ..failure
        },
    }
}

/// Applies the metrics of the hook.
fn show(tools: &Tools, hook: &HookId, metrics: Parsed) {
    let (name, module) = (hook.name.as_str(), hook.owner.module().map(ModuleName::as_str));
    for dropped in &metrics.dropped {
        tracing::warn!(hook = name, module, problem = %dropped, "Operation on a metric is dropped");
    }
    tools.meters.apply_hook_metrics(hook, metrics.operations);
}

/// The command of a hook with the operator's environment, without its files.
async fn command(
    acting: &Acting<'_>,
    catalogue: &Catalogue,
    owner: &Owner,
    program: &Program,
    deadline: Duration,
    cancel: &CancellationToken,
) -> Result<Spawn, Failure> {
    let module = catalogue.dir(owner)?;
    let mut spawn = find_spawn(&program.path, module, acting.environment(), deadline, cancel).await?;
    if let Some(call) = program.call {
        select(&mut spawn, call, owner);
    }
    Ok(spawn)
}

/// Adds the arguments and variables by which an executable of several hooks runs one of them.
fn select(spawn: &mut Spawn, call: Call, owner: &Owner) {
    spawn.args.extend(call.arguments().into_iter().map(Into::into));
    let module = owner.module().map_or(GLOBAL_KEY, ModuleName::as_str);
    // Applications are a kind of module that only a vendor's program has; the variables exist and are empty.
    let about = [
        ("MODULE_NAME", module),
        ("APPLICATION_NAME", ""),
        ("APPLICATION_NAMESPACE", ""),
    ];
    spawn.env.extend(about.map(|(name, value)| (name.into(), value.into())));
}

/// The words with which a failed run ended: the message of a batch, or else its output on standard error.
fn complaint(finished: &Finished, program: &Program) -> String {
    let said = program.call.and_then(|_| message(&finished.stderr.text()));
    said.unwrap_or_else(|| finished.complaint())
}

/// The command for a hook at this path, of the module in that directory.
pub fn spawn_of(
    path: &Path,
    module: Option<&Path>,
    environment: Vec<(OsString, OsString)>,
    deadline: Duration,
) -> Spawn {
    let mut spawn = Spawn {
        env: environment,
        ..Spawn::new(path, deadline)
    };
    if let Some(home) = module.filter(|_| is_python(path)).and_then(python_home) {
        spawn.program = home.join(PYTHON);
        spawn.args.push(path.into());
        spawn.env.push(("PYTHONHOME".into(), home.into()));
    }
    spawn
}

/// Finds the command for a job, without blocking on a file system that hangs.
pub(crate) async fn find_spawn(
    path: &Path,
    module: Option<&Path>,
    environment: Vec<(OsString, OsString)>,
    deadline: Duration,
    cancel: &CancellationToken,
) -> Result<Spawn, Failure> {
    let late = format!("cmd start: {}: its directory does not answer", path.display());
    let (path, module) = (path.to_owned(), module.map(Path::to_owned));
    let found = timeout(
        FOUND_WITHIN,
        blocking::run(move || spawn_of(&path, module.as_deref(), environment, deadline)),
    );
    unless(cancel, async {
        found.await.map_err(|_| Failure::new(Class::Unavailable, late))
    })
    .await
}

const FOUND_WITHIN: Duration = Duration::from_mins(1);

const PYTHON: &str = "bin/python3";

/// The directory of a module's Python packages, if it has one.
fn python_home(module: &Path) -> Option<PathBuf> {
    let home = module.join("hooks/venv");
    is_executable(&home.join(PYTHON)).then_some(home)
}

fn is_python(hook: &Path) -> bool {
    hook.extension().is_some_and(|extension| extension == "py")
}

/// A document in the form that hooks read.
pub(crate) fn json(document: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(document).expect("values are JSON already")
}

pub(crate) fn usage(usage: child::Usage) -> Usage {
    let child::Usage {
        user,
        sys,
        max_rss_bytes,
        wall,
    } = usage;
    Usage {
        wall,
        user,
        system: sys,
        max_rss: max_rss_bytes,
    }
}

#[cfg(test)]
mod tests;
