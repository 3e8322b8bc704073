//! Renders the chart of a case, after the check of the values that an operator makes before it calls helm.

use addon_core::failure::Failure;
use addon_core::values::Store;
use helm::labels::add_labels_noting;
use helm::{HelmError, Verbosity};
use report::Chain;
use serde_json::{Value, json};
use std::collections::BTreeMap;

use super::case::Mistake;
use super::play::{Stop, Tools};

/// The namespace of the release.
const NAMESPACE: &str = "default";

/// The rendered objects. A module without a chart is a mistake if the case expects rendered objects.
pub(super) async fn objects(
    tools: &Tools<'_>,
    store: &Store,
    enabled: &[String],
    is_expected: bool,
) -> Result<Vec<Value>, Stop> {
    let subject = tools.subject;
    let module = match subject.module("expect.rendered") {
        Ok(module) => module,
        Err(mistake) if is_expected => return Err(mistake.into()),
        Err(_) => return Ok(Vec::new()),
    };
    if let Some(vetting) = store.vetting_for_helm(&subject.owner) {
        vetting.for_helm().map_err(|error| Stop::Refusal(error.to_string()))?;
    }
    let Some(chart) = module.chart else {
        return if is_expected {
            Err(Mistake::new("expect.rendered", "the module has no chart").into())
        } else {
            Ok(Vec::new())
        };
    };
    let mut values = store.hook_values(&subject.owner).to_value();
    values["global"]["enabledModules"] = json!(enabled);
    let rendered = tools
        .offline
        .render_with(module, chart, &values, NAMESPACE, Verbosity::Plain)
        .await;
    let manifest = match rendered {
        Ok(Ok(manifest)) => manifest,
        Ok(Err(HelmError::Failed { message, .. })) => return Err(Stop::Refusal(message)),
        Ok(Err(error)) => return Err(Failure::from(error).into()),
        Err(error) => return Err(Stop::Refusal(format!("the chart cannot be prepared: {error}"))),
    };
    let mut objects = Vec::new();
    let read = add_labels_noting(&manifest, &BTreeMap::new(), &mut |object| objects.push(object.clone()));
    read.map_err(|error| Stop::Refusal(Chain(&error).to_string()))?;
    Ok(objects)
}
