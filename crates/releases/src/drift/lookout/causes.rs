//! The looks for the causes for which releases are not healthy: one at a time, first ones first, with growing pauses. Releases with objects
//! in one namespace are looked at together if they are many.
//!
//! Must never look for a cause of a healthy release.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::debug;

use super::{Errand, Watch};
use crate::causes::crowd::{self, CROWD};
use crate::causes::{self, CLAIM, Learned, is_explained};
use kube_access::Cluster;
use objects::key::ObjectKey;

/// The pause before most first looks: a busy controller takes some seconds to bring up what is well.
const FIRST: Duration = Duration::from_secs(3);
/// The pause between two looks at one release, and the number of looks after which pauses are long.
const PAUSE: Duration = Duration::from_secs(4);
/// The time by which a repeated look may come early.
const EARLY: Duration = Duration::from_secs(2);
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

    /// Chooses the objects for the next look: one that is due, and the others of its namespace if these are many.
    fn begin(&mut self, now: Instant) -> Vec<(String, ObjectKey)> {
        if self.is_looking {
            return Vec::new();
        }
        let due = self.by_release.iter().filter(|(_, look)| look.due <= now);
        // A first answer is awaited, and a repeated one is mostly the same.
        let Some((first, look)) = due.min_by_key(|(_, look)| (look.looks > 0, look.due)) else {
            return Vec::new();
        };
        let (first, namespace) = (first.clone(), look.object.namespace.clone());
        let is_beside = |look: &Look| {
            // A repeated look may come early, so that looks at one namespace come together.
            let early = if look.looks > 0 { EARLY } else { Duration::ZERO };
            let is_at_pods = is_explained(&look.object.api_version, &look.object.kind);
            is_at_pods && look.object.namespace == namespace && look.due <= now + early
        };
        let crowd = self.by_release.iter().filter(|(_, look)| is_beside(look));
        let mut chosen: Vec<String> = crowd.map(|(release, _)| release.clone()).collect();
        if chosen.len() < CROWD || !chosen.contains(&first) {
            chosen = vec![first];
        }
        self.is_looking = true;
        chosen
            .into_iter()
            .filter_map(|release| self.looks_at(release, now))
            .collect()
    }

    fn looks_at(&mut self, release: String, now: Instant) -> Option<(String, ObjectKey)> {
        let look = self.by_release.get_mut(&release)?;
        look.looks = look.looks.saturating_add(1);
        look.due = now + if look.looks < SHORT { PAUSE } else { LONG_PAUSE };
        Some((release, look.object.clone()))
    }

    /// Takes the result of a look. True if it is news.
    fn ended(&mut self, release: &str, object: &ObjectKey, learned: Learned) -> bool {
        let look = self.by_release.get_mut(release).filter(|look| look.object == *object);
        look.is_some_and(|look| mem::replace(&mut look.found, learned) != look.found)
    }
}

/// The pause before the first look at an object. Pods are often healthy before it is over; a claim that waits for its
/// consumer does not say so itself.
fn first_pause(object: &ObjectKey) -> Duration {
    if object.kind == CLAIM { Duration::ZERO } else { FIRST }
}

impl Watch {
    /// Begins the next look that is due, unless one runs.
    pub(super) fn look_for_causes(&mut self) {
        let looks = self.causes.begin(Instant::now());
        if looks.is_empty() {
            return;
        }
        let inner = Arc::clone(&self.inner);
        self.errands
            .spawn(async move { Errand::Explained(explained(&inner.cluster, looks).await) });
    }

    pub(super) fn has_explained(&mut self, explained: Vec<(String, ObjectKey, Learned)>) {
        self.causes.is_looking = false;
        for (release, object, learned) in explained {
            if learned == Learned::Well {
                self.causes.pardon(&release, &object);
            }
            if self.causes.ended(&release, &object, learned) {
                self.dirty.insert(release);
            }
        }
    }
}

async fn explained(cluster: &Cluster, looks: Vec<(String, ObjectKey)>) -> Vec<(String, ObjectKey, Learned)> {
    let mut known = BTreeMap::new();
    if looks.len() >= CROWD {
        let keys: Vec<ObjectKey> = looks.iter().map(|(_, object)| object.clone()).collect();
        known = crowd::of_all(cluster, &keys).await.ok().flatten().unwrap_or_default();
    }
    let mut explained = Vec::new();
    for (release, object) in looks {
        let learned = match known.remove(&object) {
            Some(learned) => learned,
            None => causes::of(cluster, &object).await.unwrap_or_else(|error| {
                debug!(release, %object, error = error.report, "the cause of an unhealthy object cannot be found");
                Learned::Nothing
            }),
        };
        explained.push((release, object, learned));
    }
    explained
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(namespace: &str, name: &str) -> ObjectKey {
        ObjectKey {
            api_version: "apps/v1".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
        }
    }

    /// Releases, each with an object of its name that is not healthy.
    fn causes(objects: &[(&str, &str)], now: Instant) -> Causes {
        let mut causes = Causes::default();
        for (namespace, name) in objects {
            causes.of(name, deployment(namespace, name), (1, String::new()), now);
        }
        causes
    }

    fn chosen(causes: &mut Causes, now: Instant) -> Vec<String> {
        let chosen = causes.begin(now).into_iter().map(|(release, _)| release).collect();
        causes.is_looking = false;
        chosen
    }

    #[test]
    fn many_objects_of_one_namespace_are_looked_at_together() {
        let now = Instant::now();
        let mut causes = causes(&[("a", "one"), ("a", "two"), ("a", "three"), ("b", "four")], now);
        assert_eq!(chosen(&mut causes, now), [""; 0]);
        let mut looks = [chosen(&mut causes, now + FIRST), chosen(&mut causes, now + FIRST)];
        looks.sort();
        assert_eq!(looks[0], ["four"]);
        assert_eq!(looks[1], ["one", "three", "two"]);
        assert_eq!(chosen(&mut causes, now + FIRST), [""; 0]);
    }

    #[test]
    fn few_objects_are_looked_at_alone_and_repeated_looks_come_together() {
        let now = Instant::now();
        let mut causes = causes(&[("a", "one"), ("a", "two")], now);
        assert_eq!(chosen(&mut causes, now + FIRST).len(), 1);
        assert_eq!(chosen(&mut causes, now + FIRST + EARLY).len(), 1);
        causes.of("three", deployment("a", "three"), (1, String::new()), now);
        // The second look at the other two is not due yet.
        let third = now + FIRST + PAUSE;
        assert_eq!(chosen(&mut causes, third), ["one", "three", "two"]);
    }
}
