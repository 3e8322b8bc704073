//! Modules directories that are not in use, beside those in use: which modules would come, go, or have other files.
//!
//! Must never hand anything to the core.

use std::collections::BTreeMap;
use std::path::PathBuf;

use addon_core::operator::query::SourcesQuery;
use disk::{Found, FoundModule, Layout, tree};
use listeners::Unanswered;
use names::ModuleName;
use report::Chain;
use thiserror::Error;

use crate::{Desk, Prepared, Unfit};

/// The differences of modules directories from those in use.
#[derive(Debug, Default)]
pub struct Differences {
    /// The modules that are new or have other files, in the order in which they run.
    pub modules: Vec<Prepared>,
    /// The modules that are no more.
    pub gone: Vec<ModuleName>,
    /// The modules whose other files cannot be used.
    pub unfit: BTreeMap<ModuleName, Unfit>,
    /// Whether the global values in the values files differ.
    pub has_other_globals: bool,
}

/// Why there are no differences to show.
#[derive(Debug, Error)]
pub enum NoDifferences {
    /// The directories cannot be read.
    #[error("the modules directories cannot be read: {}", .0.join("; "))]
    Unreadable(Vec<String>),
    /// The loop did not answer.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
}

impl Desk {
    /// Compares these modules directories with those in use, and checks the files that differ.
    pub async fn differences(&self, modules_dirs: Vec<PathBuf>) -> Result<Differences, NoDifferences> {
        let (layout, present) = (self.layout.clone(), self.layout.clone());
        let wanted = Layout { modules_dirs, ..layout };
        let (mut found, present) = blocking::run(move || (disk::read(&wanted), disk::read(&present))).await;
        if !found.is_complete() {
            let problems = found.problems.iter().map(|problem| Chain(problem).to_string());
            return Err(NoDifferences::Unreadable(problems.collect()));
        }
        let sources = listeners::ask(&self.doors, SourcesQuery).await?.unwrap_or_default();
        // The directory of a module that comes from a registry does not count.
        found.modules.retain(|module| !sources.contains_key(&module.name));
        let gone = present.modules.iter().map(|module| &module.name);
        let gone = gone.filter(|name| !sources.contains_key(*name));
        let gone = gone.filter(|name| found.modules.iter().all(|module| module.name != **name));
        let mut differences = Differences {
            gone: gone.cloned().collect(),
            has_other_globals: found.global_values != present.global_values,
            ..Differences::default()
        };
        let modules = std::mem::take(&mut found.modules);
        let (others, found) = blocking::run(move || (others(modules, &found, &present), found)).await;
        for module in others {
            let name = module.name.clone();
            match self.checked(&found, module).await? {
                Ok(prepared) => differences.modules.push(prepared),
                Err(unfit) => drop(differences.unfit.insert(name, unfit)),
            }
        }
        Ok(differences)
    }
}

/// The modules that differ from those in use. A file that cannot be compared counts as another.
fn others(mut modules: Vec<FoundModule>, found: &Found, present: &Found) -> Vec<FoundModule> {
    modules.retain(|module| {
        let known = present.modules.iter().find(|known| known.name == module.name);
        let flag = |of: &Found| of.flags.get(&module.name).copied();
        known.is_none_or(|known| {
            (known.order, &known.values, flag(present)) != (module.order, &module.values, flag(found))
                || !tree::is_equal(&known.path, &module.path).unwrap_or(false)
        })
    });
    modules
}
