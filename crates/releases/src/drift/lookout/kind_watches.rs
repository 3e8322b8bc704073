//! The watches of kinds: one for each kind and namespace in which releases have objects, shared by all releases. A
//! watch of the whole cluster would need a right that a role in a namespace cannot give.
//!
//! A kind that cannot be watched is logged once and tried again with long pauses. Until then only the runs of modules
//! notice missing objects. Must never report an object as absent because it cannot be read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use addon_core::digest::Digest;
use addon_core::failure::{Class, Failure};
use addon_core::object::{ObjectName, ObjectView};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tracing::{info, warn};

use super::super::alteration::fingerprint;
use super::endpoints::{Endpoints, is_webhook};
use super::releases::{KindName, Named};
use super::rulebook::{KindRules, Rulebook};
use super::{Errands, summary};
use health_core::{Finding, ServiceName, State, without_endpoints};
use watches::lens::Lens;
use watches::own::{OwnId, OwnWatches};
use watches::selection::Selection;

/// The pause before a kind that could not be watched is tried again. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_mins(1);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_mins(16);
/// The pause before a kind is tried again if only the API server could not be reached.
pub(super) const SHORT_PAUSE: Duration = Duration::from_secs(5);

/// The facts about objects that a watch reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// The watch reports only whether objects exist.
    Presence,
    /// The watch reports whether objects exist, and every write to them.
    Writes,
}

/// An object as a watch shows it.
#[derive(Debug)]
pub(super) enum Glance {
    /// The kind of the object is not watched.
    Unwatched,
    /// There is no such object.
    Absent,
    /// The object exists, in this health.
    There(Finding),
}

/// All watches of kinds.
pub(super) struct Posts {
    watches: OwnWatches,
    /// The label selector of the operator's objects.
    labels: String,
    look: Look,
    namespace: String,
    last: OwnId,
    rules: Rulebook,
    by_kind: BTreeMap<KindName, Post>,
    /// The Services that watched webhook configurations call.
    endpoints: Endpoints,
}

struct Post {
    id: OwnId,
    stage: Stage,
    /// The rules by which the objects are judged.
    rules: KindRules,
    failures: u32,
    /// The last failure that was logged.
    told: Option<String>,
}

/// The stage of a watch.
pub(super) enum Stage {
    /// The objects are being listed.
    Joining(AbortHandle),
    /// The objects are watched.
    Watched,
    /// The objects could not be watched. The next attempt is at this time.
    Waiting(Instant),
}

impl Stage {
    /// Ends a list under way.
    pub(super) fn give_up(&self) {
        if let Self::Joining(task) = self {
            task.abort();
        }
    }

    /// Whether it is time for the next attempt.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.next().is_some_and(|at| at <= now)
    }

    /// The time of the next attempt.
    pub(super) fn next(&self) -> Option<Instant> {
        match self {
            Self::Waiting(until) => Some(*until),
            Self::Joining(_) | Self::Watched => None,
        }
    }
}

/// The result of the first list of a kind.
pub(super) type Joined = Result<(), Failure>;

impl Posts {
    /// No watches yet. `last` is the last number that was used for a watch.
    pub(super) fn new(watches: OwnWatches, labels: String, look: Look, namespace: String, last: OwnId) -> Self {
        Self {
            endpoints: Endpoints::new(watches.clone()),
            watches,
            labels,
            look,
            namespace,
            last,
            rules: Rulebook::default(),
            by_kind: BTreeMap::new(),
        }
    }

    /// Judges objects by these rules from now on. The watches of kinds with other rules end.
    pub(super) fn take_rules(&mut self, rules: Rulebook) {
        self.keep(|kind, post| rules.of_kind(kind) == post.rules);
        self.rules = rules;
    }

    /// The settings of modules for the health of their objects.
    pub(super) fn rules(&self) -> &Rulebook {
        &self.rules
    }

    fn keep(&mut self, mut is_kept: impl FnMut(&KindName, &Post) -> bool) {
        self.by_kind.retain(|kind, post| {
            let is_kept = is_kept(kind, post);
            if !is_kept {
                post.stage.give_up();
                self.watches.end(post.id);
            }
            is_kept
        });
    }

    /// Starts the missing watches, and stops those that are no longer needed.
    pub(super) fn want(&mut self, kinds: &BTreeSet<&KindName>, now: Instant, errands: &mut Errands) {
        self.keep(|kind, _| kinds.contains(kind));
        for kind in kinds {
            if self.by_kind.get(*kind).is_none_or(|post| post.stage.is_due(now)) {
                self.begin(kind, errands);
            }
        }
        let services = self.called();
        self.endpoints.want(services, now, &mut self.last, errands);
    }

    /// The Services that watched webhook configurations call.
    fn called(&self) -> BTreeSet<ServiceName> {
        let webhooks = self.by_kind.iter().filter(|(kind, _)| is_webhook(&kind.kind));
        let seen = webhooks.flat_map(|(_, post)| self.watches.seen(post.id));
        seen.flat_map(|(_, view)| summary::services(&view)).collect()
    }

    /// Notes the result of the first list of a Service's endpoints.
    pub(super) fn joined_endpoints(&mut self, service: &ServiceName, id: OwnId, joined: Joined, now: Instant) {
        self.endpoints.joined(service, id, joined, now);
    }

    /// Whether a watch is about the endpoints of a Service.
    pub(super) fn is_of_endpoints(&self, id: OwnId) -> bool {
        self.endpoints.has(id)
    }

    fn begin(&mut self, kind: &KindName, errands: &mut Errands) {
        self.last.0 += 1;
        let id = self.last;
        let rules = self.rules.of_kind(kind);
        let sights = sights(kind, self.look, &rules);
        let (watches, wanted) = (self.watches.clone(), kind.clone());
        let join = join(watches, wanted, self.namespace.clone(), self.labels.clone(), sights, id);
        let named = kind.clone();
        let task = errands.spawn(async move { super::Errand::Joined(named, id, join.await) });
        let (failures, told) = self
            .by_kind
            .remove(kind)
            .map_or((0, None), |post| (post.failures, post.told));
        let stage = Stage::Joining(task);
        let post = Post {
            id,
            stage,
            rules,
            failures,
            told,
        };
        self.by_kind.insert(kind.clone(), post);
    }

    /// Notes the result of a kind's first list. Returns false if nothing is known about the kind's objects.
    pub(super) fn joined(&mut self, kind: &KindName, id: OwnId, joined: Joined, now: Instant) -> bool {
        let Some(post) = self.by_kind.get_mut(kind).filter(|post| post.id == id) else {
            // The kind is no longer needed.
            self.watches.end(id);
            return false;
        };
        match joined {
            Ok(()) => {
                post.stage = Stage::Watched;
                post.failures = 0;
                if post.told.take().is_some() {
                    info!(kind = kind.kind, "objects of this kind are watched again");
                }
                true
            }
            Err(failure) => {
                self.watches.end(id);
                let pause = post.fail(failure.class);
                post.stage = Stage::Waiting(now + pause);
                post.tell(kind, &failure);
                false
            }
        }
    }

    /// Whether an object exists; none if its kind is not watched.
    pub(super) fn holds(&self, kind: &KindName, object: &Named) -> Option<bool> {
        let names = self.names(kind, object);
        self.watches.holds(self.watched(kind)?, &names)
    }

    /// Whether an object exists; none if its kind is not watched, or if the watch may lack changes.
    pub(super) fn certainly_holds(&self, kind: &KindName, object: &Named) -> Option<bool> {
        let post = self.by_kind.get(kind)?;
        self.watches.brings_all(post.id).then(|| self.holds(kind, object))?
    }

    /// Whether the first list of a kind, or of the endpoints that its objects need, has not ended yet.
    pub(super) fn is_listing(&self, kind: &KindName) -> bool {
        let stage = self.by_kind.get(kind).map(|post| &post.stage);
        matches!(stage, Some(Stage::Joining(_))) || is_webhook(&kind.kind) && self.endpoints.is_listing()
    }

    /// A digest that changes with every write to the object; none if writes are not watched.
    pub(super) fn print(&self, kind: &KindName, object: &Named) -> Option<Digest> {
        if self.look != Look::Writes {
            return None;
        }
        let names = self.names(kind, object);
        let id = self.watched(kind)?;
        if !is_judged(kind, &self.by_kind.get(kind)?.rules) {
            return self.watches.digest(id, &names);
        }
        summary::writers(&self.watches.view(id, &names)??)
    }

    /// The health of an object, as far as its kind is watched.
    pub(super) fn glance(&self, kind: &KindName, object: &Named) -> Glance {
        let names = self.names(kind, object);
        let view = self.watched(kind).and_then(|id| self.watches.view(id, &names));
        match view {
            None => Glance::Unwatched,
            Some(None) => Glance::Absent,
            Some(Some(view)) => Glance::There(self.finding(&view)),
        }
    }

    fn finding(&self, view: &ObjectView) -> Finding {
        let finding = summary::finding(view);
        if finding.state != State::Current {
            return finding;
        }
        let lacking = self.endpoints.lacking(summary::services(view).iter());
        without_endpoints(&lacking).map_or(finding, |sentence| Finding::new(State::InProgress, &sentence))
    }

    /// The names under which an object may be known. A kind may be namespaced or not, and this may change while it is
    /// watched.
    fn names(&self, kind: &KindName, object: &Named) -> [ObjectName; 2] {
        let namespace = object.namespace.as_deref().unwrap_or(&self.namespace);
        [namespace, ""].map(|namespace| ObjectName {
            namespace: namespace.to_owned(),
            name: object.name.clone(),
            kind: kind.kind.clone(),
        })
    }

    fn watched(&self, kind: &KindName) -> Option<OwnId> {
        let post = self.by_kind.get(kind)?;
        matches!(post.stage, Stage::Watched).then_some(post.id)
    }

    /// The kind that a watch is about.
    pub(super) fn kind(&self, id: OwnId) -> Option<&KindName> {
        let mut posts = self.by_kind.iter();
        posts.find(|(_, post)| post.id == id).map(|(kind, _)| kind)
    }

    /// The earliest time at which a kind is tried again.
    pub(super) fn next(&self) -> Option<Instant> {
        let waiting = self.by_kind.values().filter_map(|post| post.stage.next());
        waiting.chain(self.endpoints.next()).min()
    }
}

impl Post {
    fn fail(&mut self, class: Class) -> Duration {
        if class == Class::Unavailable {
            return SHORT_PAUSE;
        }
        let pause = (FIRST_PAUSE * (1 << self.failures.min(8))).min(LONGEST_PAUSE);
        self.failures += 1;
        pause
    }

    fn tell(&mut self, kind: &KindName, failure: &Failure) {
        let KindName {
            api_version,
            kind,
            namespace,
        } = kind;
        let Failure { report, hints, .. } = failure;
        if self.told.as_ref() == Some(report) {
            return;
        }
        let hint = hints.join("; ");
        warn!(
            kind,
            api_version,
            namespace,
            error = report,
            hint,
            "objects of this kind are not watched: only the next run of the module restores a deleted object"
        );
        self.told = Some(report.clone());
    }
}

fn is_judged(kind: &KindName, rules: &KindRules) -> bool {
    summary::is_judged(kind) || !rules.is_empty()
}

/// The lens on the objects of a kind, and whether it needs more than their metadata.
fn sights(kind: &KindName, look: Look, rules: &KindRules) -> (Lens, bool) {
    let is_judged = is_judged(kind, rules);
    let lens = match look {
        _ if is_judged => summary::lens(look, rules.clone()),
        Look::Presence => Lens::presence(),
        Look::Writes => Lens::through("who wrote to an object", Arc::new(|object| Ok(fingerprint(object)))),
    };
    (lens, is_judged)
}

/// Lists the objects of a kind with our labels, and watches them.
async fn join(
    watches: OwnWatches,
    kind: KindName,
    releases: String,
    labels: String,
    (lens, is_judged): (Lens, bool),
    id: OwnId,
) -> Joined {
    let found = watches.kinds().resolve(Some(&kind.api_version), &kind.kind).await?;
    let selection = Selection {
        resource: found.resource,
        namespace: found.namespaced.then(|| kind.namespace.unwrap_or(releases)),
        labels: Some(labels),
        fields: None,
        metadata_only: !is_judged,
        is_read: false,
    };
    watches.begin(id, lens, &selection).await
}
