//! Decides when a hook gets the changes of a monitor. Every change is either in a snapshot that the binding's first run
//! read, or is passed on afterwards. No change is lost or passed on twice.

use crate::operator::event::ObjectChange;

/// Whether the changes of a monitor are dropped, kept, or passed on to the hook.
#[derive(Debug, Clone)]
pub(super) enum Gate {
    /// The first run has not begun, or failed and begins anew. It will read a snapshot that includes all changes up to
    /// its begin.
    Ahead,
    /// The first run is under way. A change that comes now may be newer than the snapshot it reads.
    Reading {
        /// The changes since the first run began.
        since: Vec<ObjectChange>,
    },
    /// No first run reads this monitor, so every change after its list has to be passed on.
    Unread {
        /// The changes since the monitor's list.
        since: Vec<ObjectChange>,
    },
    /// Changes are passed on if they are newer than the last change that the hook knows of.
    Open {
        /// The number of the last change that the hook knows of.
        known: u64,
    },
    /// Changes of the monitor's objects are dropped.
    Shut,
}

impl Gate {
    /// Takes a change. Returns it if the hook has to get it now.
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

    /// Whether changes of the monitor's objects are dropped.
    pub(super) fn is_shut(&self) -> bool {
        match self {
            Self::Shut => true,
            Self::Ahead | Self::Reading { .. } | Self::Unread { .. } | Self::Open { .. } => false,
        }
    }

    /// Notes that the first run begins. It will read the snapshot later than now.
    pub(super) fn begin(&mut self) {
        if let Self::Ahead = self {
            *self = Self::Reading { since: Vec::new() };
        }
    }

    /// Notes that the first run failed and will be tried again.
    pub(super) fn fail(&mut self) {
        if let Self::Reading { .. } = self {
            *self = Self::Ahead;
        }
    }

    /// Notes that the first run is over. `read` is the number of the last change in the snapshot that it read, if it read
    /// one. Returns the changes that it has not seen.
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
    use names::MonitorId;

    use super::*;
    use crate::hook::config::WatchEvent;
    use crate::object::{ObjectName, ObjectView};

    fn change(seq: u64) -> ObjectChange {
        ObjectChange {
            monitor: MonitorId(1),
            seq,
            event: WatchEvent::Modified,
            name: ObjectName::default(),
            view: ObjectView::default(),
            version: 0,
            release: None,
            by_tool: false,
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
