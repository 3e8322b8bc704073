//! The changes of a monitor that a hook may be told. Every change is either inside of a snapshot that the binding's first
//! run read, or told afterwards: none is lost, none is told twice.

use crate::operator::event::ObjectChange;

/// How the way from a monitor to its hook stands.
#[derive(Debug)]
pub(super) enum Gate {
    /// The first run has not begun, or failed and begins anew: it will read later than any change that is told now.
    Ahead,
    /// The first run is under way: what is told now may be newer than what it reads.
    Reading {
        /// What was told since it began.
        since: Vec<ObjectChange>,
    },
    /// No first run reads this monitor, so everything that changes after its list has to be told.
    Unread {
        /// What was told so far.
        since: Vec<ObjectChange>,
    },
    /// Changes reach the hook, if they are newer than this one, which it knows of.
    Open {
        /// The last one.
        known: u64,
    },
    /// Nobody is to be told.
    Shut,
}

impl Gate {
    /// A change comes: returned if the hook is to be told now.
    pub(super) fn take(&mut self, change: ObjectChange) -> Option<ObjectChange> {
        match self {
            Self::Ahead | Self::Shut => None,
            Self::Reading { since } | Self::Unread { since } => {
                since.push(change);
                None
            }
            Self::Open { known } if change.seq <= *known => None,
            Self::Open { known } => {
                *known = change.seq;
                Some(change)
            }
        }
    }

    /// Nobody is to be told.
    pub(super) fn is_shut(&self) -> bool {
        match self {
            Self::Shut => true,
            Self::Ahead | Self::Reading { .. } | Self::Unread { .. } | Self::Open { .. } => false,
        }
    }

    /// The first run begins, and reads the snapshot later than now.
    pub(super) fn begin(&mut self) {
        if let Self::Ahead = self {
            *self = Self::Reading { since: Vec::new() };
        }
    }

    /// The first run failed and will be tried again.
    pub(super) fn fail(&mut self) {
        if let Self::Reading { .. } = self {
            *self = Self::Ahead;
        }
    }

    /// The first run is over, and read the snapshot up to this change, if it read it. Returns what it has not seen.
    pub(super) fn open(&mut self, read: Option<u64>) -> Vec<ObjectChange> {
        let read = read.unwrap_or_default();
        let since = match std::mem::replace(self, Self::Open { known: read }) {
            Self::Ahead => Vec::new(),
            Self::Reading { since } | Self::Unread { since } => since,
            stays @ (Self::Open { .. } | Self::Shut) => {
                *self = stays;
                return Vec::new();
            }
        };
        since.into_iter().filter_map(|change| self.take(change)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook::config::WatchEvent;
    use crate::name::MonitorId;
    use crate::object::{ObjectName, ObjectView};

    fn change(seq: u64) -> ObjectChange {
        ObjectChange {
            monitor: MonitorId(1),
            seq,
            event: WatchEvent::Modified,
            name: ObjectName::default(),
            view: ObjectView::default(),
        }
    }

    fn told(gate: &mut Gate, seqs: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let told = seqs.into_iter().filter_map(|seq| gate.take(change(seq)));
        told.map(|change| change.seq).collect()
    }

    fn opened(gate: &mut Gate, read: Option<u64>) -> Vec<u64> {
        gate.open(read).iter().map(|change| change.seq).collect()
    }

    #[test]
    fn what_the_first_run_read_is_not_told_again_and_what_it_did_not_is() {
        let mut gate = Gate::Ahead;
        assert!(told(&mut gate, [1, 2]).is_empty());
        gate.begin();
        assert!(told(&mut gate, [3, 4, 5]).is_empty());
        assert_eq!(opened(&mut gate, Some(4)), [5]);
        assert_eq!(told(&mut gate, [4, 5, 6]), [6], "late news of what is known");
    }

    #[test]
    fn news_may_come_later_than_the_end_of_the_run_that_read_it() {
        let mut gate = Gate::Ahead;
        gate.begin();
        assert!(opened(&mut gate, Some(7)).is_empty());
        assert_eq!(told(&mut gate, [6, 7, 8]), [8]);
    }

    #[test]
    fn a_failed_attempt_is_followed_by_one_that_reads_anew() {
        let mut gate = Gate::Ahead;
        gate.begin();
        assert!(told(&mut gate, [1]).is_empty());
        gate.fail();
        assert!(told(&mut gate, [2]).is_empty());
        gate.begin();
        assert_eq!(opened(&mut gate, Some(2)), [0; 0]);
        assert_eq!(told(&mut gate, [3]), [3]);
    }

    #[test]
    fn without_a_first_run_everything_since_the_list_is_told() {
        let mut gate = Gate::Unread { since: Vec::new() };
        assert!(told(&mut gate, [1, 2]).is_empty());
        gate.begin();
        gate.fail();
        assert_eq!(opened(&mut gate, None), [1, 2]);
        assert_eq!(told(&mut gate, [2, 3]), [3]);
    }

    #[test]
    fn a_gate_that_is_shut_stays_shut() {
        let mut gate = Gate::Shut;
        gate.begin();
        assert!(opened(&mut gate, Some(1)).is_empty());
        assert!(told(&mut gate, [2]).is_empty());
    }
}
