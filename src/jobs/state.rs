//! Loads and saves the operator's state. `cluster/state` describes its contents.

use std::collections::BTreeMap;

use addon_core::failure::Failure;
use addon_core::module::outline::ValuesFiles;
use addon_core::operator::event::SavedState;
use addon_core::operator::provenance::Made;
use addon_core::values::Given;
use names::HookName;

use super::Tools;
use crate::cluster::state;

pub(super) async fn load(tools: &Tools) -> Result<SavedState, Failure> {
    Ok(state::load_state(&tools.cluster).await?)
}

pub(super) async fn save(
    tools: &Tools,
    last_good: &BTreeMap<String, String>,
    made: Option<&Made>,
) -> Result<Vec<String>, Failure> {
    Ok(state::save_last_good(&tools.cluster, last_good, made).await?)
}

/// Writes the outlines of the values files.
pub async fn save_values_files(tools: &Tools, files: &ValuesFiles) -> Result<(), Failure> {
    let saved = state::save_values_files(&tools.cluster, files).await;
    tools.explained_to_the_end(saved.map_err(Failure::from)).await
}

pub(super) async fn save_given(tools: &Tools, given: BTreeMap<HookName, Given>) -> Result<(), Failure> {
    let saved = state::save_given(&tools.cluster, given).await;
    tools.explained_to_the_end(saved.map_err(Failure::from)).await
}
