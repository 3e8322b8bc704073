//! The state of the channel, and the request to ask the registry now.
//!
//! Every replica answers, because during a trial the old version is a standby and judges. Must never ask the registry
//! itself.

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use channel_core::view::{Answerer, ChannelState, View};
use jiff::Timestamp;
use leadership::standing::ActingRole;
use listeners::reply::{Format, Reply, bad_request, shown, text};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::bell::Bell;

/// The longest wait for the registry's answer.
const PATIENCE: Duration = Duration::from_mins(1);

/// The state of the channel, and the bell that wakes the follower of the registry.
#[derive(Debug, Clone)]
pub struct Channel {
    /// The state of the channel.
    pub state: watch::Receiver<ChannelState>,
    /// Rung to make the follower ask the registry now.
    pub bell: Bell,
}

impl Channel {
    /// The state, as this replica knows it.
    pub fn status(&self, standing: &ActingRole, format: Format) -> Reply {
        let answerer = match standing {
            ActingRole::Leads => Answerer::Leader,
            ActingRole::Seeks { trouble: _ } => Answerer::Standby(None),
            ActingRole::Standby(leader) => Answerer::Standby(Some(&leader.name)),
        };
        let now = Timestamp::now();
        let view = View::of(&self.state.borrow(), answerer, now);
        shown(format, &view, || view.text(now))
    }
}

/// Rings the bell, and waits for the result.
pub async fn check(channel: &Channel) -> Response {
    let mut state = channel.state.clone();
    let before = match rounds(&state.borrow_and_update()) {
        Ok(rounds) => rounds,
        Err(off) => return bad_request(off),
    };
    // During a pause that the registry demands, the follower hears the bell only when the pause ends.
    channel.bell.ring();
    if let Some(not_yet) = left_alone(&state.borrow(), Timestamp::now()) {
        return text(StatusCode::SERVICE_UNAVAILABLE, not_yet).into_response();
    }
    let is_over = |state: &ChannelState| rounds(state).is_ok_and(|rounds| rounds != before);
    if let Ok(Ok(_)) = timeout(PATIENCE, state.wait_for(is_over)).await {
        return text(StatusCode::OK, "the registry was asked\n").into_response();
    }
    let late = format!("the registry was not asked within {} s\n", PATIENCE.as_secs());
    text(StatusCode::SERVICE_UNAVAILABLE, late).into_response()
}

/// The reason and the end of a pause that the registry demands; none if the registry may be asked.
fn left_alone(state: &ChannelState, now: Timestamp) -> Option<String> {
    let ChannelState::On(known) = state else { return None };
    let until = known.following.left_alone.filter(|until| *until > now)?;
    let why = known
        .following
        .trouble
        .as_deref()
        .unwrap_or("it wants to be left alone");
    Some(format!("it is left alone until {until:.0}: {why}\n"))
}

/// The number of finished rounds; the error says why there are none.
fn rounds(state: &ChannelState) -> Result<u64, String> {
    match state {
        ChannelState::Unknown => Ok(0),
        ChannelState::Off { why } => Err(format!("no channel is followed: {why}")),
        ChannelState::On(known) => Ok(known.rounds),
    }
}
