//! A module's chart as it would be released now, and its difference from the cluster. Must never render two charts at
//! the same time: a second request waits.

use std::fmt;
use std::pin::Pin;

use addon_core::failure::Failure;
use addon_core::operator::query::{NoSuchModule, ReleaseValuesQuery, Secrets as Wanted};
use addon_core::values::HookDocument;
use axum::http::StatusCode;
use listeners::reply::{Reply, still_starting, text};
use listeners::{Loop, Unanswered};
use masking::secret::object::masked_manifest;
use names::ModuleName;
use tokio::sync::Mutex;

use super::charts::Charts;

/// A rendering under way.
pub type Rendering = Pin<Box<dyn Future<Output = Result<String, Failure>> + Send>>;

/// The part of a chart that a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    Manifest,
    /// The manifest, even if it is not YAML.
    Debug,
    /// The manifest with the helm hooks.
    Whole,
    /// The changes to the cluster that applying the manifest would make.
    Difference,
}

/// Renders charts, one at a time.
pub struct Renderer {
    render: Box<dyn Fn(ModuleName, HookDocument, Look) -> Rendering + Send + Sync>,
    turn: Mutex<()>,
}

impl Renderer {
    /// A renderer that calls `render` for each request, one after the other.
    pub fn new(render: impl Fn(ModuleName, HookDocument, Look) -> Rendering + Send + Sync + 'static) -> Self {
        Self {
            render: Box::new(render),
            turn: Mutex::default(),
        }
    }

    pub async fn look(&self, module: ModuleName, values: HookDocument, look: Look) -> Result<String, Failure> {
        let _turn = self.turn.lock().await;
        (self.render)(module, values, look).await
    }
}

impl fmt::Debug for Renderer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renderer").finish_non_exhaustive()
    }
}

/// The chart of a module, as it would be released now.
pub async fn render(
    doors: &Loop,
    charts: Option<&Charts>,
    name: &str,
    look: Look,
    secrets: Wanted,
) -> Result<Reply, Unanswered> {
    let not_found = || text(StatusCode::INTERNAL_SERVER_ERROR, "module not found\n");
    let Ok(module) = ModuleName::parse(name) else {
        return Ok(not_found());
    };
    let values = match listeners::ask(doors, ReleaseValuesQuery(module.clone())).await? {
        Ok(values) => values,
        Err(NoSuchModule) => return Ok(not_found()),
    };
    let Some(charts) = charts else {
        return Ok(still_starting());
    };
    Ok(match charts.renderer.look(module, values, look).await {
        // A difference never contains the data of Secrets, so it needs no mask.
        Ok(rendered) if secrets == Wanted::Masked && look != Look::Difference => {
            text(StatusCode::OK, masked_manifest(&rendered))
        }
        Ok(rendered) => text(StatusCode::OK, rendered),
        Err(failure) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{failure}\n")),
    })
}
