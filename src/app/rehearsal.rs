//! The rehearsal of a start: the plan of an operator that does not run yet.
//!
//! It reads the disk and the cluster as a start does. Must never take part in an election, open a port, or change anything.

use std::sync::Arc;

use addon_core::operator::Operator;
use addon_core::operator::edit::Edited;
use addon_core::operator::policy::{Leadership, Policy};
use blocking::threads::{self, NoThreads};
use child::Spawner;
use mailbox::mailbox;
use parts::Parts;
use parts::clock::Clock;
use plan::planner::NoPlan;
use plan::start::Start;
use report::secrets::Secrets;
use settings::{Environment, Settings};
use telling::telemetry::Spools;
use thiserror::Error;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::assembly::{Assembled, assemble};
use super::shared::Outside;
use super::start::{self, StartError};
use super::{planning, seed};

/// Why a start cannot be rehearsed.
#[derive(Debug, Error)]
pub(crate) enum NoRehearsal {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Plan(#[from] NoPlan),
    #[error("cannot write to standard error")]
    Spools(#[source] std::io::Error),
    #[error("cannot make a folder for files of the plan")]
    Folder(#[source] std::io::Error),
}

impl NoRehearsal {
    /// Remedies.
    pub(crate) fn hints(&self) -> Vec<&'static str> {
        match self {
            Self::Start(error) => error.hints(),
            Self::Plan(_) | Self::Spools(_) | Self::Folder(_) => Vec::new(),
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
    let runtime = threads::runtime().map_err(StartError::from)?;
    let spawner = Spawner::new().map_err(NoThreads::Spawner).map_err(StartError::from)?;
    let planned = runtime.block_on(rehearse(&settings, environment, edited, spawner));
    runtime.shutdown_background();
    planned
}

async fn rehearse(
    settings: &Settings,
    environment: &Environment,
    edited: Option<Edited>,
    spawner: Spawner,
) -> Result<String, NoRehearsal> {
    let (secrets, spools) = (Secrets::default(), Spools::start().map_err(NoRehearsal::Spools)?);
    let mut parts = Parts::new(CancellationToken::new());
    let (doors, mailbox) = mailbox(parts.shutdown().clone());
    let meters = Arc::new(start::meters(settings, &secrets, &spools));
    let (trouble, told) = watch::channel(None);
    let outside = Outside::new(settings, &doors, &meters, told, (&secrets, &spools));
    let spawner = spawner.hiding(secrets.clone());
    let assembled = assemble(settings, environment, &outside, trouble, spawner, &mut parts).await?;
    let Assembled { tools, inventory, .. } = assembled;
    let policy = Policy {
        leadership: Leadership::Alone,
        ..start::policy(settings, environment)
    };
    let start = Start {
        operator: Operator::new(seed(), policy),
        now: Clock::start().now(),
        mailbox,
        inventory,
        edited,
    };
    let world = planning::world(tools, parts.stopping());
    let (plan, known) = start.plan(&world).await?;
    secrets.learn(known);
    parts.stop().await;
    let text = serde_json::to_string(&plan).expect("a plan is plain data");
    Ok(secrets.masked(&text).into_owned())
}
