//! The health of each module's objects, and when it counts.
//!
//! The lookout reports what the statuses of objects say. This machine adds time: objects that are on their way for too
//! long are unhealthy, and a short relapse does not begin the time anew, nor is it news. Must never make a module wait for ever: a health
//! that nobody reports counts as unknown after a while, and unknown holds nothing up.

use std::collections::BTreeMap;
use std::time::Duration;

use clock::Tick;
use names::ModuleName;
use serde::Serialize;

use super::effect::HealthNews;
use super::query::Waiting;
use crate::release::returned::Unhealthy;

/// The time for which a failure must last before it counts.
const LASTS: Duration = Duration::from_secs(5);
/// The time for which a module must be healthy before a relapse begins a new spell, and before people are told of the
/// recovery: one that flaps would fill the log.
const SETTLED: Duration = Duration::from_secs(30);
/// The time for which a relapse that is over is still reported: a container that crashes is often back before anybody
/// looks.
const LINGERS: Duration = Duration::from_secs(15);
/// The time within which the lookout tells the health of a new revision. After that the health is unknown.
const TOLD_WITHIN: Duration = Duration::from_secs(30);

/// The health of a release's objects, as the lookout found it. It is reported whenever it differs from the last report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthSight {
    /// The release's name.
    pub release: String,
    /// The revision that the objects belong to.
    pub revision: u32,
    /// The state of the objects by their statuses.
    pub seen: Seen,
}

/// The state of a release's objects by their statuses. A sentence begins with the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// All objects do their work.
    Healthy,
    /// The objects cannot be watched.
    Unknown,
    /// An object is on its way.
    InProgress(String),
    /// An object cannot do its work, and does not try any more.
    Failed(String),
}

/// The health of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Health {
    /// The module has no release, or its objects cannot be watched.
    Unknown,
    /// All objects do their work.
    Healthy,
    /// Objects are on their way.
    RollingOut,
    /// An object has failed, or has been on its way for too long.
    Unhealthy,
}

impl Health {
    /// The word for people and labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::Healthy => "Healthy",
            Self::RollingOut => "RollingOut",
            Self::Unhealthy => "Unhealthy",
        }
    }
}

/// The health of all modules.
#[derive(Debug, Clone, Default)]
pub(super) struct Healths(BTreeMap<ModuleName, Known>);

#[derive(Debug, Clone)]
struct Known {
    /// The revision that the last run left; 0 until a run has ended.
    released: u32,
    /// The last report of the lookout, with its revision.
    seen: Option<(u32, Seen)>,
    /// The begin of the present spell without health; of the wait for the first report, if there was none.
    since: Tick,
    /// The time since which the last report says the same kind of thing.
    kind_since: Tick,
    /// Whether an upgrade of ours began the spell.
    is_by_upgrade: bool,
    /// The sentence of a relapse of the revision, as long as that goes on.
    relapse: Option<String>,
    /// The end of the last relapse of the revision, and its sentence.
    relapsed: Option<(Tick, String)>,
    /// The longest time on the way.
    timeout: Duration,
    /// The health at the last look.
    last: Health,
    /// Whether people were told that the module is unhealthy.
    told: bool,
    /// Whether the module became unhealthy, and no run has been asked for since.
    is_to_leave: bool,
}

impl Known {
    fn new(now: Tick, timeout: Duration) -> Self {
        Self {
            released: 0,
            seen: None,
            since: now,
            kind_since: now,
            is_by_upgrade: false,
            relapse: None,
            relapsed: None,
            timeout,
            last: Health::Unknown,
            told: false,
            is_to_leave: false,
        }
    }

    /// The report, if it is about the revision of the last run or a newer one.
    fn current(&self) -> Option<&Seen> {
        let (revision, seen) = self.seen.as_ref()?;
        (*revision >= self.released).then_some(seen)
    }

    fn health(&self, now: Tick) -> Health {
        match self.current() {
            None if now < self.since + TOLD_WITHIN => Health::RollingOut,
            None | Some(Seen::Unknown) => Health::Unknown,
            Some(Seen::Healthy) => Health::Healthy,
            Some(Seen::Failed(_)) if now >= self.kind_since + LASTS => Health::Unhealthy,
            Some(Seen::InProgress(_) | Seen::Failed(_)) if now >= self.since + self.timeout => Health::Unhealthy,
            Some(Seen::InProgress(_) | Seen::Failed(_)) => Health::RollingOut,
        }
    }

    /// The next time at which the health, or what is reported of it, changes by time alone.
    fn turns_at(&self, now: Tick) -> Option<Tick> {
        let times = match self.current() {
            None => [Some(self.since + TOLD_WITHIN), None],
            Some(Seen::Healthy) => [
                self.told.then_some(self.kind_since + SETTLED),
                self.relapsed.as_ref().map(|(ended, _)| *ended + LINGERS),
            ],
            Some(Seen::Unknown) => [None, None],
            Some(Seen::InProgress(_)) => [Some(self.since + self.timeout), None],
            Some(Seen::Failed(_)) => [Some(self.kind_since + LASTS), Some(self.since + self.timeout)],
        };
        times.into_iter().flatten().filter(|at| *at > now).min()
    }

    /// The news for people about the module of this name.
    fn news(&mut self, module: &ModuleName, health: Health, now: Tick) -> Option<HealthNews> {
        let unhealthy = match health {
            Health::Unhealthy if !self.told => Some(self.sentence().unwrap_or_default().to_owned()),
            Health::Healthy if self.told && now >= self.kind_since + SETTLED => None,
            Health::Unknown | Health::Healthy | Health::RollingOut | Health::Unhealthy => return None,
        };
        self.told = unhealthy.is_some();
        Some(HealthNews {
            module: module.clone(),
            unhealthy,
        })
    }

    /// Notes a relapse, which begins after the revision was healthy, and its end.
    fn note_relapse(&mut self, revision: u32, seen: &Seen, now: Tick) {
        let was_healthy = self.seen.as_ref().is_some_and(|was| *was == (revision, Seen::Healthy));
        match seen {
            Seen::InProgress(sentence) | Seen::Failed(sentence) => {
                if was_healthy || self.relapse.is_some() {
                    self.relapse = Some(sentence.clone());
                }
            }
            Seen::Healthy => {
                if let Some(sentence) = self.relapse.take() {
                    self.relapsed = Some((now, sentence));
                }
            }
            Seen::Unknown => {}
        }
    }

    fn revision(&self) -> u32 {
        let seen = self.seen.as_ref().map_or(0, |(revision, _)| *revision);
        seen.max(self.released)
    }

    fn sentence(&self) -> Option<&str> {
        match self.current()? {
            Seen::InProgress(sentence) | Seen::Failed(sentence) => Some(sentence),
            Seen::Healthy | Seen::Unknown => None,
        }
    }
}

impl Healths {
    /// Notes that a run left this revision. `upgraded` says whether the run made it.
    pub(super) fn released(
        &mut self,
        module: &ModuleName,
        revision: u32,
        upgraded: bool,
        timeout: Duration,
        now: Tick,
    ) {
        let known = self.0.entry(module.clone()).or_insert_with(|| Known::new(now, timeout));
        known.timeout = timeout;
        known.released = revision;
        if upgraded {
            (known.since, known.kind_since, known.is_by_upgrade) = (now, now, true);
            (known.relapse, known.relapsed) = (None, None);
        } else if known.seen.is_none() {
            known.since = now;
        }
    }

    /// Takes a report of the lookout.
    pub(super) fn hear(&mut self, module: ModuleName, revision: u32, seen: Seen, timeout: Duration, now: Tick) {
        let known = self.0.entry(module).or_insert_with(|| Known::new(now, timeout));
        let was = known.seen.as_ref().map(|(_, seen)| seen);
        let is_well = |seen: &Seen| matches!(seen, Seen::Healthy | Seen::Unknown);
        let was_well = was.is_some_and(is_well);
        if was_well && !is_well(&seen) && now - known.kind_since >= SETTLED {
            (known.since, known.is_by_upgrade) = (now, false);
        }
        known.note_relapse(revision, &seen, now);
        let was = known.seen.as_ref().map(|(_, seen)| seen);
        let is_same_kind = was.is_some_and(|was| std::mem::discriminant(was) == std::mem::discriminant(&seen));
        if !is_same_kind {
            known.kind_since = now;
        }
        known.seen = Some((revision, seen));
    }

    /// Forgets a module whose release is gone.
    pub(super) fn forget(&mut self, module: &ModuleName) {
        self.0.remove(module);
    }

    /// The health of a module.
    pub(super) fn of(&self, module: &ModuleName, now: Tick) -> Health {
        self.0.get(module).map_or(Health::Unknown, |known| known.health(now))
    }

    /// The sentence about the object for which the module is not healthy.
    pub(super) fn sentence(&self, module: &ModuleName) -> Option<&str> {
        self.0.get(module)?.sentence()
    }

    /// The time since which the module has not been healthy.
    pub(super) fn since(&self, module: &ModuleName) -> Option<Tick> {
        self.0.get(module).map(|known| known.since)
    }

    /// The newest revision of the module's release; 0 until one is known.
    pub(super) fn revision(&self, module: &ModuleName) -> u32 {
        self.0.get(module).map_or(0, Known::revision)
    }

    /// The newest revision of each release.
    pub(super) fn revisions(&self) -> BTreeMap<String, u32> {
        let all = self.0.iter();
        all.map(|(module, known)| (module.to_string(), known.revision()))
            .collect()
    }

    /// The sentence of a relapse that has just ended.
    pub(super) fn relapse(&self, module: &ModuleName, now: Tick) -> Option<&str> {
        let (ended, sentence) = self.0.get(module)?.relapsed.as_ref()?;
        (now < *ended + LINGERS).then_some(sentence)
    }

    /// Whether the module's objects are on their way, or were so a moment ago.
    pub(super) fn is_on_its_way(&self, module: &ModuleName, now: Tick) -> bool {
        match self.of(module, now) {
            Health::RollingOut => true,
            Health::Healthy => self.relapse(module, now).is_some(),
            Health::Unknown | Health::Unhealthy => false,
        }
    }

    /// Whether the module got a revision from this process that is not healthy yet.
    pub(super) fn is_upgrading(&self, module: &ModuleName, now: Tick) -> bool {
        let known = self.0.get(module);
        known.is_some_and(|known| known.is_by_upgrade && known.health(now) > Health::Healthy)
    }

    /// The revision of a module whose objects do not do their work.
    pub(super) fn unhealthy(&self, module: &ModuleName, now: Tick) -> Option<Unhealthy> {
        let known = self
            .0
            .get(module)
            .filter(|known| known.health(now) == Health::Unhealthy)?;
        Some(Unhealthy {
            revision: known.seen.as_ref()?.0,
            sentence: known.sentence()?.to_owned(),
        })
    }

    /// The modules that became unhealthy, and for which no run was asked for since.
    pub(super) fn to_leave(&self) -> impl Iterator<Item = &ModuleName> {
        self.0
            .iter()
            .filter(|(_, known)| known.is_to_leave)
            .map(|(module, _)| module)
    }

    /// Notes that a run was asked for.
    pub(super) fn leaves(&mut self, module: &ModuleName) {
        if let Some(known) = self.0.get_mut(module) {
            known.is_to_leave = false;
        }
    }

    /// The changes since the last look: of healths, each with the news for people if it is any, and news alone.
    pub(super) fn turns(&mut self, now: Tick) -> Vec<Option<HealthNews>> {
        let turned = self.0.iter_mut().filter_map(|(module, known)| {
            let health = known.health(now);
            let has_turned = std::mem::replace(&mut known.last, health) != health;
            if has_turned {
                known.is_to_leave = health == Health::Unhealthy;
            }
            let news = known.news(module, health, now);
            (has_turned || news.is_some()).then_some(news)
        });
        turned.collect()
    }

    /// The next time at which a health changes by time alone, or at which modules go on without one that is on its way
    /// for longer than `patience`.
    pub(super) fn timeout(&self, patience: Duration, now: Tick) -> Option<(Tick, Waiting)> {
        let turns = self.0.iter().filter_map(|(module, known)| {
            let is_on_its_way = known.health(now) == Health::RollingOut;
            let late = Some(known.since + patience).filter(|at| is_on_its_way && *at > now);
            Some((known.turns_at(now).into_iter().chain(late).min()?, module))
        });
        let (at, module) = turns.min_by_key(|(at, _)| *at)?;
        Some((at, Waiting::Health(module.clone())))
    }
}
