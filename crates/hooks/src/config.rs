//! Asks hooks for their bindings. A hook without a valid answer fails the job, because a module without one of its
//! hooks may do harm.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use addon_core::failure::{Class, Failure};
use addon_core::hook::config::batch::{Call, Listed, Named};
use addon_core::hook::config::{HookConfig, HookKind};
use addon_core::hook::in_text::HookInText;
use child::{Output, Spawner, windows_ends};
use disk::HookFile;
use names::{HookId, HookName, ModuleName, Owner};
use report::secrets::Secrets;
use tokio_util::sync::CancellationToken;

use super::batch::{self, Verdict};
use super::{STDERR_LIMIT, find_spawn, is_python, python_home};
use crate::Tools;
use crate::failures::{not_ended, tail};
use jobs::catalogue::{Catalogue, Program};
use jobs::unless;

/// The deadline of a hook's answer to `--config`.
const DEADLINE: Duration = Duration::from_mins(2);
pub(super) const LIMIT: usize = 4 << 20;

/// The hooks of an owner that have answered so far.
#[derive(Default)]
struct Answers {
    configs: Vec<(HookName, HookConfig)>,
    batches: Vec<(HookName, Program)>,
    /// The executables that check the owner's settings.
    checks: Vec<PathBuf>,
    /// The executable with the readiness hook.
    readiness: Option<HookName>,
}

/// The way in which the hooks of one owner are asked for their configuration.
#[derive(Debug)]
pub struct Asker<'a> {
    /// Starts the hooks.
    pub spawner: &'a Spawner,
    /// The environment of the hooks.
    pub environment: &'a [(OsString, OsString)],
    /// The working directory of the hooks; none for the operator's own.
    pub cwd: Option<&'a Path>,
    /// The kind of the hooks, which decides the bindings that are allowed.
    pub kind: HookKind,
    /// The deadline of a hook's answer to `--config`.
    pub deadline: Duration,
    /// The directory of the hooks' module; `None` for global hooks.
    pub module: Option<&'a Path>,
}

/// The answer of an executable to `--config`.
#[derive(Debug)]
pub enum Said {
    /// The executable is a single hook with this configuration.
    Single(HookConfig),
    /// The executable has the given hooks.
    Several(Listed),
}

/// Asks all hooks of the owner, in the order of their paths.
pub async fn ask_all(
    tools: &Tools,
    owner: &Owner,
    cancel: &CancellationToken,
) -> Result<Vec<(HookName, HookConfig)>, Failure> {
    let catalogue = tools.ground.catalogue.borrow().clone();
    let acting = unless(cancel, tools.ground.acting(owner, DEADLINE)).await?;
    let asker = Asker {
        spawner: &tools.ground.spawner,
        environment: &acting.environment(),
        cwd: tools.hooks_dir.as_deref(),
        kind: match tools.hooks_dir {
            Some(_) => HookKind::Standalone,
            None => HookKind::from(owner),
        },
        deadline: DEADLINE,
        module: catalogue.dir(owner)?,
    };
    let mut answers = Answers::default();
    for file in catalogue.hooks(owner)? {
        let hook = HookId {
            owner: owner.clone(),
            name: file.name.clone(),
        };
        match asker.ask(&hook, &file.path, cancel).await? {
            Said::Single(config) => answers.configs.push((hook.name, config)),
            Said::Several(listed) => answers.take_batch(&hook, file, listed, asker.kind)?,
        }
    }
    answers.check_names(owner)?;
    warn_of_python(&catalogue, owner)?;
    tools
        .ground
        .catalogue
        .send_modify(|catalogue| Arc::make_mut(catalogue).learn(owner, answers.batches, answers.checks));
    Ok(answers.configs)
}

impl Answers {
    fn take_batch(&mut self, hook: &HookId, file: &HookFile, listed: Listed, kind: HookKind) -> Result<(), Failure> {
        let Listed {
            hooks: named,
            checks_settings,
        } = listed;
        if checks_settings {
            self.checks.push(file.path.clone());
        }
        if named.is_empty() && !checks_settings {
            let module = hook.owner.module().map(ModuleName::as_str);
            tracing::warn!(
                hook = hook.name.as_str(),
                module,
                "Executable lists its hooks, and the list is empty"
            );
        }
        for Named { name, call, config } in named {
            if call == Call::Ready
                && let Some(first) = self.readiness.replace(file.name.clone())
            {
                let hook = HookInText::of(hook, kind);
                let report = format!("{hook}: multiple readiness hooks found: '{first}' has one too");
                return Err(Failure::new(Class::Invalid, report).hint("only one executable may have a readiness hook"));
            }
            let path = file.path.clone();
            let program = Program { path, call: Some(call) };
            self.batches.push((name.clone(), program));
            self.configs.push((name, config));
        }
        Ok(())
    }

    /// Two hooks with the same name are an error, because one of them would be lost.
    fn check_names(&self, owner: &Owner) -> Result<(), Failure> {
        let mut seen = BTreeSet::new();
        match self.configs.iter().find(|(name, _)| !seen.insert(name)) {
            None => Ok(()),
            Some((name, _)) => {
                let report = format!("{owner}: two hooks have the name '{name}'");
                Err(Failure::new(Class::Invalid, report)
                    .hint("the name of a hook of several is made of its file's, its own and its number: rename one"))
            }
        }
    }
}

/// Warns if hooks need a module's Python packages, which may be missing on another machine.
fn warn_of_python(catalogue: &Catalogue, owner: &Owner) -> Result<(), Failure> {
    let Some(module) = catalogue.dir(owner)?.filter(|module| python_home(module).is_none()) else {
        return Ok(());
    };
    if let Some(file) = catalogue.hooks(owner)?.iter().find(|file| is_python(&file.path)) {
        let (module, hook) = (module.display(), file.name.as_str());
        tracing::warn!(%module, hook, "Module has hooks in Python, but no virtual environment");
    }
    Ok(())
}

impl Asker<'_> {
    /// Asks an executable for its configuration, or for those of its hooks.
    pub async fn ask(&self, hook: &HookId, path: &Path, cancel: &CancellationToken) -> Result<Said, Failure> {
        // Without modules each hook has a file of its own.
        let verdict = if self.kind == HookKind::Standalone || path.extension().is_some() {
            Verdict::Single { remark: None }
        } else {
            batch::look(self, hook, path, cancel).await?
        };
        match verdict {
            Verdict::Several(named) => Ok(Said::Several(named)),
            Verdict::Single { remark } => {
                let config = self.ask_single(hook, path, cancel).await;
                config.map(Said::Single).map_err(|failure| match remark {
                    Some(remark) => failure.hint(format!(
                        "the question for several hooks had no answer before, either: {remark}"
                    )),
                    None => failure,
                })
            }
        }
    }

    async fn ask_single(&self, hook: &HookId, path: &Path, cancel: &CancellationToken) -> Result<HookConfig, Failure> {
        let what = format!(
            "{}: getting its configuration with --config",
            HookInText::of(hook, self.kind)
        );
        let found = find_spawn(path, self.module, self.environment.to_vec(), self.deadline, cancel).await;
        let mut spawn = found.map_err(|failure| failure.within(format_args!("{what} failed")))?;
        spawn.args.push("--config".into());
        spawn.cwd = self.cwd.map(Path::to_owned);
        spawn.stdout = Output::captured(LIMIT);
        spawn.stderr = Output::captured(STDERR_LIMIT);
        let finished = self.spawner.run(spawn, cancel).await;
        let finished = finished.map_err(|error| not_ended(&error).within(format_args!("{what} failed")))?;
        let (stdout, stderr) = (finished.stdout.text(), finished.stderr.text());
        if !finished.exit.is_success() {
            let said = if stderr.trim().is_empty() { &stdout } else { &stderr };
            let report = format!(
                "{what} failed: {}: {}",
                finished.exit,
                tail(said, self.spawner.secrets())
            );
            let usual = || "a hook that is called with --config prints its configuration and ends with 0".to_owned();
            return Err(Failure::new(Class::HookFailed, report).hint(windows_ends(path).unwrap_or_else(usual)));
        }
        if finished.stdout.dropped > 0 {
            let report = format!("{what} failed: it printed more than {} MiB", LIMIT >> 20);
            return Err(Failure::new(Class::Invalid, report).hint("a configuration has a few lines"));
        }
        configuration(hook, self.kind, &finished.stdout.bytes)
    }
}

/// Parses the output of a hook for `--config`.
pub fn configuration(hook: &HookId, kind: HookKind, printed: &[u8]) -> Result<HookConfig, Failure> {
    HookConfig::parse_output(printed, kind).map_err(|error| {
        let what = format!(
            "{}: getting its configuration with --config failed",
            HookInText::of(hook, kind)
        );
        with_output(Failure::from(error).within(what), printed)
    })
}

/// The failure with the output on one line, as log records are.
pub(super) fn with_output(failure: Failure, printed: &[u8]) -> Failure {
    let printed = String::from_utf8_lossy(printed);
    let shown = if printed.trim().is_empty() {
        "nothing".to_owned()
    } else {
        // No secret to mask: a hook gets no values when it is asked for its configuration.
        format!("`{}`", tail(&printed, &Secrets::default()).replace('\n', " ⏎ "))
    };
    Failure {
        report: format!("{}; it printed {shown}", failure.report),
        ..failure
    }
}
