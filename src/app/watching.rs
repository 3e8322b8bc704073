//! Starts the watches of objects and of the ConfigMap with their settings, and turns their reports into metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use addon_core::module::description::Restoring;
use config_map::watch::{self, Trouble, Ways};
use hooks::filters::compile;
use jobs::catalogue::Catalogue;
use kube_access::Cluster;
use kube_access::kinds::Kinds;
use listeners::Loop;
use parts::Parts;
use releases::drift::Restored;
use releases::drift::lookout;
use report::secrets::Secrets;
use settings::{Settings as Setup, Work};
use telling::meters::Meters;
use telling::meters::bindings::{Bound, WatchError};
use tokio::sync::watch::Receiver;
use tokio::time::sleep;
use tracing::error;
use watches::observation::{Labels, Observation};
use watches::{Monitors, Settings, trouble};

use super::shared::Outside;

/// The interval of checks for stale watches.
const LOOK: Duration = Duration::from_secs(5);

/// Monitors without a watch yet, and the tasks that report on watches.
pub(super) fn start(
    cluster: &Cluster,
    kinds: &Kinds,
    doors: &Loop,
    meters: &Arc<Meters>,
    parts: &mut Parts,
) -> Monitors {
    let settings = Settings {
        bound: Settings::BOUND,
        patience: Settings::PATIENCE,
        compile,
    };
    let observe = {
        let meters = Arc::clone(meters);
        Arc::new(move |seen: &Observation<'_>| measure(&meters, seen))
    };
    let monitors = Monitors::new(cluster, kinds, doors.objects(), settings, observe);
    parts.spawn(
        "the report of stale watches",
        report(monitors.clone(), Arc::clone(meters)),
    );
    let (watched, stop) = (monitors.clone(), parts.stopping().clone());
    parts.spawn_graceful("the watches", async move {
        if let Err(failure) = watched.guard(&stop).await {
            error!(
                error = failure.report,
                "Changes may be lost after a panic of a watch, ending the operator"
            );
        }
    });
    monitors
}

/// Watches the ConfigMap, if there are modules. Its contents go to the loop; `/readyz` shows why the watch fails.
/// Returns the name of the ConfigMap, or an empty text without modules.
pub(super) fn config_map(
    settings: &Setup,
    cluster: &Cluster,
    monitors: &Monitors,
    outside: &Outside,
    trouble: Trouble,
) -> String {
    let Work::Modules(modules) = &settings.work else {
        return String::new();
    };
    let (events, name) = (outside.events.clone(), modules.config_map.clone());
    let ways = Ways {
        door: outside.doors.configurations(),
        trouble,
        witness: Box::new(move |read| events.read(&name, read)),
    };
    watch::watch(monitors, cluster, &modules.config_map, ways);
    modules.config_map.clone()
}

/// The settings by which kinds of drift are reverted: the general one, and those of single modules.
pub(super) fn restored(settings: &Setup, of_modules: BTreeMap<String, Restoring>) -> Restored {
    let all = match &settings.work {
        Work::Modules(modules) => modules.drift,
        Work::Hooks(_) => Restoring::Off,
    };
    Restored { all, of_modules }
}

pub(super) fn looking(
    helm: &helm::Options,
    restored: Restored,
    catalogue: Receiver<Arc<Catalogue>>,
    secrets: Secrets,
) -> lookout::Settings {
    lookout::Settings {
        catalogue,
        secrets,
        labels: helm.labels.clone(),
        helm_timeout: helm.timeout,
        restored,
    }
}

/// Sets the metric of each stale watch, and removes the metrics of watches that are no longer stale.
async fn report(monitors: Monitors, meters: Arc<Meters>) {
    let mut shown: BTreeSet<(String, String)> = BTreeSet::new();
    loop {
        sleep(LOOK).await;
        let mut stale = BTreeSet::new();
        for watch in monitors.stale() {
            meters.watch_stale(&watch.kind, &watch.namespace, watch.since);
            stale.insert((watch.kind, watch.namespace));
        }
        for (kind, namespace) in shown.difference(&stale) {
            meters.watch_fresh(kind, namespace);
        }
        shown = stale;
    }
}

fn measure(meters: &Meters, seen: &Observation<'_>) {
    match seen {
        Observation::Filtered { labels, took } => meters.jq_seconds(&bound(labels), *took),
        Observation::Handled { labels, took } => meters.event_seconds(&bound(labels), *took),
        Observation::Holds { labels, objects } => meters.snapshot_objects(&bound(labels), *objects),
        Observation::Stopped { labels } => meters.snapshot_gone(&bound(labels)),
        Observation::WatchFailed(error) => meters.watch_error(match error {
            trouble::WatchError::Expired => WatchError::Expired,
            trouble::WatchError::Eof => WatchError::Eof,
            trouble::WatchError::UnexpectedEof => WatchError::UnexpectedEof,
            trouble::WatchError::Fail => WatchError::Failed,
        }),
        Observation::Replaced { resource, namespace } => {
            let gvr = format!("{}/{}", resource.api_version, resource.plural);
            meters.watch_replaced(&gvr, namespace.unwrap_or_default());
        }
    }
}

fn bound(labels: &Labels) -> Bound<'_> {
    Bound {
        hook: &labels.hook,
        binding: &labels.binding,
        queue: &labels.queue,
        kind: &labels.kind,
    }
}

#[cfg(test)]
mod tests {
    use kube::core::{ApiResource, GroupVersionKind};

    use super::*;

    #[test]
    fn watches_that_were_replaced_are_counted_by_what_they_watched() {
        let meters = Meters::new("own_");
        for (group, version, kind, namespace) in [
            ("apps", "v1", "Deployment", None),
            ("", "v1", "Pod", Some("ns")),
            ("", "v1", "Pod", Some("ns")),
        ] {
            let resource = &ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
            measure(&meters, &Observation::Replaced { resource, namespace });
        }
        let page = meters.render(None);
        for line in [
            r#"own_factory_informer_dead_total{gvr="apps/v1/deployments",namespace=""} 1"#,
            r#"own_factory_informer_dead_total{gvr="v1/pods",namespace="ns"} 2"#,
        ] {
            assert!(page.lines().any(|there| there == line), "{line} is not in\n{page}");
        }
    }
}
