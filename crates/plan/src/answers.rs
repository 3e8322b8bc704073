//! The answer of the debug socket to a question for a plan. Must never answer with a secret.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use addon_core::operator::edit::Edited;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use listeners::reply::{Format, Reply, bad_request, document, still_starting, text};
use masking::secret::known::Known;
use names::ModuleName;
use report::Chain;
use report::secrets::Secrets;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::document::Plan;
use crate::planner::{Change, NoPlan, Planner};
use crate::world::Files;

/// The fields of the form, one of which is set.
#[derive(Debug, Deserialize)]
pub struct Wish {
    /// The keys of the edited ConfigMap with their texts, as a JSON object.
    data: Option<String>,
    /// The annotation of the edited ConfigMap that confirms removals.
    confirms: Option<String>,
    /// The paths of other modules directories, as a JSON array.
    directories: Option<String>,
    /// The path of another directory with global hooks, beside `directories`.
    global_hooks: Option<String>,
    /// Versions by module, as a JSON object.
    versions: Option<String>,
}

/// The plan of a change, in JSON.
pub async fn plan(planner: Option<&Planner>, wish: &Wish, secrets: &Secrets) -> Response {
    let Some(planner) = planner else {
        return still_starting().into_response();
    };
    match wish.change() {
        Ok(change) => reply(planner.plan(change).await, secrets).into_response(),
        Err(refusal) => bad_request(refusal),
    }
}

impl Wish {
    fn change(&self) -> Result<Change, String> {
        match (&self.data, &self.directories, &self.versions) {
            (Some(data), None, None) => Ok(Change::Edit(Edited {
                data: field("data", data)?,
                confirms: self.confirms.clone(),
            })),
            (None, Some(directories), None) => {
                let modules = field("directories", directories)?;
                let global_hooks = self.global_hooks.as_ref().map(PathBuf::from);
                Ok(Change::Files(Files::Directories { modules, global_hooks }))
            }
            (None, None, Some(versions)) => {
                let versions: BTreeMap<String, String> = field("versions", versions)?;
                let named = versions.into_iter().map(|(module, version)| {
                    let name = ModuleName::parse(&module).map_err(|error| Chain(&error).to_string())?;
                    Ok((name, version))
                });
                Ok(Change::Files(Files::Versions(named.collect::<Result<_, String>>()?)))
            }
            _ => Err("one of 'data', 'directories' and 'versions' is to be set".to_owned()),
        }
    }
}

fn field<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| format!("'{name}' cannot be understood: {error}"))
}

fn reply(plan: Result<(Plan, Arc<Known>), NoPlan>, secrets: &Secrets) -> Reply {
    match plan {
        // The secrets that the change brings are not known to the operator.
        Ok((plan, known)) => {
            let of_change = Secrets::default();
            of_change.learn(known);
            document(Format::Json, &plan).masked(&of_change).masked(secrets)
        }
        Err(
            error @ (NoPlan::Unanswered(_) | NoPlan::Starting | NoPlan::NotBegun(_) | NoPlan::Busy | NoPlan::Late(_)),
        ) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")),
        Err(error @ NoPlan::Unread(_)) => text(StatusCode::BAD_REQUEST, format!("{error}\n")).masked(secrets),
        Err(error @ NoPlan::Failed(_)) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).masked(secrets),
    }
}
