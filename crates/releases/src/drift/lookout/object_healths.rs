//! The objects of releases, and the health of each, for people and metrics.
//!
//! It repeats what the watches show, and looks for no cause.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::releases::Release;
use super::views::Asked;
use super::{Lookout, Watch};
use crate::health;

/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// The largest number of unhealthy objects in an answer about all releases.
const MOST: usize = 200;

/// The health of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ObjectHealth {
    /// The release's name.
    #[serde(skip)]
    pub release: String,
    /// The kind, as in the manifest.
    pub kind: String,
    /// The namespace; empty for a cluster-wide object.
    pub namespace: String,
    /// The object's name in its namespace.
    pub name: String,
    /// `Healthy`, `RollingOut`, `Failed`, `Unknown`, or `Ignored` if the module leaves it out.
    pub health: &'static str,
    /// The state for people; empty if it is healthy.
    pub sentence: String,
}

/// The revision of a release, and how many objects it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Census {
    /// The revision.
    pub revision: u32,
    /// The number of its objects.
    pub objects: u32,
    /// The number of those that do not work, up to 200 for all releases together.
    pub unhealthy: u32,
}

impl Lookout {
    /// The counts of each release whose objects are known.
    pub async fn census(&self) -> BTreeMap<String, Census> {
        let unhealthy = self.unhealthy().await;
        let releases = self.0.releases();
        let counted = releases.iter().filter_map(|(name, release)| {
            let (revision, objects) = release.installed()?;
            let ailing = unhealthy.iter().filter(|object| object.release == *name);
            let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
            let census = Census {
                revision,
                objects: count(objects.count()),
                unhealthy: count(ailing.count()),
            };
            Some((name.clone(), census))
        });
        counted.collect()
    }

    /// The watched objects of each release, as `namespace/Kind/name`.
    pub fn objects(&self) -> BTreeMap<String, Vec<String>> {
        let namespace = self.0.cluster.namespace();
        let releases = self.0.releases();
        let shown = releases
            .iter()
            .filter_map(|(name, release)| Some((name.clone(), release.shown(namespace)?)));
        shown.collect()
    }

    /// The health of each object of a release.
    pub async fn objects_of(&self, release: &str) -> Vec<ObjectHealth> {
        self.look(Some(release.to_owned())).await
    }

    /// The objects of all releases that are not healthy, up to 200.
    pub async fn unhealthy(&self) -> Vec<ObjectHealth> {
        self.look(None).await
    }

    async fn look(&self, release: Option<String>) -> Vec<ObjectHealth> {
        let (answer, answered) = oneshot::channel();
        if self.0.questions.ask(Asked::Objects(release, answer)).is_none() {
            return Vec::new();
        }
        let answered = timeout(PATIENCE, answered).await;
        answered.ok().and_then(Result::ok).unwrap_or_default()
    }
}

impl Watch {
    /// Takes a question. The view of a release may have to wait for first lists.
    pub(super) fn asked(&mut self, asked: Asked) {
        match asked {
            Asked::Sight(question) => self.desk.take(question),
            // A person who went away needs no answer.
            Asked::Objects(release, answer) => drop(answer.send(self.shown(release.as_deref()))),
        }
    }

    fn shown(&self, release: Option<&str>) -> Vec<ObjectHealth> {
        let releases = self.inner.releases();
        if let Some(name) = release {
            let shown = releases.get(name).map(|release| self.shown_of(name, release).collect());
            return shown.unwrap_or_default();
        }
        // Nearly all releases are healthy, and a scrape must not read all their objects.
        let ailing = releases.iter().filter(|(_, release)| !release.is_told_healthy());
        let all = ailing.flat_map(|(name, release)| self.shown_of(name, release));
        let ailing = all.filter(|object| matches!(object.health, "RollingOut" | "Failed"));
        ailing.take(MOST).collect()
    }

    fn shown_of<'a>(&'a self, name: &'a str, release: &'a Release) -> impl Iterator<Item = ObjectHealth> + 'a {
        let installed = release.installed();
        let revision = installed.as_ref().map_or(0, |(revision, _)| *revision);
        let objects = installed.map(|(_, objects)| objects.collect::<Vec<_>>());
        objects.unwrap_or_default().into_iter().map(move |(kind, object)| {
            let is_ignored = self.posts.rules().ignores(name, kind, &object.name);
            let (health, sentence) = if is_ignored {
                ("Ignored", String::new())
            } else {
                health::worded(self.seen(name, revision, (kind, object)))
            };
            ObjectHealth {
                release: name.to_owned(),
                kind: kind.kind.clone(),
                namespace: object.namespace.clone().unwrap_or_default(),
                name: object.name.clone(),
                health,
                sentence: self.inner.settings.secrets.masked(&sentence).into_owned(),
            }
        })
    }
}
