//! The failures of hooks and scripts as texts. Must never show a known secret.

use std::io;

use addon_core::failure::{Class, Failure};
use child::ProcessError;
use report::secrets::Secrets;

/// The failure of a hook or script that did not run to its end.
pub(crate) fn not_ended(error: &ProcessError) -> Failure {
    match error {
        ProcessError::Start { program, hint, source } => {
            let report = format!("cmd start: {}: {source}", program.display());
            let class = if error.is_shortage() {
                Class::Unavailable
            } else {
                Class::HookFailed
            };
            let failure = Failure::new(class, report);
            match hint {
                Some(hint) => failure.hint(hint),
                None if !program.exists() => failure.hint("its file was there at the start: put it back"),
                None => failure,
            }
        }
        ProcessError::Stuck { program, waited } => {
            let report = format!("cmd start: {}: nothing happened within {waited:?}", program.display());
            let failure = Failure::new(Class::Unavailable, report);
            error.hint().into_iter().fold(failure, Failure::hint)
        }
        ProcessError::Wait { source, .. } => Failure::new(Class::Defect, format!("cmd wait: {source}")),
        ProcessError::TimedOut { deadline, .. } => Failure::new(
            Class::TimedOut,
            format!("it did not end within {deadline:?} and was ended"),
        ),
        ProcessError::Cancelled { .. } => Failure::new(Class::Cancelled, "it was cancelled"),
    }
}

/// The failure of a run whose files cannot be created.
pub(crate) fn no_files(what: &str, error: &io::Error) -> Failure {
    let failure = Failure::new(Class::Unavailable, format!("{what}: {error}"));
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => failure.hint(
            "nothing more fits where files of hooks are: --tmp-dir or ADDON_OPERATOR_TMP_DIR chooses another place",
        ),
        _ => child::exhausted(error).into_iter().fold(failure, Failure::hint),
    }
}

/// The end of a long text, where programs usually print their error.
pub(crate) fn tail(text: &str, secrets: &Secrets) -> String {
    const LONGEST: usize = 4000;
    let text = secrets.before_cut(text.trim(), LONGEST);
    match text.char_indices().rev().nth(LONGEST) {
        Some((start, _)) => format!("…{}", &text[start..]),
        None => text.into_owned(),
    }
}
