//! The first runs of a module's hooks. The module's release has to wait for these runs.

use std::collections::{BTreeSet, VecDeque};

use names::MonitorId;

/// First runs that are not over, by their monitors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FirstRuns {
    /// The first runs that are steps of the module's run, the next one first.
    pub own: VecDeque<MonitorId>,
    /// The first runs in other queues.
    pub elsewhere: BTreeSet<MonitorId>,
}

impl FirstRuns {
    /// Adds the first runs of another hook.
    pub fn extend(&mut self, more: Self) {
        self.own.extend(more.own);
        self.elsewhere.extend(more.elsewhere);
    }

    /// Notes that the first run of this monitor is over.
    pub fn over(&mut self, monitor: MonitorId) {
        self.own.retain(|own| *own != monitor);
        self.elsewhere.remove(&monitor);
    }

    /// Whether the first run of this monitor is not over.
    pub fn contains(&self, monitor: MonitorId) -> bool {
        self.own.contains(&monitor) || self.elsewhere.contains(&monitor)
    }
}

/// First runs that are not over, at least one. So "all are over" cannot be confused with "there were none".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outstanding(FirstRuns);

impl Outstanding {
    /// The first runs as outstanding; `None` if there are none.
    pub fn new(runs: FirstRuns) -> Option<Self> {
        (!runs.own.is_empty() || !runs.elsewhere.is_empty()).then_some(Self(runs))
    }

    /// Notes that the first run of this monitor is over. `None` if it was the last.
    pub fn without(mut self, monitor: MonitorId) -> Option<Self> {
        self.0.over(monitor);
        Self::new(self.0)
    }

    /// The first runs that are outstanding.
    pub fn runs(&self) -> &FirstRuns {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_outstanding_only_when_both_kinds_are_over() {
        assert_eq!(Outstanding::new(FirstRuns::default()), None);
        let mut runs = FirstRuns::default();
        runs.extend(FirstRuns {
            own: [MonitorId(1)].into(),
            elsewhere: [MonitorId(2)].into(),
        });
        let outstanding = Outstanding::new(runs).unwrap();
        assert!(outstanding.runs().contains(MonitorId(2)));
        let left = outstanding.without(MonitorId(2)).unwrap();
        let left = left.without(MonitorId(7)).unwrap();
        assert_eq!(left.without(MonitorId(1)), None);
    }
}
