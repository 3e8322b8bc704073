//! The looks for the causes for which releases are not healthy: one at a time, with growing pauses.
//!
//! Must never look for a cause of a healthy release.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::debug;

use super::{Errand, Watch};
use crate::causes;
use objects::key::ObjectKey;

/// The pause before the first look. Objects are often healthy before it is over.
const FIRST: Duration = Duration::from_secs(1);
/// The pause between two looks at one release, and the number of looks after which pauses are long.
const PAUSE: Duration = Duration::from_secs(4);
const SHORT: u32 = 30;
const LONG_PAUSE: Duration = Duration::from_secs(30);

/// The looks at all releases that are not healthy.
#[derive(Debug, Default)]
pub(super) struct Causes {
    by_release: BTreeMap<String, Look>,
    is_looking: bool,
}

#[derive(Debug)]
struct Look {
    object: ObjectKey,
    /// The cause that the last look found.
    found: Option<String>,
    looks: u32,
    due: Instant,
}

impl Causes {
    /// The cause for which an object is not healthy, as far as it is known. The next look is planned.
    pub(super) fn of(&mut self, release: &str, object: ObjectKey, now: Instant) -> Option<&str> {
        let is_same = self.by_release.get(release).is_some_and(|look| look.object == object);
        if !is_same {
            let look = Look {
                object,
                found: None,
                looks: 0,
                due: now + FIRST,
            };
            self.by_release.insert(release.to_owned(), look);
        }
        self.by_release.get(release)?.found.as_deref()
    }

    pub(super) fn forget(&mut self, release: &str) {
        self.by_release.remove(release);
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
        let (release, look) = due.min_by_key(|(_, look)| look.due)?;
        look.looks = look.looks.saturating_add(1);
        look.due = now + if look.looks < SHORT { PAUSE } else { LONG_PAUSE };
        self.is_looking = true;
        Some((release.clone(), look.object.clone()))
    }

    /// Takes the result of a look. True if it is news.
    fn ended(&mut self, release: &str, object: &ObjectKey, cause: Option<&str>) -> bool {
        self.is_looking = false;
        let look = self.by_release.get_mut(release).filter(|look| look.object == *object);
        look.is_some_and(|look| {
            let is_news = look.found.as_deref() != cause;
            look.found = cause.map(str::to_owned);
            is_news
        })
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
            let cause = causes::of(&inner.cluster, &object).await.unwrap_or_else(|error| {
                debug!(release, %object, error = error.report, "the cause of an unhealthy object cannot be found");
                None
            });
            Errand::Explained(release, object, cause)
        });
    }

    pub(super) fn has_explained(&mut self, release: String, object: &ObjectKey, cause: Option<&str>) {
        if self.causes.ended(&release, object, cause) {
            self.dirty.insert(release);
        }
    }
}
