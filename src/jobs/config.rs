//! Writes one section of the `ConfigMap`, or says who was faster.

use addon_core::failure::Failure;
use addon_core::operator::event::Saved;

use super::Tools;

pub(super) async fn save(
    tools: &Tools,
    key: &str,
    text: String,
    base: Option<&str>,
    create: bool,
) -> Result<Saved, Failure> {
    Ok(tools
        .cluster
        .save_config(&tools.config_map, key, text, base, create)
        .await?)
}
