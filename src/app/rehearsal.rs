//! The rehearsal of a start: the plan of an operator that does not run yet.
//!
//! It reads the disk and the cluster as a start does. Must never take part in an election, open a port, or change anything; nor leave
//! files or processes behind.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use addon_core::module::Edition;
use addon_core::operator::Operator;
use addon_core::operator::edit::Edited;
use addon_core::operator::policy::{Leadership, Policy};
use blocking::threads::{self, NoThreads};
use child::Spawner;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use jobs::editions::Editions;
use leadership::standing::ActingRole;
use mailbox::mailbox;
use names::ModuleName;
use parts::Parts;
use parts::clock::Clock;
use plan::planner::NoPlan;
use plan::start::Start;
use plan::supply::Supply;
use report::secrets::Secrets;
use settings::{Environment, Settings};
use sources::requests::{Sources, unfollowed};
use sources::{Keeping, Ways};
use telling::telemetry::Spools;
use thiserror::Error;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::assembly::{Assembled, assemble};
use super::shared::Outside;
use super::signals::Signals;
use super::start::{self, StartError};
use super::{planning, reloading, seed};
use crate::driver::Hands;

/// How long the end waits for tasks and programs that still run.
const BURIAL: Duration = Duration::from_secs(1);

/// Why a start cannot be rehearsed.
#[derive(Debug, Error)]
pub(crate) enum NoRehearsal {
    #[error(transparent)]
    Start(#[from] StartError),
    /// The text has no secrets.
    #[error("{text}")]
    Plan { text: String, hints: Vec<String> },
    #[error("{0} has ended it")]
    Ended(&'static str),
    #[error("cannot write to standard error")]
    Spools(#[source] io::Error),
    #[error("cannot make a folder for files of the plan")]
    Folder(#[source] io::Error),
}

impl NoRehearsal {
    fn of(error: &NoPlan, secrets: &Secrets) -> Self {
        let hints = match error {
            NoPlan::Failed(failure) => &failure.hints[..],
            _ => &[],
        };
        let masked = |text: &str| secrets.masked(text).into_owned();
        Self::Plan {
            text: masked(&error.to_string()),
            hints: hints.iter().map(|hint| masked(hint)).collect(),
        }
    }

    pub(crate) fn hints(&self) -> Vec<String> {
        match self {
            Self::Start(error) => error.hints().into_iter().map(ToOwned::to_owned).collect(),
            Self::Plan { hints, .. } => hints.clone(),
            Self::Ended(_) | Self::Spools(_) | Self::Folder(_) => Vec::new(),
        }
    }
}

/// The plan of a start with these settings, in JSON and without secrets. `edited` takes the place of the ConfigMap in the cluster.
pub(crate) fn plan(
    settings: &Settings,
    environment: &Environment,
    edited: Option<Edited>,
) -> Result<String, NoRehearsal> {
    // The folder of the settings may be that of an operator that runs.
    let folder = tempfile::tempdir().map_err(NoRehearsal::Folder)?;
    let settings = Settings {
        tmp_dir: folder.path().to_owned(),
        ..settings.clone()
    };
    let signals = Signals::listen().map_err(StartError::Signals)?;
    let runtime = threads::runtime().map_err(StartError::from)?;
    let secrets = Secrets::default();
    let spawner = Spawner::new().map_err(NoThreads::Spawner).map_err(StartError::from)?;
    let spawner = spawner.hiding(secrets.clone());
    let planned = runtime.block_on(async {
        tokio::select! {
            planned = rehearse(&settings, environment, edited, &spawner, secrets) => planned,
            name = signals.first() => Err(NoRehearsal::Ended(name)),
        }
    });
    runtime.shutdown_timeout(BURIAL);
    spawner.end_all_runs(BURIAL);
    planned
}

async fn rehearse(
    settings: &Settings,
    environment: &Environment,
    edited: Option<Edited>,
    spawner: &Spawner,
    secrets: Secrets,
) -> Result<String, NoRehearsal> {
    let spools = Spools::start().map_err(NoRehearsal::Spools)?;
    let mut parts = Parts::new(CancellationToken::new());
    let (doors, mailbox) = mailbox(parts.shutdown().clone());
    let meters = Arc::new(start::meters(settings, &secrets, &spools));
    let (trouble, told) = watch::channel(None);
    let outside = Outside::new(settings, &doors, &meters, told, (&secrets, &spools));
    let assembled = assemble(settings, environment, &outside, trouble, spawner.clone(), &mut parts).await?;
    let Assembled {
        tools,
        hands: Hands { editions, .. },
        judged,
        inventory,
        gaps,
    } = assembled;
    let desk = reloading::offer(settings, environment, &tools, &editions, &outside);
    let ways = Ways {
        judged,
        requests: &outside.sources,
        // Nobody else leads: the role stays.
        standing: watch::channel(ActingRole::Leads).1,
        keeping: Keeping::Nowhere,
        seed,
    };
    sources::start(settings, environment, desk, ways, &mut parts).map_err(StartError::from)?;
    let supply = Registries {
        editions,
        sources: Arc::clone(&outside.sources),
    };
    let policy = Policy {
        leadership: Leadership::Alone,
        ..start::policy(settings, environment)
    };
    let start = Start {
        operator: Operator::new(seed(), policy),
        clock: Clock::start(),
        mailbox,
        inventory,
        edited,
        secrets: secrets.clone(),
        supply: Arc::new(supply),
    };
    let world = planning::world(tools, parts.stopping());
    let planned = start.plan(&world).await;
    parts.stop().await;
    let mut plan = planned.map_err(|error| NoRehearsal::of(&error, &secrets))?;
    plan.warnings.extend(settings.remarks.iter().cloned().chain(gaps));
    let mut document = serde_json::to_value(&plan).expect("a plan is plain data");
    secrets.mask(&mut document);
    Ok(document.to_string())
}

/// The modules from registries, whose files lie in the folder of the plan.
#[derive(Debug)]
struct Registries {
    editions: Editions,
    sources: Arc<OnceLock<Sources>>,
}

impl Supply for Registries {
    fn take_up(&self, module: &ModuleName, edition: Edition) {
        self.editions.take_up(module, edition);
    }

    fn settled<'a>(&'a self, modules: &'a BTreeSet<ModuleName>) -> BoxFuture<'a, BTreeMap<ModuleName, String>> {
        async move {
            match self.sources.get() {
                Some(sources) => sources.settled(modules).await,
                None => unfollowed(modules),
            }
        }
        .boxed()
    }
}
