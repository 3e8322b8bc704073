//! The versions that a follower has had: the record of them, the kept files, and the return to the last good version.
//!
//! A version whose files were not handed over must never count as the version in use.

use std::collections::BTreeSet;

use addon_core::failure::Failure;
use channel_core::choice::{Memory, Target};
use channel_core::reference::ImageDigest;
use report::Chain;
use tokio::time::sleep;
use tracing::warn;

use super::{Follower, PAUSE};
use crate::install::TakeError;

impl Follower {
    /// Reads the record, and hands the files of the version in use to the core if a copy of them is kept.
    pub(super) async fn begin(&mut self) {
        let record = loop {
            match self.taker.copies.record(&self.taker.module).await {
                Ok(record) => break record,
                Err(error) => {
                    warn!(module = self.name(), error = %Chain(&error), "The record of a source cannot be read, trying again");
                    self.show_trouble(&Failure::from(error).report);
                    sleep(PAUSE).await;
                }
            }
        };
        let record = record.and_then(|text| {
            let read = serde_json::from_slice(&text);
            read.inspect_err(|error| warn!(module = self.name(), %error, "The record of a source is not understood, going on without it"))
                .ok()
        });
        self.record = record.unwrap_or_default();
        self.written = Some(self.record.clone());
        if self.record.repository.as_ref() != Some(&self.source.repository) {
            self.record.memory = Memory::default();
        }
        self.following.recall(self.record.memory.clone());
        self.following.lead(true);
        if let Some(running) = self.record.running.clone()
            && !self.use_kept(&running).await
            && let Some(good) = self.record.good.clone()
            && self.use_kept(&good).await
        {
            self.record.running = Some(good);
        }
    }

    /// Hands over the kept files of a version. False if there are none.
    async fn use_kept(&mut self, target: &Target) -> bool {
        loop {
            let used = self.bring_back(target).await;
            match used {
                Ok(is_there) => return is_there,
                Err(error) if error.is_of_version() => {
                    warn!(module = self.name(), digest = target.digest.as_str(), error = %Chain(&error), "The kept files of a version cannot be used");
                    return false;
                }
                Err(error) => {
                    warn!(module = self.name(), error = %Chain(&error), "The kept files of a module cannot be read, trying again");
                    self.show_trouble(&Chain(&error).to_string());
                    sleep(PAUSE).await;
                    self.note_source();
                }
            }
        }
    }

    async fn bring_back(&mut self, target: &Target) -> Result<bool, TakeError> {
        let Some(place) = self.taker.kept(&target.digest).await? else {
            return Ok(false);
        };
        let inputs = self.taker.inputs(&self.source).await?;
        let prepared = self.taker.prepare(&inputs, place).await;
        let has_former = self.record.has_former();
        self.edition = Some(self.taker.hand_over(prepared, has_former)?);
        self.inputs = inputs;
        Ok(true)
    }

    /// Keeps the files of the version in use, and of the last good version, in Secrets.
    pub(super) async fn keep_copies(&self) {
        let versions: BTreeSet<&ImageDigest> = [&self.record.running, &self.record.good]
            .into_iter()
            .flatten()
            .map(|target| &target.digest)
            .collect();
        for digest in versions {
            if let Err(failure) = self.taker.keep(digest).await {
                warn!(
                    module = self.name(),
                    error = failure.report,
                    "The files of a module are not kept in the cluster"
                );
            }
        }
    }

    /// Drops the files of versions that are neither in use nor wanted for a return, nor by the last plan. No step may run with these
    /// files.
    pub(super) async fn drop_old(&self) {
        let (record, name, planned) = (self.record.clone(), self.taker.module.clone(), self.planned.clone());
        let is_planned = move |digest: &str| planned.as_ref().is_some_and(|planned| planned.as_str() == digest);
        let is_needed = move |module: &str, digest: Option<&str>| {
            module != name.as_str() || digest.is_none_or(|digest| record.needs(digest) || is_planned(digest))
        };
        let dropped = self.taker.copies.sweep(&is_needed).await;
        if let Err(error) = dropped {
            warn!(module = self.name(), error = %Chain(&error), "Old files of a module cannot be removed from the cluster");
        }
        let library = self.taker.library.clone();
        blocking::run(move || library.sweep(|module, digest| is_needed(module, Some(digest)))).await;
    }

    /// Gives up the bad version in use, and returns to the last good version.
    pub(super) async fn give_back(&mut self, error: String) {
        let bad = self
            .record
            .running
            .as_ref()
            .map(|running| running.digest.as_str().to_owned());
        self.record.did_badly(error.clone(), &self.source.allowed());
        self.write_record().await;
        let good = self.record.running.clone();
        let digest = good.as_ref().map(|good| good.digest.as_str());
        warn!(
            module = self.name(),
            bad,
            good = digest,
            error,
            "A version of a module fails, the last good one returns"
        );
        self.edition = None;
        if let Some(good) = good {
            self.use_kept(&good).await;
        }
    }

    /// Writes the record if it has changed. False if it could not be written.
    pub(super) async fn write_record(&mut self) -> bool {
        if self.written.as_ref() == Some(&self.record) {
            return true;
        }
        let text = serde_json::to_vec(&self.record).expect("a record is JSON");
        let written = self.taker.copies.write_record(&self.taker.module, text).await;
        match written {
            Ok(()) => {
                self.written = Some(self.record.clone());
                true
            }
            Err(error) => {
                warn!(module = self.name(), error = %Chain(&error), "The record of a source cannot be written");
                false
            }
        }
    }
}
