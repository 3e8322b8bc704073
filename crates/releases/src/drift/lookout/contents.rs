//! Reads the objects of a revision from its Secret, if no run of ours has recorded them.
//!
//! A read without an answer is repeated, because no other part would do it. Must never use a manifest that was not read
//! completely.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use addon_core::failure::{Class, Failure};
use helm_yaml::yaml;
use kube_access::Cluster;
use tokio::time::{Instant, sleep_until};
use tracing::warn;

use super::releases::Release;
use super::{AGAIN, Errand, Inner, Watch};
use crate::revisions::Revision;
use objects::key::{ObjectKey, keys_of};

/// A revision that has no mark after this time was made by a person, so its objects are read from its manifest.
const UNMARKED: Duration = Duration::from_secs(10);

impl Watch {
    /// Reads the objects of a revision after a delay, because the operator's own job may be about to mark it.
    pub(super) fn ask_for_objects(&mut self, name: &str, revision: &Revision, now: Instant) {
        let number = revision.newest.revision;
        if self.asked.get(name) == Some(&number) {
            return;
        }
        self.asked.insert(name.to_owned(), number);
        let (inner, revision) = (Arc::clone(&self.inner), revision.clone());
        self.errands.spawn(async move {
            sleep_until(now + UNMARKED).await;
            if !inner.still_lacks_objects(&revision) {
                return Errand::Spared(revision.release, revision.newest.revision);
            }
            let read = objects_of(&inner.cluster, &revision).await;
            Errand::Read(Box::new(revision), read)
        });
    }

    /// Ends the wait for a mark: the objects of the revision are known. If they get lost again, they can be read again.
    pub(super) fn is_spared(&mut self, release: &str, revision: u32) {
        if self.asked.get(release) == Some(&revision) {
            self.asked.remove(release);
        }
    }

    pub(super) fn has_read(&mut self, revision: Revision, read: Result<BTreeSet<ObjectKey>, Failure>) {
        let Revision { release, newest, .. } = revision;
        match read {
            Ok(keys) => {
                let mut releases = self.inner.releases();
                let known = releases.get_mut(&release);
                let still = |known: &&mut Release| known.unmarked().is_some_and(|one| one.newest == newest);
                if let Some(known) = known.filter(still) {
                    known.consists_of(newest.revision, keys);
                }
                drop(releases);
                self.inner.changed.send_replace(());
                self.dirty.insert(release);
            }
            Err(failure) => self.has_not_read(release, newest.revision, &failure),
        }
    }

    fn has_not_read(&mut self, release: String, revision: u32, failure: &Failure) {
        let is_news = self.unread.insert(release.clone(), revision) != Some(revision);
        let error = &failure.report;
        if failure.class != Class::Unavailable {
            warn!(
                release,
                revision,
                error,
                "the objects of this revision cannot be read: only the next run of the module restores a deleted object"
            );
            return;
        }
        if is_news {
            warn!(
                release,
                revision, error, "the objects of this revision cannot be read, trying again"
            );
        }
        // The contents of another revision may have been requested meanwhile.
        if self.asked.get(&release) == Some(&revision) {
            self.asked.remove(&release);
            self.again.insert(release, Instant::now() + AGAIN);
        }
    }
}

impl Inner {
    fn still_lacks_objects(&self, revision: &Revision) -> bool {
        let releases = self.releases();
        let unmarked = releases.get(&revision.release).and_then(Release::unmarked);
        unmarked.is_some_and(|one| one.newest.revision == revision.newest.revision)
    }
}

async fn objects_of(cluster: &Cluster, revision: &Revision) -> Result<BTreeSet<ObjectKey>, Failure> {
    let manifest = crate::revisions::manifest(cluster, revision).await?;
    let documents = yaml::documents_v2(&manifest)
        .map_err(|error| Failure::new(Class::Invalid, format!("its manifest is not YAML: {error}")))?;
    Ok(keys_of(&documents))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use addon_core::module::description::Restoring;
    use kube_access::kinds::Kinds;
    use kube_access::kubeconfig::Address;
    use report::secrets::Secrets;
    use serde_json::json;
    use telling::meters::Meters;
    use tempfile::TempDir;
    use tokio::sync::{mpsc, watch};

    use super::super::releases::revision_of;
    use super::super::{Lookout, Settings};
    use super::*;
    use crate::drift::Restored;
    use watches::Monitors;
    use watches::own::OwnWatches;

    /// A lookout without an API server.
    async fn without_server() -> (Watch, TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kubeconfig");
        let kubeconfig = "{apiVersion: v1, kind: Config, current-context: a, \
                          clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}], \
                          contexts: [{name: a, context: {cluster: a, user: a}}]}";
        fs_err::write(&path, kubeconfig).unwrap();
        let address = Address {
            kube_config: vec![path],
            ..Address::default()
        };
        let meters = Arc::new(Meters::new("test_"));
        let cluster = Cluster::connect(&address, "ns", None, meters).await.unwrap();
        let settings = watches::Settings {
            bound: watches::Settings::BOUND,
            patience: watches::Settings::PATIENCE,
            compile: |_| Err("no filters here".to_owned()),
        };
        let kinds = Kinds::new(cluster.clone());
        let monitors = Monitors::new(&cluster, &kinds, mpsc::channel(1).0, settings, Arc::new(|_| {}));
        let settings = Settings {
            secrets: Secrets::default(),
            labels: BTreeMap::new(),
            helm_timeout: Duration::from_mins(5),
            catalogue: watch::channel(Arc::default()).1,
            restored: Restored {
                all: Restoring::Absent,
                of_modules: BTreeMap::new(),
            },
        };
        let lookout = Lookout::new(&monitors, &cluster, settings, mpsc::channel(1).0);
        let (watches, turns) = OwnWatches::beside(&monitors);
        (Watch::new(lookout.0, watches, turns, mpsc::unbounded_channel().1), dir)
    }

    fn revision(number: u32) -> Revision {
        let essence = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {
            "name": format!("sh.helm.release.v1.one.v{number}"),
            "labels": {"owner": "helm", "name": "one", "version": number.to_string(), "status": "deployed"},
        }});
        revision_of(essence).unwrap().0
    }

    #[tokio::test]
    async fn what_is_marked_meanwhile_is_not_read() {
        let (mut watch, _dir) = without_server().await;
        let see = |watch: &Watch, revision: Revision| {
            let mut releases = watch.inner.releases();
            releases.entry("one".to_owned()).or_default().see(revision, false);
        };
        let ours = |objects: Option<&str>| {
            let mut revision = revision(1);
            (revision.newest.ours, revision.objects) = (true, objects.map(str::to_owned));
            revision
        };
        for (marks, is_read) in [(None, true), (Some("[]"), false)] {
            see(&watch, ours(None));
            // The time for a mark is over once the errand begins, which is at the first wait.
            let long_ago = Instant::now().checked_sub(UNMARKED).unwrap();
            watch.ask_for_objects("one", &ours(None), long_ago);
            see(&watch, ours(marks));
            let errand = watch.errands.join_next().await.unwrap().unwrap();
            assert_eq!(matches!(errand, Errand::Read(..)), is_read, "{marks:?}");
            watch.is_spared("one", 1);
        }
        assert!(watch.asked.is_empty());
    }

    #[tokio::test]
    async fn what_could_not_be_read_is_read_again_unless_that_is_of_no_use() {
        let (mut watch, _dir) = without_server().await;
        let failed = |class| Err(Failure::new(class, "on purpose"));
        watch.ask_for_objects("one", &revision(1), Instant::now());
        watch.has_read(revision(1), failed(Class::Unavailable));
        assert!(watch.asked.is_empty() && watch.again.contains_key("one"));
        watch.again.clear();
        watch.ask_for_objects("one", &revision(1), Instant::now());
        watch.has_read(revision(1), failed(Class::Invalid));
        assert!(watch.asked.contains_key("one") && watch.again.is_empty());
        watch.ask_for_objects("one", &revision(2), Instant::now());
        watch.has_read(revision(1), failed(Class::Unavailable));
        assert_eq!(watch.asked.get("one"), Some(&2), "another one is on its way");
    }
}
