//! The source of charts and releases, for answers.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use addon_core::operator::query::ModuleReport;
use futures::future::{join, join_all};
use kube_access::Cluster;
use tokio::time::timeout;

use super::render::Renderer;
use crate::revisions::before::{self, Amendment};
use crate::revisions::{deployed_releases, hook_run};

/// The timeout of reading releases; without an answer the rest is shown anyway.
const PATIENCE: Duration = Duration::from_secs(2);

/// The source of charts and releases.
#[derive(Debug)]
pub struct Charts {
    /// Renders charts.
    pub renderer: Renderer,
    /// Reads releases.
    pub cluster: Cluster,
    /// Knows the versions of charts.
    pub versions: Versions,
    /// The time that helm gives each of its hooks.
    pub helm_timeout: Duration,
}

/// Looks up the version of a module's chart.
type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Knows the version of a module's chart.
pub struct Versions(Box<Lookup>);

impl Versions {
    /// Versions that `of` looks up by the module's name.
    pub fn new(of: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Box::new(of))
    }

    /// The version of this module's chart.
    pub fn of(&self, module: &str) -> Option<String> {
        (self.0)(module)
    }
}

impl fmt::Debug for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Versions").finish_non_exhaustive()
    }
}

/// The newest deployed revision of each release, and the records that were rewritten, by release.
pub type Recorded = (BTreeMap<String, (u32, u64)>, BTreeMap<String, Vec<Amendment>>);

impl Charts {
    /// Reads the records of releases. A record that is not read in time is left out.
    pub async fn recorded(&self) -> Recorded {
        let both = join(deployed_releases(&self.cluster), before::amendments(&self.cluster));
        let Ok((releases, amendments)) = timeout(PATIENCE, both).await else {
            return Recorded::default();
        };
        (releases.unwrap_or_default(), amendments.unwrap_or_default())
    }

    /// Names the helm hooks that modules wait for. A helm call is one step of a module, and its hooks may take all of the
    /// time.
    pub async fn tell_hooks(&self, reports: &mut [ModuleReport]) {
        let waiting = reports.iter_mut().filter(|report| report.state == "Releasing");
        let told = waiting.map(async |report| {
            let run = hook_run::running_hook(&self.cluster, &report.name, self.helm_timeout).await;
            if let Ok(Some(run)) = run {
                report.waits_for = run.to_string();
            }
        });
        // Without an answer in time, the report names only the step.
        let _ = timeout(PATIENCE, join_all(told)).await;
    }
}
