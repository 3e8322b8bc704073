//! `module source`: the reports about the sources of modules, and the request to ask a registry at once.
//!
//! A replica that does not lead must never answer, because it follows no source.

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use listeners::Unanswered;
use listeners::reply::{Format, Reply, bad_request, document, still_starting, text};
use names::ModuleName;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::requests::{Reports, Sources};

/// How long a client waits for the end of a round of questions.
const PATIENCE: Duration = Duration::from_mins(1);

/// The reports about all sources, or about one.
pub async fn status(sources: Option<&Sources>, module: Option<&str>, format: Format) -> Result<Reply, Unanswered> {
    let reports = match sources {
        Some(sources) => sources.reports().await.ok_or(Unanswered::Late)?,
        None => Reports::new(),
    };
    let wanted = |name: &str| module.is_none_or(|module| module == name);
    let reports: Reports = reports.into_iter().filter(|(name, ..)| wanted(name)).collect();
    if let Some(module) = module.filter(|_| reports.is_empty()) {
        return Ok(text(
            StatusCode::NOT_FOUND,
            format!("module '{module}' has no source\n"),
        ));
    }
    if format != Format::Text {
        let documents = reports.into_iter().map(|(name, _, document)| (name, document));
        return Ok(document(format, &Value::Object(documents.collect())));
    }
    if reports.is_empty() {
        return Ok(text(StatusCode::OK, "moduleSources names no module\n"));
    }
    let texts: Vec<String> = reports.into_iter().map(|(_, text, _)| text).collect();
    Ok(text(StatusCode::OK, texts.join("\n")))
}

/// Makes the operator ask the registry of a module at once.
pub async fn check(sources: Option<&Sources>, module: &str) -> Response {
    let name = match ModuleName::parse(module) {
        Ok(name) => name,
        Err(error) => return bad_request(error),
    };
    let (reply, answer) = oneshot::channel();
    let is_sent = sources.is_some_and(|sources| sources.check(&name, reply));
    if !is_sent {
        return still_starting().into_response();
    }
    match timeout(PATIENCE, answer).await {
        Ok(Ok(true)) => text(StatusCode::OK, "the registry was asked\n").into_response(),
        Ok(Ok(false) | Err(_)) => {
            let refusal = format!("module '{name}' has no source\n");
            text(StatusCode::NOT_FOUND, refusal).into_response()
        }
        Err(_) => text(
            StatusCode::GATEWAY_TIMEOUT,
            "the registry has not answered within a minute\n",
        )
        .into_response(),
    }
}
