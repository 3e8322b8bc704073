//! The first run of a module after a restart starts from what the watches show: it reads nothing of a release that is as
//! it should be, and reads everything before it writes.
#![expect(clippy::unwrap_used, reason = "a test has no better way to end")]

use std::collections::BTreeMap;
use std::sync::Arc;

use addon_core::failure::Class;
use addon_core::module::description::Restoring;
use addon_core::operator::event::{Event, SyncAction};
use addon_core::release::Objects;
use releases::drift::Restored;
use releases::drift::lookout::{Lookout, Settings};
use serde_json::{Value, json};
use testbed::audit::Records;
use testbed::plane::User;
use testbed::proxy::{Fault, On, What};
use testbed::wait::wait_until;
use tokio::sync::mpsc;

use super::world::{CHART, PATIENCE, TEMPLATE, World};

const MODULES: [&str; 3] = ["one", "two", "three"];

/// A world whose releases are watched.
struct Watched {
    world: World,
    /// The lookout ends when its reports cannot be sent.
    _reports: mpsc::Receiver<Event>,
}

/// Watches the releases of a world that was just restarted, as the operator does before its first runs.
async fn watch(mut world: World) -> Watched {
    let (door, reports) = mpsc::channel(100);
    let tools = Arc::get_mut(&mut world.tools).unwrap();
    let releases = tools.releases.as_mut().unwrap();
    let settings = Settings {
        secrets: report::secrets::Secrets::default(),
        labels: [("heritage".to_owned(), "addon-operator".to_owned())].into(),
        helm_timeout: PATIENCE,
        catalogue: tools.ground.catalogue.subscribe(),
        restored: Restored {
            all: Restoring::Absent,
            of_modules: BTreeMap::new(),
        },
    };
    let lookout = Lookout::new(&tools.hooks.monitors, &tools.ground.cluster, settings, door);
    lookout.begin(&[]).await.unwrap();
    releases.lookout = lookout;
    Watched {
        world,
        _reports: reports,
    }
}

impl Watched {
    fn lookout(&self) -> &Lookout {
        &self.world.tools.releases.as_ref().unwrap().lookout
    }
}

/// A world with a release of each module.
async fn installed(prefix: &str) -> World {
    let mut world = World::new(prefix).await;
    for name in MODULES {
        let (chart, object) = (CHART.replace("one", name), TEMPLATE.replace("shown", name));
        let object = object.replace(".Values.one.x", ".Values.one.x | default \"a\"");
        let object = object.replace(".Values.one", "(.Values.one | default dict)");
        world
            .module(name, &[("Chart.yaml", &chart), ("templates/a.yaml", &object)])
            .await;
    }
    for name in MODULES {
        world.sync_module(name, values()).await.unwrap();
    }
    world.restart().await;
    world
}

fn values() -> Value {
    json!({"one": {"x": "a"}})
}

/// The reads by name or list of the operator itself and its helm, which the work of some jobs cost.
async fn reads(world: &World, work: impl Future<Output = ()>) -> Records {
    let audit = testbed::shared::plane().audit();
    let mark = tokio::task::block_in_place(|| audit.mark()).unwrap();
    work.await;
    let all = tokio::task::block_in_place(|| audit.since(mark)).unwrap();
    let ours = all.of(User::Operator).within(world.namespace.name());
    ours.that(|record| record.verb == "get" || record.verb == "list")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_run_after_a_restart_reads_nothing_of_a_release_that_is_as_it_should_be() {
    let Watched { world, _reports } = watch(installed("unread").await).await;
    let first = async {
        for name in MODULES {
            let synced = world.sync_module(name, values()).await.unwrap();
            assert_eq!(synced.action, SyncAction::Unchanged);
        }
    };
    let first = reads(&world, first).await;
    assert!(first.is_empty(), "{first}");
    let again = async {
        world.sync_module("two", values()).await.unwrap();
    };
    let again = reads(&world, again).await;
    let releases = again.clone().that(|record| record.resource == "secrets");
    let objects = again.that(|record| record.resource == "configmaps");
    assert!(
        !releases.is_empty() && objects.len() == 1,
        "a later run looks for itself"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happened_while_nobody_watched_is_put_right_by_the_first_run() {
    let world = installed("unwatched").await;
    world.kubectl("delete configmap two");
    let dir = world.module_dir().display().to_string();
    world.helm_by_hand(&["upgrade", "one", &dir, "--set", "one.x=hand"]);
    world.kubectl("annotate secret sh.helm.release.v1.three.v1 addon-operator/confirmed=nothing");
    let Watched { world, _reports } = watch(world).await;
    for (name, action, revision) in [
        ("one", SyncAction::Upgraded, 3),
        ("two", SyncAction::Upgraded, 2),
        ("three", SyncAction::Unchanged, 1),
    ] {
        let synced = world.sync_module(name, values()).await.unwrap();
        assert_eq!((synced.action, synced.revision), (action, revision), "{name}");
    }
    assert_eq!(world.kubectl("get configmap one -o=jsonpath={.data.x}"), "a");
    assert_eq!(world.kubectl("get configmap two -o=jsonpath={.data.x}"), "a");
    let notes = "get secret sh.helm.release.v1.three.v1 -o=jsonpath={.metadata.annotations}";
    assert!(
        !world.kubectl(notes).contains("confirmed"),
        "an outdated note is taken back"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_labels_of_a_record_are_put_right_by_the_first_run() {
    let world = installed("labelled").await;
    for (name, label) in [("one", "name=other"), ("two", "version=99"), ("three", "version-")] {
        world.kubectl(&format!(
            "label --overwrite secret sh.helm.release.v1.{name}.v1 {label}"
        ));
    }
    let Watched { world, _reports } = watch(world).await;
    for name in MODULES {
        let synced = world.sync_module(name, values()).await.unwrap();
        assert_eq!(synced.revision, 1, "{name}");
        assert!(synced.repaired[0].contains("labelled by its contents"), "{synced:?}");
        let found = world.kubectl(&format!("get secret -l owner=helm,name={name},version=1 -o=name"));
        assert!(found.contains(name), "{found}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_after_another_job_looks_for_itself() {
    let Watched { world, _reports } = watch(installed("later").await).await;
    world.sync_module("two", values()).await.unwrap();
    world.kubectl("delete configmap two");
    let synced = world.sync_module("two", values()).await.unwrap();
    assert_eq!(synced.action, SyncAction::Upgraded);
    world.delete_release("three").await.unwrap();
    let synced = world.sync_module("three", values()).await.unwrap();
    assert_eq!((synced.action, synced.revision), (SyncAction::Upgraded, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn before_anything_is_written_the_release_is_read_whatever_the_watch_shows() {
    let mut world = installed("silent").await;
    let proxy = world.restart_behind_a_proxy().await;
    let watched = watch(world).await;
    let seen = watched.lookout().sight("one").await.unwrap();
    assert_eq!((seen.revision.newest.revision, seen.objects), (1, Objects::Present));
    proxy.impose(vec![Fault {
        on: On::Watches,
        what: What::Stall,
    }]);
    let dir = watched.world.module_dir().display().to_string();
    watched.world.helm_by_hand(&["uninstall", "one"]);
    watched
        .world
        .helm_by_hand(&["install", "one", &dir, "--set", "one.x=hand"]);
    let seen = watched.lookout().sight("one").await.unwrap();
    assert!(
        seen.revision.newest.ours,
        "the watch does not show the release of another"
    );
    let failure = watched.world.sync(json!({"one": {"x": "b"}})).await.unwrap_err();
    assert_eq!(failure.class, Class::Refused, "{failure}");
    assert_eq!(watched.world.kubectl("get configmap one -o=jsonpath={.data.x}"), "hand");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_may_lack_changes_shows_nothing() {
    let mut world = installed("cut").await;
    let proxy = world.restart_behind_a_proxy().await;
    let watched = watch(world).await;
    assert!(watched.lookout().sight("one").await.is_some());
    proxy.impose(vec![Fault {
        on: On::Watches,
        what: What::Refuse,
    }]);
    // A write gives the watch something to carry, and the fault something to hit.
    watched
        .world
        .kubectl("annotate secret sh.helm.release.v1.one.v1 test/note=a");
    let handle = tokio::runtime::Handle::current();
    let look = || {
        let sight = handle.block_on(watched.lookout().sight("one"));
        Ok::<_, String>(sight.is_none().then_some(()))
    };
    tokio::task::block_in_place(|| wait_until(PATIENCE, "the lookout to show nothing", look)).unwrap();
    watched.world.kubectl("delete configmap one");
    let synced = watched.world.sync(values()).await.unwrap();
    assert_eq!(synced.action, SyncAction::Upgraded);
}
