//! The answer of the debug socket to a question for a plan. Must never answer with a secret.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use listeners::reply::{Format, Reply, bad_request, document, still_starting, text};
use masking::secret::known::Known;
use report::secrets::Secrets;
use serde::Deserialize;

use crate::document::Plan;
use crate::planner::{NoPlan, Planner};

/// The fields of the form.
#[derive(Debug, Deserialize)]
pub struct Wish {
    /// The keys of the edited ConfigMap with their texts, as a JSON object.
    data: Option<String>,
}

/// The plan for an edit, in JSON.
pub async fn edit(planner: Option<&Planner>, wish: Wish, secrets: &Secrets) -> Response {
    let Some(planner) = planner else {
        return still_starting().into_response();
    };
    let data = match serde_json::from_str::<BTreeMap<String, String>>(wish.data.as_deref().unwrap_or_default()) {
        Ok(data) => data,
        Err(error) => return bad_request(format_args!("'data' should be an object of texts: {error}")),
    };
    reply(planner.edit(data).await, secrets).into_response()
}

fn reply(plan: Result<(Plan, Arc<Known>), NoPlan>, secrets: &Secrets) -> Reply {
    match plan {
        // The secrets that the edit brings are not known to the operator.
        Ok((plan, known)) => {
            let of_edit = Secrets::default();
            of_edit.learn(known);
            document(Format::Json, &plan).masked(&of_edit).masked(secrets)
        }
        Err(error @ (NoPlan::Unanswered(_) | NoPlan::Starting | NoPlan::Busy | NoPlan::Late)) => {
            text(StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n"))
        }
        Err(error @ NoPlan::Failed(_)) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).masked(secrets),
    }
}
