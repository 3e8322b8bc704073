//! The answer to `module apis`, in the one form that the debug socket writes and the command reads. Must never judge a
//! kind.

use addon_core::release::kinds::{KindState, KubeVersion, Outdated};
use serde::{Deserialize, Serialize};

/// The outdated kinds in releases, and the extent of the search.
#[derive(Debug, Serialize, Deserialize)]
pub struct ApisAnswer {
    /// The version of the API server.
    pub server: String,
    /// The version of Kubernetes that the kinds are judged for.
    pub target: KubeVersion,
    /// Whether the target is the running version, so that CRDs are judged, too.
    pub is_running: bool,
    /// The newest version whose announcements are known.
    pub newest_known: KubeVersion,
    /// The number of releases whose records were read.
    pub releases: usize,
    /// The number of kinds in these releases.
    pub kinds: usize,
    pub outdated: Vec<OutdatedRow>,
    pub unread: Vec<UnreadRelease>,
}

/// An outdated kind in a release.
#[derive(Debug, Serialize, Deserialize)]
pub struct OutdatedRow {
    pub module: String,
    pub release: String,
    pub revision: u32,
    pub api_version: String,
    pub kind: String,
    /// The number of the release's objects of this kind.
    pub objects: usize,
    #[serde(flatten)]
    pub outdated: Outdated,
    pub chart: ChartOfNow,
    /// The reason why the chart is unknown.
    pub chart_error: Option<String>,
}

/// Whether the module's present chart renders the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChartOfNow {
    /// A person has to change the chart.
    Renders,
    /// The next upgrade of the release brings another kind.
    Cured,
    /// There is no module with a chart for the release.
    Absent,
    /// The chart cannot be rendered.
    Unknown,
}

/// A release whose record cannot be read.
#[derive(Debug, Serialize, Deserialize)]
pub struct UnreadRelease {
    pub release: String,
    pub error: String,
}

impl ApisAnswer {
    /// Whether the records of all releases could be read, and no kind in them is gone.
    pub fn is_fit(&self) -> bool {
        self.unread.is_empty() && !self.outdated.iter().any(OutdatedRow::is_gone)
    }
}

impl OutdatedRow {
    /// Whether the kind is not served.
    pub fn is_gone(&self) -> bool {
        self.outdated.state == KindState::Gone
    }
}
