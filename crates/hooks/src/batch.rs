//! Finds out whether an executable has several hooks, and which.
//!
//! It calls executables of users with arguments that they may not know. So each gets little time, its output is
//! limited, and an executable without a valid answer counts as a single hook.

use std::path::Path;
use std::time::Duration;

use addon_core::failure::{Class, Failure};
use addon_core::hook::config::HookKind;
use addon_core::hook::config::batch::{Batch, BatchError, Listed, lists_hooks};
use addon_core::hook::in_text::HookInText;
use child::{Output, ProcessError, Spawn};
use names::HookId;
use tokio_util::sync::CancellationToken;

use super::STDERR_LIMIT;
use super::config::{Asker, LIMIT, with_output};
use crate::failures::{not_ended, tail};

/// The deadline. A library answers at once; a program that does not know the arguments may begin its normal work.
const DEADLINE: Duration = Duration::from_secs(30);
const GRACE: Duration = Duration::from_secs(2);

/// The outcome of one question to an executable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The executable printed the given bytes and ended with 0.
    Printed(Vec<u8>),
    /// The executable gave no answer, for the given reason.
    None(String),
    /// The executable did not end in time.
    Late(String),
}

/// Whether an executable has one hook or several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The executable has the given hooks.
    Several(Listed),
    /// The executable is probably a single hook.
    Single {
        /// The reason why the executable gave no answer.
        remark: Option<String>,
    },
}

/// Asks an executable without a file extension.
pub(super) async fn look(
    asker: &Asker<'_>,
    file: &HookId,
    path: &Path,
    cancel: &CancellationToken,
) -> Result<Verdict, Failure> {
    let config = question(asker, path, "config", cancel).await?;
    let list = match &config {
        // A second question would take as long again.
        Answer::Late(why) => Answer::Late(why.clone()),
        Answer::Printed(_) | Answer::None(_) => question(asker, path, "list", cancel).await?,
    };
    weigh(file, &config, &list)
}

/// The conclusion from the answers to `hook config` and `hook list`.
pub fn weigh(file: &HookId, config: &Answer, list: &Answer) -> Result<Verdict, Failure> {
    let kind = HookKind::from(&file.owner);
    let file_told = HookInText::of(file, kind);
    let lists = matches!(list, Answer::Printed(printed) if lists_hooks(&String::from_utf8_lossy(printed)));
    let what = format!("{file_told}: getting its configuration with `hook config` failed");
    match config {
        Answer::Printed(printed) => match (Batch::parse_output(printed, kind), lists) {
            (Ok(batch), true) => {
                let named = batch.named(&file.name, kind);
                named
                    .map(Verdict::Several)
                    .map_err(|error| unusable(error, what, printed))
            }
            (Ok(batch), false) if batch.hooks.is_empty() => Ok(Verdict::Several(Listed {
                hooks: Vec::new(),
                checks_settings: batch.checks_settings,
            })),
            (Ok(batch), false) => {
                let hooks = batch.hooks.len();
                let report =
                    format!("{file_told}: it tells of {hooks} hooks with `hook config`, and of none with `hook list`");
                let hint =
                    "an executable of several hooks answers `hook list` with `Found N items`, N being at most 9999";
                Err(Failure::new(Class::Invalid, report).hint(hint))
            }
            (Err(error), true) => Err(unusable(error, what, printed)),
            (Err(_), false) => Ok(Verdict::Single { remark: None }),
        },
        Answer::None(why) | Answer::Late(why) if lists => {
            Err(Failure::new(Class::HookFailed, format!("{what}: {why}"))
                .hint("an executable that lists its hooks tells about them with `hook config`, and ends with 0"))
        }
        Answer::None(why) | Answer::Late(why) => Ok(Verdict::Single {
            remark: Some(format!("`hook config`: {why}")),
        }),
    }
}

fn unusable(error: BatchError, what: String, printed: &[u8]) -> Failure {
    with_output(Failure::from(error).within(what), printed)
}

/// Asks one question. Only a cancellation is an error.
async fn question(asker: &Asker<'_>, path: &Path, word: &str, cancel: &CancellationToken) -> Result<Answer, Failure> {
    let spawn = Spawn {
        args: vec!["hook".into(), word.into()],
        env: asker.environment.to_vec(),
        stdout: Output::captured(LIMIT),
        stderr: Output::captured(STDERR_LIMIT),
        grace: GRACE,
        ..Spawn::new(path, DEADLINE.min(asker.deadline))
    };
    let finished = match asker.spawner.run(spawn, cancel).await {
        Ok(finished) => finished,
        Err(error @ ProcessError::Cancelled { .. }) => return Err(not_ended(&error)),
        Err(error @ (ProcessError::TimedOut { .. } | ProcessError::Stuck { .. })) => {
            return Ok(Answer::Late(not_ended(&error).report));
        }
        Err(error) => return Ok(Answer::None(not_ended(&error).report)),
    };
    if !finished.exit.is_success() {
        let stderr = finished.stderr.text();
        let said = tail(&stderr, asker.spawner.secrets()).replace('\n', " ⏎ ");
        let why = if said.is_empty() {
            finished.exit.to_string()
        } else {
            format!("{}: {said}", finished.exit)
        };
        return Ok(Answer::None(why));
    }
    if finished.stdout.dropped > 0 {
        return Ok(Answer::None(format!("it printed more than {} MiB", LIMIT >> 20)));
    }
    Ok(Answer::Printed(finished.stdout.bytes))
}
