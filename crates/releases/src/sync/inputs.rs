//! The inputs of a release as a digest: equal digests lead to equal releases.
//!
//! An input that could change the release must never be left out.

use std::collections::BTreeMap;

use addon_core::digest::Digest;
use addon_core::failure::{Class, Failure};
use addon_core::values::section::Maintenance;
use kube_access::apis::Apis;
use report::Chain;

use super::source::Source;
use crate::Tools;
use crate::revisions;

/// The word with which a template reads the served APIs.
pub(super) const ASKING: &[&str] = &["APIVersions"];

/// The digest of all inputs of the rendering and the release.
pub(super) async fn digest(
    tools: &Tools,
    source: &Source<'_>,
    labels: &BTreeMap<String, String>,
    apis: &Apis,
) -> Result<Digest, Failure> {
    refuse_doubtful(source, &apis.doubtful).await?;
    let helm = tools.helm.identity().await?;
    let options = tools.helm.options();
    let (chart, dir) = (source.kind, source.dir.to_owned());
    let files = blocking::run(move || disk::chart_digest(&dir, chart))
        .await
        .map_err(|error| Failure::new(Class::Invalid, Chain(&error).to_string()))?;
    let mut digest = Digest::builder()
        .part(files.to_string())
        .value(source.values)
        .part(helm)
        .part(apis.digest.to_string())
        .part(&options.namespace);
    for (key, value) in labels {
        digest = digest.part(key).part(value);
    }
    Ok(digest.finish())
}

/// Refuses to render a chart that reads the served APIs while their list is incomplete, because objects that are not
/// rendered would be deleted.
pub(super) async fn refuse_doubtful(source: &Source<'_>, versions: &[String]) -> Result<(), Failure> {
    let Some(first) = versions.first() else {
        return Ok(());
    };
    if !source.mentions(ASKING).await {
        return Ok(());
    }
    let report = format!(
        "the chart asks for the versions that the API server serves, and {} is not known: the extension API server behind it does not answer",
        versions.join(", ")
    );
    Err(Failure::new(Class::Unavailable, report).hint(format!(
        "`kubectl get apiservices` shows why; repair the APIService of {first}, or delete it"
    )))
}

/// The labels of every object, including the one for maintenance.
pub(super) fn object_labels(options: &helm::Options, maintenance: Maintenance) -> BTreeMap<String, String> {
    let mut labels = options.labels.clone();
    if maintenance == Maintenance::NoResourceReconciliation {
        labels.insert(revisions::MAINTENANCE.to_owned(), String::new());
    }
    labels
}
