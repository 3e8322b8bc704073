//! The sections that hooks save in the `ConfigMap` while their version is on trial, noted in the Secret before each such write, and the way
//! back.
//!
//! A note that is older than the last write does no harm: the core can tell our texts from those of people. Must never
//! forget a note before its sections have been put back.

use addon_core::artifact::trial::record::Ruling;
use addon_core::artifact::trial::sections::TrialSections;
use addon_core::operator::event::Settled;
use tracing::warn;

use super::super::Cluster;
use super::super::error::RequestError;
use super::{Data, NAME, noted};

/// The key of the note. Earlier versions do not know it.
const KEY: &str = "trial-sections";
/// Its largest size: the rest of the Secret is for last good sections, and for small entries.
const ROOM: usize = 40 * 1024;

impl Cluster {
    /// Records the contents of this key of the `ConfigMap` before a hook's section is written into it. One that does
    /// not fit is left out, with a warning: it stays as the hook writes it, also if the trial fails.
    pub async fn note_trial_section(&self, key: &str, base: Option<&str>, text: &str) -> Result<(), RequestError> {
        self.revise(NAME, |data| {
            let mut sections = read(data);
            sections.note(key, base, text);
            let mut written = written(&sections);
            if written.len() > ROOM {
                warn!(
                    section = key,
                    "A section that a hook saves during a trial is too large to be recorded, it is not put back if the trial fails"
                );
                sections.leave_out(key);
                written = self::written(&sections);
            }
            [(KEY.to_owned(), Some(written))].into()
        })
        .await
    }

    /// Puts back sections that hooks saved on trial unless it was passed, and forgets them. After a kill between the
    /// two it does the first again without harm.
    pub async fn settle_trial_sections(&self, config_map: &str, ruling: Ruling) -> Result<Settled, RequestError> {
        let sections = read(&self.remembered(NAME).await?);
        let settled = match ruling {
            _ if sections.is_empty() => Settled::default(),
            Ruling::Passed => Settled::default(),
            Ruling::Failed | Ruling::Unclear | Ruling::Void => self.put_back(config_map, &sections).await?,
        };
        self.revise(NAME, |_| [(KEY.to_owned(), None)].into()).await?;
        Ok(settled)
    }
}

/// The recorded sections; none if they cannot be read.
pub(super) fn read(data: &Data) -> TrialSections {
    noted(data, KEY).unwrap_or_default()
}

fn written(sections: &TrialSections) -> Vec<u8> {
    serde_json::to_vec(sections).expect("texts by names are JSON")
}
