//! The modules that come from registries: the files that are in use, the modules that wait for files, and whether the
//! files have proved themselves.
//!
//! Knows no registry and no version. Must never let a module that a source names use files of a directory.

use std::collections::{BTreeMap, BTreeSet};

use channel_core::reference::Repository;
use channel_core::source::ModuleSources;
use names::ModuleName;

use super::effect::FilesVerdict;
use super::health::Health;
use crate::failure::{Class, Failure};
use crate::module::{Edition, Origin};

/// The number of failures in a row after which the last good files should return.
const MOST_FAILURES: u32 = 3;

/// The modules with sources.
#[derive(Debug, Clone, Default)]
pub(super) struct Supply {
    /// The modules that sources name, each with its repository.
    named: BTreeMap<ModuleName, Repository>,
    /// The number of the naming of each named module. A source that was taken out and named again has a higher number.
    namings: BTreeMap<ModuleName, u64>,
    last_naming: u64,
    /// The files in use that came from a source.
    files: BTreeMap<ModuleName, Files>,
    /// Modules that exist only because a source names them, and never had files.
    empty: BTreeSet<ModuleName>,
    /// Modules whose source is gone and whose directory has to be read again.
    returning: BTreeSet<ModuleName>,
    /// Modules whose source people have taken out, so that they are removed.
    withdrawn: BTreeSet<ModuleName>,
    /// Modules that a source names again, and that still have the files of their earlier source.
    outlived: BTreeSet<ModuleName>,
    has_read_copies: bool,
    /// Whether the sources cannot be read, and have never been read.
    are_unknown: bool,
}

/// Files that came from a source.
#[derive(Debug, Clone, Copy)]
struct Files {
    edition: Edition,
    trial: Trial,
}

/// Whether the files have proved themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trial {
    /// A run succeeded with them, or their failure was reported.
    Over,
    /// The files are on trial. `returns`: other files did well before, and return after too many failures, or if the module
    /// gets unhealthy. `has_run`: a run has succeeded, but the enabled script fails or the module is not healthy yet.
    Open {
        failures: u32,
        returns: bool,
        has_run: bool,
    },
}

/// How a module works with its files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Works<'a> {
    /// Whether its enabled script fails.
    pub(super) script_fails: bool,
    /// The health of its objects.
    pub(super) health: Health,
    /// The object for which the module is not healthy.
    pub(super) sentence: Option<&'a str>,
}

/// The difference that new sources make.
#[derive(Debug, Default)]
pub(super) struct Named {
    /// Modules that have a source now and had none.
    pub(super) new: Vec<(ModuleName, Option<u32>, Repository)>,
    /// Modules that had a source and have none now.
    pub(super) gone: Vec<ModuleName>,
}

impl Supply {
    /// Takes the current sources, and returns their difference from the sources before.
    pub(super) fn name(&mut self, sources: &ModuleSources) -> Named {
        let new = sources.iter().filter(|(name, _)| !self.named.contains_key(*name));
        let new = new.map(|(name, source)| (name.clone(), source.order, source.repository.clone()));
        let new = new.collect();
        let gone = self.named.keys().filter(|name| !sources.contains_key(*name));
        let gone = gone.cloned().collect();
        let named = sources
            .iter()
            .map(|(name, source)| (name.clone(), source.repository.clone()));
        self.named = named.collect();
        self.last_naming += 1;
        self.namings.retain(|name, _| sources.contains_key(name));
        for name in sources.keys() {
            self.namings.entry(name.clone()).or_insert(self.last_naming);
        }
        let again = self.withdrawn.iter().chain(&self.returning);
        let again = again.filter(|name| sources.contains_key(*name)).cloned();
        self.outlived.extend(again);
        self.withdrawn.retain(|name| !sources.contains_key(name));
        self.returning.retain(|name| !sources.contains_key(name));
        Named { new, gone }
    }

    /// Notes whether the sources are unknown. True if they were unknown before and are known now.
    pub(super) fn note_unknown(&mut self, are_unknown: bool) -> bool {
        std::mem::replace(&mut self.are_unknown, are_unknown) && !are_unknown
    }

    /// The number of the naming of a module; 0 if no source names it.
    pub(super) fn naming(&self, module: &ModuleName) -> u64 {
        self.namings.get(module).copied().unwrap_or_default()
    }

    /// Whether a source names the module.
    pub(super) fn names(&self, module: &ModuleName) -> bool {
        self.named.contains_key(module)
    }

    /// Notes that the kept copies of all modules were read.
    pub(super) fn copies_read(&mut self) {
        self.has_read_copies = true;
    }

    /// Whether the start has to wait for the kept copies.
    pub(super) fn awaits_copies(&self) -> bool {
        !self.named.is_empty() && !self.has_read_copies
    }

    /// Notes a module that exists only because a source names it.
    pub(super) fn begin_empty(&mut self, module: ModuleName) {
        self.empty.insert(module);
    }

    /// Notes that the source of the module is gone. True if the module never had files.
    pub(super) fn end(&mut self, module: &ModuleName, has_directory: bool) -> bool {
        let has_files = self.files.remove(module).is_some();
        if has_files || self.outlived.remove(module) {
            if has_directory {
                self.returning.insert(module.clone());
            } else {
                self.withdrawn.insert(module.clone());
            }
        }
        self.empty.remove(module)
    }

    /// Whether people have taken the source of this module out, so that it is to be removed.
    pub(super) fn is_withdrawn(&self, module: &ModuleName) -> bool {
        self.withdrawn.contains(module)
    }

    /// The reason for which a module has no files that it may use.
    pub(super) fn lack(&self, module: &ModuleName) -> Option<Failure> {
        if self.returning.contains(module) {
            let report = format!("module '{module}' waits for its directory to be read again: its source is gone");
            return Some(Failure::new(Class::Unavailable, report));
        }
        let repository = self.named.get(module).filter(|_| !self.files.contains_key(module))?;
        let report = format!(
            "module '{module}' waits for its files from {repository}; `addon-operator module source status {module}` tells \
             why there are none yet"
        );
        Some(Failure::new(Class::Unavailable, report))
    }

    /// The reason for which files of this origin cannot be used for the module.
    pub(super) fn obstacle(&self, module: &ModuleName, origin: Origin) -> Option<Failure> {
        match (origin, self.named.get(module)) {
            (Origin::Directory, Some(repository)) => {
                let report = format!("the files of module '{module}' come from {repository}, not from a directory");
                Some(Failure::new(Class::Invalid, report).hint("take the module out of moduleSources first"))
            }
            (Origin::Source { .. }, None) => {
                let report = format!("module '{module}' has no source any more");
                Some(Failure::new(Class::Invalid, report))
            }
            (Origin::Directory, None) | (Origin::Source { .. }, Some(_)) => None,
        }
    }

    /// Notes the files that the module uses from now on. `did_well`: its last run succeeded, or this life has seen none.
    pub(super) fn take_up(&mut self, module: &ModuleName, edition: Edition, origin: Origin, did_well: bool) {
        self.empty.remove(module);
        self.returning.remove(module);
        self.withdrawn.remove(module);
        self.outlived.remove(module);
        match origin {
            Origin::Directory => {
                self.files.remove(module);
            }
            Origin::Source { has_former } => {
                let returns = has_former && did_well;
                let trial = Trial::Open {
                    failures: 0,
                    returns,
                    has_run: false,
                };
                self.files.insert(module.clone(), Files { edition, trial });
            }
        }
    }

    /// Notes that a run of the module succeeded.
    pub(super) fn has_run(&mut self, module: &ModuleName) {
        if let Some(Files {
            trial: Trial::Open { has_run, .. },
            ..
        }) = self.files.get_mut(module)
        {
            *has_run = true;
        }
    }

    /// The modules with files on trial with which a run has succeeded.
    pub(super) fn awaiting(&self) -> impl Iterator<Item = &ModuleName> {
        let has_run = |files: &Files| matches!(files.trial, Trial::Open { has_run: true, .. });
        self.files
            .iter()
            .filter(move |(_, files)| has_run(files))
            .map(|(module, _)| module)
    }

    /// The verdict about files with which a run has succeeded, once the enabled script answers and the health of the
    /// module's objects is known.
    pub(super) fn settle(&mut self, module: &ModuleName, works: &Works<'_>) -> Option<(Edition, FilesVerdict)> {
        let files = self.files.get_mut(module)?;
        let Trial::Open {
            returns, has_run: true, ..
        } = files.trial
        else {
            return None;
        };
        let verdict = match works.health {
            _ if works.script_fails => return None,
            Health::Healthy | Health::Unknown => FilesVerdict::Good,
            Health::Unhealthy if returns => {
                let sentence = works.sentence.unwrap_or_default();
                FilesVerdict::Bad(format!("module '{module}' is not healthy: {sentence}"))
            }
            Health::RollingOut | Health::Unhealthy => return None,
        };
        files.trial = Trial::Over;
        Some((files.edition, verdict))
    }

    /// Notes that a run of the module failed. Returns the files that should be given up because of the failure.
    pub(super) fn failed(&mut self, module: &ModuleName, failure: &Failure) -> Option<(Edition, FilesVerdict)> {
        // A cluster that does not answer says nothing about the files.
        if matches!(failure.class, Class::Unavailable | Class::Held) {
            return None;
        }
        let files = self.files.get_mut(module)?;
        let Trial::Open { failures, returns, .. } = &mut files.trial else {
            return None;
        };
        *failures += 1;
        if !*returns || *failures < MOST_FAILURES {
            return None;
        }
        files.trial = Trial::Over;
        Some((files.edition, FilesVerdict::Bad(failure.report.clone())))
    }
}
