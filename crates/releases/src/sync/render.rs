//! Renders a module's chart for a command: alone, or compared with the cluster.
//!
//! Nothing is changed, no release is held, and the data of Secrets is never shown in a difference.

mod difference;

use std::collections::BTreeSet;

use addon_core::failure::{Class, Failure};
use addon_core::values::HookDocument;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use helm::Verbosity;
use helm_yaml::yaml;
use names::ModuleName;
use tokio_util::sync::CancellationToken;

use super::source::Source;
use crate::Tools;
use crate::difference::try_to_apply;
use jobs::unless;
use objects::key::flat;

/// The number of objects that are applied in dry runs at the same time.
const AT_ONCE: usize = 5;
const NO_DIFFERENCE: &str = "No diff found";

/// The wanted output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The manifest; with invalid output of a template, if helm prints it.
    Manifest(Verbosity),
    /// The changes to the cluster that applying the manifest would make.
    Difference,
}

/// Renders the module's chart with these values. A module without a chart gives an empty text.
pub async fn render(
    tools: &Tools,
    module: &ModuleName,
    values: &HookDocument,
    wanted: Wanted,
    cancel: &CancellationToken,
) -> Result<String, Failure> {
    let catalogue = tools.ground.catalogue.borrow().clone();
    let files = catalogue.module(module)?;
    let Some(chart) = files.chart else {
        return Ok(String::new());
    };
    let apis = unless(cancel, tools.ground.cluster.apis()).await?;
    let values = values.to_value();
    let env = catalogue.env(module.as_str());
    let mut source = Source::new(chart, &files.dir, &values);
    let (dir, values) = source.ready(tools, module.as_str()).await?;
    let chart = helm::Chart {
        release: module.as_str(),
        dir,
        values,
        labels: &tools.helm.options().labels,
        // Rendering needs no cluster.
        kubeconfig: None,
        kept: &BTreeSet::new(),
        withheld: &BTreeSet::new(),
        claims: None,
        env: &env,
    };
    let verbosity = match wanted {
        Wanted::Manifest(verbosity) => verbosity,
        Wanted::Difference => Verbosity::Plain,
    };
    let names = apis.names.iter().map(String::as_str);
    let manifest = tools
        .helm
        .template(chart, &apis.version, names, verbosity, cancel)
        .await?;
    if wanted != Wanted::Difference {
        return Ok(manifest);
    }
    let documents = yaml::documents_v2(&manifest).map_err(|error| {
        let report = format!("the rendered chart of module '{module}' is not YAML: {error}");
        Failure::new(Class::Invalid, report)
    })?;
    let (cluster, apis) = (&tools.ground.cluster, &*apis);
    let tried = stream::iter(documents.into_iter().flat_map(flat))
        .map(|object| async move { Ok::<_, Failure>(try_to_apply(cluster, &object, apis).await?) })
        .buffered(AT_ONCE)
        .try_collect::<Vec<_>>();
    let tried = unless(cancel, tried).await?;
    let texts: String = tried.into_iter().flatten().map(difference::text).collect();
    Ok(if texts.is_empty() {
        NO_DIFFERENCE.to_owned()
    } else {
        texts
    })
}
