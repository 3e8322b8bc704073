//! The looks for the causes for which releases are not healthy: one at a time, first ones first, with growing pauses.
//!
//! Must never look for a cause of a healthy release.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::debug;

use super::{Errand, Watch};
use crate::causes::{self, Learned};
use objects::key::ObjectKey;

/// The pause before most first looks: a busy controller takes some seconds to bring up what is well.
const FIRST: Duration = Duration::from_secs(3);
/// The pause between two looks at one release, and the number of looks after which pauses are long.
const PAUSE: Duration = Duration::from_secs(4);
const SHORT: u32 = 30;
const LONG_PAUSE: Duration = Duration::from_secs(30);

/// The looks at all releases that are not healthy.
#[derive(Debug, Default)]
pub(super) struct Causes {
    by_release: BTreeMap<String, Look>,
    /// By release, the objects that are well, each with what it said of itself at the look.
    pardoned: BTreeMap<String, BTreeMap<ObjectKey, Said>>,
    is_looking: bool,
}

/// The revision of a release, and what one of its objects says of itself.
pub(super) type Said = (u32, String);

#[derive(Debug)]
struct Look {
    object: ObjectKey,
    said: Said,
    /// The cause that the last look found.
    found: Learned,
    looks: u32,
    due: Instant,
}

impl Causes {
    /// The cause for which an object is not healthy, as far as it is known. The next look is planned.
    pub(super) fn of(&mut self, release: &str, object: ObjectKey, said: Said, now: Instant) -> Option<&str> {
        if let Some(look) = self.by_release.get_mut(release).filter(|look| look.object == object) {
            look.said = said;
        } else {
            let look = Look {
                due: now + first_pause(&object),
                object,
                said,
                found: Learned::Nothing,
                looks: 0,
            };
            self.by_release.insert(release.to_owned(), look);
        }
        match &self.by_release.get(release)?.found {
            Learned::Cause(cause) => Some(cause),
            Learned::Nothing | Learned::Well => None,
        }
    }

    /// Ends the looks at a release.
    pub(super) fn end(&mut self, release: &str) {
        self.by_release.remove(release);
    }

    /// Forgets a release.
    pub(super) fn forget(&mut self, release: &str) {
        self.end(release);
        self.pardoned.remove(release);
    }

    /// Whether an object is well in spite of what it says of itself.
    pub(super) fn is_pardoned(&self, release: &str, object: &ObjectKey, said: &Said) -> bool {
        let of_release = self.pardoned.get(release);
        of_release.and_then(|objects| objects.get(object)) == Some(said)
    }

    fn pardon(&mut self, release: &str, object: &ObjectKey) {
        let look = self.by_release.get(release).filter(|look| look.object == *object);
        if let Some(look) = look {
            let of_release = self.pardoned.entry(release.to_owned()).or_default();
            of_release.insert(object.clone(), look.said.clone());
        }
    }

    /// The time of the next look.
    pub(super) fn next(&self) -> Option<Instant> {
        let due = self.by_release.values().map(|look| look.due).min();
        due.filter(|_| !self.is_looking)
    }

    fn begin(&mut self, now: Instant) -> Option<(String, ObjectKey)> {
        if self.is_looking {
            return None;
        }
        let due = self.by_release.iter_mut().filter(|(_, look)| look.due <= now);
        // A first answer is awaited, and a repeated one is mostly the same.
        let (release, look) = due.min_by_key(|(_, look)| (look.looks > 0, look.due))?;
        look.looks = look.looks.saturating_add(1);
        look.due = now + if look.looks < SHORT { PAUSE } else { LONG_PAUSE };
        self.is_looking = true;
        Some((release.clone(), look.object.clone()))
    }

    /// Takes the result of a look. True if it is news.
    fn ended(&mut self, release: &str, object: &ObjectKey, learned: Learned) -> bool {
        self.is_looking = false;
        let look = self.by_release.get_mut(release).filter(|look| look.object == *object);
        look.is_some_and(|look| mem::replace(&mut look.found, learned) != look.found)
    }
}

/// The pause before the first look at an object. Pods are often healthy before it is over; a claim that waits for its
/// consumer does not say so itself.
fn first_pause(object: &ObjectKey) -> Duration {
    if object.kind == "PersistentVolumeClaim" {
        Duration::ZERO
    } else {
        FIRST
    }
}

impl Watch {
    /// Begins the next look that is due, unless one runs.
    pub(super) fn look_for_causes(&mut self) {
        let Some((release, object)) = self.causes.begin(Instant::now()) else {
            return;
        };
        let inner = Arc::clone(&self.inner);
        self.errands.spawn(async move {
            let learned = causes::of(&inner.cluster, &object).await.unwrap_or_else(|error| {
                debug!(release, %object, error = error.report, "the cause of an unhealthy object cannot be found");
                Learned::Nothing
            });
            Errand::Explained(release, object, learned)
        });
    }

    pub(super) fn has_explained(&mut self, release: String, object: &ObjectKey, learned: Learned) {
        if learned == Learned::Well {
            self.causes.pardon(&release, object);
        }
        if self.causes.ended(&release, object, learned) {
            self.dirty.insert(release);
        }
    }
}
