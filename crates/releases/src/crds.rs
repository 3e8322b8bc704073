//! Applies the CRDs of modules. A failure is reported for its module, with the file and the document; the other CRDs
//! are still applied.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use addon_core::failure::{Class, Failure};
use addon_core::operator::event::CrdObstacle;
use addon_core::operator::policy::OnTrial;
use disk::crds::{self, Crd};
use futures::future::join_all;
use names::{ModuleName, Owner};
use report::Chain;
use tracing::info;

use crate::Tools;
use crate::crd::foresight::{Brought, foresee_crd};
use crate::crd::{CrdError, await_crd, ensure_crd};
use crate::sync::foresight::{Act, Change};
use objects::ensure::Ensured;
use objects::key::key_of;

/// Applies the CRDs of all modules. Returns the modules for which this failed or was not allowed, with the reason.
pub async fn ensure(
    tools: &Tools,
    modules: &[ModuleName],
    on_trial: OnTrial,
) -> Result<BTreeMap<ModuleName, CrdObstacle>, Failure> {
    let ensured = modules
        .iter()
        .map(|module| Box::pin(of_module(tools, module, on_trial)));
    let outcomes = join_all(ensured).await.into_iter().zip(modules);
    let obstacles = outcomes.filter_map(|(outcome, module)| Some((module.clone(), outcome.err()?)));
    Ok(obstacles.collect())
}

/// A CRD, and the position in a file where it was found.
struct Found {
    place: String,
    crd: Crd,
}

async fn of_module(tools: &Tools, module: &ModuleName, on_trial: OnTrial) -> Result<(), CrdObstacle> {
    let outcome = put(tools, module, on_trial).await;
    match tools.ground.explained_to_the_end(outcome).await {
        Ok(held) if held.is_empty() => Ok(()),
        Ok(held) => Err(CrdObstacle::Held(held)),
        Err(failure) => Err(CrdObstacle::Failed(failure)),
    }
}

/// Applies the CRDs of a module. On trial, existing CRDs are not changed; returns the CRDs that need a change.
async fn put(tools: &Tools, module: &ModuleName, on_trial: OnTrial) -> Result<Vec<String>, Failure> {
    let catalogue = tools.ground.catalogue.borrow().clone();
    let files = catalogue.module(module)?;
    let (found, mut failures) = read(&files.dir, files.crds.clone()).await;
    if found.is_empty() && failures.is_empty() {
        return Ok(Vec::new());
    }
    let owner = Owner::Module(module.clone());
    let acting = tools.ground.acting(&owner, Duration::ZERO).await?;
    let labels = &tools.helm.options().labels;
    let (mut there, mut held) = (Vec::new(), Vec::new());
    let mut changed = false;
    // One after the other, because two documents may be about one CRD.
    for Found { place, crd } in found {
        let ensured = ensure_crd(acting.cluster(), &crd.name, &crd.manifest, labels, on_trial);
        match ensured.await {
            Err(CrdError::Held { name }) => held.push(named(&name)),
            Ok(ensured) => {
                tell(module, &crd.name, ensured);
                changed |= ensured != Ensured::Unchanged;
                there.push((place, crd.name));
            }
            Err(error) => failures.push(Failure::from(error).within(place)),
        }
    }
    let awaited = there.into_iter().map(async |(place, name)| {
        let established = await_crd(acting.cluster(), &name).await;
        established.map_err(|error| Failure::from(error).within(place))
    });
    failures.extend(join_all(awaited).await.into_iter().filter_map(Result::err));
    if changed {
        tools.ground.cluster.forget_apis();
    }
    match join(&failures) {
        None => Ok(held),
        Some(failure) => {
            acting.forget();
            Err(failure.within(format_args!("cannot ensure the CRDs of module '{module}'")))
        }
    }
}

/// The foreseen changes of a module's CRDs.
#[derive(Debug, Default)]
pub struct Foreseen {
    pub changes: Vec<Change>,
    /// The kinds of all CRDs, also of those that do not change.
    pub brought: Vec<Brought>,
    /// The reason for which the module would not go on.
    pub obstacle: Option<CrdObstacle>,
}

/// The changes that `ensure` would make for a module.
pub async fn foresee(tools: &Tools, module: &ModuleName, on_trial: OnTrial) -> Result<Foreseen, Failure> {
    let catalogue = tools.ground.catalogue.borrow().clone();
    let files = catalogue.module(module)?;
    let (found, mut failures) = read(&files.dir, files.crds.clone()).await;
    let mut foreseen = Foreseen::default();
    if found.is_empty() && failures.is_empty() {
        return Ok(foreseen);
    }
    let owner = Owner::Module(module.clone());
    let acting = tools.ground.acting(&owner, Duration::ZERO).await?;
    let labels = &tools.helm.options().labels;
    let mut held = Vec::new();
    for Found { place, crd } in found {
        let act = match foresee_crd(acting.cluster(), &crd.name, &crd.manifest, labels).await {
            Ok(act) => act,
            Err(failure) => {
                failures.push(failure.within(place));
                continue;
            }
        };
        match (&act, on_trial) {
            (Some(Act::Refused(failure)), _) => failures.push(failure.clone().within(place)),
            (Some(Act::Change { .. }), OnTrial::Yes) => held.push(named(&crd.name)),
            _ => foreseen.brought.extend(Brought::by(&crd.manifest)),
        }
        let change = key_of(&crd.manifest).zip(act);
        foreseen
            .changes
            .extend(change.map(|(object, act)| Change { object, act }));
    }
    foreseen.obstacle = match join(&failures) {
        Some(failure) => {
            let failure = failure.within(format_args!("cannot ensure the CRDs of module '{module}'"));
            Some(CrdObstacle::Failed(failure))
        }
        None => (!held.is_empty()).then_some(CrdObstacle::Held(held)),
    };
    Ok(foreseen)
}

fn named(crd: &str) -> String {
    format!("CRD '{crd}'")
}

/// All CRDs of valid files, and the errors of the others.
async fn read(module: &Path, files: Vec<PathBuf>) -> (Vec<Found>, Vec<Failure>) {
    let dir = module.to_owned();
    blocking::run(move || {
        let (mut found, mut failures) = (Vec::new(), Vec::new());
        for file in files {
            let shown = file.strip_prefix(&dir).unwrap_or(&file).display().to_string();
            match crds::read(&file) {
                Ok(crds) => found.extend(crds.into_iter().map(|crd| Found {
                    place: format!("{shown}, document {}", crd.document),
                    crd,
                })),
                Err(error) => failures.push(Failure::new(Class::Invalid, format!("{shown}: {}", Chain(&error)))),
            }
        }
        (found, failures)
    })
    .await
}

fn tell(module: &ModuleName, crd: &str, ensured: Ensured) {
    let module = module.as_str();
    match ensured {
        Ensured::Created => info!(module, crd, "CRD is created"),
        Ensured::Updated => info!(module, crd, "CRD is brought up to date"),
        Ensured::Unchanged => {}
    }
}

/// Several failures as one, with the class of the first.
fn join(failures: &[Failure]) -> Option<Failure> {
    let class = failures.first()?.class;
    let reports: Vec<_> = failures.iter().map(|failure| failure.report.as_str()).collect();
    let mut joined = Failure::new(class, reports.join("; "));
    for hint in failures.iter().flat_map(|failure| &failure.hints) {
        if !joined.hints.contains(hint) {
            joined = joined.hint(hint.clone());
        }
    }
    Some(joined)
}
