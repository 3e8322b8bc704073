//! Limited resources that clients share: connections, and memory for their requests. No client gets all of them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The limits for all clients together, and for each address.
#[derive(Debug)]
pub struct Pool {
    all: usize,
    each: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    all: usize,
    by: BTreeMap<IpAddr, usize>,
}

/// The limit is reached at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exhausted;

impl Pool {
    pub fn new(all: usize, each: usize) -> Arc<Self> {
        Arc::new(Self {
            all,
            each,
            held: Mutex::default(),
        })
    }

    /// Takes an amount for a client at this address; dropping the share gives it back.
    pub fn take(self: &Arc<Self>, peer: IpAddr, amount: usize) -> Result<Share, Exhausted> {
        let mut share = Share {
            pool: Arc::clone(self),
            // IPv4-mapped addresses count as IPv4.
            peer: Some(peer.to_canonical()),
            amount: 0,
        };
        share.grow(amount)?;
        Ok(share)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The amount that a client holds.
#[derive(Debug)]
pub struct Share {
    pool: Arc<Pool>,
    /// The address to whose limit the share counts; none for a settled share.
    peer: Option<IpAddr>,
    amount: usize,
}

impl Share {
    /// Takes an additional amount.
    pub fn grow(&mut self, amount: usize) -> Result<(), Exhausted> {
        let mut held = self.pool.held();
        let by_peer = self.peer.map_or(0, |peer| held.by.get(&peer).copied().unwrap_or(0));
        let (all, each) = (held.all.saturating_add(amount), by_peer.saturating_add(amount));
        if all > self.pool.all || (self.peer.is_some() && each > self.pool.each) {
            return Err(Exhausted);
        }
        held.all = all;
        if let Some(peer) = self.peer.filter(|_| each > 0) {
            held.by.insert(peer, each);
        }
        self.amount += amount;
        Ok(())
    }

    /// The share no longer counts to its address, because from here on the operator and not the client determines how
    /// long it is held.
    pub fn settle(&mut self) {
        let pool = Arc::clone(&self.pool);
        self.give_back(&mut pool.held());
        self.peer = None;
    }

    fn give_back(&self, held: &mut Held) {
        let Some(peer) = self.peer else { return };
        let left = held.by.get(&peer).copied().unwrap_or(0).saturating_sub(self.amount);
        if left == 0 {
            held.by.remove(&peer);
        } else {
            held.by.insert(peer, left);
        }
    }

    pub fn amount(&self) -> usize {
        self.amount
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut held = self.pool.held();
        self.give_back(&mut held);
        held.all -= self.amount;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_so_much_for_all_and_for_each_and_what_is_dropped_comes_back() {
        let [one, same, two] = ["10.0.0.1", "::ffff:10.0.0.1", "10.0.0.2"].map(|text| text.parse().unwrap());
        let pool = Pool::new(10, 6);
        let mut first = pool.take(one, 4).unwrap();
        assert_eq!(pool.take(same, 3).unwrap_err(), Exhausted, "the same address");
        first.grow(2).unwrap();
        assert_eq!(first.grow(1), Err(Exhausted));
        let second = pool.take(two, 4).unwrap();
        assert_eq!(pool.take(two, 1).unwrap_err(), Exhausted, "all is taken");
        drop(second);
        first.settle();
        assert_eq!(first.amount(), 6);
        let others = pool.take(one, 4).unwrap();
        assert_eq!(
            pool.take(one, 1).unwrap_err(),
            Exhausted,
            "what is settled still counts for all"
        );
        drop((first, others));
        drop(pool.take(one, 6).unwrap());
        let held = pool.held();
        assert_eq!((held.all, held.by.len()), (0, 0));
    }
}
