//! Asks hooks what they want to be run for. One that gives no usable answer fails the job: a module without one of its
//! hooks may do harm.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use addon_core::failure::{Class, Failure};
use addon_core::hook::config::batch::{Call, Named};
use addon_core::hook::config::{HookConfig, HookKind};
use addon_core::name::{HookId, HookName, Owner};
use tokio_util::sync::CancellationToken;

use super::batch::{self, Verdict};
use super::{STDERR_LIMIT, command, is_python, python_home};
use crate::disk::HookFile;
use crate::jobs::catalogue::{Catalogue, Program};
use crate::jobs::{Tools, not_ended, tail};
use crate::process::Output;

/// A hook that has not told its configuration by then never will.
const DEADLINE: Duration = Duration::from_mins(2);
pub(super) const LIMIT: usize = 4 << 20;

/// The hooks of an owner, as they are found out.
#[derive(Default)]
struct Answers {
    configs: Vec<(HookName, HookConfig)>,
    batches: Vec<(HookName, Program)>,
    /// The executable that tells readiness.
    readiness: Option<HookName>,
}

/// Asks every hook of the owner, in the order of their paths.
pub(in crate::jobs) async fn ask_all(
    tools: &Tools,
    owner: &Owner,
    cancel: &CancellationToken,
) -> Result<Vec<(HookName, HookConfig)>, Failure> {
    let catalogue = tools.catalogue.borrow().clone();
    let mut answers = Answers::default();
    for file in catalogue.hooks(owner)? {
        let hook = HookId {
            owner: owner.clone(),
            name: file.name.clone(),
        };
        // Where hooks are alone, each has its file for itself.
        let verdict = if tools.hooks_dir.is_none() && file.path.extension().is_none() {
            batch::look(tools, &hook, &file.path, batch::DEADLINE, cancel).await?
        } else {
            Verdict::Single { remark: None }
        };
        match verdict {
            Verdict::Several(named) => answers.take_batch(&hook, file, named)?,
            Verdict::Single { remark } => {
                let config = ask(tools, &catalogue, &hook, &file.path, cancel).await;
                let config = config.map_err(|failure| match remark {
                    Some(remark) => failure.hint(format!(
                        "as an executable of several hooks it was asked before: {remark}"
                    )),
                    None => failure,
                })?;
                answers.configs.push((hook.name, config));
            }
        }
    }
    answers.check_names(owner)?;
    warn_of_python(&catalogue, owner)?;
    tools
        .catalogue
        .send_modify(|catalogue| Arc::make_mut(catalogue).learn(owner, answers.batches));
    Ok(answers.configs)
}

impl Answers {
    fn take_batch(&mut self, hook: &HookId, file: &HookFile, named: Vec<Named>) -> Result<(), Failure> {
        if named.is_empty() {
            tracing::warn!(%hook, "Executable answers as one of several hooks, and has none");
        }
        for Named { name, call, config } in named {
            if call == Call::Ready
                && let Some(first) = self.readiness.replace(file.name.clone())
            {
                let report = format!("{hook}: multiple readiness hooks found: '{first}' has one too");
                return Err(Failure::new(Class::Invalid, report).hint("one executable tells readiness for all"));
            }
            let path = file.path.clone();
            let program = Program { path, call: Some(call) };
            self.batches.push((name.clone(), program));
            self.configs.push((name, config));
        }
        Ok(())
    }

    /// A name that stands for two hooks would lose one of them.
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

/// Packages that a module's hooks need may be missing on the next machine.
fn warn_of_python(catalogue: &Catalogue, owner: &Owner) -> Result<(), Failure> {
    let Some(module) = owner.module() else { return Ok(()) };
    for file in catalogue.hooks(owner)?.iter().filter(|file| is_python(&file.path)) {
        if python_home(catalogue, owner, &file.path)?.is_none() {
            let hook = file.name.as_str();
            tracing::warn!(
                module = module.as_str(),
                hook,
                "Module has hooks in Python, but no virtual environment"
            );
            return Ok(());
        }
    }
    Ok(())
}

async fn ask(
    tools: &Tools,
    catalogue: &Catalogue,
    hook: &HookId,
    path: &Path,
    cancel: &CancellationToken,
) -> Result<HookConfig, Failure> {
    let what = format!("{hook}: getting its configuration with --config");
    let program = Program {
        path: path.to_owned(),
        call: None,
    };
    let mut spawn = command(tools, catalogue, &hook.owner, &program, DEADLINE)?;
    spawn.args.push("--config".into());
    spawn.cwd.clone_from(&tools.hooks_dir);
    spawn.stdout = Output::captured(LIMIT);
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
    if finished.stdout.dropped > 0 {
        let report = format!("{what} failed: it printed more than {} MiB", LIMIT >> 20);
        return Err(Failure::new(Class::Invalid, report).hint("a configuration has a few lines"));
    }
    let kind = match tools.hooks_dir {
        Some(_) => HookKind::Standalone,
        None => HookKind::from(&hook.owner),
    };
    configuration(hook, kind, &finished.stdout.bytes)
}

/// What a hook printed for `--config`, understood.
pub fn configuration(hook: &HookId, kind: HookKind, printed: &[u8]) -> Result<HookConfig, Failure> {
    HookConfig::parse_output(printed, kind).map_err(|error| {
        let what = format!("{hook}: getting its configuration with --config failed");
        with_output(Failure::from(error).within(what), printed)
    })
}

/// The failure with what was printed, on one line, as the records of the log are.
pub(super) fn with_output(failure: Failure, printed: &[u8]) -> Failure {
    let printed = String::from_utf8_lossy(printed);
    let shown = if printed.trim().is_empty() {
        "nothing".to_owned()
    } else {
        format!("`{}`", tail(&printed).replace('\n', " ⏎ "))
    };
    Failure {
        report: format!("{}; it printed {shown}", failure.report),
        ..failure
    }
}
