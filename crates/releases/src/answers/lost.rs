//! The releases whose configuration is lost, and a person's confirmation of that.

use std::fmt::Write as _;

use addon_core::operator::event::Event;
use addon_core::operator::query::StatusQuery;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use listeners::reply::{Format, Reply, shown, text};
use listeners::{Loop, Unanswered};
use serde_json::json;

/// The releases whose configuration is lost.
pub async fn lost(doors: &Loop, format: Format) -> Result<Reply, Unanswered> {
    let lost = listeners::ask(doors, StatusQuery).await?.config_lost;
    Ok(shown(format, &json!({ "lost": lost }), || told(&lost)))
}

fn told(lost: &[String]) -> String {
    if lost.is_empty() {
        return "no configuration is lost\n".to_owned();
    }
    let mut told =
        "these releases were made with a configuration that is lost; confirmed, their modules go on with what is \
                    left of it:\n"
            .to_owned();
    for release in lost {
        let _ = writeln!(told, "{release}");
    }
    told
}

/// Confirms that the configuration is lost: modules then go on with what is left of it.
pub async fn confirm(doors: &Loop) -> Response {
    match confirmed(doors).await {
        Ok(reply) => reply.into_response(),
        Err(unanswered) => unanswered.into_response(),
    }
}

async fn confirmed(doors: &Loop) -> Result<Reply, Unanswered> {
    let lost = listeners::ask(doors, StatusQuery).await?.config_lost;
    if lost.is_empty() {
        return Ok(text(
            StatusCode::BAD_REQUEST,
            "no configuration is lost, so there is nothing to be confirmed\n",
        ));
    }
    doors.post(Event::LossConfirmed)?;
    let names = lost.join(", ");
    Ok(text(
        StatusCode::OK,
        format!("confirmed: the modules of these releases go on: {names}\n"),
    ))
}
