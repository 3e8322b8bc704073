//! The health of a release: the worst of its objects, by the summaries that the watches of kinds keep.
//!
//! Must never report a state that a watch may only have missed: nothing is told while a kind is being listed, or right
//! after a new revision.

use std::time::Duration;

use addon_core::operator::health::{HealthSight, Seen};
use health_core::{Finding, State};
use tokio::time::Instant;

use super::kind_watches::Glance;
use super::releases::{Object, Release, key};
use super::{Inner, Watch};
use objects::key::ObjectKey;

/// The time within which the watches have brought the objects of a new revision.
const SETTLES: Duration = Duration::from_millis(500);

/// The object for which a release is not healthy, and its state.
struct Worst {
    object: Option<Object>,
    seen: Seen,
}

impl Watch {
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
        let seen = match object.as_ref().map(key) {
            Some(key) if is_explained(&seen) => self.explain(name, key, seen, now),
            Some(_) | None => {
                self.causes.forget(name);
                seen
            }
        };
        let told = (revision, seen);
        if release.told_health.as_ref() == Some(&told) {
            return None;
        }
        release.told_health = Some(told.clone());
        let (revision, seen) = told;
        Some(HealthSight {
            release: name.to_owned(),
            revision,
            seen,
        })
    }

    fn worst(&self, name: &str, release: &Release) -> Option<Worst> {
        let catalogue = self.inner.settings.catalogue.borrow();
        let health = catalogue.module_named(name).map(|files| &files.health);
        let mut worst = Worst {
            object: None,
            seen: Seen::Healthy,
        };
        for (kind, object) in release.installed()?.1 {
            if health.is_some_and(|health| health.ignores(&kind.kind, &object.name)) {
                continue;
            }
            let seen = match self.posts.glance(kind, object) {
                Glance::Unwatched => Seen::Unknown,
                Glance::Absent => Seen::InProgress("it is absent".to_owned()),
                Glance::There(Finding { state, sentence }) => match state {
                    State::Current => continue,
                    State::InProgress => Seen::InProgress(sentence),
                    State::Terminating => Seen::InProgress("it is being deleted".to_owned()),
                    State::Failed => Seen::Failed(sentence),
                    State::Unknown => Seen::Unknown,
                },
            };
            if rank(&seen) > rank(&worst.seen) {
                worst = Worst {
                    object: Some((kind.clone(), object.clone())),
                    seen,
                };
            }
        }
        Some(worst)
    }

    /// Adds the object and the cause to a sentence, and asks for the cause again after a while.
    fn explain(&mut self, name: &str, key: ObjectKey, seen: Seen, now: Instant) -> Seen {
        let of = self.inner.titled(&key);
        let cause = self.causes.of(name, key, now).map(str::to_owned);
        let tell = |sentence: String| match &cause {
            Some(cause) if sentence.is_empty() => format!("{of}: {cause}"),
            Some(cause) => format!("{of}: {sentence}; {cause}"),
            None => format!("{of}: {sentence}"),
        };
        match seen {
            Seen::InProgress(sentence) => Seen::InProgress(tell(sentence)),
            Seen::Failed(sentence) => Seen::Failed(tell(sentence)),
            seen @ (Seen::Healthy | Seen::Unknown) => seen,
        }
    }
}

impl Inner {
    /// The name of an object for people. The namespace is left out if it is the operator's.
    fn titled(&self, key: &ObjectKey) -> String {
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

fn rank(seen: &Seen) -> u8 {
    match seen {
        Seen::Healthy => 0,
        Seen::Unknown => 1,
        Seen::InProgress(_) => 2,
        Seen::Failed(_) => 3,
    }
}
