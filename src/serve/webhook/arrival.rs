//! The body of a request on its way. Must never be waited for without end, nor take more memory than it was given.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use futures::StreamExt as _;
use futures::stream::Fuse;
use tokio::time::timeout;

use crate::serve::shares::Share;

/// How long a whole body may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long nothing of it may come.
const SILENCE: Duration = Duration::from_secs(4);
/// The first share for a body of which nobody knows how long it will be.
const STEP: usize = 64 << 10;

/// What there is of it.
pub(super) struct Arrival {
    rest: Fuse<BodyDataStream>,
    read: Vec<u8>,
    /// As much memory as is held for it.
    share: Share,
    limit: usize,
}

/// Why there is no more of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unread {
    Late,
    Broken,
    TooLarge,
    /// Others hold the memory that it needs.
    NoRoom,
}

impl Arrival {
    /// Nothing of it is read yet. The share is what was announced.
    pub(super) fn new(body: Body, share: Share, limit: usize) -> Self {
        Self {
            rest: body.into_data_stream().fuse(),
            read: Vec::with_capacity(share.amount()),
            share,
            limit,
        }
    }

    /// All of it, and what it holds of the memory for bodies.
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

/// Reads a body for which there is no room, and keeps nothing of it: who is cut off while he sends hears no answer.
pub(super) async fn discard(body: Body) {
    let mut rest = body.into_data_stream();
    let reading = async { while let Ok(Some(Ok(_))) = timeout(SILENCE, rest.next()).await {} };
    // Late or not, the answer is the same.
    let _ = timeout(PATIENCE, reading).await;
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::Arc;

    use super::*;
    use crate::serve::shares::Pool;

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
