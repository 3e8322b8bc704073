//! Questions that the loop answers in a later step: the asking task waits here, and the loop finds it by a number.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

/// All waits for replies. Clones share them.
#[derive(Debug)]
pub struct Replies<R>(Arc<Mutex<Waiting<R>>>);

#[derive(Debug)]
struct Waiting<R> {
    last: u64,
    senders: BTreeMap<u64, oneshot::Sender<R>>,
}

/// A wait for a reply. Dropping it ends the wait.
#[derive(Debug)]
pub struct Awaited<R> {
    number: u64,
    receiver: oneshot::Receiver<R>,
    replies: Replies<R>,
}

impl<R> Replies<R> {
    /// Begins a wait with the next number.
    pub fn open(&self) -> Awaited<R> {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.last += 1;
        let number = waiting.last;
        waiting.senders.insert(number, sender);
        Awaited {
            number,
            receiver,
            replies: self.clone(),
        }
    }

    /// Answers the wait with this number, if it still exists.
    pub fn send(&self, number: u64, reply: R) {
        if let Some(sender) = self.take(number) {
            // The wait may have ended.
            let _ = sender.send(reply);
        }
    }

    /// Whether the wait with this number still exists.
    pub fn are_awaited(&self, number: u64) -> bool {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.senders.contains_key(&number)
    }

    fn take(&self, number: u64) -> Option<oneshot::Sender<R>> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.senders.remove(&number)
    }
}

impl<R> Awaited<R> {
    /// The number by which the loop finds the wait.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The reply; `None` if the loop has ended.
    pub async fn reply(mut self) -> Option<R> {
        (&mut self.receiver).await.ok()
    }
}

impl<R> Drop for Awaited<R> {
    fn drop(&mut self) {
        drop(self.replies.take(self.number));
    }
}

impl<R> Default for Replies<R> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Waiting {
            last: 0,
            senders: BTreeMap::new(),
        })))
    }
}

impl<R> Clone for Replies<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_gets_the_reply_to_its_own_number() {
        let replies = Replies::default();
        let (one, other) = (replies.open(), replies.open());
        replies.send(other.number(), "other");
        replies.send(one.number(), "one");
        assert_eq!((one.reply().await, other.reply().await), (Some("one"), Some("other")));
    }

    #[test]
    fn who_waits_no_longer_is_forgotten() {
        let replies: Replies<()> = Replies::default();
        let awaited = replies.open();
        let number = awaited.number();
        assert!(replies.are_awaited(number));
        drop(awaited);
        assert!(!replies.are_awaited(number));
        replies.send(number, ());
        assert!(replies.0.lock().unwrap().senders.is_empty());
    }
}
