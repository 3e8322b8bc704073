//! Faults of a watch must not change or lose reports.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testbed::namespace::Namespace;
use testbed::plane::{ControlPlane, Options, User};
use testbed::process::{Bond, Bound, command, signal};
use testbed::proxy::{Fault, On, Proxy, What};
use testbed::wait::wait_until;
use watches::Settings;

use super::monitor_stage::{Stage, until};
use super::monitor_wire::Wire;
use super::world::PATIENCE;

fn config_maps() -> Value {
    json!([{"kind": "ConfigMap", "namespace": {"nameSelector": {"matchNames": ["NS"]}}, "jqFilter": ".data.x",
        "fieldSelector": {"matchExpressions": [
            {"field": "metadata.name", "operator": "!=", "value": "kube-root-ca.crt"}]}}])
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_while_the_server_is_away_is_told_once_and_in_order() {
    let plane = testbed::shared::plane();
    let wire = Wire::to(plane.server()).await;
    let mut stage = Stage::at(plane, "away", Some(wire.url()), Settings::BOUND).await;
    stage.put("a", "1");
    stage.put("b", "1");
    let ids = stage.start(1, config_maps()).await.unwrap();
    for round in 2..5 {
        wire.close();
        stage.put("a", &round.to_string());
        stage.kubectl("delete configmap b");
        stage.put("b", &round.to_string());
        stage.put("c", "1");
        stage.kubectl("delete configmap c");
        let failure = stage.start(9, json!([{"kind": "Secret"}])).await.unwrap_err();
        assert!(
            failure.report.contains("secrets") || failure.report.contains("look up"),
            "{failure}"
        );
        wire.mend();
        let before = round - 1;
        assert_eq!(
            stage.told(5).await,
            format!("1~a={round} 1-b={before} 1+b={round} 1+c=1 1-c=1")
        );
        assert_eq!(stage.shown(ids[0]), format!("{round} {round}"));
    }
    stage.nothing_but("d").await;
    assert_eq!(stage.read(ids[0]).seq, 16);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_brings_nothing_is_found_out_within_the_bound() {
    const BOUND: Duration = Duration::from_secs(6);
    let plane = testbed::shared::plane();
    let wire = Wire::to(plane.server()).await;
    let mut stage = Stage::at(plane, "mute", Some(wire.url()), BOUND).await;
    stage.put("a", "1");
    let ids = stage.start(1, config_maps()).await.unwrap();
    stage.put("a", "2");
    assert_eq!(stage.told(1).await, "1~a=2");
    assert!(stage.replaced.lock().unwrap().is_empty());
    wire.mute();
    let begin = Instant::now();
    stage.put("a", "3");
    stage.kubectl("delete configmap a");
    assert_eq!(stage.told(2).await, "1~a=3 1-a=3");
    // The server itself would have ended the watch only after minutes.
    assert!(begin.elapsed() < 4 * BOUND, "{:?}", begin.elapsed());
    let expected = ("configmaps".to_owned(), stage.namespace.name().to_owned());
    assert_eq!(stage.replaced.lock().unwrap().first(), Some(&expected));
    stage.nothing_but("b").await;
    assert_eq!(stage.shown(ids[0]), "last");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_of_which_nothing_is_known_is_called_stale_until_it_works() {
    let plane = testbed::shared::plane();
    let wire = Wire::to(plane.server()).await;
    let stage = Stage::at(plane, "stale", Some(wire.url()), Duration::from_secs(2)).await;
    stage.start(1, config_maps()).await.unwrap();
    wire.close();
    until("a stale watch with its error", || {
        let stale = stage.monitors.stale();
        match stale.first() {
            Some(watch) if watch.error.is_some() => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    let stale = stage.monitors.stale().remove(0);
    assert_eq!(
        (stale.kind.as_str(), stale.namespace.as_str()),
        ("ConfigMap", stage.namespace.name())
    );
    assert!(!stage.watch_errors.lock().unwrap().is_empty());
    let replaced = stage.replaced.lock().unwrap().len();
    assert_eq!(replaced, 0, "a watch that failed is no silent one");
    wire.mend();
    until("no stale watch", || {
        let stale = stage.monitors.stale();
        if stale.is_empty() {
            Ok(())
        } else {
            Err(format!("{stale:?}"))
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn namespaces_that_could_not_be_listed_are_listed_later() {
    let plane = testbed::shared::plane();
    let wire = Wire::to(plane.server()).await;
    let mut stage = Stage::at(plane, "later", Some(wire.url()), Settings::BOUND).await;
    let label = stage.namespace.name().to_owned();
    let others: Vec<_> = (0..3).map(|_| plane.namespace("later-other").unwrap()).collect();
    let mut binding = config_maps();
    binding[0]["namespace"] = json!({"labelSelector": {"matchLabels": {"set": label}}});
    let ids = stage.start(1, binding).await.unwrap();
    assert_eq!(stage.shown(ids[0]), "");
    for other in &others {
        other
            .kubectl(["create", "configmap", "b", "--from-literal=x=1"])
            .unwrap();
    }
    stage.put("a", "1");
    // The new namespaces are watched over the existing connection. There is no unused connection for each namespace.
    wire.refuse();
    let names = others.iter().map(Namespace::name).collect::<Vec<_>>().join(" ");
    stage.kubectl(&format!("label namespace NS {names} set={label}"));
    until("a list that failed", || {
        let errors = stage.watch_errors.lock().unwrap().len();
        if errors > 0 { Ok(()) } else { Err(errors.to_string()) }
    });
    wire.mend();
    stage.until_shown(ids[0], "1 1 1 1");
    stage.put("a", "2");
    assert_eq!(stage.told(1).await, "1~a=2");
}

/// As the API server answers for a moment after a CRD is created.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_asks_to_come_again_soon_fails_no_start() {
    let plane = testbed::shared::plane();
    let proxy = Proxy::start(plane, User::Operator).unwrap();
    let stage = Stage::at(plane, "soon", Some(proxy.server()), Settings::BOUND).await;
    stage.put("a", "1");
    // From now on the kind is known and needs no further discovery request.
    stage.start(1, config_maps()).await.unwrap();
    let mut labelled = config_maps();
    labelled[0]["labelSelector"] = json!({"matchLabels": {"soon": "yes"}});
    let what = What::Status(429, Some(1));
    proxy.impose(vec![Fault {
        on: On::Everything,
        what,
    }]);
    let healer = std::thread::spawn(move || {
        let refused = wait_until(PATIENCE, "a refused list", || {
            Ok::<_, String>((proxy.seen().1 > 0).then_some(()))
        });
        proxy.heal();
        (refused, proxy)
    });
    stage.start(2, labelled).await.unwrap();
    healer.join().unwrap().0.unwrap();
}

/// The API server of a control plane of the test's own, which can be killed and started again.
struct Server {
    address: SocketAddr,
    arguments: Vec<String>,
    process: u32,
    again: Option<Bound>,
}

impl Server {
    fn of(plane: &ControlPlane) -> Self {
        let arguments = |process: &u32| {
            let text = fs_err::read_to_string(format!("/proc/{process}/cmdline")).unwrap();
            text.split_terminator('\0').map(str::to_owned).collect::<Vec<_>>()
        };
        let processes = plane.processes();
        let mut all = processes.iter().map(|process| (*process, arguments(process)));
        let found = all.find(|(_, arguments)| arguments[0].ends_with("kube-apiserver"));
        let (process, arguments) = found.expect("a control plane has an API server");
        let address = plane.server().trim_start_matches("https://").parse().unwrap();
        Self {
            address,
            arguments,
            process,
            again: None,
        }
    }

    /// Kills the API server, and starts it again with the same flags and these additional ones.
    fn restart(&mut self, more: &[&str]) {
        const KILL: i32 = 9;
        signal(self.process, KILL);
        let freed = || TcpListener::bind(self.address).map(Some);
        drop(wait_until(PATIENCE, "the end of the API server", freed).unwrap());
        let mut server = command(&self.arguments[0]);
        server.args(&self.arguments[1..]).args(more);
        server
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        self.again = Some(Bound::start(server, Bond::Group).unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_comes_back_without_its_history_is_listed_again() {
    /// More objects than fit into one page of a list.
    const MANY: usize = 1_100;
    let plane: &'static ControlPlane = Box::leak(Box::new(ControlPlane::start(&Options::default()).unwrap()));
    let wire = Wire::to(plane.server()).await;
    let mut stage = Stage::at(plane, "restart", Some(wire.url()), Settings::BOUND).await;
    let names = (0..MANY).map(|n| format!("m-{n}"));
    let objects: Vec<Value> = names
        .map(|name| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"x": "1"}}))
        .collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    let kubectl = stage.namespace.kubectl_as(User::Admin);
    tokio::task::block_in_place(|| kubectl.feed(["create", "-f", "-"], &list)).unwrap();
    let ids = stage.start(1, config_maps()).await.unwrap();
    assert_eq!(stage.read(ids[0]).objects.len(), MANY);
    wire.close();
    stage.put("m-1", "2");
    stage.put("m-1", "3");
    stage.kubectl("delete configmap m-1099");
    stage.put("c", "1");
    stage.put("brief", "1");
    stage.kubectl("delete configmap brief");
    // The API server is started again without support for streaming lists.
    let mut server = Server::of(plane);
    let mark = plane.audit().mark().unwrap();
    tokio::task::block_in_place(|| server.restart(&["--feature-gates=WatchList=false"]));
    let ready = || {
        plane
            .kubectl(["get", "--raw", "/readyz", "--request-timeout=5s"])
            .map(Some)
    };
    tokio::task::block_in_place(|| wait_until(PATIENCE, "the API server", ready)).unwrap();
    wire.mend();
    let mut told = Vec::new();
    for _ in 0..3 {
        told.push(stage.told(1).await);
    }
    told.sort();
    assert_eq!(
        told,
        ["1+c=1", "1-m-1099=1", "1~m-1=3"],
        "the last state of each object, and no object that was created and deleted meanwhile"
    );
    assert_eq!(stage.read(ids[0]).objects.len(), MANY);
    let errors = stage.watch_errors.lock().unwrap().clone();
    assert!(errors.contains(&"expired"), "{errors:?}");
    let lists = plane.audit().since(mark).unwrap().of(User::Operator);
    let pages = lists.that(|record| record.verb == "list" && record.uri.contains("limit=500"));
    assert_eq!(pages.len(), 3, "{pages}");
    stage.nothing_but("d").await;
    stage.monitors.shutdown().await;
}
