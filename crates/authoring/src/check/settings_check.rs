//! `config check`: asks the executables of modules that check settings.
//!
//! Must never call a section wrong because an executable gave no answer: that is a warning.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use addon_core::values::Store;
use addon_core::values::section::ConfigDocument;
use blocking::threads;
use child::Spawner;
use disk::{Found, FoundModule, HookFile};
use names::Owner;
use report::Chain;
use serde_json::Value;
use settings::{Environment, TmpFiles};
use tokio_util::sync::CancellationToken;

use super::super::findings::Finding;
use super::super::offline::Offline;

use hooks::config::Said;
use hooks::settings_check::{Examiner, Opinion};
use jobs::tmp::TmpDir;

/// The opinions of all executables on the sections, as findings about the file, each with the key that it is about.
pub(super) fn opinions(
    path: &Path,
    data: &BTreeMap<String, String>,
    found: &Found,
    store: &Store,
    environment: &Environment,
) -> Vec<(String, Finding)> {
    match asked(path, data, found, store, environment) {
        Ok(findings) => findings,
        Err(error) => {
            let finding = Finding::warning(
                path,
                format!("settings were not checked by executables: {}", Chain(&error)),
            );
            vec![(String::new(), finding)]
        }
    }
}

fn asked(
    path: &Path,
    data: &BTreeMap<String, String>,
    found: &Found,
    store: &Store,
    environment: &Environment,
) -> io::Result<Vec<(String, Finding)>> {
    let document = ConfigDocument::parse(data);
    let sections = found.modules.iter().filter_map(|module| {
        let section = document.sections.get(&module.name)?.values.good()?;
        let owner = Owner::Module(module.name.clone());
        let candidates: Vec<&HookFile> = module.hooks.iter().filter(|file| may_check(&file.path)).collect();
        let settings = store.with_defaults(&owner, section);
        (!candidates.is_empty()).then_some((module, owner, candidates, settings))
    });
    let sections: Vec<_> = sections.collect();
    if sections.is_empty() {
        return Ok(Vec::new());
    }
    let tmp = tempfile::tempdir()?;
    let files = Arc::new(TmpDir::prepare(&tmp.path().join("settings"), TmpFiles::Removed)?);
    let (runtime, spawner) = (
        threads::runtime().map_err(io::Error::other)?,
        Spawner::new().map_err(io::Error::other)?,
    );
    let offline = Offline {
        found,
        environment,
        spawner: spawner.clone(),
        tmp: tmp.path(),
    };
    let environment = environment.inherited();
    let examiner = Examiner {
        spawner: &spawner,
        tmp: &files,
        environment: &environment,
    };
    let mut findings = Vec::new();
    for (module, owner, candidates, settings) in sections {
        let key = owner.values_key();
        let told = runtime.block_on(of_module(&offline, &examiner, module, &owner, &candidates, &settings));
        findings.extend(told.into_iter().map(|(is_refusal, text)| {
            let text = format!("key '{key}' of {owner}: {text}");
            let finding = if is_refusal {
                Finding::error(path, text)
            } else {
                Finding::warning(path, text)
            };
            (key.clone(), finding)
        }));
    }
    Ok(findings)
}

/// Whether an executable may have several hooks, and so a check of settings.
fn may_check(path: &Path) -> bool {
    path.extension().is_none()
}

/// The refusals and warnings of a module's executables. The flag says whether a text is a refusal.
async fn of_module(
    offline: &Offline<'_>,
    examiner: &Examiner<'_>,
    module: &FoundModule,
    owner: &Owner,
    candidates: &[&HookFile],
    settings: &Value,
) -> Vec<(bool, String)> {
    let mut told = Vec::new();
    for program in checking(offline, module, owner, candidates).await {
        match examiner.ask(owner, &program, settings, &CancellationToken::new()).await {
            Ok(Opinion { refusal, warnings }) => {
                told.extend(refusal.map(|refusal| (true, refusal)));
                told.extend(warnings.into_iter().map(|warning| (false, warning)));
            }
            Err(failure) => told.push((false, failure.report)),
        }
    }
    told
}

/// The executables that check settings. Other mistakes of hooks are told by `module lint`.
async fn checking(
    offline: &Offline<'_>,
    module: &FoundModule,
    owner: &Owner,
    candidates: &[&HookFile],
) -> Vec<PathBuf> {
    let mut programs = Vec::new();
    for file in candidates {
        if let Ok(Said::Several(listed)) = offline.ask(owner, Some(&module.path), file).await
            && listed.checks_settings
        {
            programs.push(file.path.clone());
        }
    }
    programs
}
