//! The ways in which the leader loses its lease, drawn from a seed.

use std::fmt;
use std::time::Duration;

use testbed::draw::Draw;
use testbed::proxy::What;

use crate::replica::REPLICAS;

/// The error of a wrong clock, in seconds; far longer than any lease.
const WRONG: i64 = 20 * 60;

/// A way in which the leader may lose its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// SIGKILL. The process is started again at once (`again`), or when another replica leads.
    Kill { again: bool },
    /// SIGTERM. The process is started again as with `Kill`.
    Stop { again: bool },
    /// SIGSTOP, with or without its child processes. It lasts until another replica leads, or (`late`) until that one
    /// has finished all work.
    Freeze { children: bool, late: bool },
    /// SIGSTOP for less than the duration of a lease.
    Blink,
    /// A person deletes the lease.
    Delete,
    /// A person writes another holder into the lease, with a renew time this many seconds from now.
    Seize { ahead: i64 },
    /// The API server cannot be reached: connections are silent, or end.
    Cut { silent: bool },
}

impl Way {
    pub(crate) const ALL: [Self; 14] = [
        Self::Kill { again: false },
        Self::Kill { again: true },
        Self::Stop { again: false },
        Self::Stop { again: true },
        Self::freeze(false, false),
        Self::freeze(false, true),
        Self::freeze(true, false),
        Self::freeze(true, true),
        Self::Blink,
        Self::Delete,
        Self::Seize { ahead: WRONG },
        Self::Seize { ahead: -WRONG },
        Self::Cut { silent: true },
        Self::Cut { silent: false },
    ];

    const fn freeze(children: bool, late: bool) -> Self {
        Self::Freeze { children, late }
    }

    /// Whether the leader may lead on as if nothing had happened.
    pub(crate) fn may_stand(self) -> bool {
        matches!(self, Self::Blink | Self::Delete)
    }

    /// Whether a replica that ended is started again before another one leads.
    pub(crate) fn again(self) -> bool {
        !matches!(self, Self::Kill { again: false } | Self::Stop { again: false })
    }

    /// The fault that the replica's proxy has meanwhile.
    pub(crate) fn fault(self) -> Option<What> {
        match self {
            Self::Cut { silent: true } => Some(What::BlackHole),
            Self::Cut { silent: false } => Some(What::Refuse),
            _ => None,
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let after = |again: bool| if again { ", started again at once" } else { "" };
        match *self {
            Self::Kill { again } => write!(out, "killed{}", after(again)),
            Self::Stop { again } => write!(out, "stopped{}", after(again)),
            Self::Freeze { children, late } => {
                let with = if children { " with its helm" } else { "" };
                let until = if late { "all is done" } else { "another leads" };
                write!(out, "frozen{with} until {until}")
            }
            Self::Blink => write!(out, "frozen for less than a lease"),
            Self::Delete => write!(out, "lease deleted"),
            Self::Seize { ahead } => write!(out, "lease taken by hand, {:+} min", ahead / 60),
            Self::Cut { silent: true } => write!(out, "cut off in silence"),
            Self::Cut { silent: false } => write!(out, "cut off with an end"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// When helm of the leader has just started.
    Helm,
    /// The given time after an edit.
    After(Duration),
}

/// One change of the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blow {
    pub(crate) way: Way,
    pub(crate) moment: Moment,
    /// The error in seconds of each replica's wall clock from now on.
    pub(crate) ahead: [i64; REPLICAS],
    /// The duration of a short freeze.
    pub(crate) blink: Duration,
}

impl Blow {
    pub(crate) fn draw(draw: &mut Draw) -> Self {
        let way = draw.pick(&Way::ALL);
        let moment = match draw.below(3) {
            0 => Moment::After(Duration::from_millis(draw.below(3000) as u64)),
            _ => Moment::Helm,
        };
        Self {
            way,
            moment,
            ahead: [(); REPLICAS].map(|()| draw.pick(&[0, WRONG, -WRONG])),
            blink: Duration::from_millis(500 + draw.below(3000) as u64),
        }
    }
}

impl fmt::Display for Blow {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ", self.way)?;
        match self.moment {
            Moment::Helm => write!(out, "while helm runs")?,
            Moment::After(delay) => write!(out, "{} ms after an edit", delay.as_millis())?,
        }
        let [a, b, c] = self.ahead.map(|ahead| ahead / 60);
        write!(out, ", clocks {a:+} {b:+} {c:+} min")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_is_dealt_and_a_seed_deals_it_again() {
        let deal = |seed| {
            let mut draw = Draw::new(seed);
            (0..200).map(|_| Blow::draw(&mut draw)).collect::<Vec<_>>()
        };
        assert_eq!(deal(1), deal(1));
        for way in Way::ALL {
            assert!(deal(1).iter().any(|blow| blow.way == way), "'{way}' is never dealt");
        }
        for wrong in [0, WRONG, -WRONG] {
            assert!(deal(1).iter().any(|blow| blow.ahead[0] == wrong), "{wrong}");
        }
    }
}
