//! Reads the state of one release in the cluster: its newest revision, and the operator's intent for unfinished work.
//! Never decides what follows from it.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use addon_core::failure::Failure;
use addon_core::release::records::Records;
use addon_core::release::{Facts, Known, Notes, Objects};
use futures::future::try_join;
use kube_access::error::RequestError;
use report::Chain;
use tracing::warn;

use super::Sync;
use super::marks::keys_of;
use crate::Tools;
use crate::drift;
use crate::drift::lookout::views::Sight;
use crate::revisions::{self, Revision};
use objects::key::ObjectKey;

impl Sync<'_> {
    /// Takes the view of the watches, if no other job of this process has worked on the release; otherwise reads the
    /// release. So after a restart with nothing changed, no release has to be read.
    pub(super) async fn see(&mut self) -> Result<(), Failure> {
        let sight = if self.hold.is_first() {
            self.tools.lookout.sight(&self.facts.release).await
        } else {
            None
        };
        let Some(Sight {
            revision,
            objects,
            is_altered,
        }) = sight
        else {
            return self.observe().await;
        };
        let notes = if is_altered || self.lacks_notes(&revision) {
            Notes::Outdated
        } else {
            Notes::Current
        };
        self.facts.newest = Some(revision.newest.clone());
        (self.facts.known, self.facts.objects) = (Known::Watched(notes), objects);
        self.revision = Some(revision);
        Ok(())
    }

    /// Reads the release.
    pub(super) async fn observe(&mut self) -> Result<(), Failure> {
        self.revision = observe(self.tools, &mut self.facts).await?;
        Ok(())
    }

    pub(super) async fn look_at_objects(&mut self) -> Result<(), Failure> {
        let keys = self.objects_of_deployed().await?;
        let labels = &self.tools.helm.options().labels;
        self.facts.objects = drift::look_for(&self.tools.ground.cluster, &keys, labels, &self.apis).await?;
        self.objects = Some(keys);
        Ok(())
    }

    async fn objects_of_deployed(&self) -> Result<BTreeSet<ObjectKey>, Failure> {
        let revision = self.deployed()?;
        let marked = revision
            .objects
            .as_deref()
            .and_then(|text| serde_json::from_str(text).ok());
        match marked {
            Some(keys) => Ok(keys),
            None => keys_of(
                &self.facts.release,
                &revisions::manifest(&self.tools.ground.cluster, revision).await?,
            ),
        }
    }
}

/// Reads the newest revision, and the intent if the revision is unfinished.
pub(super) async fn observe(tools: &Tools, facts: &mut Facts) -> Result<Option<Revision>, Failure> {
    facts.tenure = tools.ground.spawner.warrant().tenure();
    // An earlier leader may still be at work, so its intent counts even before its helm has written anything.
    let may_overlap = facts.tenure.as_ref().is_some_and(|tenure| !tenure.overlap.is_zero());
    let newest = Box::pin(revisions::newest_revision(&tools.ground.cluster, &facts.release));
    let (revision, intent) = if may_overlap {
        try_join(
            newest,
            Box::pin(saved_state::intent(&tools.ground.cluster, &facts.release)),
        )
        .await?
    } else {
        (newest.await?, None)
    };
    facts.newest = revision.as_ref().map(|revision| revision.newest.clone());
    (facts.known, facts.objects) = (Known::Read, Objects::Unknown);
    (facts.base, facts.likeness) = (None, None);
    if facts.records == Records::Unread && revision.as_ref().is_some_and(|revision| revision.is_doubtful) {
        facts.records = Records::Doubtful;
    }
    facts.unchanged = tools.holds.unchanged(&facts.release, revision.as_ref());
    let unfinished = facts
        .newest
        .as_ref()
        .is_some_and(|newest| newest.status.is_unfinished());
    facts.intent = if unfinished && !may_overlap {
        Box::pin(saved_state::intent(&tools.ground.cluster, &facts.release)).await?
    } else {
        intent
    };
    Ok(revision)
}

/// Removes the intent, unless a child that was ended early has left the release unfinished: the next sync has to know
/// that this was the operator's own helm. Returns the newest revision; `None` if there is none or it cannot be read.
pub(super) async fn forget_unless_unfinished(tools: &Tools, release: &str) -> Option<u32> {
    let forgotten = async {
        let newest = revisions::newest_revision(&tools.ground.cluster, release)
            .await?
            .map(|revision| revision.newest);
        if !newest.as_ref().is_some_and(|newest| newest.status.is_unfinished()) {
            saved_state::clear_intent(&tools.ground.cluster, release).await?;
        }
        Ok::<_, RequestError>(newest.map(|newest| newest.revision))
    };
    match forgotten.await {
        Ok(newest) => newest,
        Err(error) => {
            warn!(release, error = %Chain(&error), "cannot delete the note about an ended helm process from the release");
            None
        }
    }
}

pub(super) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
