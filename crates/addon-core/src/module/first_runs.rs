//! The first runs of a module's hooks for the objects that are there at first, as far as its release waits for them.

use std::collections::{BTreeSet, VecDeque};

use crate::name::MonitorId;

/// First runs that are not over, by the monitors whose objects they have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FirstRuns {
    /// Those that are steps of the module's run, the next one first.
    pub own: VecDeque<MonitorId>,
    /// Those that stand in other queues.
    pub elsewhere: BTreeSet<MonitorId>,
}

impl FirstRuns {
    /// Adds those of a further hook.
    pub fn extend(&mut self, more: Self) {
        self.own.extend(more.own);
        self.elsewhere.extend(more.elsewhere);
    }

    /// The first run of this monitor is over, wherever it stood.
    pub fn over(&mut self, monitor: MonitorId) {
        self.own.retain(|own| *own != monitor);
        self.elsewhere.remove(&monitor);
    }

    /// Whether the first run of this monitor is not over.
    pub fn contains(&self, monitor: MonitorId) -> bool {
        self.own.contains(&monitor) || self.elsewhere.contains(&monitor)
    }
}

/// At least one first run, so that "all are over" cannot be confused with "there were none".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outstanding(FirstRuns);

impl Outstanding {
    /// `None` if nothing is left to wait for.
    pub fn new(runs: FirstRuns) -> Option<Self> {
        (!runs.own.is_empty() || !runs.elsewhere.is_empty()).then_some(Self(runs))
    }

    /// The first run of this monitor is over. `None` if it was the last.
    pub fn without(mut self, monitor: MonitorId) -> Option<Self> {
        self.0.over(monitor);
        Self::new(self.0)
    }

    /// All of them.
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
