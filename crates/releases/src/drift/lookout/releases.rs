//! The lookout's knowledge about releases: their revisions, objects and damage.
//!
//! It uses no cluster and no clock. An object that is not certainly part of the revision must never count as missing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use addon_core::digest::Digest;
use addon_core::operator::event::Drift;
use addon_core::operator::health::Seen;
use addon_core::release::records::{Tag, is_doubtful, place};
use addon_core::release::{Objects as Presence, Status, kinds};
use k8s_openapi::api::core::v1::Secret;
use kube::core::PartialObjectMeta;
use serde_json::{Map, Value, json};

use crate::outdated::Uses;
use crate::revisions::upgrades::{CONFIRMED, GOOD, HELD, RETURNED};
use crate::revisions::{INPUTS, MAINTENANCE, OBJECTS, Revision};
use objects::key::ObjectKey;

/// A kind as in a manifest, in one namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KindName {
    pub(super) api_version: String,
    pub(super) kind: String,
    /// The namespace; none for that of the releases, and for cluster-wide kinds.
    pub(super) namespace: Option<String>,
}

/// An object of a kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Named {
    /// The namespace in the manifest.
    pub(super) namespace: Option<String>,
    pub(super) name: String,
}

/// An object of a release: its kind and its name.
pub(super) type Object = (KindName, Named);

/// A release as the lookout knows it.
#[derive(Debug, Default)]
pub(super) struct Release {
    /// The revisions that are not superseded, by number. They are boxed, because a node of the map has room for eleven
    /// revisions, and there is nearly always only one.
    revisions: BTreeMap<u32, Box<Known>>,
    /// The Secrets that helm takes for records, although helm never gives its records such names.
    copies: BTreeSet<String>,
    /// The objects of each kind. Kinds and objects are sorted.
    objects: Vec<(KindName, Vec<Named>)>,
    /// The revision that `objects` belongs to.
    objects_of: Option<u32>,
    /// The digest of each object's writers at its last comparison with the manifest.
    compared: BTreeMap<Object, Digest>,
    /// The first altered field of each altered object.
    altered: BTreeMap<Object, String>,
    pub(super) told: Option<Drift>,
    /// The last told health, with its revision.
    pub(super) told_health: Option<(u32, Seen)>,
}

#[derive(Debug)]
struct Known {
    revision: Revision,
    /// Whether the release is in maintenance: then only people change it.
    is_unmanaged: bool,
}

/// The result of checking a release.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    Whole,
    Drifted(Drift),
    /// A helm process may be changing the release, for at most this time.
    Unfinished(Duration),
}

/// The part of a release Secret that is kept.
pub(super) fn essence(secret: &Value) -> Value {
    let metadata = &secret["metadata"];
    let kept = [INPUTS, OBJECTS, HELD, CONFIRMED, GOOD, RETURNED].into_iter();
    let annotations: Map<String, Value> = kept
        .filter_map(|key| Some((key.to_owned(), metadata["annotations"].get(key)?.clone())))
        .collect();
    json!({"metadata": {
        "name": metadata["name"],
        "creationTimestamp": metadata["creationTimestamp"],
        "labels": metadata["labels"],
        "annotations": annotations,
    }})
}

/// The revision that the kept part of its Secret describes, and whether the release is in maintenance.
pub(super) fn revision_of(essence: Value) -> Option<(Revision, bool)> {
    let secret: PartialObjectMeta<Secret> = serde_json::from_value(essence).ok()?;
    let labels = secret.metadata.labels.as_ref()?;
    let is_unmanaged = labels.get(MAINTENANCE).is_some_and(|state| state == "true");
    Some((Revision::read(&secret)?, is_unmanaged))
}

impl Release {
    /// Takes over the state of a revision.
    pub(super) fn see(&mut self, revision: Revision, is_unmanaged: bool) {
        let secret = &revision.tag().secret;
        if place(secret).is_none() {
            self.copies.insert(secret.clone());
            return;
        }
        let number = revision.newest.revision;
        let known = Known { revision, is_unmanaged };
        self.revisions.insert(number, Box::new(known));
        self.read_marks();
    }

    /// Forgets a revision whose Secret was deleted or superseded.
    pub(super) fn lose(&mut self, number: u32, secret: &str) {
        if self.copies.remove(secret) {
            return;
        }
        self.revisions.remove(&number);
        self.read_marks();
    }

    fn read_marks(&mut self) {
        let marked = self.deployed().and_then(|revision| {
            let keys: BTreeSet<ObjectKey> = serde_json::from_str(revision.objects.as_deref()?).ok()?;
            Some((revision.newest.revision, keys))
        });
        match marked {
            Some((number, keys)) => self.consists_of(number, keys),
            // While helm works, the objects are still those of the previous revision.
            None if self.deployed().is_some() || self.is_unfinished() => {}
            None => {
                self.objects.clear();
                self.objects_of = None;
            }
        }
    }

    /// The objects that were written since their last comparison with this revision's manifest.
    pub(super) fn suspects(
        &self,
        print: impl Fn(&KindName, &Named) -> Option<Digest>,
    ) -> Option<(&Revision, BTreeMap<Object, Digest>)> {
        let revision = self
            .watched()
            .filter(|revision| self.objects_of == Some(revision.newest.revision))?;
        let suspects = self.objects().filter_map(|(kind, object)| {
            let (id, print) = ((kind.clone(), object.clone()), print(kind, object)?);
            (self.compared.get(&id) != Some(&print)).then_some((id, print))
        });
        let suspects: BTreeMap<_, _> = suspects.collect();
        (!suspects.is_empty()).then_some((revision, suspects))
    }

    /// Takes over the comparison of an object with a revision's manifest.
    pub(super) fn compare(&mut self, number: u32, object: Object, print: Digest, field: Option<String>) {
        if self.objects_of != Some(number) {
            return;
        }
        match field {
            Some(field) => self.altered.insert(object.clone(), field),
            None => self.altered.remove(&object),
        };
        self.compared.insert(object, print);
    }

    pub(super) fn altered(&self) -> BTreeSet<ObjectKey> {
        self.altered.keys().map(key).collect()
    }

    /// Sets the objects of a revision.
    pub(super) fn consists_of(&mut self, number: u32, keys: BTreeSet<ObjectKey>) {
        if self.objects_of != Some(number) {
            self.compared.clear();
            self.altered.clear();
        }
        self.objects.clear();
        self.objects_of = Some(number);
        for key in keys {
            let ObjectKey {
                api_version,
                kind,
                namespace,
                name,
            } = key;
            let kind = KindName {
                api_version,
                kind,
                namespace: namespace.clone(),
            };
            let object = Named { namespace, name };
            // The keys are sorted by kind.
            match self.objects.last_mut() {
                Some((last, objects)) if *last == kind => objects.push(object),
                _ => self.objects.push((kind, vec![object])),
            }
        }
        self.objects.shrink_to_fit();
    }

    /// Each object, with its kind.
    fn objects(&self) -> impl Iterator<Item = (&KindName, &Named)> {
        let objects = self.objects.iter();
        objects.flat_map(|(kind, objects)| objects.iter().map(move |object| (kind, object)))
    }

    fn newest(&self) -> Option<&Known> {
        self.revisions.last_key_value().map(|(_, known)| known.as_ref())
    }

    /// The newest revision, if it is ours and deployed. It may be in maintenance.
    fn deployed(&self) -> Option<&Revision> {
        let revision = &self.newest()?.revision;
        (revision.newest.ours && revision.newest.status == Status::Deployed).then_some(revision)
    }

    /// The number of the deployed revision, and its objects, if they are known.
    pub(super) fn installed(&self) -> Option<(u32, impl Iterator<Item = (&KindName, &Named)>)> {
        let number = self.deployed()?.newest.revision;
        (self.objects_of == Some(number)).then(|| (number, self.objects()))
    }

    /// The newest revision, if its objects have to exist.
    fn watched(&self) -> Option<&Revision> {
        let Known { revision, is_unmanaged } = self.newest()?;
        let newest = &revision.newest;
        (newest.ours && !is_unmanaged && newest.status == Status::Deployed).then_some(revision)
    }

    fn is_unfinished(&self) -> bool {
        self.newest()
            .is_some_and(|known| known.revision.newest.status.is_unfinished())
    }

    /// The newest revision, if its objects are unknown; else `None`.
    pub(super) fn unmarked(&self) -> Option<&Revision> {
        self.watched()
            .filter(|revision| self.objects_of != Some(revision.newest.revision))
    }

    /// Whether the last told health of the release is good.
    pub(super) fn is_told_healthy(&self) -> bool {
        matches!(self.told_health, Some((_, Seen::Healthy)))
    }

    /// The kinds of the release's objects.
    pub(super) fn kinds(&self) -> impl Iterator<Item = &KindName> {
        self.objects.iter().map(|(kind, _)| kind)
    }

    /// Whether the release may have an object of this kind and name.
    pub(super) fn may_hold(&self, kind: &KindName, name: &str) -> bool {
        let of_kind = self.objects.iter().find(|(own, _)| own == kind);
        of_kind.is_some_and(|(_, objects)| objects.iter().any(|object| object.name == name))
    }

    pub(super) fn newest_revision(&self) -> Option<&Revision> {
        self.newest().map(|known| &known.revision)
    }

    /// Whether names and labels of the release's records show damage. Superseded records are not known here.
    pub(super) fn is_doubtful(&self) -> bool {
        let tags: Vec<Tag> = self
            .revisions
            .values()
            .map(|known| known.revision.tag().clone())
            .collect();
        let newest = self.newest_revision();
        !self.copies.is_empty() || newest.is_some_and(|newest| is_doubtful(&newest.release, &tags))
    }

    /// The damage of the release. A helm may still work on it for the time `rest`. `is_there` returns none if nothing
    /// is known about the object or its kind.
    pub(super) fn judge(
        &self,
        namespace: &str,
        rest: Duration,
        is_there: impl Fn(&KindName, &Named) -> Option<bool>,
    ) -> Judgement {
        let Some(Known { revision, is_unmanaged }) = self.newest() else {
            return Judgement::Drifted(Drift::Status(None));
        };
        let newest = &revision.newest;
        if !newest.ours || *is_unmanaged {
            return Judgement::Whole;
        }
        match newest.status {
            Status::Deployed if self.objects_of != Some(newest.revision) => Judgement::Whole,
            Status::Deployed => match (self.absent(namespace, is_there), self.altered.first_key_value()) {
                (Judgement::Whole, Some(((kind, object), field))) => Judgement::Drifted(Drift::Altered {
                    object: id(namespace, kind, object),
                    field: field.clone(),
                }),
                (judgement, _) => judgement,
            },
            status if status.is_unfinished() && !rest.is_zero() => Judgement::Unfinished(rest),
            status => Judgement::Drifted(Drift::Status(Some(status))),
        }
    }

    /// Whether the objects of the newest revision exist, as far as is certain.
    pub(super) fn presence(&self, namespace: &str, is_there: impl Fn(&KindName, &Named) -> Option<bool>) -> Presence {
        let newest = self.newest_revision().map(|revision| revision.newest.revision);
        if newest.is_none() || self.objects_of != newest {
            return Presence::Unknown;
        }
        let uncertain = self.objects().find_map(|(kind, object)| match is_there(kind, object) {
            Some(true) => None,
            Some(false) => Some(Presence::Missing(id(namespace, kind, object))),
            None => Some(Presence::Unknown),
        });
        uncertain.unwrap_or(Presence::Present)
    }

    fn absent(&self, namespace: &str, is_there: impl Fn(&KindName, &Named) -> Option<bool>) -> Judgement {
        let absent = self
            .objects()
            .find(|(kind, object)| is_there(kind, object) == Some(false));
        absent.map_or(Judgement::Whole, |(kind, object)| {
            Judgement::Drifted(Drift::Absent(id(namespace, kind, object)))
        })
    }

    /// The kinds of the release's objects; `None` if they are not watched.
    pub(super) fn uses(&self) -> Option<Uses> {
        self.watched()?;
        let mut uses = Uses::new();
        for (kind, objects) in &self.objects {
            let used = uses
                .entry(kinds::KindName::new(&kind.api_version, &kind.kind))
                .or_default();
            used.objects += objects.len();
            let example = objects.first().map(|object| key(&(kind.clone(), object.clone())));
            used.example = used.example.take().or(example);
        }
        Some(uses)
    }

    /// The objects of the release, in the form for people; `None` if they are not watched.
    pub(super) fn shown(&self, namespace: &str) -> Option<Vec<String>> {
        self.watched()?;
        let ids = self.objects().map(|(kind, object)| id(namespace, kind, object));
        let mut ids: Vec<String> = ids.collect();
        ids.sort_unstable();
        Some(ids)
    }
}

pub(super) fn key((kind, object): &Object) -> ObjectKey {
    ObjectKey {
        api_version: kind.api_version.clone(),
        kind: kind.kind.clone(),
        namespace: object.namespace.clone(),
        name: object.name.clone(),
    }
}

/// The name by which the original shows an object. Cluster-wide ones get the namespace of the releases.
fn id(namespace: &str, kind: &KindName, Named { namespace: own, name }: &Named) -> String {
    format!("{}/{}/{name}", own.as_deref().unwrap_or(namespace), kind.kind)
}

#[cfg(test)]
mod tests;
