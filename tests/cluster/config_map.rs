//! The `ConfigMap`: watching it, and writing single keys.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use addon_core::failure::{Class, Failure};
use addon_core::operator::event::{ConfigRead, Event, Saved};
use config_map::watch::Ways;
use kube_access::Cluster;
use kube_access::kinds::Kinds;
use kube_access::kubeconfig::Address;
use tempfile::TempDir;
use testbed::plane::User;
use testbed::proxy::{Fault, On, Proxy, What};
use testbed::wait::wait_until;
use tokio::sync::{mpsc, watch};
use watches::{Monitors, Settings};

use super::hook_tools::meters;
use super::world::{PATIENCE, World};

const NAME: &str = "addon-operator";

/// A watch of the `ConfigMap`, and its news.
struct Watched {
    events: mpsc::Receiver<Event>,
    told: watch::Receiver<Option<String>>,
    _monitors: Monitors,
}

impl Watched {
    fn new(cluster: &Cluster) -> Self {
        Self::within(cluster, Settings::BOUND, mpsc::channel(1).0)
    }

    /// After a part of this bound, a silent connection is taken for dead. Other watches send their changes through that door.
    fn within(cluster: &Cluster, bound: Duration, changes: mpsc::Sender<Event>) -> Self {
        let ((door, events), (trouble, told)) = (mpsc::channel(8), watch::channel(None));
        let settings = Settings {
            bound,
            patience: Settings::PATIENCE,
            compile: |_| Err("no filters here".to_owned()),
        };
        let monitors = Monitors::new(
            cluster,
            &Kinds::new(cluster.clone()),
            changes,
            settings,
            Arc::new(|_| {}),
        );
        let witness = Box::new(|_: &ConfigRead| {});
        config_map::watch::watch(&monitors, cluster, NAME, Ways { door, trouble, witness });
        Self {
            events,
            told,
            _monitors: monitors,
        }
    }

    async fn next(&mut self) -> ConfigRead {
        let event = tokio::time::timeout(PATIENCE, self.events.recv())
            .await
            .expect("the watch brings nothing")
            .expect("the watch ended");
        match event {
            Event::ConfigChanged(read) => read,
            other => unreachable!("nobody has taken the history back: {other:?}"),
        }
    }
}

fn entry(read: &ConfigRead, key: &str) -> Option<String> {
    match read {
        ConfigRead::Missing => None,
        ConfigRead::Present { data, .. } => data.get(key).cloned(),
    }
}

/// A client of that world's cluster with another URL of the API server.
pub(crate) async fn behind(world: &World, server: String) -> (Cluster, TempDir) {
    let dir = tempfile::tempdir().expect("there is room for a directory");
    let address = Address {
        kube_config: vec![world.namespace.kubeconfig(User::Operator)],
        server: Some(server),
        ..Address::default()
    };
    let cluster = Cluster::connect(&address, world.namespace.name(), Some(dir.path()), meters()).await;
    (cluster.expect("no request is made"), dir)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_is_read_and_only_the_server_says_missing() {
    let world = World::new("watch").await;
    let mut watched = Watched::new(&world.tools.ground.cluster);
    assert_eq!(watched.next().await, ConfigRead::Missing);
    world.kubectl("create configmap addon-operator --from-literal=one=a");
    assert_eq!(entry(&watched.next().await, "one").as_deref(), Some("a"));
    world.kubectl("create configmap other --from-literal=one=b");
    world.kubectl("delete configmap addon-operator");
    assert_eq!(
        watched.next().await,
        ConfigRead::Missing,
        "another ConfigMap is none of our business"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_does_not_wait_behind_changes_of_objects() {
    let world = World::new("behind").await;
    let (changes, _full) = mpsc::channel(1);
    changes.try_send(Event::TimerFired).expect("there is room for one");
    let mut watched = Watched::within(&world.tools.ground.cluster, Settings::BOUND, changes);
    assert_eq!(watched.next().await, ConfigRead::Missing);
    world.kubectl("create configmap addon-operator --from-literal=one=a");
    assert_eq!(entry(&watched.next().await, "one").as_deref(), Some("a"));
    world.kubectl("delete configmap addon-operator");
    assert_eq!(watched.next().await, ConfigRead::Missing);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_written_only_over_what_the_writer_saw() {
    let world = World::new("save").await;
    let cluster = &world.tools.ground.cluster;
    let save = |key: &'static str, text: &str, base: Option<&'static str>| {
        let text = text.to_owned();
        async move {
            config_map::save_config(cluster, NAME, key, text, base, true)
                .await
                .expect("the API server is there")
        }
    };
    assert!(matches!(
        save("one", "1", Some("0")).await,
        Saved::Conflict(ConfigRead::Missing)
    ));
    let Saved::Written { version, .. } = save("one", "1", None).await else {
        panic!("not created")
    };
    world.kubectl("patch configmap addon-operator --type=merge -p {\"data\":{\"two\":\"kept\"}}");
    let Saved::Conflict(read) = save("one", "2", None).await else {
        panic!("written over something unseen")
    };
    assert_eq!(entry(&read, "one").as_deref(), Some("1"));
    let Saved::Written { version: later, .. } = save("one", "2", Some("1")).await else {
        panic!("not written")
    };
    assert!(later > version);
    let read = config_map::read_config(cluster, NAME)
        .await
        .expect("the API server is there");
    assert_eq!(entry(&read, "one").as_deref(), Some("2"));
    assert_eq!(entry(&read, "two").as_deref(), Some("kept"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_config_map_that_is_gone_is_made_again_only_if_that_was_asked_for() {
    let world = World::new("gone").await;
    let cluster = &world.tools.ground.cluster;
    let saved = config_map::save_config(cluster, NAME, "one", "1".to_owned(), None, false).await;
    assert_eq!(
        saved.expect("the API server is there"),
        Saved::Conflict(ConfigRead::Missing)
    );
    let read = config_map::read_config(cluster, NAME)
        .await
        .expect("the API server is there");
    assert_eq!(read, ConfigRead::Missing);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_writers_at_the_same_time_one_wins_and_the_others_hear_of_it() {
    let world = World::new("race").await;
    let cluster = &world.tools.ground.cluster;
    let writers = (0..8).map(|writer| config_map::save_config(cluster, NAME, "one", writer.to_string(), None, true));
    let outcomes = futures::future::join_all(writers).await;
    let mut winners = Vec::new();
    for (writer, outcome) in outcomes.into_iter().enumerate() {
        match outcome.expect("the API server is there") {
            Saved::Written { .. } => winners.push(writer.to_string()),
            Saved::Conflict(_) => {}
        }
    }
    let read = config_map::read_config(cluster, NAME)
        .await
        .expect("the API server is there");
    assert_eq!(winners.len(), 1);
    assert_eq!(entry(&read, "one").as_ref(), winners.first());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_server_is_named_and_is_no_reading() {
    let world = World::new("unreachable").await;
    // Port 1 is reserved, and connections to it are refused.
    let (cluster, _dir) = behind(&world, "https://127.0.0.1:1".to_owned()).await;
    let failure = Failure::from(
        config_map::read_config(&cluster, NAME)
            .await
            .expect_err("nobody is there"),
    );
    assert_eq!(failure.class, Class::Unavailable);
    assert!(failure.hints[0].contains("https://127.0.0.1:1"), "{failure:?}");
    let mut watched = Watched::new(&cluster);
    let told = watched
        .told
        .wait_for(Option::is_some)
        .await
        .expect("it is watched")
        .clone();
    assert!(told.is_some_and(|told| told.contains("https://127.0.0.1:1")));
    assert!(watched.events.try_recv().is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_brings_nothing_any_more_is_replaced() {
    let world = World::new("silent").await;
    let proxy = Proxy::start(testbed::shared::plane(), User::Operator).expect("loopback has a free port");
    let (cluster, _dir) = behind(&world, proxy.server()).await;
    let mut watched = Watched::within(&cluster, Duration::from_secs(4), mpsc::channel(1).0);
    assert_eq!(watched.next().await, ConfigRead::Missing);
    world.kubectl("create configmap addon-operator --from-literal=one=a");
    assert_eq!(entry(&watched.next().await, "one").as_deref(), Some("a"));
    proxy.impose(vec![Fault {
        on: On::Watches,
        what: What::BlackHole,
    }]);
    wait_until(PATIENCE, "the watch to be hit", || {
        Ok::<_, Infallible>((proxy.seen().1 > 0).then_some(()))
    })
    .expect("it is under way");
    proxy.heal();
    world.kubectl("patch configmap addon-operator --type=merge -p {\"data\":{\"one\":\"b\"}}");
    assert_eq!(entry(&watched.next().await, "one").as_deref(), Some("b"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_forgets_our_place_each_time_is_told_of() {
    let world = World::new("forgets").await;
    let proxy = Proxy::start(testbed::shared::plane(), User::Operator).expect("loopback has a free port");
    let (cluster, _dir) = behind(&world, proxy.server()).await;
    proxy.impose(vec![Fault {
        on: On::Watches,
        what: What::Gone,
    }]);
    let mut watched = Watched::new(&cluster);
    for reading in 1.. {
        assert_eq!(watched.next().await, ConfigRead::Missing);
        if watched.told.borrow().is_some() {
            assert!(reading > 1, "once alone is nothing");
            break;
        }
        assert!(reading < 3, "nothing is told");
    }
    proxy.heal();
    world.kubectl("create configmap addon-operator --from-literal=one=a");
    while entry(&watched.next().await, "one").is_none() {}
    world.kubectl("patch configmap addon-operator --type=merge -p {\"data\":{\"one\":\"b\"}}");
    assert_eq!(entry(&watched.next().await, "one").as_deref(), Some("b"));
    assert_eq!(*watched.told.borrow(), None);
}
