//! Runs a module's enabled script. If it fails or writes anything except `true` or `false`, that is a failure and never
//! a "no".

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;

use addon_core::failure::{Class, Failure};
use addon_core::operator::event::ScriptAnswer;
use addon_core::values::HookDocument;
use child::{Finished, Output, ProcessError, Spawn};
use names::{ModuleName, Owner};
use report::secrets::Secrets;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::Tools;
use crate::failures::{no_files, not_ended, tail};
use crate::rehearsal::Stage;
use crate::relay::{Labels, Stream};
use crate::{STDERR_LIMIT, json, usage};
use jobs::tmp::left::LeftError;
use jobs::tmp::{TmpDir, TmpFile};
use jobs::unless;

const NO_FILES: &str = "it has no files";

pub async fn run(
    tools: &Arc<Tools>,
    module: &ModuleName,
    values: Arc<Value>,
    config_values: HookDocument,
    cancel: &CancellationToken,
) -> Result<ScriptAnswer, Failure> {
    let catalogue = tools.ground.catalogue.borrow().clone();
    let script = catalogue.module(module)?.enabled_script.as_ref();
    let Some(script) = script else {
        return Err(Failure::new(
            Class::Invalid,
            format!("module '{module}' no longer has an enabled script"),
        ));
    };
    let what = format!("failed to execute '{module}' module's enabled script");
    ask(tools, module, script, (values, config_values), cancel)
        .await
        .map_err(|failure| failure.within(&what))
}

async fn ask(
    tools: &Arc<Tools>,
    module: &ModuleName,
    script: &Path,
    documents: (Arc<Value>, HookDocument),
    cancel: &CancellationToken,
) -> Result<ScriptAnswer, Failure> {
    let prepared = {
        let (tools, module) = (Arc::clone(tools), module.clone());
        blocking::run(move || prepare(&tools.ground.tmp, &module, &documents)).await
    };
    let files = prepared.map_err(|error| no_files(NO_FILES, &error))?;
    let owner = Owner::Module(module.clone());
    let acting = unless(cancel, tools.ground.acting(&owner, tools.script_deadline)).await?;
    let mut env = acting.environment();
    env.extend(files.environment());
    let secrets = tools.ground.spawner.secrets();
    let labels = Labels::of_enabled_script(module, tools.relay, secrets);
    let spawn = Spawn {
        env,
        stdout: Output::lines(labels.sink(Stream::Stdout)),
        stderr: Output::lines(labels.sink(Stream::Stderr)).and_captured(STDERR_LIMIT),
        ..Spawn::new(script, tools.script_deadline)
    };
    let finished = tools
        .ground
        .spawner
        .run(spawn, cancel)
        .await
        .map_err(|error| told(&error, script))?;
    check_end(&finished, secrets)?;
    let hidden = secrets.clone();
    let (enabled, reason) = blocking::run(move || files.answer(&hidden)).await?;
    Ok(ScriptAnswer {
        enabled,
        reason,
        usage: usage(finished.usage),
    })
}

/// Runs a module's script without an operator, for tests of modules. Returns its answer, and its reason for a "no".
pub async fn rehearse(
    stage: &Stage<'_>,
    module: &ModuleName,
    script: &Path,
    documents: (Arc<Value>, HookDocument),
    cancel: &CancellationToken,
) -> Result<(bool, Option<String>), Failure> {
    let files = prepare(stage.tmp, module, &documents).map_err(|error| no_files(NO_FILES, &error))?;
    let mut env = stage.environment.to_vec();
    env.extend(files.environment());
    let spawn = Spawn {
        env,
        stderr: Output::captured(STDERR_LIMIT),
        ..Spawn::new(script, stage.deadline)
    };
    let finished = stage.spawner.run(spawn, cancel).await;
    let finished = finished.map_err(|error| told(&error, script))?;
    check_end(&finished, stage.spawner.secrets())?;
    files.answer(stage.spawner.secrets())
}

/// The failure of a script that did not end with 0.
fn check_end(finished: &Finished, secrets: &Secrets) -> Result<(), Failure> {
    if finished.exit.is_success() {
        return Ok(());
    }
    let said = finished.stderr.text();
    let report = match said.trim() {
        "" => format!("it ended with {}", finished.exit),
        said => format!("it ended with {}: {}", finished.exit, tail(said, secrets)),
    };
    Err(Failure::new(Class::HookFailed, report))
}

fn told(error: &ProcessError, script: &Path) -> Failure {
    let failure = not_ended(error);
    match error {
        ProcessError::TimedOut { .. } => failure.hint(format!(
            "correct {}, or give scripts more time with ADDON_OPERATOR_ENABLED_SCRIPT_TIMEOUT",
            script.display()
        )),
        _ => failure,
    }
}

/// The script's input files, and the file for its answer.
struct Files {
    values: TmpFile,
    config_values: TmpFile,
    result: TmpFile,
    reason: TmpFile,
}

impl Files {
    fn environment(&self) -> Vec<(OsString, OsString)> {
        let files = [
            ("VALUES_PATH", &self.values),
            ("CONFIG_VALUES_PATH", &self.config_values),
            ("MODULE_ENABLED_RESULT", &self.result),
            ("MODULE_ENABLED_REASON", &self.reason),
        ];
        let variables = files.map(|(name, file)| (name.into(), file.path().into()));
        variables.into()
    }

    /// The script's answer, and its reason for a "no".
    fn answer(&self, secrets: &Secrets) -> Result<(bool, Option<String>), Failure> {
        let enabled = verdict(&read(&self.result, "MODULE_ENABLED_RESULT")?, secrets)?;
        let reason = if enabled {
            String::new()
        } else {
            read(&self.reason, "MODULE_ENABLED_REASON")?
        };
        let reason = Some(reason.trim().to_owned()).filter(|text| !text.is_empty());
        Ok((enabled, reason))
    }
}

fn read(file: &TmpFile, variable: &str) -> Result<String, Failure> {
    file.read().map_err(|error| match (error.hint(), &error) {
        (Some(hint), _) => Failure::new(Class::HookFailed, format!("got no {variable}: {error}")).hint(hint),
        (None, LeftError::Io(error)) => no_files(NO_FILES, error),
        (None, _) => Failure::new(Class::HookFailed, format!("got no {variable}: {error}")),
    })
}

fn prepare(
    tmp: &TmpDir,
    module: &ModuleName,
    (values, config_values): &(Arc<Value>, HookDocument),
) -> io::Result<Files> {
    let file = |suffix: &str, content: &[u8]| tmp.file(&format!("{module}."), suffix, content);
    Ok(Files {
        values: file(".module-values.json", &json(values))?,
        config_values: file(".module-config-values.json", &json(config_values))?,
        result: file(".module-enabled-result", b"")?,
        reason: file(".module-enabled-reason", b"")?,
    })
}

fn verdict(answer: &str, secrets: &Secrets) -> Result<bool, Failure> {
    match answer.trim() {
        "true" => Ok(true),
        "false" => Ok(false),
        other => {
            let report = format!("it wrote '{}' to MODULE_ENABLED_RESULT", tail(other, secrets));
            Err(Failure::new(Class::HookFailed, report).hint("the file must hold `true` or `false`"))
        }
    }
}
