//! The lookout watches the operator's releases between two runs of their modules.
//!
//! It reads the releases, their status and their objects from helm's Secrets. So it needs no input from jobs, and knows
//! the same after a restart. It only reports the state of a release; the core decides whether that is damage, and what
//! to do about it. It makes no request while nothing happens.

mod arrivals;
mod assessment;
mod causes;
pub mod comparison;
mod contents;
mod endpoints;
mod kind_watches;
pub mod object_healths;
mod releases;
mod rulebook;
mod summary;
mod uses;
pub mod views;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use addon_core::failure::Failure;
use addon_core::module::description::Restoring;
use addon_core::object::ObjectName;
use addon_core::operator::event::{Drift, Event, ReleaseSight};
use jobs::catalogue::Catalogue;
use k8s_openapi::api::core::v1::Secret;
use kube::core::ApiResource;
use kube_access::Cluster;
use names::ModuleName;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::causes::Causes;
use self::comparison::{Comparison, Quarrels};
use self::kind_watches::{Joined, Look, Posts};
use self::releases::{Judgement, KindName, Release, essence};
use self::views::{Asked, Desk, Questions};
use super::Restored;
use crate::causes::Learned;
use crate::revisions::vigil::Vigil;
use crate::revisions::{Revision, SECRET_TYPE};
use health_core::ServiceName;
use objects::key::ObjectKey;
use report::secrets::Secrets;
use watches::Monitors;
use watches::lens::Lens;
use watches::own::{OwnId, OwnWatches, Turned};
use watches::selection::Selection;

/// The watch of the Secrets.
const RELEASES: OwnId = OwnId(0);

/// The pause before a failed request is repeated.
const AGAIN: Duration = Duration::from_secs(30);

/// The settings of the lookout.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The labels of all objects of releases.
    pub labels: BTreeMap<String, String>,
    /// The longest time for which a helm may work on a release.
    pub helm_timeout: Duration,
    /// Which drift of releases is reverted.
    pub restored: Restored,
    /// The files of modules, with their settings for health.
    pub catalogue: watch::Receiver<Arc<Catalogue>>,
    /// The secrets to mask in sentences: logs and statuses may repeat them.
    pub secrets: Secrets,
}

/// The lookout. Clones share everything.
#[derive(Clone)]
pub struct Lookout(Arc<Inner>);

struct Inner {
    monitors: Monitors,
    cluster: Cluster,
    settings: Settings,
    door: mpsc::Sender<Event>,
    releases: Mutex<BTreeMap<String, Release>>,
    quarrels: Mutex<Quarrels>,
    questions: Questions,
    /// The channel for the news that revisions or their objects became known.
    changed: watch::Sender<()>,
    /// The channel for the news that a health was told.
    told: watch::Sender<()>,
}

impl Lookout {
    /// A lookout that is not started yet. It reports the states of releases on the channel `door`.
    pub fn new(monitors: &Monitors, cluster: &Cluster, settings: Settings, door: mpsc::Sender<Event>) -> Self {
        Self(Arc::new(Inner {
            monitors: monitors.clone(),
            cluster: cluster.clone(),
            settings,
            door,
            releases: Mutex::default(),
            quarrels: Mutex::default(),
            questions: Questions::default(),
            changed: watch::Sender::default(),
            told: watch::Sender::default(),
        }))
    }

    /// Starts the watches. When this returns, all releases are known. A release in `expected` that is not found is
    /// reported as lost.
    pub async fn begin(&self, expected: &[ModuleName]) -> Result<(), Failure> {
        let (watches, turns) = OwnWatches::beside(&self.0.monitors);
        let asked = self.0.questions.open();
        let lens = Lens::through("the essence of a release", Arc::new(|secret| Ok(essence(secret))));
        let selection = Selection {
            resource: ApiResource::erase::<Secret>(&()),
            namespace: Some(self.0.cluster.namespace().to_owned()),
            labels: Some("owner=helm,status!=superseded".to_owned()),
            fields: Some(format!("type={SECRET_TYPE}")),
            metadata_only: true,
            is_read: false,
        };
        watches.begin(RELEASES, lens, &selection).await?;
        let mut watch = Watch::new(Arc::clone(&self.0), watches.clone(), turns, asked);
        watch.expect(expected);
        watches.run(watch.run());
        Ok(())
    }
}

impl fmt::Debug for Lookout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lookout")
            .field("releases", &self.0.releases().len())
            .finish_non_exhaustive()
    }
}

impl Inner {
    fn releases(&self) -> MutexGuard<'_, BTreeMap<String, Release>> {
        // The lock is still usable; the panic of a watch ends the operator elsewhere.
        self.releases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The result of an asynchronous task.
enum Errand {
    /// The first list of a kind has ended.
    Joined(KindName, OwnId, Joined),
    /// The first list of the endpoints of a Service has ended.
    JoinedEndpoints(ServiceName, OwnId, Joined),
    /// The objects of a revision became known before they were read.
    Spared(String, u32),
    /// The objects of a revision were read from its Secret.
    Read(Box<Revision>, Result<BTreeSet<ObjectKey>, Failure>),
    /// Objects were compared with the manifest of their revision.
    Compared(Comparison),
    /// A look for the causes for which objects of releases are not healthy has ended.
    Explained(Vec<(String, ObjectKey, Learned)>),
}

type Errands = JoinSet<Errand>;

/// The task of the lookout.
struct Watch {
    inner: Arc<Inner>,
    /// The settings of modules for health.
    catalogue: watch::Receiver<Arc<Catalogue>>,
    watches: OwnWatches,
    turns: mpsc::UnboundedReceiver<Turned>,
    posts: Posts,
    errands: Errands,
    /// The release and the revision of each Secret.
    secrets: BTreeMap<Arc<ObjectName>, (String, u32)>,
    /// Releases whose state may have changed.
    dirty: BTreeSet<String>,
    /// Releases that must be checked again, with the time.
    again: BTreeMap<String, Instant>,
    /// How long other helms have been observed at work on releases.
    vigil: Vigil,
    /// By release, the revision whose objects are being read.
    asked: BTreeMap<String, u32>,
    /// By release, the revision whose objects could not be read. The failure was logged.
    unread: BTreeMap<String, u32>,
    /// Releases whose objects are being compared.
    comparing: BTreeSet<String>,
    /// By release, the newest revision and the time at which it was first seen.
    settling: BTreeMap<String, (u32, Instant)>,
    /// The causes for which releases are not healthy.
    causes: Causes,
    /// The questions of jobs.
    desk: Desk,
}

impl Watch {
    fn new(
        inner: Arc<Inner>,
        watches: OwnWatches,
        turns: mpsc::UnboundedReceiver<Turned>,
        asked: mpsc::UnboundedReceiver<Asked>,
    ) -> Self {
        let labels = &inner.settings.labels;
        let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let look = if inner.settings.restored.compares_any() {
            Look::Writes
        } else {
            Look::Presence
        };
        let posts = Posts::new(
            watches.clone(),
            labels.join(","),
            look,
            inner.cluster.namespace().to_owned(),
            RELEASES,
        );
        Self {
            catalogue: inner.settings.catalogue.clone(),
            inner,
            watches,
            turns,
            posts,
            errands: JoinSet::new(),
            secrets: BTreeMap::new(),
            dirty: BTreeSet::new(),
            again: BTreeMap::new(),
            vigil: Vigil::default(),
            asked: BTreeMap::new(),
            unread: BTreeMap::new(),
            comparing: BTreeSet::new(),
            settling: BTreeMap::new(),
            causes: Causes::default(),
            desk: Desk::new(asked),
        }
    }

    fn expect(&mut self, expected: &[ModuleName]) {
        let mut releases = self.inner.releases();
        for name in expected {
            releases.entry(name.to_string()).or_default();
            self.dirty.insert(name.to_string());
        }
    }

    async fn run(mut self) {
        self.take_settings();
        self.take_in();
        loop {
            for sight in self.look() {
                if self.inner.door.send(sight).await.is_err() {
                    return;
                }
            }
            self.look_for_causes();
            self.answer();
            self.wait(Instant::now()).await;
        }
    }

    /// Takes over all helm Secrets that the watch has seen. Each waiting turn leads to the present state, so a turn
    /// that is older does no harm.
    fn take_in(&mut self) {
        for (name, view) in self.watches.seen(RELEASES) {
            self.saw_secret(&name, Some(view));
        }
    }

    /// Checks the releases that may have changed, and returns the releases to report.
    fn look(&mut self) -> Vec<Event> {
        let now = Instant::now();
        let dirty = std::mem::take(&mut self.dirty);
        let inner = Arc::clone(&self.inner);
        let mut releases = inner.releases();
        // Many releases mention few kinds. `collect` would sort all of the mentions.
        let mut kinds = BTreeSet::<&KindName>::new();
        kinds.extend(releases.values().flat_map(Release::kinds));
        self.posts.want(&kinds, now, &mut self.errands);
        let mut sights = Vec::new();
        for name in dirty {
            let Some(release) = releases.get_mut(&name) else {
                continue;
            };
            if let Some(revision) = release.unmarked() {
                self.ask_for_objects(&name, revision, now);
            }
            self.compare(&name, release);
            let drift = self.judge(&name, release, now);
            if release.told != drift {
                release.told.clone_from(&drift);
                let release = name.clone();
                sights.push(Event::ReleaseSeen(ReleaseSight { release, drift }));
            }
            sights.extend(self.assess(&name, release, now).map(Event::HealthSeen));
        }
        sights
    }

    fn judge(&mut self, name: &str, release: &Release, now: Instant) -> Option<Drift> {
        let namespace = self.inner.cluster.namespace();
        let timeout = self.inner.settings.helm_timeout;
        if self.inner.settings.restored.of(name) == Restoring::Off {
            return None;
        }
        let rest = timeout.saturating_sub(self.vigil.see(name, release.newest_revision(), now.into()));
        match release.judge(namespace, rest, |kind, object| self.posts.holds(kind, object)) {
            Judgement::Whole => None,
            Judgement::Drifted(drift) => Some(drift),
            Judgement::Unfinished(rest) => {
                self.again.insert(name.to_owned(), now + rest);
                None
            }
        }
    }
}
