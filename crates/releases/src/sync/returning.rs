//! The return from a revision whose objects do not do their work: notes it, lets helm roll back, and marks the result.
//!
//! The note is written first, so a restart goes on with the return. Must never touch data: an upgrade that changed a
//! claim or a CRD is kept.

use addon_core::failure::Failure;
use addon_core::release::IntentKind;
use addon_core::release::returned::Returned;
use tracing::{info, warn};

use super::Sync;
use super::marks::{annotation, checksum, keys_of};
use super::observed::{forget_unless_unfinished, now};
use crate::revisions::marks::Marks;
use crate::revisions::{self, returning, upgrades};
use jobs::acting::Acting;
use jobs::unless;

impl Sync<'_> {
    /// The last revision whose objects did their work, for the note on the next revision.
    pub(super) async fn good(&self) -> Option<u32> {
        let newest = self.facts.newest.as_ref().filter(|_| self.returns)?;
        let is_good = self
            .tools
            .lookout
            .is_healthy(&self.facts.release, newest.revision)
            .await;
        if is_good { Some(newest.revision) } else { newest.good }
    }

    /// Takes the upgrade back that made the newest revision, unless it changed data.
    pub(super) async fn take_back(&mut self, note: Returned, to: u32) -> Result<(), Failure> {
        let cancel = self.cancel;
        let note = unless(cancel, self.noted(note)).await?;
        if note.kept.is_none() {
            self.roll_back(&note, to).await?;
            unless(cancel, self.mark_returned(note, to)).await?;
        }
        unless(cancel, self.observe()).await
    }

    /// Writes the note, if it is not there yet.
    async fn noted(&self, mut note: Returned) -> Result<Returned, Failure> {
        let (cluster, revision) = (&self.tools.ground.cluster, self.deployed()?);
        if revision.newest.returned.is_some() {
            return Ok(note);
        }
        note.kept = returning::obstacle(cluster, revision, note.to).await?;
        upgrades::note_returned(cluster, revision, &note).await?;
        let (release, number, sentence) = (self.facts.release.as_str(), note.revision, note.sentence.as_str());
        if let Some(reason) = &note.kept {
            warn!(
                release,
                revision = number,
                reason,
                sentence,
                "the upgrade is not taken back"
            );
        } else {
            warn!(
                release,
                revision = number,
                to = note.to,
                sentence,
                "taking the upgrade back"
            );
        }
        Ok(note)
    }

    async fn roll_back(&self, note: &Returned, to: u32) -> Result<(), Failure> {
        unless(self.cancel, self.acting()).await?;
        let (tools, release) = (self.tools, self.facts.release.as_str());
        let newest = self.facts.newest.as_ref().map_or(0, |newest| newest.revision);
        let intent = self.intent(IntentKind::Return, newest, now());
        let recorded = saved_state::record_intent(&tools.ground.cluster, release, &intent).await?;
        let (kubeconfig, env) = (
            self.acting.get().and_then(Acting::kubeconfig),
            self.acting.get().map(Acting::env).unwrap_or_default(),
        );
        match tools.helm.rollback(release, to, kubeconfig, env, self.cancel).await {
            Ok(()) => {
                saved_state::note_end(&tools.ground.cluster, recorded);
                info!(
                    release,
                    revision = note.revision,
                    to = note.to,
                    "the upgrade is taken back"
                );
                Ok(())
            }
            Err(error) => {
                forget_unless_unfinished(tools, release).await;
                Err(error.into())
            }
        }
    }

    /// Marks the revision that helm's rollback made: its objects are those of the good revision, and it stands for the
    /// inputs that were tried.
    async fn mark_returned(&mut self, note: Returned, to: u32) -> Result<(), Failure> {
        self.observe().await?;
        let (cluster, revision) = (&self.tools.ground.cluster, self.deployed()?);
        let manifest = revisions::manifest(cluster, revision).await?;
        let keys = keys_of(&self.facts.release, &manifest)?;
        let marks = Marks {
            inputs: note.inputs.clone(),
            // Helm copies the checksum of the good revision.
            checksum: revision.newest.checksum.clone().unwrap_or_else(|| checksum(&manifest)),
            asked: self.facts.asked.clone(),
            objects: annotation(&keys),
            remarks: Vec::new(),
            unmanaged: self.facts.unmanaged,
            config: self.config,
            good: Some(to),
            returned: Some(note),
        };
        revisions::marks::mark(cluster, &revision.release, revision.newest.revision, &marks).await?;
        Ok(())
    }
}
