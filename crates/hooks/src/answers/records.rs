//! Records of hook runs: which hook is recorded, and the records that are kept.
//!
//! Must never show a record elsewhere than at the debug socket: it holds all that a hook was given,
//! with known secrets masked.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use listeners::reply::{Format, Reply, bad_request, document, text};
use listeners::{Loop, Unanswered};
use names::{HookId, HookName, ModuleName, Owner};
use serde::Deserialize;
use serde_json::{Value, json};

use super::snapshots::hooks;
use crate::records::Recorder;

/// The largest number of runs to record at once.
const MOST: u32 = 1000;

/// The runs to record from now on.
#[derive(Debug, Deserialize)]
pub struct Wish {
    hook: Option<String>,
    /// The module of the hook; none for a hook of no module.
    module: Option<String>,
    runs: Option<String>,
}

/// Records the next runs of a hook.
pub async fn record(doors: &Loop, recorder: &Recorder, form: Wish) -> Response {
    let runs = form.runs.as_deref().unwrap_or("1");
    let Some(runs) = runs.parse().ok().filter(|runs| *runs <= MOST) else {
        return bad_request(format!("'runs' should be a number up to {MOST}, and is '{runs}'"));
    };
    let module = form.module.filter(|module| !module.is_empty());
    match hook_named(doors, &form.hook.unwrap_or_default(), module.as_deref()).await {
        Ok(Ok(hook)) => {
            recorder.want(hook.clone(), runs);
            text(StatusCode::OK, told(&hook, runs)).into_response()
        }
        Ok(Err(refusal)) => bad_request(refusal),
        Err(unanswered) => unanswered.into_response(),
    }
}

fn told(hook: &HookId, runs: u32) -> String {
    match runs {
        0 => format!("{hook} is not recorded any more\n"),
        1 => format!("the next run of {hook} is recorded; `hook records` lists the records\n"),
        runs => format!("the next {runs} runs of {hook} are recorded; `hook records` lists the records\n"),
    }
}

/// The hook with this name, or the reason for which there is none.
async fn hook_named(doors: &Loop, name: &str, module: Option<&str>) -> Result<Result<HookId, String>, Unanswered> {
    let owner = match module.map(ModuleName::parse).transpose() {
        Ok(module) => module.map_or(Owner::Global, Owner::Module),
        Err(error) => return Ok(Err(error.to_string())),
    };
    let found = hooks(doors, owner.clone()).await?;
    let Some(hooks) = found else {
        return Ok(Err(format!("there is no module '{}'", module.unwrap_or_default())));
    };
    let wanted = HookName::parse(name).ok().filter(|name| hooks.contains_key(name));
    Ok(wanted.map(|name| HookId { owner, name }).ok_or_else(|| {
        let of = module.map_or_else(String::new, |module| format!(" of module '{module}'"));
        let names: Vec<&str> = hooks.keys().map(HookName::as_str).collect();
        match names.as_slice() {
            [] => format!("there is no hook '{name}'{of}: the operator knows none there"),
            names => format!("there is no hook '{name}'{of}, only: {}", names.join(", ")),
        }
    }))
}

/// The records that are kept, and the hooks that are recorded.
pub async fn records(recorder: &Recorder, format: Format) -> Reply {
    let recorder = recorder.clone();
    let wanted = recorder.wanted();
    let wanted: Vec<Value> = wanted
        .into_iter()
        .map(|(HookId { owner, name }, runs)| json!({"hook": name, "module": owner.module(), "runs": runs}))
        .collect();
    match blocking::run(move || recorder.entries()).await {
        Ok(entries) => document(format, &json!({"records": entries, "recorded": wanted})),
        Err(error) => text(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("the records cannot be read: {error}\n"),
        ),
    }
}

/// One record.
pub async fn record_of(recorder: &Recorder, id: &str, format: Format) -> Reply {
    let recorder = recorder.clone();
    let wanted = id.to_owned();
    let read = blocking::run(move || {
        let text = recorder.text(&wanted)?;
        Ok::<_, std::io::Error>(text.map(|text| serde_json::from_str::<Value>(&text)))
    });
    let unreadable = |error: String| {
        text(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("record '{id}' cannot be read: {error}\n"),
        )
    };
    match read.await {
        Ok(Some(Ok(record))) => document(format, &record),
        Ok(Some(Err(error))) => unreadable(error.to_string()),
        Ok(None) => text(
            StatusCode::BAD_REQUEST,
            format!("there is no record '{id}' any more; `hook records` lists those that are kept\n"),
        ),
        Err(error) => unreadable(error.to_string()),
    }
}
