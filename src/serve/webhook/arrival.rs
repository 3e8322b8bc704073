//! The body of a request on its way. Must never be waited for without end, nor be larger than was agreed on.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use futures::StreamExt as _;
use futures::stream::Fuse;
use tokio::time::timeout;

/// How long each half of a body may take: its start, and the rest.
const PATIENCE: Duration = Duration::from_secs(10);

/// What there is of it.
pub(super) struct Arrival {
    rest: Fuse<BodyDataStream>,
    read: Vec<u8>,
    limit: usize,
}

/// Why there is no more of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unread {
    Late,
    Broken,
    TooLarge,
}

impl Arrival {
    /// Nothing of it is read yet.
    pub(super) fn new(body: Body, limit: usize) -> Self {
        Self {
            rest: body.into_data_stream().fuse(),
            read: Vec::new(),
            limit,
        }
    }

    /// Reads until there is so much, or all of it.
    pub(super) async fn start(&mut self, enough: usize) -> Result<(), Unread> {
        let reading = async {
            while self.read.len() < enough {
                match self.rest.next().await {
                    None => break,
                    Some(Ok(part)) if self.read.len() + part.len() > self.limit => return Err(Unread::TooLarge),
                    Some(Ok(part)) => self.read.extend_from_slice(&part),
                    Some(Err(_)) => return Err(Unread::Broken),
                }
            }
            Ok(())
        };
        timeout(PATIENCE, reading).await.unwrap_or(Err(Unread::Late))
    }

    /// All of it.
    pub(super) async fn finish(mut self) -> Result<Vec<u8>, Unread> {
        self.start(usize::MAX).await?;
        Ok(self.read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(limit: usize) -> Arrival {
        let parts = ["ab", "cd", "ef"].map(Ok::<_, std::io::Error>);
        Arrival::new(Body::from_stream(futures::stream::iter(parts)), limit)
    }

    #[tokio::test]
    async fn it_is_read_as_far_as_is_wanted_and_no_further_than_the_limit() {
        let mut whole = arrival(6);
        whole.start(3).await.unwrap();
        assert_eq!(whole.read, b"abcd");
        assert_eq!(whole.finish().await.unwrap(), b"abcdef");
        let mut small = arrival(100);
        small.start(99).await.unwrap();
        assert_eq!(small.finish().await.unwrap(), b"abcdef");
        assert_eq!(arrival(5).finish().await, Err(Unread::TooLarge));
    }
}
