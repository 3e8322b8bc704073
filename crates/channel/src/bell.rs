//! The endpoint at which a registry, or the program that pushed a version, announces a new version.
//!
//! An announcement only makes the operator ask the registry at once instead of a minute later. Must never give
//! information to a client without the token.

use std::path::PathBuf;
use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use leadership::standing::{ActingRole, Told};
use listeners::{not_found, text};
use ring::hmac;
use ring::rand::SystemRandom;
use tokio::sync::{Notify, watch};
use tracing::warn;

/// Wakes the follower, which asks the registry for new versions.
#[derive(Debug, Clone)]
pub struct Bell {
    rope: Arc<Notify>,
    off: watch::Sender<Option<String>>,
}

impl Default for Bell {
    fn default() -> Self {
        Self {
            rope: Arc::default(),
            off: watch::Sender::new(None),
        }
    }
}

impl Bell {
    /// Wakes the follower, so that it asks the registry at once. Two rings before the follower wakes lead to one check.
    pub fn ring(&self) {
        self.rope.notify_one();
    }

    /// Waits for a ring. The follower calls this.
    pub async fn rung(&self) {
        self.rope.notified().await;
    }

    /// Records that no follower runs, so that a ring has no effect. `why` is the reason in the answer to a client.
    pub fn unhang(&self, why: &str) {
        self.off.send_replace(Some(why.to_owned()));
    }
}

/// The bell, and the file with the token that clients need.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Wakes the follower.
    pub bell: Bell,
    /// The token's file; none if no client may ring.
    pub token: Option<PathBuf>,
}

/// The answer to an announcement with these headers.
pub async fn announced(Endpoint { bell, token }: &Endpoint, standing: &Told, headers: &HeaderMap) -> Response {
    let Some(file) = token else {
        return not_found().await;
    };
    // Read each time, because a mounted Secret may change.
    let token = match fs_err::read_to_string(file) {
        Ok(token) => token.trim().to_owned(),
        Err(error) => {
            warn!(%error, "The token that protects notices of new versions cannot be read");
            return text(
                StatusCode::SERVICE_UNAVAILABLE,
                "the token cannot be read, see the log\n",
            );
        }
    };
    if token.is_empty() || !is_shown(headers, &token) {
        let wanted = [(header::WWW_AUTHENTICATE, "Bearer")];
        return (wanted, text(StatusCode::UNAUTHORIZED, "a bearer token is wanted\n")).into_response();
    }
    if let Some(why) = &*bell.off.borrow() {
        return text(StatusCode::CONFLICT, format!("the registry is not followed: {why}\n"));
    }
    match &*standing.borrow() {
        ActingRole::Leads => {
            bell.ring();
            text(StatusCode::ACCEPTED, "the registry is asked at once\n")
        }
        ActingRole::Standby(leader) => leader.instead_of_us(),
        ActingRole::Seeks { .. } => text(StatusCode::SERVICE_UNAVAILABLE, "no replica leads at the moment\n"),
    }
}

/// Whether the client shows this token, in constant time.
fn is_shown(headers: &HeaderMap, token: &str) -> bool {
    let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let shown = shown.and_then(|value| value.split_once(' '));
    let Some((_, shown)) = shown.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")) else {
        return false;
    };
    let Ok(key) = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()) else {
        return false;
    };
    let wanted = hmac::sign(&key, token.as_bytes());
    hmac::verify(&key, shown.trim().as_bytes(), wanted.as_ref()).is_ok()
}
