//! The sections that hooks save in the `ConfigMap` while their version is on trial: the earlier text of each is noted
//! in the Secret before the write, so that it can be put back if the trial fails.
//!
//! A note may be older than the last write: the core distinguishes the operator's texts from people's.

use addon_core::values::trial_sections::TrialSections;
use kube_access::Cluster;
use kube_access::error::RequestError;
use tracing::warn;

use super::writing;
use super::{Data, NAME, noted};

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

/// The notes in the Secret.
pub async fn noted_trial_sections(cluster: &Cluster) -> Result<TrialSections, RequestError> {
    Ok(read(&writing::remembered(cluster, NAME).await?))
}

/// Deletes the notes.
pub async fn forget_trial_sections(cluster: &Cluster) -> Result<(), RequestError> {
    writing::revise(cluster, NAME, |_| [(KEY.to_owned(), None)].into()).await
}

/// The notes about saved sections; none if they cannot be read.
pub(super) fn read(data: &Data) -> TrialSections {
    noted(data, KEY).unwrap_or_default()
}

fn written(sections: &TrialSections) -> Vec<u8> {
    serde_json::to_vec(sections).expect("texts by names are JSON")
}
