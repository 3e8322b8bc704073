//! Asks executables that check the settings of their module: `FILE hook check`, with the settings in a file.
//!
//! Must never take an executable without a valid answer for a refusal.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use addon_core::failure::{Class, Failure};
use child::{Output, Spawn, Spawner};
use names::{GLOBAL_KEY, ModuleName, Owner};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::STDERR_LIMIT;
use crate::failures::{no_files, not_ended, tail};
use jobs::tmp::TmpDir;

/// The deadline of an executable. The API server waits for ten seconds at most, and a person waits for it.
pub const DEADLINE: Duration = Duration::from_secs(5);
const GRACE: Duration = Duration::from_secs(1);

/// The tools for asking executables.
#[derive(Debug, Clone, Copy)]
pub struct Examiner<'a> {
    /// Starts the executables.
    pub spawner: &'a Spawner,
    /// The directory for the file with the settings.
    pub tmp: &'a Arc<TmpDir>,
    /// The environment of the executables.
    pub environment: &'a [(OsString, OsString)],
}

/// The opinion of an executable on settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opinion {
    /// The reason for which the settings must not be used; none if they may be used.
    pub refusal: Option<String>,
    /// Remarks for the person who edits.
    pub warnings: Vec<String>,
}

/// An answer on standard error.
#[derive(Debug, Deserialize)]
struct Answer {
    valid: bool,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    warnings: Option<Vec<String>>,
}

impl Examiner<'_> {
    /// Asks an executable for its opinion.
    pub async fn ask(
        &self,
        owner: &Owner,
        program: &Path,
        settings: &Value,
        cancel: &CancellationToken,
    ) -> Result<Opinion, Failure> {
        let what = format!("the settings check of {owner}");
        let name = owner.module().map_or(GLOBAL_KEY, ModuleName::as_str);
        let (tmp, prefix, content) = (Arc::clone(self.tmp), format!("{name}."), settings.to_string());
        let file = blocking::run(move || tmp.file(&prefix, ".settings.json", content.as_bytes())).await;
        let file = file.map_err(|error| no_files(&what, &error))?;
        let mut env = self.environment.to_vec();
        env.push(("SETTINGS_PATH".into(), file.path().into()));
        let spawn = Spawn {
            args: vec!["hook".into(), "check".into()],
            env,
            stdout: Output::captured(STDERR_LIMIT),
            stderr: Output::captured(STDERR_LIMIT),
            grace: GRACE,
            ..Spawn::new(program, DEADLINE)
        };
        let finished = self.spawner.run(spawn, cancel).await;
        let finished = finished.map_err(|error| not_ended(&error).within(&what))?;
        let said = finished.stderr.text();
        opinion(finished.exit.is_success(), &said).ok_or_else(|| {
            let said = tail(&said, self.spawner.secrets());
            let report = format!("{what}: {} {} without an answer: {said}", program.display(), finished.exit);
            Failure::new(Class::HookFailed, report)
                .hint(r#"with `hook check` an executable ends with 0, or prints {"valid": false, "message": "…"} on standard error"#)
        })
    }
}

/// The opinion that an exit and the text on standard error tell; none if they tell nothing.
fn opinion(is_success: bool, said: &str) -> Option<Opinion> {
    if is_success {
        return Some(Opinion {
            refusal: None,
            warnings: Vec::new(),
        });
    }
    // A list would be taken for the fields in their order.
    let document: Map<String, Value> = serde_json::from_str(said.trim()).ok()?;
    let Answer {
        valid,
        message,
        warnings,
    } = serde_json::from_value(Value::Object(document)).ok()?;
    let message = message.filter(|message| !message.trim().is_empty());
    let refusal = || message.unwrap_or_else(|| "the settings are not valid".to_owned());
    Some(Opinion {
        refusal: (!valid).then(refusal),
        warnings: warnings.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_document_or_success_is_an_answer() {
        let told = |success, said: &str| {
            let opinion = opinion(success, said)?;
            Some((opinion.refusal.unwrap_or_default(), opinion.warnings.join("|")))
        };
        let rows = [
            (true, "anything", Some(("", ""))),
            (
                false,
                r#"{"valid": false, "message": "no room"}"#,
                Some(("no room", "")),
            ),
            (false, r#"{"valid": false}"#, Some(("the settings are not valid", ""))),
            (
                false,
                r#"{"valid": false, "message": " ", "warnings": ["w"]}"#,
                Some(("the settings are not valid", "w")),
            ),
            (
                false,
                r#"{"valid": true, "message": "fine", "warnings": ["a", "b"]}"#,
                Some(("", "a|b")),
            ),
            (false, r#"{"valid": true, "warnings": null}"#, Some(("", ""))),
            (false, "", None),
            (false, "panic: no", None),
            (false, r#"{"message": "no"}"#, None),
            (false, "[true]", None),
        ];
        for (success, said, expected) in rows {
            let expected = expected.map(|(refusal, warnings)| (refusal.to_owned(), warnings.to_owned()));
            assert_eq!(told(success, said), expected, "{success} {said}");
        }
    }
}
