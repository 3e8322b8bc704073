//! Writes one section of the `ConfigMap`, or reports that another writer was faster; and puts sections back that were
//! written on trial.

use addon_core::artifact::trial::record::Ruling;
use addon_core::failure::Failure;
use addon_core::operator::event::{Saved, Settled};
use addon_core::operator::policy::OnTrial;

use super::Tools;

/// On trial the note is written first: after a kill in between no section is saved that could not be put back.
pub async fn save(
    tools: &Tools,
    key: &str,
    text: String,
    base: Option<&str>,
    create: bool,
    on_trial: OnTrial,
) -> Result<Saved, Failure> {
    let cluster = &tools.cluster;
    if on_trial == OnTrial::Yes {
        cluster.note_trial_section(key, base, &text).await?;
    }
    Ok(cluster.save_config(&tools.config_map, key, text, base, create).await?)
}

/// Sections that hooks saved on trial are put back or stay, and are noted no more.
pub async fn settle(tools: &Tools, ruling: Ruling) -> Result<Settled, Failure> {
    Ok(tools.cluster.settle_trial_sections(&tools.config_map, ruling).await?)
}
