//! The kills, drawn from a seed: the victim, the moment, and helm's work at that time.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use testbed::draw::Draw;
use testbed::proxy::Side;

/// The work of helm during which a process is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Install,
    Upgrade,
    Uninstall,
}

impl Phase {
    pub(crate) const ALL: [Self; 3] = [Self::Install, Self::Upgrade, Self::Uninstall];
}

/// The processes that are killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Victim {
    Operator,
    Helm,
    Both,
}

impl Victim {
    const ALL: [Self; 3] = [Self::Operator, Self::Helm, Self::Both];

    /// Whether the operator has to be started again after the kill.
    pub(crate) fn ends_the_life(self) -> bool {
        match self {
            Self::Operator | Self::Both => true,
            Self::Helm => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Before or after a write of helm. The first write has the number 1.
    Write(usize, Side),
    /// The given time after a person asked for the change.
    After(Duration),
}

/// One kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blow {
    pub(crate) phase: Phase,
    pub(crate) victim: Victim,
    pub(crate) moment: Moment,
}

/// The number of helm's writes in each phase.
pub(crate) type Writes = BTreeMap<Phase, usize>;

/// In milliseconds. Longer than helm works on the release, so that some kills come before or after its work.
const SPAN: usize = 900;

impl Blow {
    pub(crate) fn draw(draw: &mut Draw, is_installed: bool, writes: &Writes) -> Self {
        let phase = match (is_installed, draw.below(2)) {
            (false, _) => Phase::Install,
            (true, 0) => Phase::Upgrade,
            (true, _) => Phase::Uninstall,
        };
        let victim = draw.pick(&Victim::ALL);
        // Three of four kills are at a write, because a release is half done between two writes.
        let moment = if draw.below(4) == 0 {
            Moment::After(Duration::from_millis(draw.below(SPAN) as u64))
        } else {
            let nth = 1 + draw.below(writes.get(&phase).copied().unwrap_or(1));
            Moment::Write(nth, draw.pick(&[Side::Before, Side::After]))
        };
        Self { phase, victim, moment }
    }
}

impl fmt::Display for Blow {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { phase, victim, moment } = self;
        write!(out, "{phase:?}, {victim:?} killed ")?;
        match moment {
            Moment::Write(nth, Side::Before) => write!(out, "before write {nth} of helm"),
            Moment::Write(nth, Side::After) => write!(out, "after write {nth} of helm"),
            Moment::After(delay) => write!(out, "after {} ms", delay.as_millis()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_blow_is_dealt_and_a_seed_deals_it_again() {
        let writes = Phase::ALL.into_iter().map(|phase| (phase, 10)).collect();
        let deal = |seed| {
            let mut draw = Draw::new(seed);
            (0..200)
                .map(|round| Blow::draw(&mut draw, round % 3 > 0, &writes))
                .collect::<Vec<_>>()
        };
        assert_eq!(deal(1), deal(1));
        for phase in Phase::ALL {
            for victim in Victim::ALL {
                let is_dealt = |blow: &Blow| blow.phase == phase && blow.victim == victim;
                assert!(deal(1).iter().any(is_dealt), "{phase:?} of {victim:?} is never dealt");
            }
        }
        let at_writes = deal(1)
            .iter()
            .filter(|blow| matches!(blow.moment, Moment::Write(..)))
            .count();
        assert!((100..200).contains(&at_writes), "{at_writes} of 200 at a write");
    }
}
