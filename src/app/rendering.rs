//! Renders the charts that the debug socket shows, with the tools of the jobs.

use std::sync::{Arc, OnceLock};

use helm::Verbosity;
use releases::answers::charts::{Charts, Versions};
use releases::answers::render::{Look, Renderer};
use releases::sync::render::{self, Wanted};
use tokio_util::sync::CancellationToken;

use crate::dispatch::Tools;

/// Makes rendering available on the debug socket.
pub(super) fn offer(place: &OnceLock<Charts>, tools: &Arc<Tools>, stopping: &CancellationToken) {
    place.get_or_init(|| Charts {
        renderer: renderer(tools, stopping),
        cluster: tools.ground.cluster.clone(),
        versions: versions(tools),
        helm_timeout: tools
            .releases
            .as_ref()
            .map(|releases| releases.helm.options().timeout)
            .unwrap_or_default(),
    });
}

/// The versions of the charts, from the files that their modules use at present.
fn versions(tools: &Arc<Tools>) -> Versions {
    let tools = Arc::clone(tools);
    Versions::new(move |module| tools.ground.catalogue.borrow().module_named(module)?.version.clone())
}

/// A renderer. During a stop a waiting client gets an error.
fn renderer(tools: &Arc<Tools>, stopping: &CancellationToken) -> Renderer {
    let (tools, stopping) = (Arc::clone(tools), stopping.clone());
    Renderer::new(move |module, values, look| {
        let (tools, cancel) = (Arc::clone(&tools), stopping.child_token());
        let wanted = match look {
            Look::Manifest => Wanted::Manifest(Verbosity::Plain),
            Look::Debug => Wanted::Manifest(Verbosity::Debug),
            Look::Whole => Wanted::Manifest(Verbosity::Whole),
            Look::Difference => Wanted::Difference,
        };
        Box::pin(async move { render::render(tools.releases()?, &module, &values, wanted, &cancel).await })
    })
}
