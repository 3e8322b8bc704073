//! Applies the conversion webhooks of charts before the releases that will own them.
//!
//! All other objects of a chart are left to its release. For an up-to-date release nothing is rendered.

use std::collections::BTreeMap;

use addon_core::failure::{Class, Failure};
use addon_core::operator::effect::Conversions;
use addon_core::release::brake::Asked;
use addon_core::release::{self, ConfigTrace, ReleaseStep};
use addon_core::values::section::Maintenance;
use disk::CONVERSION_WEBHOOK;
use helm_yaml::yaml;
use names::ModuleName;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::Sync;
use super::source::Source;
use super::wanted::vet_for_helm;
use crate::Tools;
use jobs::unless;
use objects::ensure::{Ensured, ensure_object};
use objects::key::flat;

/// The result for each release. Only a cancellation makes the whole call fail.
pub async fn ensure(
    tools: &Tools,
    of: &[Conversions],
    cancel: &CancellationToken,
) -> Result<BTreeMap<ModuleName, Result<(), Failure>>, Failure> {
    let mut outcomes = BTreeMap::new();
    for of in of {
        let module = &of.module;
        let outcome = of_module(tools, of, cancel).await;
        if let Err(failure) = &outcome
            && failure.class == Class::Cancelled
        {
            return Err(failure.clone());
        }
        let what = format!("cannot ensure the conversion webhooks of module '{module}'");
        outcomes.insert(module.clone(), outcome.map_err(|failure| failure.within(what)));
    }
    Ok(outcomes)
}

async fn of_module(
    tools: &Tools,
    Conversions {
        module,
        values,
        vetting,
    }: &Conversions,
    cancel: &CancellationToken,
) -> Result<(), Failure> {
    vet_for_helm(vetting.clone()).await?;
    let catalogue = tools.ground.catalogue.borrow().clone();
    let files = catalogue.module(module)?;
    let Some(chart) = files.chart else { return Ok(()) };
    let values = values.to_value();
    let source = Source::new(chart, &files.dir, &values);
    // The chart is only rendered: no release is marked.
    let (managed, unmarked) = (Maintenance::Managed, ConfigTrace::Nothing);
    let mut sync = Sync::begin(tools, module, source, Asked::default(), managed, unmarked, cancel).await?;
    unless(cancel, sync.observe()).await?;
    match release::decide(&sync.facts) {
        // The inputs are unchanged. Missing objects are restored by the release's own run.
        ReleaseStep::LookAtObjects
        | ReleaseStep::Keep { .. }
        | ReleaseStep::Return { .. }
        | ReleaseStep::StayBack(_) => {
            return Ok(());
        }
        // No webhooks are published for a release that is refused.
        ReleaseStep::Refuse(failure) => return Err(failure),
        ReleaseStep::Hold(held) => return Err(held.failure(module.as_str())),
        ReleaseStep::Read
        | ReleaseStep::Examine
        | ReleaseStep::LookAtBase
        | ReleaseStep::Amend
        | ReleaseStep::Render
        | ReleaseStep::Compare
        | ReleaseStep::Repair { .. }
        | ReleaseStep::Upgrade(_)
        | ReleaseStep::Record { .. }
        | ReleaseStep::LeaveAlone { .. } => {}
    }
    let manifest = sync.render().await?;
    let documents = yaml::documents_v2(&manifest).map_err(|error| {
        let report = format!("the rendered chart of module '{module}' is not YAML: {error}");
        Failure::new(Class::Invalid, report)
    })?;
    let objects = documents.into_iter().flat_map(flat);
    let acting = unless(cancel, sync.acting()).await?.cluster();
    for object in objects.filter(|object| object["kind"] == CONVERSION_WEBHOOK) {
        let ensured = unless(cancel, ensure_object(acting, &object)).await?;
        let object = object["metadata"]["name"].as_str().unwrap_or_default();
        let module = module.as_str();
        match ensured {
            Ensured::Created => info!(module, object, "conversion webhook is created"),
            Ensured::Updated => info!(module, object, "conversion webhook is brought up to date"),
            Ensured::Unchanged => {}
        }
    }
    Ok(())
}
