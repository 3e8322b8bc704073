//! `module source`: the reports about the sources of modules, and a wish that a registry is asked at once.
//!
//! Must never answer for a replica that does not lead: it follows no source.

use std::time::Duration;

use axum::Form;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use listeners::Unanswered;
use names::ModuleName;
use serde::Deserialize;
use serde_json::Value;
use sources::requests::Reports;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::permitted::Permitted;
use super::reply::{Reply, document, text};
use super::route::Format;
use super::{Debug, bad_request};

/// How long a client waits for the end of a round of questions.
const PATIENCE: Duration = Duration::from_mins(1);

impl Debug {
    /// The reports about all sources, or about one.
    pub(super) async fn sources(&self, module: Option<&str>, format: Format) -> Result<Reply, Unanswered> {
        let reports = match self.sources.get() {
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
}

#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    /// The name of the module.
    module: Option<String>,
}

/// Makes the operator ask the registry of a module at once.
pub(super) async fn check(Permitted(debug): Permitted, Form(form): Form<Asked>) -> Response {
    let name = match ModuleName::parse(&form.module.unwrap_or_default()) {
        Ok(name) => name,
        Err(error) => return bad_request(error),
    };
    let (reply, answer) = oneshot::channel();
    let is_sent = debug.sources.get().is_some_and(|sources| sources.check(&name, reply));
    if !is_sent {
        let refusal = "the operator is still starting\n";
        return text(StatusCode::SERVICE_UNAVAILABLE, refusal).into_response();
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
