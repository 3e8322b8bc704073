//! Files of single modules that were read again. They wait here until the core lets them replace the old files.
//!
//! Must never replace files by itself: steps that run use the old files.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use addon_core::module::Edition;
use names::ModuleName;
use tokio::sync::watch;

use crate::catalogue::{Catalogue, ModuleFiles};

/// The files that were read again. Clones share everything.
#[derive(Debug, Clone)]
pub struct Editions {
    catalogue: watch::Sender<Arc<Catalogue>>,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Debug, Default)]
struct Waiting {
    last: u64,
    files: BTreeMap<(ModuleName, Edition), ModuleFiles>,
}

impl Editions {
    /// Editions that change this catalogue.
    pub fn new(catalogue: watch::Sender<Arc<Catalogue>>) -> Self {
        Self {
            catalogue,
            waiting: Arc::default(),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the files of a module until the core takes them up, under the number of their reading.
    pub fn keep(&self, name: &ModuleName, files: ModuleFiles) -> Edition {
        let mut waiting = self.waiting();
        waiting.last += 1;
        let edition = Edition(waiting.last);
        waiting.files.insert((name.clone(), edition), files);
        edition
    }

    /// Uses the files of this reading for all that starts from now on. Earlier readings of the module are forgotten.
    pub fn take_up(&self, name: &ModuleName, edition: Edition) {
        let mut waiting = self.waiting();
        let mut files = waiting.files.remove(&(name.clone(), edition));
        waiting
            .files
            .retain(|(other, earlier), _| other != name || *earlier > edition);
        self.catalogue.send_if_modified(|catalogue| {
            let taken = files.take();
            let is_known = taken.is_some();
            if let Some(files) = taken {
                Arc::make_mut(catalogue).take_up(name, files);
            }
            is_known
        });
    }
}

#[cfg(test)]
mod tests {
    use addon_core::module::health::HealthSettings;

    use super::*;

    fn files(dir: &str) -> ModuleFiles {
        ModuleFiles {
            dir: dir.into(),
            hooks: Vec::new(),
            enabled_script: None,
            chart: None,
            crds: Vec::new(),
            service_account: None,
            replace: Vec::new(),
            health: HealthSettings::default(),
            version: None,
            env: Vec::new(),
        }
    }

    #[test]
    fn files_count_from_the_word_of_the_core_on_and_earlier_ones_are_forgotten() {
        let name = ModuleName::parse("one").unwrap();
        let catalogue = watch::Sender::new(Arc::default());
        let editions = Editions::new(catalogue.clone());
        let dir = || catalogue.borrow().module(&name).ok().map(|files| files.dir.clone());
        let kept = ["a", "b", "c"].map(|dir| editions.keep(&name, files(dir)));
        assert_eq!(dir(), None);
        editions.take_up(&name, kept[1]);
        assert_eq!(dir(), Some("b".into()));
        editions.take_up(&name, kept[0]);
        assert_eq!(dir(), Some("b".into()));
        editions.take_up(&name, kept[2]);
        assert_eq!(dir(), Some("c".into()));
        assert!(editions.waiting().files.is_empty());
    }
}
