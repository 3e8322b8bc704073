//! The means of an operator, assembled: what is on disk, the cluster, helm, watches, and the tools of jobs.
//!
//! Must never change anything, neither here nor in the cluster.

use std::sync::Arc;

use ::channel::stage;
use addon_core::module::Inventory;
use child::Spawner;
use helm::Helm;
use jobs::Ground;
use jobs::editions::Editions;
use kube_access::Cluster;
use kube_access::kinds::Kinds;
use mailbox::replies::Replies;
use parts::Parts;
use releases::drift::lookout::{self, Lookout};
use releases::interception;
use releases::sync::holds::Holds;
use settings::{Environment, Settings, Work};
use tokio::sync::{mpsc, watch};
use watches::Monitors;

use super::shared::Outside;
use super::start::{self, StartError};
use super::{inventory, reviews, watching};
use crate::dispatch::Tools;
use crate::driver::Hands;

/// The means of an operator: the tools of its jobs, and those of its loop.
pub(super) struct Assembled {
    pub(super) tools: Arc<Tools>,
    pub(super) hands: Hands,
    pub(super) judged: mpsc::UnboundedReceiver<::sources::Judged>,
    pub(super) inventory: Inventory,
    /// The problems of the disk that do not forbid a start, in words.
    pub(super) gaps: Vec<String>,
}

/// Reads the disk, and connects to the cluster. Changes nothing there.
pub(super) async fn assemble(
    settings: &Settings,
    environment: &Environment,
    outside: &Outside,
    trouble: config_map::watch::Trouble,
    spawner: Spawner,
    parts: &mut Parts,
) -> Result<Assembled, StartError> {
    let (found, tmp) = (inventory::read(settings).await?, start::tmp_dir(settings)?);
    let cluster = start::connect(settings, environment, &tmp, &outside.meters, spawner.warrant()).await?;
    let helm = start::helm(settings, environment, &cluster, &tmp, spawner.clone()).await?;
    let (kinds, replies) = (Kinds::new(cluster.clone()), Replies::default());
    let webhooks = reviews::start(settings, &cluster, outside, &replies, parts)?;
    let restored = watching::restored(settings, found.restoring);
    let catalogue = watch::Sender::new(Arc::new(found.catalogue));
    let looking = helm
        .as_ref()
        .map(|helm| watching::looking(helm.options(), restored, catalogue.subscribe(), outside.secrets.clone()));
    let (monitors, lookout) = watches(&cluster, &kinds, looking, outside, parts);
    let config_map = watching::config_map(settings, &cluster, &monitors, outside, trouble);
    let (editions, (judges, judged)) = (Editions::new(catalogue.clone()), mpsc::unbounded_channel());
    let hands = Hands::new(&monitors, replies, editions, judges, &outside.stirred);
    let ground = Arc::new(Ground {
        environment: start::hook_environment(settings, environment, &cluster),
        cluster,
        spawner,
        catalogue,
        tmp: Arc::new(tmp),
        remedies: interception::remedies,
    });
    let tools = Arc::new(Tools {
        hooks: Arc::new(start::hook_tools(settings, &ground, monitors, kinds, outside)?),
        releases: helm
            .zip(lookout)
            .map(|(helm, lookout)| release_tools(&ground, helm, lookout)),
        ground,
        webhooks: Arc::new(webhooks),
        directories: found.directories,
        config_map,
        warner: warns(settings).then(|| Arc::clone(&outside.planner)),
    });
    Ok(Assembled {
        tools,
        hands,
        judged,
        inventory: found.inventory,
        gaps: found.gaps,
    })
}

/// Whether people who edit the ConfigMap are told its plan.
fn warns(settings: &Settings) -> bool {
    matches!(&settings.work, Work::Modules(modules) if modules.has_plan_warnings)
}

fn release_tools(ground: &Arc<Ground>, helm: Helm, lookout: Lookout) -> releases::Tools {
    releases::Tools {
        ground: Arc::clone(ground),
        helm: Arc::new(helm),
        lookout,
        holds: Holds::default(),
    }
}

/// Starts the watches of objects for hooks, the watches of releases if there are modules, and the part that reports the
/// stage of a trial to the loop.
fn watches(
    cluster: &Cluster,
    kinds: &Kinds,
    looking: Option<lookout::Settings>,
    outside: &Outside,
    parts: &mut Parts,
) -> (Monitors, Option<Lookout>) {
    let doors = &outside.doors;
    parts.spawn(
        "the news of trials",
        stage::tell(outside.channel.stage.subscribe(), doors.clone()),
    );
    let monitors = watching::start(cluster, kinds, doors, &outside.meters, parts);
    outside.monitors.get_or_init(|| monitors.clone());
    let lookout = looking.map(|settings| Lookout::new(&monitors, cluster, settings, doors.objects()));
    if let Some(lookout) = &lookout {
        outside.lookout.get_or_init(|| lookout.clone());
        parts.spawn(
            "the look for outdated kinds",
            releases::outdated::look::look(cluster.clone(), lookout.clone(), outside.outdated.clone()),
        );
    }
    (monitors, lookout)
}
