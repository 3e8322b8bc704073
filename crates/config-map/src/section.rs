//! Writes a section of the `ConfigMap`, or reports that another writer was faster; and puts back sections after a
//! trial. The notes of a trial must never be deleted before its sections have been put back.

use addon_core::failure::Failure;
use addon_core::operator::event::{Saved, Settled};
use addon_core::operator::policy::OnTrial;
use channel_core::trial::record::Ruling;
use jobs::Ground;
use kube_access::error::RequestError;
use saved_state::trial_sections::{forget_trial_sections, note_trial_section, noted_trial_sections};

use crate::{rollback, save_config};

/// A section as it is to be.
#[derive(Debug)]
pub struct Section<'a> {
    /// Its key.
    pub key: &'a str,
    /// Its text.
    pub text: String,
    /// The text that the writer knows; none for an absent key.
    pub base: Option<&'a str>,
    /// Whether a missing `ConfigMap` is created.
    pub create: bool,
}

/// Saves a section. On trial its earlier text is noted first, so that after a kill every saved section can be put back.
pub async fn save(
    ground: &Ground,
    config_map: &str,
    section: Section<'_>,
    on_trial: OnTrial,
) -> Result<Saved, Failure> {
    let Section {
        key,
        text,
        base,
        create,
    } = section;
    let saved = async {
        let cluster = &ground.cluster;
        if on_trial == OnTrial::Yes {
            note_trial_section(cluster, key, base, &text).await?;
        }
        Ok(save_config(cluster, config_map, key, text, base, create).await?)
    };
    ground.explained_to_the_end(Box::pin(saved).await).await
}

/// Ends the notes of a trial: the sections that hooks saved are put back, or stay if it passed.
pub async fn settle(ground: &Ground, config_map: &str, ruling: Ruling) -> Result<Settled, Failure> {
    let settled = settle_noted(ground, config_map, ruling).await;
    ground.explained_to_the_end(settled.map_err(Failure::from)).await
}

/// Puts back the noted sections, unless the trial has passed, and then deletes the notes. If the operator is killed in
/// between, the next call puts the sections back again, which does no harm.
async fn settle_noted(ground: &Ground, config_map: &str, ruling: Ruling) -> Result<Settled, RequestError> {
    let cluster = &ground.cluster;
    let sections = noted_trial_sections(cluster).await?;
    let settled = match ruling {
        _ if sections.is_empty() => Settled::default(),
        Ruling::Passed => Settled::default(),
        Ruling::Failed | Ruling::Unclear | Ruling::Void => rollback::put_back(cluster, config_map, &sections).await?,
    };
    forget_trial_sections(cluster).await?;
    Ok(settled)
}
