//! Modules directories that are not in use, beside those in use: which modules would come, go, or have other files.
//!
//! Must never hand anything to the core.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use addon_core::operator::query::SourcesQuery;
use disk::{Found, FoundModule, Layout, tree};
use listeners::Unanswered;
use names::ModuleName;
use report::Chain;
use serde_json::Value;
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
    /// The global values of the values files, if they differ.
    pub global_values: Option<Value>,
    /// Whether the global hooks differ; not if only modules directories were compared.
    pub has_other_global_hooks: bool,
    /// The modules from a registry that a values file of these directories switches on or off, and one of those in use does not,
    /// or the other way round.
    pub other_flags: Vec<ModuleName>,
}

/// Why there are no differences to show.
#[derive(Debug, Error)]
pub enum NoDifferences {
    /// They are the directories in use.
    #[error("these are the directories in use: a plan compares others with them, such as a checkout with the change")]
    InUse,
    /// The directories cannot be read.
    #[error("the modules directories cannot be read: {}", .0.join("; "))]
    Unreadable(Vec<String>),
    /// The loop did not answer.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
}

impl Desk {
    /// Compares these modules directories with those in use, both as they are on the disk now, and checks the files that differ. If
    /// global hooks are given, they are compared, too.
    pub async fn differences(
        &self,
        modules_dirs: Vec<PathBuf>,
        global_hooks: Option<PathBuf>,
    ) -> Result<Differences, NoDifferences> {
        let (layout, present) = (self.layout.clone(), self.layout.clone());
        let wanted = Layout { modules_dirs, ..layout };
        let read = blocking::run(move || {
            let is_other = resolved(&wanted) != resolved(&present);
            let hooks = global_hooks.is_some_and(|hooks| !has_same_files(&hooks, &present.global_hooks_dir));
            is_other.then(|| (disk::read(&wanted), disk::read(&present), hooks))
        });
        let (mut found, present, has_other_global_hooks) = read.await.ok_or(NoDifferences::InUse)?;
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
            other_flags: sources
                .into_keys()
                .filter(|name| found.flags.get(name) != present.flags.get(name))
                .collect(),
            has_other_global_hooks,
            global_values: (found.global_values != present.global_values).then(|| found.global_values.clone()),
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

/// The modules directories with links resolved, where they can be.
fn resolved(layout: &Layout) -> Vec<PathBuf> {
    let resolve = |dir: &PathBuf| fs_err::canonicalize(dir).unwrap_or_else(|_| dir.clone());
    layout.modules_dirs.iter().map(resolve).collect()
}

/// Whether two directories have the same files. A directory that is not there has none.
fn has_same_files(one: &Path, other: &Path) -> bool {
    match (one.is_dir(), other.is_dir()) {
        (true, true) => tree::is_equal(one, other).unwrap_or(false),
        (one, other) => one == other,
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
