//! Runs hooks: asks for their configuration, and runs one with its files. A hook that fails changes nothing.

pub mod relay;

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::Duration;

use addon_core::failure::{Class, Failure};
use addon_core::hook::config::{HookConfig, HookKind};
use addon_core::hook::context::{self, Snapshots};
use addon_core::hook::output::{HookOutput, Written};
use addon_core::name::{HookId, HookName, Owner};
use addon_core::operator::effect::HookRun;
use addon_core::operator::event::Usage;
use addon_core::values::patch::PatchFile;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::catalogue::Catalogue;
use super::tmp::{TmpDir, TmpFile, safe};
use super::{Tools, not_ended, tail};
use crate::process::{self, Output, Spawn};
use crate::report::Chain;
use relay::{Labels, Stream};

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
        warn_of_unserved(&hook, &config);
        configs.push((file.name.clone(), config));
    }
    Ok(configs)
}

/// Bindings that this version reads and does not serve: better told than waited for.
fn warn_of_unserved(hook: &HookId, config: &HookConfig) {
    let unserved = [
        ("kubernetes", config.kubernetes.len()),
        ("kubernetesValidating", config.validating.len()),
        ("kubernetesMutating", config.mutating.len()),
        ("kubernetesCustomResourceConversion", config.conversions.len()),
    ];
    for (binding, _) in unserved.into_iter().filter(|(_, count)| *count > 0) {
        tracing::warn!(%hook, binding, "the hook is never run for this binding: this version does not serve it yet");
    }
}

async fn ask(
    tools: &Tools,
    catalogue: &Catalogue,
    hook: &HookId,
    cancel: &CancellationToken,
) -> Result<HookConfig, Failure> {
    let what = format!("{hook}: getting its configuration with --config");
    let mut spawn = command(tools, catalogue, hook, CONFIG_DEADLINE)?;
    spawn.args.push("--config".into());
    spawn.stdout = Output::captured(CONFIG_LIMIT);
    spawn.stderr = Output::captured(STDERR_LIMIT);
    let finished = tools
        .spawner
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
    HookConfig::parse(&stdout, HookKind::from(&hook.owner)).map_err(|error| {
        let printed = if stdout.trim().is_empty() {
            "nothing".to_owned()
        } else {
            format!("`{}`", tail(&stdout))
        };
        let report = format!("{what} failed: {}; it printed {printed}", Chain(&error));
        Failure::new(Class::Invalid, report).hint("is it a hook at all? files that are none must not be executable")
    })
}

/// Runs one hook; its patches are read only if it ended with 0.
pub(super) async fn run(
    tools: &Tools,
    run: &HookRun,
    cancel: &CancellationToken,
) -> Result<(HookOutput, Usage), Failure> {
    let HookRun {
        hook,
        version,
        contexts,
        snapshots: _,
        values,
        config_values,
        deadline,
        labels,
    } = run;
    let catalogue = tools.catalogue.borrow().clone();
    let no_files = |error: io::Error| Failure::new(Class::Unavailable, format!("no files: {error}"));
    let mut file = Vec::new();
    context::write_file(&mut file, contexts, *version, &Snapshots::new()).map_err(no_files)?;
    let files = Files::write(&tools.tmp, hook, &file, &json(values), &json(config_values)).map_err(no_files)?;
    let lines = Labels::of_hook(hook, labels);
    let mut spawn = command(tools, &catalogue, hook, *deadline)?;
    spawn.env.extend(files.environment());
    spawn.stdout = Output::lines(lines.sink(Stream::Stdout));
    spawn.stderr = Output::lines(lines.sink(Stream::Stderr)).and_captured(STDERR_LIMIT);
    let finished = tools
        .spawner
        .run(spawn, cancel)
        .await
        .map_err(|error| not_ended(&error))?;
    if !finished.exit.is_success() {
        let stderr = tail(&finished.stderr.text());
        let cause = if stderr.is_empty() {
            format!("cmd run: {}", finished.exit)
        } else {
            stderr
        };
        return Err(Failure::new(Class::HookFailed, cause));
    }
    let output = files.output()?;
    files.warn_of_unread(hook);
    Ok((output, usage(finished.usage)))
}

/// The hook's program in the operator's environment, without files and arguments.
fn command(tools: &Tools, catalogue: &Catalogue, hook: &HookId, deadline: Duration) -> Result<Spawn, Failure> {
    let path = &catalogue.hook(hook)?.path;
    let mut spawn = Spawn {
        env: tools.environment.clone(),
        ..Spawn::new(path, deadline)
    };
    if let Owner::Module(module) = &hook.owner
        && path.extension().is_some_and(|extension| extension == "py")
    {
        // A module may bring its own Python packages.
        let home = catalogue.module(module)?.dir.join("hooks/venv");
        let python = home.join("bin/python3");
        if python.exists() {
            spawn.program = python;
            spawn.args.push(path.into());
            spawn.env.push(("PYTHONHOME".into(), home.into()));
        }
    }
    Ok(spawn)
}

/// What a hook reads and writes, under the names that hook authors know.
struct Files {
    contexts: TmpFile,
    values: TmpFile,
    config_values: TmpFile,
    values_patch: TmpFile,
    config_patch: TmpFile,
    metrics: TmpFile,
    object_patch: TmpFile,
}

impl Files {
    fn write(tmp: &TmpDir, hook: &HookId, contexts: &[u8], values: &[u8], config_values: &[u8]) -> io::Result<Self> {
        let name = safe(hook.name.as_str());
        let (owner, kind) = match &hook.owner {
            Owner::Global => ("global".to_owned(), "global-hook"),
            Owner::Module(module) => (module.to_string(), "module-hook"),
        };
        let of_owner = hook
            .owner
            .module()
            .map_or_else(|| "global-hook".to_owned(), |module| format!("{module}.module"));
        Ok(Self {
            contexts: tmp.file(&format!("{owner}.{kind}-{name}-binding-context-"), ".json", contexts)?,
            values: tmp.file(&format!("{of_owner}-values-"), ".json", values)?,
            config_values: tmp.file(&format!("{of_owner}-config-values-"), ".json", config_values)?,
            values_patch: tmp.file(&format!("{name}.{kind}-values-"), ".json-patch", b"")?,
            config_patch: tmp.file(&format!("{name}.{kind}-config-values-"), ".json-patch", b"")?,
            metrics: tmp.file(&format!("{name}.{kind}-metrics-"), ".json", b"")?,
            object_patch: tmp.file(&format!("{name}-object-patch-"), "", b"")?,
        })
    }

    fn environment(&self) -> [(OsString, OsString); 7] {
        [
            ("BINDING_CONTEXT_PATH", &self.contexts),
            ("VALUES_PATH", &self.values),
            ("CONFIG_VALUES_PATH", &self.config_values),
            ("VALUES_JSON_PATCH_PATH", &self.values_patch),
            ("CONFIG_VALUES_JSON_PATCH_PATH", &self.config_patch),
            ("METRICS_PATH", &self.metrics),
            ("KUBERNETES_PATCH_PATH", &self.object_patch),
        ]
        .map(|(name, file)| (name.into(), file.path().into()))
    }

    /// What the hook wrote, read in one go.
    fn output(&self) -> Result<HookOutput, Failure> {
        let read = |file: &TmpFile, kind: PatchFile| {
            let failure = |error| Failure::new(Class::HookFailed, format!("got bad json patch for {kind}: {error}"));
            file.read().map_err(failure)
        };
        let config_patch = read(&self.config_patch, PatchFile::Config)?;
        let values_patch = read(&self.values_patch, PatchFile::Values)?;
        let written = Written {
            config_patch: &config_patch,
            values_patch: &values_patch,
        };
        HookOutput::parse(written).map_err(|error| Failure::of(Class::HookFailed, &error))
    }

    /// Metrics and object patches are offered to every hook, but this version does not apply them.
    fn warn_of_unread(&self, hook: &HookId) {
        for (file, what) in [(&self.metrics, "metrics"), (&self.object_patch, "object patches")] {
            if is_written(file.path()) {
                tracing::warn!(%hook, what, "the hook wrote something that this version does not apply yet");
            }
        }
    }
}

fn is_written(path: &Path) -> bool {
    fs_err::metadata(path).is_ok_and(|metadata| metadata.len() > 0)
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
