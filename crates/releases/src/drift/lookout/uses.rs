//! The kinds of the objects that the lookout watches, and the news that they may have changed. It makes no request.

use std::collections::BTreeMap;

use tokio::sync::watch;

use super::Lookout;
use crate::outdated::Uses;

impl Lookout {
    /// The kinds of each watched release, by name. Helm hooks are not watched.
    pub fn uses(&self) -> BTreeMap<String, Uses> {
        let releases = self.0.releases();
        let used = releases
            .iter()
            .filter_map(|(name, release)| Some((name.clone(), release.uses()?)));
        used.collect()
    }

    /// Tells when [`Lookout::uses`] may have changed.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.0.changed.subscribe()
    }
}
