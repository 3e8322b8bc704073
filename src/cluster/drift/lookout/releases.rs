//! The lookout's knowledge of releases: their revisions, their objects, and their damage.
//!
//! Knows no cluster and no clock. Must never call an object absent that a revision does not name for certain.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use addon_core::digest::Digest;
use addon_core::operator::event::Drift;
use addon_core::release::Status;
use k8s_openapi::api::core::v1::Secret;
use kube::core::PartialObjectMeta;
use serde_json::{Map, Value, json};

use super::super::ObjectKey;
use crate::cluster::releases::{INPUTS, MAINTENANCE, OBJECTS, Revision};

/// A kind as manifests name it, in one namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KindName {
    pub(super) api_version: String,
    pub(super) kind: String,
    /// Nothing for that of the releases, and for kinds that live in none.
    pub(super) namespace: Option<String>,
}

/// One of the objects of a kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Named {
    /// As the manifest has it.
    pub(super) namespace: Option<String>,
    pub(super) name: String,
}

type Objects = BTreeMap<KindName, BTreeSet<Named>>;

/// One object of a release.
pub(super) type Object = (KindName, Named);

/// One release.
#[derive(Debug, Default)]
pub(super) struct Release {
    /// The revisions of which no newer one has taken the place, by number.
    revisions: BTreeMap<u32, Known>,
    objects: Objects,
    /// The revision that consists of them.
    objects_of: Option<u32>,
    /// How those were written that were compared with the manifest.
    compared: BTreeMap<Object, Digest>,
    /// The first altered field of each of them.
    altered: BTreeMap<Object, String>,
    pub(super) told: Option<Drift>,
}

#[derive(Debug)]
struct Known {
    revision: Revision,
    /// It is in maintenance: only people change it.
    is_unmanaged: bool,
}

/// The outcome of one look at a release.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    Whole,
    Drifted(Drift),
    /// The time for which a helm may be at work on it.
    Unfinished(Duration),
}

/// The stored part of a release Secret.
pub(super) fn essence(secret: &Value) -> Value {
    let metadata = &secret["metadata"];
    let kept = [INPUTS, OBJECTS].into_iter();
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

/// The name of a release and its revision, read from that.
pub(super) fn revision_of(essence: Value) -> Option<(Revision, bool)> {
    let secret: PartialObjectMeta<Secret> = serde_json::from_value(essence).ok()?;
    let labels = secret.metadata.labels.as_ref()?;
    let is_unmanaged = labels.get(MAINTENANCE).is_some_and(|state| state == "true");
    Some((Revision::read(&secret)?, is_unmanaged))
}

impl Release {
    /// A revision is there, and looks like this.
    pub(super) fn see(&mut self, revision: Revision, is_unmanaged: bool) {
        let number = revision.newest.revision;
        let known = Known { revision, is_unmanaged };
        self.revisions.insert(number, known);
        self.read_marks();
    }

    /// A revision has gone, or a newer one took its place.
    pub(super) fn lose(&mut self, number: u32) {
        self.revisions.remove(&number);
        self.read_marks();
    }

    fn read_marks(&mut self) {
        let marked = self.watched().and_then(|revision| {
            let keys: BTreeSet<ObjectKey> = serde_json::from_str(revision.objects.as_deref()?).ok()?;
            Some((revision.newest.revision, keys))
        });
        match marked {
            Some((number, keys)) => self.consists_of(number, keys),
            // Until the running helm has ended, its objects are those of before.
            None if self.watched().is_some() || self.is_unfinished() => {}
            None => {
                self.objects.clear();
                self.objects_of = None;
            }
        }
    }

    /// The objects that were written to since they were compared with the manifest of this revision.
    pub(super) fn suspects(
        &self,
        print: impl Fn(&KindName, &Named) -> Option<Digest>,
    ) -> Option<(&Revision, BTreeMap<Object, Digest>)> {
        let revision = self
            .watched()
            .filter(|revision| self.objects_of == Some(revision.newest.revision))?;
        let objects = self.objects.iter();
        let all = objects.flat_map(|(kind, objects)| objects.iter().map(move |object| (kind, object)));
        let suspects = all.filter_map(|(kind, object)| {
            let (id, print) = ((kind.clone(), object.clone()), print(kind, object)?);
            (self.compared.get(&id) != Some(&print)).then_some((id, print))
        });
        let suspects: BTreeMap<_, _> = suspects.collect();
        (!suspects.is_empty()).then_some((revision, suspects))
    }

    /// Takes in the comparison of an object with the manifest of a revision.
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

    /// The altered objects.
    pub(super) fn altered(&self) -> BTreeSet<ObjectKey> {
        self.altered.keys().map(key).collect()
    }

    /// The objects of a revision.
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
            let of_kind = self.objects.entry(kind).or_default();
            of_kind.insert(Named { namespace, name });
        }
    }

    fn newest(&self) -> Option<&Known> {
        self.revisions.last_key_value().map(|(_, known)| known)
    }

    /// The newest revision, if its objects must exist.
    fn watched(&self) -> Option<&Revision> {
        let Known { revision, is_unmanaged } = self.newest()?;
        let newest = &revision.newest;
        (newest.ours && !is_unmanaged && newest.status == Status::Deployed).then_some(revision)
    }

    fn is_unfinished(&self) -> bool {
        self.newest()
            .is_some_and(|known| known.revision.newest.status.is_unfinished())
    }

    /// The newest revision, if its objects are unknown.
    pub(super) fn unmarked(&self) -> Option<&Revision> {
        self.watched()
            .filter(|revision| self.objects_of != Some(revision.newest.revision))
    }

    /// The kinds of its objects.
    pub(super) fn kinds(&self) -> impl Iterator<Item = &KindName> {
        self.objects.keys()
    }

    /// One of its objects may be meant by these words.
    pub(super) fn may_hold(&self, kind: &KindName, name: &str) -> bool {
        let of_kind = self.objects.get(kind);
        of_kind.is_some_and(|objects| objects.iter().any(|object| object.name == name))
    }

    /// The newest revision.
    pub(super) fn newest_revision(&self) -> Option<&Revision> {
        self.newest().map(|known| &known.revision)
    }

    /// The damage of it; a helm may work on it for the rest of its time. `is_there` knows of an object, or of its kind,
    /// nothing yet.
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

    fn absent(&self, namespace: &str, is_there: impl Fn(&KindName, &Named) -> Option<bool>) -> Judgement {
        let objects = self.objects.iter();
        let mut all = objects.flat_map(|(kind, objects)| objects.iter().map(move |object| (kind, object)));
        let absent = all.find(|(kind, object)| is_there(kind, object) == Some(false));
        absent.map_or(Judgement::Whole, |(kind, object)| {
            Judgement::Drifted(Drift::Absent(id(namespace, kind, object)))
        })
    }

    /// Its objects in a form for people, `None` if it is not watched.
    pub(super) fn shown(&self, namespace: &str) -> Option<Vec<String>> {
        self.watched()?;
        let objects = self.objects.iter();
        let ids = objects.flat_map(|(kind, objects)| objects.iter().map(move |object| id(namespace, kind, object)));
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

/// The name that the original gives to an object, also to one that lives in no namespace.
fn id(namespace: &str, kind: &KindName, Named { namespace: own, name }: &Named) -> String {
    format!("{}/{}/{name}", own.as_deref().unwrap_or(namespace), kind.kind)
}

#[cfg(test)]
mod tests;
