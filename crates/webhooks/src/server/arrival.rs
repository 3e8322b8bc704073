//! The body of a request while it is received. It must never be waited for without a limit, nor use more memory than
//! was reserved.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use futures::StreamExt as _;
use futures::stream::Fuse;
use tokio::time::timeout;

use listeners::shares::Share;

/// The time limit for a whole body.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time limit for a pause in a body.
const SILENCE: Duration = Duration::from_secs(4);
/// The first reservation for a body of unknown length.
const STEP: usize = 64 << 10;

/// A body that is being received.
pub(super) struct Arrival {
    rest: Fuse<BodyDataStream>,
    read: Vec<u8>,
    /// The memory that is reserved for the body.
    share: Share,
    limit: usize,
}

/// Why a body was not received completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unread {
    Late,
    Broken,
    TooLarge,
    /// Other bodies use the memory that this body needs.
    NoRoom,
}

impl Arrival {
    /// A body of which nothing is read yet, with the memory for its announced length.
    pub(super) fn new(body: Body, share: Share, limit: usize) -> Self {
        Self {
            rest: body.into_data_stream().fuse(),
            read: Vec::with_capacity(share.amount()),
            share,
            limit,
        }
    }

    /// Receives the whole body; returns it with its reserved memory.
    pub(super) async fn whole(mut self) -> Result<(Vec<u8>, Share), Unread> {
        timeout(PATIENCE, self.read()).await.unwrap_or(Err(Unread::Late))?;
        Ok((self.read, self.share))
    }

    async fn read(&mut self) -> Result<(), Unread> {
        loop {
            let Ok(part) = timeout(SILENCE, self.rest.next()).await else {
                return Err(Unread::Late);
            };
            match part {
                None => return Ok(()),
                Some(Ok(part)) => self.take(&part)?,
                Some(Err(_)) => return Err(Unread::Broken),
            }
        }
    }

    fn take(&mut self, part: &[u8]) -> Result<(), Unread> {
        let length = self.read.len() + part.len();
        if length > self.limit {
            return Err(Unread::TooLarge);
        }
        if length > self.share.amount() {
            let wanted = length
                .next_multiple_of(STEP)
                .max(2 * self.share.amount())
                .min(self.limit);
            let more = wanted - self.share.amount();
            self.share.grow(more).map_err(|_| Unread::NoRoom)?;
            self.read.reserve_exact(wanted - self.read.len());
        }
        self.read.extend_from_slice(part);
        Ok(())
    }
}

/// Reads a body for which there is no memory, without keeping it: a client that is cut off while it sends would not
/// read the answer.
pub(super) async fn discard(body: Body) {
    let mut rest = body.into_data_stream();
    let reading = async { while let Ok(Some(Ok(_))) = timeout(SILENCE, rest.next()).await {} };
    // The result does not matter, because the answer is the same.
    let _ = timeout(PATIENCE, reading).await;
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::Arc;

    use listeners::shares::Pool;

    use super::*;

    const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn arrival(pool: &Arc<Pool>, announced: usize, limit: usize) -> Arrival {
        let parts = ["ab", "cd", "ef"].map(Ok::<_, std::io::Error>);
        let body = Body::from_stream(futures::stream::iter(parts));
        Arrival::new(body, pool.take(PEER, announced).unwrap(), limit)
    }

    #[tokio::test]
    async fn it_is_read_to_its_end_but_not_beyond_the_limit_nor_what_there_is_for_all() {
        let roomy = Pool::new(1 << 20, 1 << 20);
        for announced in [6, 0] {
            let (body, share) = arrival(&roomy, announced, 6).whole().await.unwrap();
            assert_eq!((body.as_slice(), share.amount()), (b"abcdef".as_slice(), 6));
        }
        assert_eq!(arrival(&roomy, 0, 5).whole().await.unwrap_err(), Unread::TooLarge);
        let narrow = Pool::new(5, 5);
        assert_eq!(arrival(&narrow, 0, 6).whole().await.unwrap_err(), Unread::NoRoom);
        drop(narrow.take(PEER, 5).unwrap());
    }
}
