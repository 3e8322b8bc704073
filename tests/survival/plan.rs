//! The actions in a world and the moments of the kills, drawn from a seed.

use std::fmt;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use testbed::draw::Draw;

/// Kills in one world.
pub(crate) const ROUNDS: usize = 5;

/// Something that the operator is doing when it dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Its first start, with nothing there.
    Install,
    /// A restart with nothing to do.
    Restart,
    /// Another profile for the tuner.
    Tune,
    /// The audit off if it was on, and on if it was off.
    Switch,
    /// A new song for the crowd, which takes helm a while.
    Sing,
    /// A word that a hook notes in its own section of the ConfigMap.
    Note,
    /// A greeting that the chart refuses, together with another profile; or one that it takes again.
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

/// Dealt to the worlds after the first install of each.
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

/// What is waited for before the kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The action itself.
    None,
    /// A hook has run.
    HookRan,
    /// Helm has written a release that is pending.
    PendingRelease,
    /// The operator has saved a section of the ConfigMap.
    SectionSaved,
    /// Something has been deleted.
    DeleteBegun,
}

/// One kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kill {
    pub(crate) action: Action,
    pub(crate) event: Event,
    /// After so many requests to the API server since the event.
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
    /// The one asked for, otherwise a new one; the same for all worlds of a run.
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

/// Kills fall within so many requests after the event. About a quarter more come for certain: counted in three runs with either
/// helm, of which one action made almost equal numbers.
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
