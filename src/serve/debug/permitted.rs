//! The check of requests that have something done: the client's powers, and the replica.
//!
//! Must never let a request through that only a client of the debug socket may make, or that a standby cannot carry
//! out.

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use leadership::standing::ActingRole;
use listeners::reply::text;

use super::{Debug, Powers};

/// The state, for a request of a client that has the power to change something, at a replica that can carry out the
/// change.
pub(super) struct Permitted(pub(super) Debug);

impl FromRequestParts<Debug> for Permitted {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, debug: &Debug) -> Result<Self, Response> {
        if debug.powers == Powers::Looking {
            let refusal = format!(
                "{} {} is answered at the debug socket, not here\n",
                parts.method,
                parts.uri.path()
            );
            return Err(text(StatusCode::FORBIDDEN, refusal).into_response());
        }
        let standing = debug.standing.borrow().clone();
        match standing {
            ActingRole::Standby(leader) => Err(leader.instead_of_us()),
            ActingRole::Leads | ActingRole::Seeks { .. } => Ok(Self(debug.clone())),
        }
    }
}
