//! The health of a release: the worst of its objects, by the summaries that the watches of kinds keep.
//!
//! Must never report a state that a watch may only have missed: nothing is told while a kind is being listed, or right
//! after a new revision.

use std::time::Duration;

use addon_core::operator::health::{HealthSight, Seen};
use health_core::{Finding, State};
use tokio::time::{Instant, timeout};

use super::endpoints::is_webhook;
use super::kind_watches::Glance;
use super::releases::{KindName, Named, Object, Release, key};
use super::rulebook::Rulebook;
use super::{Inner, Lookout, Watch};
use crate::causes::CLAIM;
use crate::health;
use objects::key::ObjectKey;

/// The time within which the watches have brought the objects of a new revision.
const SETTLES: Duration = Duration::from_millis(500);

/// The longest wait for the first look at a revision: its objects are listed meanwhile.
const FIRST_LOOK: Duration = Duration::from_secs(3);

/// The object for which a release is not healthy, and its state.
struct Worst {
    object: Option<Object>,
    seen: Seen,
}

impl Lookout {
    /// Whether the objects of this revision do their work. Waits a moment for the first look at them.
    pub async fn is_healthy(&self, release: &str, revision: u32) -> bool {
        let mut told = self.0.told.subscribe();
        let found = timeout(FIRST_LOOK, async {
            loop {
                told.mark_unchanged();
                let known = self
                    .0
                    .releases()
                    .get(release)
                    .and_then(|known| known.told_health.clone());
                if let Some((_, seen)) = known.filter(|(of, _)| *of == revision) {
                    return seen == Seen::Healthy;
                }
                if told.changed().await.is_err() {
                    return false;
                }
            }
        });
        found.await.unwrap_or(false)
    }
}

impl Watch {
    /// Takes over the settings of modules for health.
    pub(super) fn take_settings(&mut self) {
        let rules = Rulebook::of(&self.catalogue.borrow_and_update());
        if rules != *self.posts.rules() {
            self.dirty.extend(rules.differing(self.posts.rules()).cloned());
            self.posts.take_rules(rules);
        }
    }

    /// The health of a release, if it differs from the last report.
    pub(super) fn assess(&mut self, name: &str, release: &mut Release, now: Instant) -> Option<HealthSight> {
        let Some((revision, _)) = release.installed() else {
            self.causes.forget(name);
            if release.newest_revision().is_none() {
                // Another release of this name may begin with the same number.
                release.told_health = None;
                self.settling.remove(name);
            }
            return None;
        };
        let since = match self.settling.get(name) {
            Some((of, since)) if *of == revision => *since,
            Some(_) | None => {
                self.settling.insert(name.to_owned(), (revision, now));
                now
            }
        };
        if now < since + SETTLES {
            let due = self.again.get(name).copied().unwrap_or(since + SETTLES);
            self.again.insert(name.to_owned(), due.min(since + SETTLES));
            return None;
        }
        if release.kinds().any(|kind| self.posts.is_listing(kind)) {
            return None;
        }
        let Worst { object, seen } = self.worst(name, release)?;
        let seen = match object {
            Some(object) if is_explained(&seen) => self.explain(name, &object, revision, seen, now),
            Some(_) | None => {
                self.causes.end(name);
                seen
            }
        };
        let told = (revision, seen);
        if release.told_health.as_ref() == Some(&told) {
            return None;
        }
        release.told_health = Some(told.clone());
        self.inner.told.send_replace(());
        let (revision, seen) = told;
        Some(HealthSight {
            release: name.to_owned(),
            revision,
            seen,
        })
    }

    fn worst(&self, name: &str, release: &Release) -> Option<Worst> {
        let mut worst = Worst {
            object: None,
            seen: Seen::Healthy,
        };
        let (revision, objects) = release.installed()?;
        for (kind, object) in objects {
            if self.posts.rules().ignores(name, kind, &object.name) {
                continue;
            }
            let seen = self.seen(name, revision, (kind, object));
            let of_worst = worst.object.as_ref().map(|(kind, _)| kind);
            if (rank(&seen), says_itself(Some(kind))) > (rank(&worst.seen), says_itself(of_worst)) {
                worst = Worst {
                    object: Some((kind.clone(), object.clone())),
                    seen,
                };
            }
        }
        Some(worst)
    }

    /// The state of an object of a release.
    pub(super) fn seen(&self, name: &str, revision: u32, (kind, object): (&KindName, &Named)) -> Seen {
        match self.posts.glance(kind, object) {
            Glance::Unwatched => Seen::Unknown,
            Glance::Absent => health::absent(),
            Glance::There(Finding { state, sentence })
                if state == State::InProgress && self.is_pardoned(name, revision, (kind, object), &sentence) =>
            {
                Seen::Healthy
            }
            Glance::There(finding) => health::seen(finding),
        }
    }

    /// Whether a look has shown that a claim is well.
    fn is_pardoned(&self, name: &str, revision: u32, (kind, object): (&KindName, &Named), sentence: &str) -> bool {
        kind.kind == CLAIM && {
            let key = key(&(kind.clone(), object.clone()));
            self.causes.is_pardoned(name, &key, &(revision, sentence.to_owned()))
        }
    }

    /// Adds the object and the cause to a sentence, and asks for the cause again after a while.
    fn explain(&mut self, name: &str, object: &Object, revision: u32, seen: Seen, now: Instant) -> Seen {
        let key = key(object);
        let of = self.inner.titled(&key);
        let said = match &seen {
            Seen::InProgress(sentence) | Seen::Failed(sentence) => (revision, sentence.clone()),
            Seen::Healthy | Seen::Unknown => (revision, String::new()),
        };
        let cause = self.causes.of(name, key, said, now).map(str::to_owned);
        let tell = |sentence: String| match &cause {
            Some(cause) if sentence.is_empty() => format!("{of}: {cause}"),
            Some(cause) => format!("{of}: {sentence}; {cause}"),
            None => format!("{of}: {sentence}"),
        };
        let told = |sentence| self.inner.settings.secrets.masked(&tell(sentence)).into_owned();
        match seen {
            Seen::InProgress(sentence) => Seen::InProgress(told(sentence)),
            Seen::Failed(sentence) => Seen::Failed(told(sentence)),
            seen @ (Seen::Healthy | Seen::Unknown) => seen,
        }
    }
}

impl Inner {
    /// The name of an object for people. The namespace is left out if it is the operator's.
    pub(super) fn titled(&self, key: &ObjectKey) -> String {
        let ObjectKey {
            kind, namespace, name, ..
        } = key;
        match namespace
            .as_deref()
            .filter(|namespace| *namespace != self.cluster.namespace())
        {
            Some(namespace) => format!("{kind} {namespace}/{name}"),
            None => format!("{kind} {name}"),
        }
    }
}

fn is_explained(seen: &Seen) -> bool {
    match seen {
        Seen::InProgress(_) | Seen::Failed(_) => true,
        Seen::Healthy | Seen::Unknown => false,
    }
}

/// Whether objects of a kind say themselves why they are not healthy. A sentence about others comes last.
fn says_itself(kind: Option<&KindName>) -> bool {
    kind.is_some_and(|kind| !is_webhook(&kind.kind))
}

fn rank(seen: &Seen) -> u8 {
    match seen {
        Seen::Healthy => 0,
        Seen::Unknown => 1,
        Seen::InProgress(_) => 2,
        Seen::Failed(_) => 3,
    }
}
