//! The rounds, drawn from a seed: the objects of a release, the damage, and the event that follows it.

use std::fmt;

use testbed::draw::Draw;

/// A kind of object in the chart. A `ConfigMap` is always in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    ConfigMap,
    Secret,
    Deployment,
    Job,
    RoleBinding,
    PersistentVolumeClaim,
    /// A custom resource.
    Widget,
}

impl Kind {
    pub(crate) const ALL: [Self; 7] = [
        Self::ConfigMap,
        Self::Secret,
        Self::Deployment,
        Self::Job,
        Self::RoleBinding,
        Self::PersistentVolumeClaim,
        Self::Widget,
    ];

    /// The kind with a field in the chart that the API server lets nobody change.
    const WITH_A_FIXED_FIELD: [Self; 4] = [
        Self::Deployment,
        Self::Job,
        Self::RoleBinding,
        Self::PersistentVolumeClaim,
    ];

    /// The name for kubectl.
    pub(crate) fn resource(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// A damage of helm's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Flaw {
    /// Half of the contents is missing.
    Cut,
    Garbage,
    /// The Secret has no contents.
    NoContents,
    /// The contents have no fields.
    Emptied,
    /// The record holds the contents of the one before.
    Exchanged,
    /// The record before is cut.
    OlderCut,
    /// Neither contents nor annotations.
    Unnoted,
    /// No record has contents or annotations.
    AllUnnoted,
    /// The newest record is deleted.
    Missing,
    NoVersion,
    OtherVersion,
    OtherName,
    NoOwner,
    NoLabels,
    /// There is a copy under another name.
    Copied,
    NoneDeployed,
    TwoDeployed,
    /// Only the label says `pending-upgrade`.
    LabelledPending,
    /// Only the contents say `pending-upgrade`.
    ContentsPending,
    PendingInstall,
    PendingUpgrade,
    Uninstalling,
    /// `pending-upgrade`, by a helm that the operator did not start.
    OthersPending,
}

impl Flaw {
    const ALL: [Self; 23] = [
        Self::Cut,
        Self::Garbage,
        Self::NoContents,
        Self::Emptied,
        Self::Exchanged,
        Self::OlderCut,
        Self::Unnoted,
        Self::AllUnnoted,
        Self::Missing,
        Self::NoVersion,
        Self::OtherVersion,
        Self::OtherName,
        Self::NoOwner,
        Self::NoLabels,
        Self::Copied,
        Self::NoneDeployed,
        Self::TwoDeployed,
        Self::LabelledPending,
        Self::ContentsPending,
        Self::PendingInstall,
        Self::PendingUpgrade,
        Self::Uninstalling,
        Self::OthersPending,
    ];

    /// Whether objects that only the damaged record names may stay behind.
    pub(crate) fn may_leave(self) -> bool {
        [Self::Missing, Self::Unnoted, Self::AllUnnoted].contains(&self)
    }
}

/// The state into which a release is brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    Record(Flaw),
    /// An object of the release is deleted.
    Deleted(Kind),
    /// An upgrade changes a field that nobody can change.
    Fixed(Kind),
    /// The CRD is deleted.
    KindGone,
    /// The CRD loses the version in which the object is recorded.
    VersionGone,
    /// A webhook of another program, which has no server, refuses each change of a Secret.
    Refused,
}

impl State {
    /// The kind that the state needs in the chart.
    fn needs(self) -> Option<Kind> {
        match self {
            Self::Deleted(kind) | Self::Fixed(kind) => Some(kind),
            Self::KindGone | Self::VersionGone => Some(Kind::Widget),
            Self::Record(_) | Self::Refused => None,
        }
    }

    /// The name in the table of results.
    pub(crate) fn title(self) -> String {
        match self {
            Self::Record(flaw) => format!("record {flaw:?}"),
            Self::Deleted(_) => "object deleted".to_owned(),
            Self::Fixed(kind) => format!("fixed field of {kind:?}"),
            Self::KindGone | Self::VersionGone | Self::Refused => format!("{self:?}"),
        }
    }
}

/// The event that follows the damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Follow {
    Upgrade,
    Removal,
    /// The operator is killed before the damage, and is started after it.
    Restart,
    /// An upgrade, and after it one by the original operator, which comes back in place of ours for a while.
    Original,
}

impl Follow {
    pub(crate) const ALL: [Self; 4] = [Self::Upgrade, Self::Removal, Self::Restart, Self::Original];

    /// Whether the operator upgrades the release right after the damage.
    pub(crate) fn is_upgrade(self) -> bool {
        [Self::Upgrade, Self::Original].contains(&self)
    }
}

/// One round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) state: State,
    pub(crate) follow: Follow,
    /// The kinds of the first revision, and those of the newest one.
    pub(crate) first: Vec<Kind>,
    pub(crate) kinds: Vec<Kind>,
    /// The number of revisions before the damage.
    pub(crate) revisions: u32,
    /// The number of the offered command that is run.
    pub(crate) choice: usize,
}

/// All states in a drawn order. Each is dealt once before one is dealt again.
#[derive(Debug, Default)]
pub(crate) struct Deck(Vec<State>);

impl Deck {
    pub(crate) fn deal(&mut self, draw: &mut Draw) -> Plan {
        if self.0.is_empty() {
            self.0 = Flaw::ALL.map(State::Record).to_vec();
            self.0.extend(Kind::WITH_A_FIXED_FIELD.map(State::Fixed));
            let deleted = [(); 2].map(|()| State::Deleted(draw.pick(&Kind::ALL)));
            self.0.extend(deleted);
            self.0.extend([State::KindGone, State::VersionGone, State::Refused]);
            draw.shuffle(&mut self.0);
        }
        let state = self.0.pop().unwrap_or(State::Refused);
        let follow = draw.pick(&Follow::ALL);
        let is_needed = |kind: Kind| kind == Kind::ConfigMap || state.needs() == Some(kind);
        let kinds: Vec<Kind> = Kind::ALL
            .into_iter()
            .filter(|kind| draw.below(2) == 0 || is_needed(*kind))
            .collect();
        let first = kinds
            .iter()
            .copied()
            .filter(|kind| draw.below(4) > 0 || is_needed(*kind))
            .collect();
        let revisions = match state {
            State::Record(Flaw::PendingInstall) => 1,
            State::Record(_) => 2,
            _ => 1 + u32::from(draw.below(2) == 1),
        };
        Plan {
            state,
            follow,
            first,
            kinds,
            revisions,
            choice: draw.below(6),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            state,
            follow,
            first,
            kinds,
            revisions,
            choice,
        } = self;
        write!(out, "{state:?}, then {follow:?}; {revisions} revisions of {kinds:?}")?;
        if first != kinds && *revisions > 1 {
            write!(out, ", the first of {first:?}")?;
        }
        write!(out, ", choice {choice}")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_state_is_dealt_in_turn_with_each_event_and_a_seed_deals_it_again() {
        let deal = |seed, rounds| {
            let (mut draw, mut deck) = (Draw::new(seed), Deck::default());
            (0..rounds).map(|_| deck.deal(&mut draw)).collect::<Vec<_>>()
        };
        assert_eq!(deal(1, 64), deal(1, 64));
        let dealt = deal(1, 32);
        let titles: BTreeSet<String> = dealt.iter().map(|plan| plan.state.title()).collect();
        assert_eq!(titles.len(), Flaw::ALL.len() + 8, "{titles:?}");
        let pairs: BTreeSet<_> = deal(1, 1_500)
            .iter()
            .map(|plan| (plan.state.title(), plan.follow))
            .collect();
        assert_eq!(pairs.len(), titles.len() * Follow::ALL.len());
        for plan in dealt {
            assert!(plan.first.iter().all(|kind| plan.kinds.contains(kind)), "{plan}");
            let needed = plan.state.needs();
            assert!(needed.is_none_or(|kind| plan.first.contains(&kind)), "{plan}");
        }
    }
}
