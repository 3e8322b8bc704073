//! Writes a section of the `ConfigMap`, or reports that another writer was faster; and puts back sections after a
//! trial.

use addon_core::failure::Failure;
use addon_core::operator::event::{Saved, Settled};
use addon_core::operator::policy::OnTrial;
use channel_core::trial::record::Ruling;

use super::Tools;
use crate::cluster::config_map;
use crate::cluster::state::trial_sections;

/// Saves a section. On trial its earlier text is noted first, so that after a kill every saved section can be put back.
pub async fn save(
    tools: &Tools,
    key: &str,
    text: String,
    base: Option<&str>,
    create: bool,
    on_trial: OnTrial,
) -> Result<Saved, Failure> {
    let saved = async {
        let cluster = &tools.cluster;
        if on_trial == OnTrial::Yes {
            trial_sections::note_trial_section(cluster, key, base, &text).await?;
        }
        Ok(config_map::save_config(cluster, &tools.config_map, key, text, base, create).await?)
    };
    tools.explained_to_the_end(Box::pin(saved).await).await
}

/// Ends the notes of a trial: the sections that hooks saved are put back, or stay if it passed.
pub async fn settle(tools: &Tools, ruling: Ruling) -> Result<Settled, Failure> {
    let settled = trial_sections::settle_trial_sections(&tools.cluster, &tools.config_map, ruling).await;
    tools.explained_to_the_end(settled.map_err(Failure::from)).await
}
