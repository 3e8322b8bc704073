//! A version on its way into use: fetched, checked, noted in the cluster, and handed to the core.
//!
//! Must never hand over a version that is not on record: a process that starts after a kill has to know the version.

use std::time::Duration;

use channel_core::choice::Target;
use report::Chain;
use tokio::time::Instant;
use tracing::{info, warn};

use super::{Follower, PAUSE};
use crate::install::TakeError;

/// The interval of looks at the inputs of the files in use.
const LOOKS: Duration = Duration::from_secs(15);
/// The pause before a version whose files cannot be used is checked again: its values may have changed meanwhile.
const AGAIN: Duration = Duration::from_mins(5);

impl Follower {
    /// Takes a version: fetches and checks its files, notes it in the cluster, and hands the files over.
    pub(super) async fn take(&mut self, target: Target) {
        let is_refused = |unfit: &(Target, String, Instant)| unfit.0 == target && Instant::now() < unfit.2;
        if self.unfit.as_ref().is_some_and(is_refused) {
            return;
        }
        match self.try_to_take(&target).await {
            Ok(()) => {
                self.unfit = None;
                info!(
                    module = self.name(),
                    digest = target.digest.as_str(),
                    "A version of a module is taken up"
                );
                self.keep_copies().await;
            }
            Err(error) => {
                let text = Chain(&error).to_string();
                let is_news = self.unfit.as_ref().is_none_or(|unfit| unfit.1 != text);
                if is_news {
                    warn!(
                        module = self.name(),
                        digest = target.digest.as_str(),
                        error = text,
                        "A version of a module cannot be used"
                    );
                }
                let pause = if error.is_of_version() { AGAIN } else { PAUSE };
                self.unfit = Some((target, text, Instant::now() + pause));
            }
        }
    }

    async fn try_to_take(&mut self, target: &Target) -> Result<(), TakeError> {
        let inquiry = self.inquiry().map_err(|trouble| TakeError::Registry(trouble.text))?;
        let place = self.taker.fetch(&inquiry, &target.digest).await?;
        let inputs = self.taker.inputs(&self.source).await?;
        let checked = self.taker.check(&inputs, place).await?;
        let before = self.record.clone();
        self.record.repository = Some(self.source.repository.clone());
        self.record.take(target.clone());
        // A process that starts after a kill has to know the version before the module runs with it.
        if !self.write_record().await {
            self.record = before;
            return Err(TakeError::NotWritten);
        }
        let has_former = self.record.has_former();
        self.edition = Some(self.taker.hand_over(checked, has_former)?);
        self.inputs = inputs;
        Ok(())
    }

    /// Reads the files of the version in use again if order, variables or values of the source have changed.
    pub(super) async fn look_at_inputs(&mut self) {
        if self.looked.elapsed() < LOOKS || self.edition.is_none() {
            return;
        }
        self.looked = Instant::now();
        match self.read_again().await {
            Ok(()) => self.unread = None,
            Err(error) => {
                let text = Chain(&error).to_string();
                if self.unread.as_ref() != Some(&text) {
                    warn!(
                        module = self.name(),
                        error = text,
                        "The values of a source cannot be used, those of before stay"
                    );
                }
                self.unread = Some(text);
            }
        }
    }

    async fn read_again(&mut self) -> Result<(), TakeError> {
        let Some(running) = self.record.running.clone() else {
            return Ok(());
        };
        let inputs = self.taker.inputs(&self.source).await?;
        if inputs == self.inputs {
            return Ok(());
        }
        let Some(place) = self.taker.kept(&running.digest).await? else {
            return Ok(());
        };
        let checked = self.taker.check(&inputs, place).await?;
        self.edition = Some(self.taker.hand_over(checked, false)?);
        self.inputs = inputs;
        info!(
            module = self.name(),
            "A module is read again with other values of its source"
        );
        Ok(())
    }
}
