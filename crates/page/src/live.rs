//! The stream of news for a browser: that something has changed, at most once a second, and never the change itself.
//!
//! Must never hold more for a slow client than one word.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures::Stream;
use futures::stream::unfold;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// The shortest time between two words. Changes that follow each other are one.
const PAUSE: Duration = Duration::from_secs(1);
/// The time after which a silent stream says that it lives.
const ALIVE: Duration = Duration::from_secs(20);

/// The state of one stream.
struct Listening {
    changed: watch::Receiver<()>,
    stop: CancellationToken,
    /// The number of words that were sent.
    said: u64,
    _seat: OwnedSemaphorePermit,
}

/// A stream for one client, which ends when the listener stops. The seat is free again when the client goes.
pub(crate) fn stream(
    changed: watch::Receiver<()>,
    stop: CancellationToken,
    seat: OwnedSemaphorePermit,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let state = Listening {
        changed,
        stop,
        said: 0,
        _seat: seat,
    };
    let words = unfold(state, async |mut state| {
        if state.said > 0 {
            tokio::select! {
                () = state.stop.cancelled() => return None,
                changed = state.changed.changed() => changed.ok()?,
            }
            tokio::select! {
                () = state.stop.cancelled() => return None,
                () = sleep(PAUSE) => {}
            }
        }
        state.changed.mark_unchanged();
        state.said += 1;
        let word = Event::default().event("changed").data(state.said.to_string());
        Some((Ok(word), state))
    });
    Sse::new(words).keep_alive(KeepAlive::new().interval(ALIVE))
}
