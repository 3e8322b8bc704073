//! The releases whose configuration is lost, and a person's confirmation of that.

use std::fmt::Write as _;

use addon_core::operator::event::Event;
use addon_core::operator::query::StatusQuery;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::permitted::Permitted;
use super::reply::{Reply, shown, text};
use super::route::Format;
use super::{Debug, Unanswered};

impl Debug {
    pub(super) async fn lost(&self, format: Format) -> Result<Reply, Unanswered> {
        let lost = listeners::ask(&self.doors, StatusQuery).await?.config_lost;
        Ok(shown(format, &json!({ "lost": lost }), || told(&lost)))
    }
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
pub(super) async fn confirm(Permitted(debug): Permitted) -> Response {
    match confirmed(&debug).await {
        Ok(reply) => reply.into_response(),
        Err(unanswered) => unanswered.into_response(),
    }
}

async fn confirmed(debug: &Debug) -> Result<Reply, Unanswered> {
    let lost = listeners::ask(&debug.doors, StatusQuery).await?.config_lost;
    if lost.is_empty() {
        return Ok(text(
            StatusCode::BAD_REQUEST,
            "no configuration is lost, so there is nothing to be confirmed\n",
        ));
    }
    debug.doors.post(Event::LossConfirmed)?;
    let names = lost.join(", ");
    Ok(text(
        StatusCode::OK,
        format!("confirmed: the modules of these releases go on: {names}\n"),
    ))
}
