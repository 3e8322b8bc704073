//! The faults of a round and the edits of people meanwhile, drawn from a seed.

use std::fmt;
use std::time::Duration;

use testbed::draw::Draw;
use testbed::proxy::{Aimed, Fault, Of, On, What};

/// The effect of a fault on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Harm {
    TooMany,
    Failing,
    Unavailable,
    /// The API server answers that it timed out.
    TimedOut,
    Conflict,
    Gone,
    Refused,
    Cut,
    /// No answer comes until the client gives up.
    Silence,
    /// No answer comes until the fault ends.
    Stall,
    Slow,
    LostAnswer,
    StaleGroup,
    LostGroup,
}

impl Harm {
    pub(crate) const ALL: [Self; 14] = [
        Self::TooMany,
        Self::Failing,
        Self::Unavailable,
        Self::TimedOut,
        Self::Conflict,
        Self::Gone,
        Self::Refused,
        Self::Cut,
        Self::Silence,
        Self::Stall,
        Self::Slow,
        Self::LostAnswer,
        Self::StaleGroup,
        Self::LostGroup,
    ];

    /// The kinds of requests that this harm can hit.
    fn kinds(self) -> &'static [On] {
        match self {
            Self::Conflict | Self::LostAnswer => &[On::Writes],
            Self::Gone => &[On::Watches, On::Lists],
            Self::StaleGroup | Self::LostGroup => &[On::Discovery],
            Self::Cut | Self::Slow => &[On::Everything, On::Watches, On::Lists, On::Discovery],
            Self::TooMany
            | Self::Failing
            | Self::Unavailable
            | Self::TimedOut
            | Self::Refused
            | Self::Silence
            | Self::Stall => &[On::Everything, On::Watches, On::Lists, On::Writes, On::Discovery],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    Operator,
    Helm,
    Both,
}

impl Target {
    pub(crate) const ALL: [Self; 3] = [Self::Operator, Self::Helm, Self::Both];
}

/// One fault, from one moment of the round to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stroke {
    pub(crate) harm: Harm,
    pub(crate) target: Target,
    on: On,
    /// The number of matching requests of which one is hit.
    every: u64,
    /// The size of the harm: bytes that pass before a cut, or milliseconds of a delay.
    amount: usize,
    pub(crate) from: Duration,
    pub(crate) until: Duration,
}

/// An action of a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Deed {
    /// Edits the section of the module `vault`.
    Edit,
    /// Switches the vault on or off.
    Switch,
    /// Creates or changes an object that a hook watches.
    Note(usize),
    /// Deletes an object that a hook watches.
    Forget(usize),
    /// Deletes an object of a release.
    Tear,
    /// Changes an object of a release.
    Smear,
}

/// The number of objects that a hook watches.
pub(crate) const NOTES: usize = 3;

/// Harm to the control plane itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outage {
    ServerRestarts,
    StoreRestarts,
    /// The store is reset to a backup from before the round.
    OlderBackup,
}

impl Outage {
    /// All outages, in the order in which the rounds have them.
    pub(crate) const ALL: [Self; 3] = [Self::OlderBackup, Self::ServerRestarts, Self::StoreRestarts];
}

/// The events of one round. The default plan has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) strokes: Vec<Stroke>,
    pub(crate) deeds: Vec<(Duration, Deed)>,
    pub(crate) outage: Option<(Duration, Outage)>,
}

/// The time in milliseconds within which all faults end, except the long ones.
const SPAN: usize = 6000;

/// Longer than the lease lasts.
const LONG: Duration = Duration::from_secs(21);

/// The time for which the operator trusts a silent connection. A watch is usually silent for long, so the time is
/// generous.
const SILENCE: Duration = Duration::from_secs(90);

/// The time for which helm may trust a silent connection: it is killed at its deadline, 80 s with the timeout in this
/// campaign, and tried again a minute later.
pub(crate) const SILENCE_OF_HELM: Duration = Duration::from_secs(150);

impl Plan {
    /// A plan with faults between the API server and its clients.
    pub(crate) fn draw(draw: &mut Draw) -> Self {
        let strokes = (0..=draw.below(4)).map(|_| Stroke::draw(draw)).collect();
        let mut plan = Self {
            strokes,
            deeds: deeds(draw),
            outage: None,
        };
        if draw.below(25) == 0 {
            plan.strokes[0] = Stroke {
                harm: draw.pick(&[Harm::Silence, Harm::Stall, Harm::Refused, Harm::Unavailable]),
                target: draw.pick(&[Target::Operator, Target::Both]),
                on: On::Everything,
                every: 1,
                until: plan.strokes[0].from + LONG,
                ..plan.strokes[0]
            };
        }
        plan
    }

    /// A plan with an outage, after the edits of people, and with at most two faults besides.
    pub(crate) fn draw_with(outage: Outage, draw: &mut Draw) -> Self {
        let strokes = (0..draw.below(3)).map(|_| Stroke::draw(draw)).collect();
        let mut deeds = deeds(draw);
        if outage == Outage::OlderBackup {
            // After the restore the operator reads an older ConfigMap than the one it knows; this edit makes the two
            // differ.
            deeds.push((Duration::ZERO, Deed::Edit));
        }
        let at = Duration::from_millis(SPAN as u64 / 2) + moment(draw, SPAN / 2);
        Self {
            strokes,
            deeds,
            outage: Some((at, outage)),
        }
    }

    /// Whether the plan may make the operator lose its lease.
    pub(crate) fn may_cost_the_lease(&self) -> bool {
        self.outage.is_some() || self.strokes.iter().any(|stroke| stroke.until >= LONG)
    }

    /// The time for which dead connections that the plan leaves open may be trusted.
    pub(crate) fn silence(&self) -> Duration {
        let silent = self.strokes.iter().filter(|stroke| stroke.harm == Harm::Silence);
        let believed = silent.map(|stroke| match stroke.target {
            Target::Operator => SILENCE,
            Target::Helm | Target::Both => SILENCE_OF_HELM,
        });
        believed.max().unwrap_or_default()
    }

    pub(crate) fn restores(&self) -> bool {
        matches!(self.outage, Some((_, Outage::OlderBackup)))
    }

    pub(crate) fn switches(&self) -> bool {
        self.deeds.iter().any(|(_, deed)| *deed == Deed::Switch)
    }
}

fn moment(draw: &mut Draw, limit: usize) -> Duration {
    Duration::from_millis(draw.below(limit) as u64)
}

fn deeds(draw: &mut Draw) -> Vec<(Duration, Deed)> {
    let deed = |draw: &mut Draw| {
        let note = draw.below(NOTES);
        let all = [
            Deed::Edit,
            Deed::Switch,
            Deed::Note(note),
            Deed::Forget(note),
            Deed::Tear,
            Deed::Smear,
        ];
        (moment(draw, SPAN / 2), draw.pick(&all))
    };
    (0..=draw.below(3)).map(|_| deed(draw)).collect()
}

impl Stroke {
    fn draw(draw: &mut Draw) -> Self {
        let harm = draw.pick(&Harm::ALL);
        let from = moment(draw, SPAN / 3);
        let length = Duration::from_millis(300) + moment(draw, SPAN * 2 / 3 - 300);
        Self {
            harm,
            target: draw.pick(&Target::ALL),
            on: draw.pick(harm.kinds()),
            every: [1, 1, 2, 3][draw.below(4)],
            amount: draw.below(2000),
            from,
            until: from + length,
        }
    }

    pub(crate) fn aimed(&self) -> Aimed {
        const HELM: &str = "Helm/";
        let what = match self.harm {
            Harm::TooMany => What::Status(429, Some(1)),
            Harm::Failing => What::Status(500, None),
            Harm::Unavailable => What::Status(503, None),
            Harm::TimedOut => What::Status(504, None),
            Harm::Conflict => What::Status(409, None),
            Harm::Gone => What::Gone,
            Harm::Refused => What::Refuse,
            Harm::Cut => What::Cut(self.amount),
            Harm::Silence => What::BlackHole,
            Harm::Stall => What::Stall,
            Harm::Slow => What::Delay(Duration::from_millis(self.amount as u64)),
            Harm::LostAnswer => What::LoseAnswer,
            Harm::StaleGroup => What::StaleGroup(GROUP),
            Harm::LostGroup => What::LostGroup(GROUP),
        };
        let of = match self.target {
            Target::Operator => Of::Others(HELM),
            Target::Helm => Of::Agent(HELM),
            Target::Both => Of::All,
        };
        let (on, every) = (self.on, self.every);
        Aimed {
            of,
            every,
            fault: Fault { on, what },
        }
    }
}

/// The API group of an object in one of the charts.
const GROUP: &str = "rbac.authorization.k8s.io";

impl fmt::Display for Stroke {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            harm,
            target,
            on,
            every,
            amount,
            from,
            until,
        } = self;
        let (from, until) = (from.as_millis(), until.as_millis());
        write!(out, "{harm:?} ({amount}) for {target:?} on {on:?}, ")?;
        write!(out, "one of {every}, from {from} to {until} ms")
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let strokes = self.strokes.iter().map(ToString::to_string);
        let outage = self.outage.iter();
        let outage = outage.map(|(at, outage)| format!("{outage:?} at {} ms", at.as_millis()));
        let deeds = self.deeds.iter();
        let deeds = deeds.map(|(at, deed)| format!("{deed:?} at {} ms", at.as_millis()));
        let all: Vec<String> = strokes.chain(outage).chain(deeds).collect();
        out.write_str(&all.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_harm_and_deed_is_dealt_and_a_seed_deals_it_again() {
        let deal = |seed| {
            let mut draw = Draw::new(seed);
            (0..300).map(|_| Plan::draw(&mut draw)).collect::<Vec<_>>()
        };
        let plans = deal(1);
        assert_eq!(plans, deal(1));
        let strokes = || plans.iter().flat_map(|plan| &plan.strokes);
        let dealt: BTreeSet<_> = strokes().map(|stroke| (stroke.harm, stroke.target)).collect();
        assert_eq!(dealt.len(), Harm::ALL.len() * Target::ALL.len(), "{dealt:?}");
        let deeds = plans.iter().flat_map(|plan| &plan.deeds);
        let deeds: BTreeSet<_> = deeds.map(|(_, deed)| *deed).collect();
        assert_eq!(deeds.len(), 4 + 2 * NOTES, "{deeds:?}");
        let long = plans.iter().filter(|plan| plan.may_cost_the_lease()).count();
        assert!((3..30).contains(&long), "{long} of 300 may cost the lease");
    }
}
