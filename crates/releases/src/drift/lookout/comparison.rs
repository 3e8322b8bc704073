//! Compares objects with the manifest of their release, if a setting asks for it. Each object is compared again after a
//! write to it.
//!
//! A writer that changes the same field again and again has a reason. After a few restores the field is left to it,
//! with a warning that names the writer. So the operator and another writer never fight for ever, whatever the other
//! one's name is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, MutexGuard, PoisonError};

use addon_core::digest::Digest;
use addon_core::failure::{Class, Failure};
use addon_core::module::description::Restoring;
use helm_yaml::yaml;
use kube_access::Cluster;
use serde_json::Value;
use tokio::time::Instant;
use tracing::{debug, warn};

use super::super::alteration::Alteration;
use super::super::restore::PutRight;
use super::releases::{Object, Release, key};
use super::{AGAIN, Errand, Inner, Lookout, Watch};
use crate::drift::restore;
use crate::revisions::Revision;
use objects::key::{ObjectKey, flat, key_of};

/// The number of times that a field is restored before the value of the other writer is left in place.
const PATIENCE: u32 = 3;

/// The restores of each field: by release, object and field.
pub(super) type Quarrels = BTreeMap<(String, ObjectKey, String), Quarrel>;

/// The restores of one field.
#[derive(Debug, Default)]
pub(super) struct Quarrel {
    times: u32,
    /// The field manager of the last other value; empty if it is not known.
    by: String,
}

impl Quarrel {
    fn is_lost(&self) -> bool {
        self.times >= PATIENCE
    }
}

/// The compared objects of a release, each with the digest of its writers and its first altered field.
pub(super) struct Comparison {
    release: String,
    revision: u32,
    found: Result<BTreeMap<Object, (Digest, Option<String>)>, Failure>,
}

impl Lookout {
    /// The altered objects of a release.
    pub fn altered(&self, release: &str) -> BTreeSet<ObjectKey> {
        let releases = self.0.releases();
        releases.get(release).map(Release::altered).unwrap_or_default()
    }

    /// Whether a field is left to the writer that changes it again and again.
    pub fn leaves(&self, release: &str, object: &ObjectKey, alteration: &Alteration) -> bool {
        self.0.leaves(release, object, alteration)
    }

    /// The fields of a release that are left to other writers, each in a sentence that begins with the object.
    pub fn left(&self, release: &str) -> Vec<String> {
        let lost: Vec<(ObjectKey, String, String)> = {
            let quarrels = self.0.quarrels();
            let lost = quarrels
                .iter()
                .filter(|((of, _, _), quarrel)| of == release && quarrel.is_lost());
            lost.map(|((_, object, field), quarrel)| (object.clone(), field.clone(), quarrel.by.clone()))
                .collect()
        };
        // Titles need the lock of the releases, and other parts take that one first.
        let told = lost.into_iter().map(|(object, field, by)| {
            let of = self.0.titled(&object);
            let by = if by.is_empty() { "another writer" } else { &by };
            format!("{of}: {field} is left to {by}, until the operator starts again")
        });
        told.collect()
    }

    /// Records a restore. A field that the restore could not change is never tried again.
    pub fn was_put_right(&self, release: &str, object: &ObjectKey, PutRight { tried, left }: &PutRight) {
        let mut quarrels = self.0.quarrels();
        for alteration in tried {
            let field = alteration.field();
            let is_lost = left.iter().any(|left| left.field() == field);
            let quarrel = quarrels
                .entry((release.to_owned(), object.clone(), field.clone()))
                .or_default();
            quarrel.times = if is_lost { PATIENCE } else { quarrel.times + 1 };
            quarrel.by = alteration.by.clone().unwrap_or_default();
            if quarrel.is_lost() {
                let by = &quarrel.by;
                warn!(
                    release,
                    %object,
                    field,
                    by,
                    "Another writer alters a field of the release again and again, the field is not restored until the operator starts again"
                );
            }
        }
    }
}

impl Inner {
    fn quarrels(&self) -> MutexGuard<'_, Quarrels> {
        self.quarrels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leaves(&self, release: &str, object: &ObjectKey, alteration: &Alteration) -> bool {
        let id = (release.to_owned(), object.clone(), alteration.field());
        self.quarrels().get(&id).is_some_and(Quarrel::is_lost)
    }
}

impl Watch {
    /// Begins to compare the objects that were written, unless a comparison runs.
    pub(super) fn compare(&mut self, name: &str, release: &Release) {
        if self.inner.settings.restored.of(name) != Restoring::Changed || self.comparing.contains(name) {
            return;
        }
        let Some((revision, suspects)) = release.suspects(|kind, object| self.posts.print(kind, object)) else {
            return;
        };
        self.comparing.insert(name.to_owned());
        let (inner, revision) = (Arc::clone(&self.inner), revision.clone());
        self.errands.spawn(async move {
            let number = revision.newest.revision;
            let release = revision.release.clone();
            let found = compared(&inner, &revision, suspects).await;
            Errand::Compared(Comparison {
                release,
                revision: number,
                found,
            })
        });
    }

    pub(super) fn has_compared(&mut self, comparison: Comparison) {
        let Comparison {
            release: name,
            revision,
            found,
        } = comparison;
        self.comparing.remove(&name);
        match found {
            Ok(found) => {
                let mut releases = self.inner.releases();
                if let Some(release) = releases.get_mut(&name) {
                    for (object, (print, field)) in found {
                        release.compare(revision, object, print, field);
                    }
                }
                drop(releases);
                self.dirty.insert(name);
            }
            Err(failure) => {
                debug!(release = name, error = failure.report, "objects cannot be compared now");
                self.again.insert(name, Instant::now() + AGAIN);
            }
        }
    }
}

async fn compared(
    inner: &Inner,
    revision: &Revision,
    suspects: BTreeMap<Object, Digest>,
) -> Result<BTreeMap<Object, (Digest, Option<String>)>, Failure> {
    let manifests = manifests(&inner.cluster, revision).await?;
    let apis = inner.cluster.apis().await?;
    let mut found = BTreeMap::new();
    for (object, print) in suspects {
        let id = key(&object);
        let altered = match manifests.get(&id) {
            Some(manifest) => restore::alterations(&inner.cluster, manifest, &apis).await?,
            None => Vec::new(),
        };
        let mut counting = altered
            .iter()
            .filter(|alteration| !inner.leaves(&revision.release, &id, alteration));
        let field = counting.next().map(Alteration::field);
        found.insert(object, (print, field));
    }
    Ok(found)
}

/// The objects of a revision in the form in which helm applied them.
pub async fn manifests(cluster: &Cluster, revision: &Revision) -> Result<BTreeMap<ObjectKey, Value>, Failure> {
    let manifest = crate::revisions::manifest(cluster, revision).await?;
    let documents = yaml::documents_v2(&manifest)
        .map_err(|error| Failure::new(Class::Invalid, format!("its manifest is not YAML: {error}")))?;
    let objects = documents.into_iter().flat_map(flat);
    Ok(objects.filter_map(|object| Some((key_of(&object)?, object))).collect())
}
