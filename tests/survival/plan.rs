//! The actions in a world and the moments of the kills, drawn from a seed.

use std::fmt;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use testbed::draw::Draw;

/// The number of kills in one world.
pub(crate) const ROUNDS: usize = 5;

/// The operator's work during which it is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// The first start in an empty namespace.
    Install,
    /// A restart without any work.
    Restart,
    /// An edit of the tuner's profile.
    Tune,
    /// Switching the audit module off or on.
    Switch,
    /// A new text for the crowd, whose release takes helm a while.
    Sing,
    /// A value that a hook saves in its own section of the ConfigMap.
    Note,
    /// A greeting that the chart refuses, together with another profile; the next time a greeting that it accepts.
    Break,
}

impl Action {
    pub(crate) const ALL: [Self; 7] = [
        Self::Install,
        Self::Restart,
        Self::Tune,
        Self::Switch,
        Self::Sing,
        Self::Note,
        Self::Break,
    ];
}

/// The actions of all worlds, which are dealt after the installation in each.
const DECK: [Action; 16] = [
    Action::Restart,
    Action::Tune,
    Action::Tune,
    Action::Switch,
    Action::Switch,
    Action::Switch,
    Action::Switch,
    Action::Switch,
    Action::Sing,
    Action::Sing,
    Action::Sing,
    Action::Note,
    Action::Note,
    Action::Note,
    Action::Break,
    Action::Break,
];

/// The event that precedes the kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The action itself.
    None,
    /// A hook has run.
    HookRan,
    /// Helm has written a pending release.
    PendingRelease,
    /// The operator has saved a section of the ConfigMap.
    SectionSaved,
    /// An object has been deleted.
    DeleteBegun,
}

/// One kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kill {
    pub(crate) action: Action,
    pub(crate) event: Event,
    /// The number of requests to the API server between the event and the kill.
    pub(crate) requests: usize,
}

impl fmt::Display for Kill {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            action,
            event,
            requests,
        } = self;
        write!(out, "{action:?}, killed {requests} requests after {event:?}")
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Seed(pub(crate) u64);

impl fmt::Display for Seed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl Seed {
    /// The seed that was asked for, otherwise a new one; the same for all worlds of a run.
    pub(crate) fn of_this_run() -> Self {
        static SEED: OnceLock<u64> = OnceLock::new();
        let seed = *SEED.get_or_init(|| {
            let asked = std::env::var_os("SURVIVAL_SEED").and_then(|seed| seed.to_str()?.parse().ok());
            asked.unwrap_or_else(|| {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
                now.as_secs() % 1_000_000
            })
        });
        Self(seed)
    }

    /// The kills of one world.
    pub(crate) fn kills(self, world: usize) -> Vec<Kill> {
        let mut draw = Draw::new(self.0);
        let mut deck = DECK;
        draw.shuffle(&mut deck);
        let dealt = deck.chunks(ROUNDS - 1).nth(world).unwrap_or_default();
        let mut draw = Draw::new(self.0 ^ (world as u64 + 1) << 32);
        let actions = [Action::Install].into_iter().chain(dealt.iter().copied());
        let mut audit_is_on = true;
        actions
            .map(|action| {
                let events = events(action, audit_is_on);
                audit_is_on ^= action == Action::Switch;
                let event = events[draw.below(events.len())];
                let requests = draw.below(span(action, event));
                Kill {
                    action,
                    event,
                    requests,
                }
            })
            .collect()
    }
}

/// The largest number of requests between the event and the kill. About a quarter more requests always follow: they
/// were counted in three runs with each helm, and the numbers for one action were almost equal.
fn span(action: Action, event: Event) -> usize {
    match (action, event) {
        (Action::Install, _) => 350,
        (Action::Sing, _) => 400,
        (_, Event::None | Event::HookRan | Event::SectionSaved) => 30,
        (_, Event::DeleteBegun) => 24,
        (_, Event::PendingRelease) => 14,
    }
}

fn events(action: Action, audit_is_on: bool) -> &'static [Event] {
    use Event::{DeleteBegun, HookRan, None, PendingRelease, SectionSaved};
    match action {
        Action::Install => &[None, HookRan, PendingRelease, SectionSaved],
        Action::Restart | Action::Break => &[None],
        Action::Switch if audit_is_on => &[DeleteBegun, DeleteBegun, None],
        Action::Tune | Action::Switch => &[PendingRelease, None],
        Action::Sing => &[PendingRelease, PendingRelease, None],
        Action::Note => &[HookRan, SectionSaved, SectionSaved, PendingRelease],
    }
}
