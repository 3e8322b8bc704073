//! The answers about the channel, and the wait for a check. Must never depend on a registry.

use std::cell::Cell;
use std::time::Duration;

use ::channel::bell::Bell;
use channel_core::following;
use channel_core::view::{ChannelState, Known};
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::timeout;

use super::*;

const OFF: &str = "nobody follows one here";
/// Much shorter than a check waits for a registry, and much longer than an answer takes.
const SOON: Duration = Duration::from_secs(20);

/// A channel that is not followed.
pub(super) fn off() -> Channel {
    let why = OFF.to_owned();
    channel(watch::Sender::new(ChannelState::Off { why }).subscribe())
}

fn channel(state: watch::Receiver<ChannelState>) -> Channel {
    Channel {
        state,
        bell: Bell::default(),
    }
}

fn followed(rounds: u64) -> ChannelState {
    ChannelState::On(Box::new(Known {
        rounds,
        ..Known::default()
    }))
}

#[tokio::test]
async fn every_replica_tells_how_the_channel_stands() {
    for (standing, asked) in [
        (ActingRole::Leads, None),
        (standby(), Some("asked:      a standby; operator-0 leads")),
        (
            ActingRole::Seeks { trouble: None },
            Some("asked:      a standby; nobody leads"),
        ),
    ] {
        let ask = async |path: &str| ask_of(Disclosure::OnRequest, standing.clone(), path).await;
        let (code, _, body) = ask("GET /channel/status.text").await;
        assert!(
            code == 200 && body.starts_with(&format!("state:      off\nwhy:        {OFF}\n")),
            "{body}"
        );
        assert_eq!(
            body.lines().find(|line| line.starts_with("asked")).is_some(),
            asked.is_some()
        );
        assert!(asked.is_none_or(|asked| body.contains(asked)), "{body}");
        let (code, kind, body) = ask("GET /channel/status.json").await;
        assert_eq!((code, kind.as_str()), (200, "application/json"));
        let document: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((&document["state"], &document["why"]), (&json!("off"), &json!(OFF)));
    }
}

#[tokio::test]
async fn only_a_leader_that_follows_a_channel_asks_for_it_and_only_at_the_socket() {
    let check = async |powers, standing| ask_with(Disclosure::OnRequest, powers, standing, "POST /channel/check").await;
    let (code, _, body) = check(Powers::Looking, ActingRole::Leads).await;
    assert_eq!((code, body.contains("at the debug socket")), (403, true), "{body}");
    let (code, _, body) = check(Powers::Confirming, standby()).await;
    assert_eq!((code, body.contains("operator-0 leads")), (503, true), "{body}");
    let (code, _, body) = check(Powers::Confirming, ActingRole::Leads).await;
    assert_eq!((code, body), (400, format!("no channel is followed: {OFF}\n")));
}

#[tokio::test]
async fn a_check_rings_and_is_over_with_the_round_that_follows() {
    let state = watch::Sender::new(followed(7));
    let bell = Bell::default();
    let channel = Channel {
        state: state.subscribe(),
        bell: bell.clone(),
    };
    let (debug, _tasks) = debug(channel);
    let is_over = Cell::new(false);
    let asking = async {
        let (code, _, body) = stage::ask(router(debug), "POST /channel/check").await;
        assert!(is_over.get(), "nobody has asked the registry yet");
        (code, body)
    };
    let round = async {
        bell.rung().await;
        // Other news is no answer.
        state.send_replace(followed(7));
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        is_over.set(true);
        state.send_replace(followed(8));
    };
    let ((code, body), ()) = tokio::join!(asking, round);
    assert_eq!((code, body.as_str()), (200, "the registry was asked\n"));
}

#[tokio::test]
async fn a_check_does_not_wait_for_a_registry_that_wants_to_be_left_alone() {
    let now = Timestamp::now();
    let left_alone_until = |until| {
        ChannelState::On(Box::new(Known {
            following: following::Status {
                trouble: Some("it asks for that".to_owned()),
                left_alone: Some(until),
                ..following::Status::default()
            },
            ..Known::default()
        }))
    };
    let until = now + Duration::from_mins(10);
    let state = watch::Sender::new(left_alone_until(until));
    let bell = Bell::default();
    let place = || {
        debug(Channel {
            state: state.subscribe(),
            bell: bell.clone(),
        })
    };
    let (early, _tasks) = place();
    let asked = stage::ask(router(early), "POST /channel/check");
    let (code, _, body) = timeout(SOON, asked).await.expect("it should be told at once");
    let told = format!("it is left alone until {until:.0}: it asks for that\n");
    assert_eq!((code, body), (503, told));
    // The registry is asked as soon as the pause is over.
    timeout(SOON, bell.rung()).await.expect("it should ring");

    state.send_replace(left_alone_until(now));
    let (late, _tasks) = place();
    let round = async {
        bell.rung().await;
        state.send_replace(followed(1));
    };
    let ((code, _, body), ()) = tokio::join!(stage::ask(router(late), "POST /channel/check"), round);
    assert_eq!((code, body.as_str()), (200, "the registry was asked\n"));
}
