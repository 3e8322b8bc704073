//! The channel: how it stands, and the wish that the registry is asked now.
//!
//! Every replica answers, for while a trial goes on the old version stands by and judges. Must never ask the registry itself.

use std::time::Duration;

use addon_core::artifact::view::{Answerer, ChannelState, View};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::timeout;

use super::reply::{Reply, shown, text};
use super::route::Format;
use crate::serve::notify::Bell;

use super::{ActingRole, Debug, Powers, bad_request};

/// A registry that is slow, or has to be asked for much, has answered by then.
const PATIENCE: Duration = Duration::from_mins(1);

/// The state of the channel, and the bell by which the part that follows it is woken.
#[derive(Debug, Clone)]
pub struct Channel {
    /// All that is known of it.
    pub state: watch::Receiver<ChannelState>,
    /// Rung when the registry is to be asked now.
    pub bell: Bell,
}

impl Debug {
    pub(super) fn channel_status(&self, format: Format) -> Reply {
        let standing = self.standing.borrow().clone();
        let answerer = match &standing {
            ActingRole::Leads => Answerer::Leader,
            ActingRole::Seeks { trouble: _ } => Answerer::Standby(None),
            ActingRole::Standby(leader) => Answerer::Standby(Some(&leader.name)),
        };
        let now = Timestamp::now();
        let view = View::of(&self.channel.state.borrow(), answerer, now);
        shown(format, &view, || view.text(now))
    }
}

/// Wakes the part that asks the registry, and waits for its answer.
pub(super) async fn check(State(debug): State<Debug>) -> Response {
    if debug.powers == Powers::Looking {
        let refusal = "that the registry is asked now is said at the debug socket, not here\n";
        return text(StatusCode::FORBIDDEN, refusal).into_response();
    }
    if let ActingRole::Standby(leader) = debug.standing.borrow().clone() {
        return leader.instead_of_us();
    }
    let mut state = debug.channel.state.clone();
    let before = match rounds(&state.borrow_and_update()) {
        Ok(rounds) => rounds,
        Err(off) => return bad_request(off),
    };
    // One that is left alone hears it when that is over.
    debug.channel.bell.ring();
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

/// That the registry is not asked for now because it wants that, and until when; nothing if it may be asked.
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

/// How many rounds are over; why there are none.
fn rounds(state: &ChannelState) -> Result<u64, String> {
    match state {
        ChannelState::Unknown => Ok(0),
        ChannelState::Off { why } => Err(format!("no channel is followed: {why}")),
        ChannelState::On(known) => Ok(known.rounds),
    }
}
