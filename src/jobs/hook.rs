//! Runs hooks: asks for their configuration, and runs one with its files. A hook that fails changes nothing.

mod files;
pub mod relay;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use addon_core::failure::{Class, Failure};
use addon_core::hook::config::{HookConfig, HookKind};
use addon_core::hook::context::{BindingContext, Snapshots};
use addon_core::hook::output::HookOutput;
use addon_core::metric::Parsed;
use addon_core::name::{BindingName, HookId, HookName, MonitorId, Owner};
use addon_core::object::filter::Filter;
use addon_core::operator::effect::{HookLabels, HookRun};
use addon_core::operator::event::Usage;
use addon_core::review::response::HookResponse;
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::catalogue::Catalogue;
use super::{Tools, aside, not_ended, tail};
use crate::cluster::monitor::Reading;
use crate::process::{self, Finished, Output, ProcessError, Spawn, Spawner};
use files::{Documents, Files, Wrote};
use relay::{LabelSet, Labels, Stream};

/// A hook that has not told its configuration by then never will.
const CONFIG_DEADLINE: Duration = Duration::from_mins(2);
const CONFIG_LIMIT: usize = 4 << 20;
pub(super) const STDERR_LIMIT: usize = 64 << 10;

/// Asks every hook of the owner, in the order of their paths. One that gives no usable answer fails the job: a module
/// without one of its hooks may do harm.
pub(super) async fn configure(
    tools: &Tools,
    owner: &Owner,
    cancel: &CancellationToken,
) -> Result<Vec<(HookName, HookConfig)>, Failure> {
    let catalogue = tools.catalogue.borrow().clone();
    let mut configs = Vec::new();
    for file in catalogue.hooks(owner)? {
        let hook = HookId {
            owner: owner.clone(),
            name: file.name.clone(),
        };
        let config = ask(tools, &catalogue, &hook, cancel).await?;
        configs.push((file.name.clone(), config));
    }
    Ok(configs)
}

async fn ask(
    tools: &Tools,
    catalogue: &Catalogue,
    hook: &HookId,
    cancel: &CancellationToken,
) -> Result<HookConfig, Failure> {
    let mut spawn = command(tools, catalogue, hook, CONFIG_DEADLINE)?;
    spawn.cwd.clone_from(&tools.hooks_dir);
    let kind = match tools.hooks_dir {
        Some(_) => HookKind::Standalone,
        None => HookKind::from(&hook.owner),
    };
    asked(&tools.spawner, spawn, (hook, kind), cancel).await
}

/// Runs a hook that was prepared by [`spawn_of`] with `--config`, and reads what it says.
pub async fn asked(
    spawner: &Spawner,
    mut spawn: Spawn,
    (hook, kind): (&HookId, HookKind),
    cancel: &CancellationToken,
) -> Result<HookConfig, Failure> {
    let what = format!("{hook}: getting its configuration with --config");
    spawn.args.push("--config".into());
    spawn.stdout = Output::captured(CONFIG_LIMIT);
    spawn.stderr = Output::captured(STDERR_LIMIT);
    let finished = spawner
        .run(spawn, cancel)
        .await
        .map_err(|error| not_ended(&error).within(format_args!("{what} failed")))?;
    let (stdout, stderr) = (finished.stdout.text(), finished.stderr.text());
    if !finished.exit.is_success() {
        let said = if stderr.trim().is_empty() { &stdout } else { &stderr };
        let report = format!("{what} failed: {}: {}", finished.exit, tail(said));
        return Err(Failure::new(Class::HookFailed, report)
            .hint("a hook that is called with --config prints its configuration and ends with 0"));
    }
    if finished.stdout.dropped > 0 {
        let report = format!("{what} failed: it printed more than {} MiB", CONFIG_LIMIT >> 20);
        return Err(Failure::new(Class::Invalid, report).hint("a configuration has a few lines"));
    }
    configuration(hook, kind, &finished.stdout.bytes)
}

/// What a hook printed for `--config`, understood.
pub fn configuration(hook: &HookId, kind: HookKind, printed: &[u8]) -> Result<HookConfig, Failure> {
    HookConfig::parse_output(printed, kind).map_err(|error| {
        let printed = String::from_utf8_lossy(printed);
        let shown = if printed.trim().is_empty() {
            "nothing".to_owned()
        } else {
            // On one line, as the records of the log are.
            format!("`{}`", tail(&printed).replace('\n', " ⏎ "))
        };
        let what = format!("{hook}: getting its configuration with --config failed");
        let failure = Failure::from(error).within(what);
        Failure {
            report: format!("{}; it printed {shown}", failure.report),
            ..failure
        }
    })
}

/// What came of a run that ended well.
pub(super) struct Ran {
    pub(super) output: HookOutput,
    pub(super) usage: Usage,
    /// What it tells the API server.
    pub(super) response: HookResponse,
    /// Up to which change each snapshot held the objects.
    pub(super) read: BTreeMap<MonitorId, u64>,
}

/// Runs one hook; what it wrote counts only if it ended with 0.
pub(super) async fn run(tools: &Arc<Tools>, run: HookRun, cancel: &CancellationToken) -> Result<Ran, Failure> {
    let catalogue = tools.catalogue.borrow().clone();
    let mut spawn = command(tools, &catalogue, &run.hook, run.deadline)?;
    let lines = Labels::of_hook(&run.hook, &run.labels, tools.relay);
    let (hook, labels) = (run.hook.clone(), run.labels.clone());
    let prepared = {
        let tools = Arc::clone(tools);
        aside(move || prepare(&tools, &run)).await
    };
    let (files, read) =
        prepared.map_err(|error: io::Error| Failure::new(Class::Unavailable, format!("no files: {error}")))?;
    if tools.hooks_dir.is_some() {
        // A hook that stands alone finds its neighbours beside it.
        spawn.cwd = spawn.program.parent().map(Into::into);
    }
    spawn.env.extend(files.environment());
    spawn.stdout = Output::lines(lines.sink(Stream::Stdout));
    spawn.stderr = Output::lines(lines.sink(Stream::Stderr)).and_captured(STDERR_LIMIT);
    let finished = tools
        .spawner
        .run(spawn, cancel)
        .await
        .map_err(|error| cut_short(&error, &labels))?;
    if !finished.exit.is_success() {
        return Err(ended_badly(tools, &finished, files, cancel).await);
    }
    let (output, response) = take_over(tools, &hook, files, cancel).await?;
    Ok(Ran {
        output,
        usage: usage(finished.usage),
        response,
        read,
    })
}

/// How a run failed that did not come to its end. At the deadline it matters whose limit it was.
fn cut_short(error: &ProcessError, labels: &HookLabels) -> Failure {
    let failure = not_ended(error);
    if failure.class == Class::TimedOut {
        let more = "a hook that needs longer says so: 'timeout' in its binding, or in 'settings' for all of its runs";
        failure.within(Bound(labels)).hint(more)
    } else {
        failure
    }
}

/// The binding of a run: its kind, and its name where it has one of its own.
struct Bound<'a>(&'a HookLabels);

impl fmt::Display for Bound<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HookLabels {
            binding, binding_name, ..
        } = self.0;
        f.write_str(binding)?;
        if binding_name.is_empty() || binding_name == binding {
            Ok(())
        } else {
            write!(f, " '{binding_name}'")
        }
    }
}

/// Writes the files of a run. Snapshots are read last, right before the process starts.
fn prepare(tools: &Tools, run: &HookRun) -> io::Result<(Files, BTreeMap<MonitorId, u64>)> {
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
    let files = Files::create(&tools.tmp, &run.hook, documents)?;
    let (shown, read) = look(tools, &run.hook, &run.snapshots);
    files.tell(&run.contexts, run.version, &shown)?;
    Ok((files, read))
}

/// Does what a hook that ended well asked for, but for what the loop has to decide.
async fn take_over(
    tools: &Tools,
    hook: &HookId,
    files: Files,
    cancel: &CancellationToken,
) -> Result<(HookOutput, HookResponse), Failure> {
    let Wrote {
        values,
        metrics,
        response,
        objects,
    } = aside(move || files.written()).await?;
    // The orders of the two programs differ, and so does what is seen of a run whose patches fail.
    if tools.hooks_dir.is_some() {
        tools.patcher.apply(&objects, cancel).await?;
        show(tools, hook, metrics);
    } else {
        show(tools, hook, metrics);
        tools.patcher.apply(&objects, cancel).await?;
    }
    Ok((values, response))
}

/// Reads the snapshots, all of one moment. Of objects that nobody watches any more there are none.
fn look(
    tools: &Tools,
    hook: &HookId,
    wanted: &BTreeMap<BindingName, MonitorId>,
) -> (Snapshots, BTreeMap<MonitorId, u64>) {
    let ids: Vec<MonitorId> = wanted.values().copied().collect();
    let (mut shown, mut read) = (Snapshots::new(), BTreeMap::new());
    for ((binding, id), reading) in wanted.iter().zip(tools.monitors.snapshot_for_run(hook, &ids)) {
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

/// Why the hook failed. Its patches that count all the same are carried out.
async fn ended_badly(tools: &Tools, finished: &Finished, files: Files, cancel: &CancellationToken) -> Failure {
    let complaint = finished.complaint();
    let report = match tools.relay.labels {
        LabelSet::Modules => tail(&complaint),
        // Alerts of hooks alone match the text as the hook wrote it.
        LabelSet::HooksAlone => complaint,
    };
    let failure = Failure::new(Class::HookFailed, report);
    let tolerated = aside(move || files.tolerated()).await;
    match tools.patcher.apply(&tolerated, cancel).await {
        Ok(()) => failure,
        Err(also) => Failure {
            report: format!("{}; {}", failure.report, also.report),
            ..failure
        },
    }
}

/// Takes over what the hook measured.
fn show(tools: &Tools, hook: &HookId, metrics: Parsed) {
    for dropped in &metrics.dropped {
        tracing::warn!(%hook, problem = %dropped, "Hook wrote a metric that says nothing");
    }
    tools.meters.apply_hook_metrics(hook, metrics.operations);
}

/// The filters of object patches.
pub fn jq(program: &str, object: &Value) -> Result<Vec<Value>, Failure> {
    let filtered = Filter::compile(program).and_then(|filter| filter.outputs(object));
    filtered.map_err(|error| Failure::of(Class::HookFailed, &error))
}

/// The hook's program in the operator's environment, without files and arguments.
fn command(tools: &Tools, catalogue: &Catalogue, hook: &HookId, deadline: Duration) -> Result<Spawn, Failure> {
    let path = &catalogue.hook(hook)?.path;
    let module = match &hook.owner {
        Owner::Module(module) => Some(catalogue.module(module)?.dir.as_path()),
        Owner::Global => None,
    };
    Ok(spawn_of(path, module, tools.environment.clone(), deadline))
}

/// A run of the hook at this place, of the module in that directory.
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
    if let Some(module) = module
        && path.extension().is_some_and(|extension| extension == "py")
    {
        // A module may bring its own Python packages.
        let home = module.join("hooks/venv");
        let python = home.join("bin/python3");
        if python.exists() {
            spawn.program = python;
            spawn.args.push(path.into());
            spawn.env.push(("PYTHONHOME".into(), home.into()));
        }
    }
    spawn
}

/// A document as hooks read it.
pub(super) fn json(document: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(document).expect("values are JSON already")
}

pub(super) fn usage(usage: process::Usage) -> Usage {
    let process::Usage {
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
