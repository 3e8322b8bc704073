//! The body of an answer while the proxy passes it on. A fault may hit it at any time.
#![expect(
    clippy::disallowed_methods,
    reason = "the proxy's own runtime owns every task and ends with it"
)]

use std::sync::Arc;

use http_body_util::BodyExt as _;
use http_body_util::channel::{Channel, Sender};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Bytes, Incoming};
use tokio::time::sleep;

use super::asked::Asked;
use super::{Broken, Shared, What};

/// The effect of the current faults on the next part of a body.
enum Fate {
    Through,
    /// This number of bytes pass, and then the body ends.
    Cut(usize),
    /// The connection is broken.
    Broken,
    /// The connection stays open, and no more bytes come.
    Dead,
}

pub(super) fn through(body: Incoming, asked: Asked, shared: Arc<Shared>) -> UnsyncBoxBody<Bytes, Broken> {
    let (sender, channel) = Channel::new(1);
    tokio::spawn(carry(body, asked, shared, sender));
    channel.boxed_unsync()
}

async fn carry(mut body: Incoming, asked: Asked, shared: Arc<Shared>, mut sender: Sender<Bytes, Broken>) {
    let mut allowance = None;
    loop {
        let part = tokio::select! {
            part = next(&mut body) => part,
            // A new fault also hits a silent body, so it has to wake this wait.
            () = shared.changed() => Some(Bytes::new()),
        };
        let Some(part) = part else { return };
        match fate(&shared, &asked, part.len(), &mut allowance).await {
            Fate::Through => {}
            Fate::Cut(length) => {
                let _ = sender.send_data(part.slice(..length)).await;
                return sender.abort(Broken);
            }
            Fate::Broken => return sender.abort(Broken),
            Fate::Dead => {
                // The connection of the client stays open. The connection to the API server is closed, but the client
                // is not told.
                drop(body);
                return std::future::pending().await;
            }
        }
        if !part.is_empty() && sender.send_data(part).await.is_err() {
            return;
        }
    }
}

/// The next bytes of a body; `None` at its end.
async fn next(body: &mut Incoming) -> Option<Bytes> {
    loop {
        let frame = body.frame().await?.ok()?;
        if let Ok(data) = frame.into_data() {
            return Some(data);
        }
    }
}

async fn fate(shared: &Shared, asked: &Asked, length: usize, allowance: &mut Option<usize>) -> Fate {
    loop {
        let Some(what) = shared.fault(asked) else {
            *allowance = None;
            return Fate::Through;
        };
        shared.hit(asked);
        match what {
            What::Delay(time) => {
                sleep(time).await;
                return Fate::Through;
            }
            What::Refuse => return Fate::Broken,
            What::BlackHole => return Fate::Dead,
            What::Stall => shared.changed().await,
            What::Cut(bytes) => {
                let left = allowance.unwrap_or(bytes);
                if length >= left {
                    return Fate::Cut(left);
                }
                *allowance = Some(left - length);
                return Fate::Through;
            }
            // These faults concern requests, not answers.
            What::Status(..) | What::Gone | What::LoseAnswer | What::StaleGroup(_) | What::LostGroup(_) => {
                return Fate::Through;
            }
        }
    }
}
