//! The requests that have something done: each is checked first, then carried out by its capability.

use axum::Form;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use channel::answers as channel;
use hooks::answers::records::{self, Wish};
use intake::answers as intake;
use listeners::reply::bad_request;
use plan::answers::Wish as Wanted;
use releases::answers::{lost, purge};
use serde::Deserialize;
use sources::answers as sources;
use telling::parameters::SetError;

use super::Debug;
use super::permitted::Permitted;

#[derive(Debug, Deserialize)]
pub(super) struct Confirmation {
    confirm: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Named {
    /// The name of the module.
    module: Option<String>,
}

impl Named {
    fn name(&self) -> &str {
        self.module.as_deref().unwrap_or_default()
    }
}

pub(super) async fn check_channel(Permitted(debug): Permitted) -> Response {
    channel::check(&debug.channel).await
}

pub(super) async fn check_source(Permitted(debug): Permitted, Form(named): Form<Named>) -> Response {
    sources::check(debug.sources.get(), named.name()).await
}

pub(super) async fn reload(Permitted(debug): Permitted, Form(named): Form<Named>) -> Response {
    intake::reload(debug.reloader.get(), named.name()).await
}

pub(super) async fn record(Permitted(debug): Permitted, Form(wish): Form<Wish>) -> Response {
    records::record(&debug.doors, &debug.recorder, wish).await
}

/// Changes nothing, but works for a while.
pub(super) async fn plan(Permitted(debug): Permitted, Form(wish): Form<Wanted>) -> Response {
    plan::answers::plan(debug.planner.get(), &wish, &debug.secrets).await
}

pub(super) async fn confirm_removals(Permitted(debug): Permitted, Form(form): Form<Confirmation>) -> Response {
    purge::confirm(&debug.doors, form.confirm.as_deref().unwrap_or_default()).await
}

pub(super) async fn confirm_loss(Permitted(debug): Permitted) -> Response {
    lost::confirm(&debug.doors).await
}

#[derive(Debug, Deserialize)]
pub(super) struct Setting {
    name: Option<String>,
    value: Option<String>,
    duration: Option<String>,
}

/// Sets a parameter of this replica. Each client may do this.
pub(super) async fn set_parameter(State(debug): State<Debug>, Form(form): Form<Setting>) -> Response {
    let Setting { name, value, duration } = form;
    let filled = |field: Option<String>| field.filter(|text| !text.is_empty());
    let Some(name) = filled(name) else {
        return bad_request("'name' parameter is required");
    };
    let Some(value) = filled(value) else {
        return bad_request("'value' parameter is required");
    };
    match debug.parameters.set(&name, &value, filled(duration).as_deref()) {
        Ok(()) => StatusCode::OK.into_response(),
        Err(error @ (SetError::UnknownParameter { .. } | SetError::BadValue { .. } | SetError::BadDuration { .. })) => {
            bad_request(error)
        }
    }
}
