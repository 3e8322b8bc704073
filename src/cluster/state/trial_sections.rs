//! The sections that hooks save in the `ConfigMap` while their version is on trial: the earlier text of each is noted
//! in the Secret before the write, and put back if the trial fails.
//!
//! A note may be older than the last write: the core distinguishes the operator's texts from people's. A note must
//! never be deleted before its sections have been put back.

use addon_core::operator::event::Settled;
use addon_core::values::trial_sections::TrialSections;
use channel_core::trial::record::Ruling;
use kube_access::Cluster;
use kube_access::error::RequestError;
use tracing::warn;

use super::writing;
use super::{Data, NAME, noted};
use crate::cluster::config_map::returning;

/// The key of the notes. Earlier versions do not know it.
const KEY: &str = "trial-sections";
/// The largest size of all notes. The rest of the Secret is for last good sections and small entries.
const ROOM: usize = 40 * 1024;

/// Notes the text of this key of the `ConfigMap` before a hook's section is written. A text that does not fit is
/// left out with a warning; then the hook's section stays even if the trial fails.
pub async fn note_trial_section(
    cluster: &Cluster,
    key: &str,
    base: Option<&str>,
    text: &str,
) -> Result<(), RequestError> {
    writing::revise(cluster, NAME, |data| {
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

/// Puts back the sections that hooks saved during the trial, unless it has passed, and deletes the notes. After a
/// kill in between it does the first again without harm.
pub async fn settle_trial_sections(
    cluster: &Cluster,
    config_map: &str,
    ruling: Ruling,
) -> Result<Settled, RequestError> {
    let sections = read(&writing::remembered(cluster, NAME).await?);
    let settled = match ruling {
        _ if sections.is_empty() => Settled::default(),
        Ruling::Passed => Settled::default(),
        Ruling::Failed | Ruling::Unclear | Ruling::Void => returning::put_back(cluster, config_map, &sections).await?,
    };
    writing::revise(cluster, NAME, |_| [(KEY.to_owned(), None)].into()).await?;
    Ok(settled)
}

/// The notes about saved sections; none if they cannot be read.
pub(super) fn read(data: &Data) -> TrialSections {
    noted(data, KEY).unwrap_or_default()
}

fn written(sections: &TrialSections) -> Vec<u8> {
    serde_json::to_vec(sections).expect("texts by names are JSON")
}
