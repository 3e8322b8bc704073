//! Requests that the API server does not answer: they hold up no task that needs another answer.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::time::Duration;

use addon_core::module::description::AccountName;
use futures::{FutureExt as _, poll};
use kube_access::Cluster;
use kube_access::kinds::Kinds;
use kube_access::kubeconfig::Address;
use tempfile::TempDir;
use testbed::namespace::Namespace;
use testbed::plane::User;
use testbed::proxy::{Fault, On, Proxy, What};
use tokio::time::timeout;

use super::hook_tools::meters;
use super::world::PATIENCE;

/// A cluster behind a proxy.
struct Stage {
    cluster: Cluster,
    kinds: Kinds,
    proxy: Proxy,
    namespace: Namespace<'static>,
    _dir: TempDir,
}

impl Stage {
    async fn new(prefix: &str) -> Self {
        let plane = testbed::shared::plane();
        let (namespace, dir) = (plane.namespace(prefix).unwrap(), tempfile::tempdir().unwrap());
        let proxy = Proxy::start(plane, User::Operator).unwrap();
        let address = Address {
            kube_config: vec![namespace.kubeconfig(User::Operator)],
            server: Some(proxy.server()),
            ..Address::default()
        };
        let cluster = Cluster::connect(&address, namespace.name(), Some(dir.path()), meters()).await;
        let cluster = cluster.unwrap();
        Self {
            kinds: Kinds::new(cluster.clone()),
            cluster,
            proxy,
            namespace,
            _dir: dir,
        }
    }

    /// From now on no request is answered.
    fn hang(&self) {
        self.proxy.impose(vec![Fault {
            on: On::Everything,
            what: What::BlackHole,
        }]);
    }

    fn requests(&self) -> u64 {
        self.proxy.seen().0
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_kind_is_found_while_the_list_for_another_kind_hangs() {
    let stage = Stage::new("kinds-hang").await;
    stage.kinds.resolve(Some("v1"), "ConfigMap").await.unwrap();
    stage.hang();
    let mut asking = stage.kinds.resolve(None, "Gadget").boxed();
    assert!(poll!(&mut asking).is_pending());
    let pod = stage.kinds.resolve(Some("v1"), "Pod").now_or_never();
    assert_eq!(
        pod.expect("a known kind needs no request").unwrap().resource.plural,
        "pods"
    );
    drop(asking);
    stage.proxy.heal();
    let asked = timeout(PATIENCE, stage.kinds.resolve(None, "Gadget")).await;
    assert!(asked.expect("the list that was given up is not waited for").is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn look_ups_at_the_same_time_share_one_list() {
    let stage = Stage::new("kinds-share").await;
    let before = stage.requests();
    stage.kinds.resolve(None, "Gadget").await.unwrap_err();
    let one = stage.requests() - before;
    let gadgets = (0..20).map(|_| stage.kinds.resolve(None, "Gadget"));
    let found = futures::future::join_all(gadgets).await;
    assert!(found.iter().all(Result::is_err), "{found:?}");
    // The first list was asked for by one of them: for the others it is too old, and they share a second one.
    assert!(stage.requests() - before <= 3 * one, "{}", stage.requests() - before);
    let (known, began) = (stage.kinds.resolve(Some("v1"), "Pod"), stage.requests());
    timeout(Duration::from_secs(1), known).await.unwrap().unwrap();
    assert_eq!(stage.requests(), began, "a known kind needs no request");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_there_while_the_request_for_another_hangs() {
    let stage = Stage::new("token-hang").await;
    let kubectl = stage.namespace.kubectl_as(User::Admin);
    for account in ["one", "two"] {
        kubectl.run(["create", "serviceaccount", account]).unwrap();
    }
    let [one, two] = ["one", "two"].map(|name| AccountName::parse(name).unwrap());
    let needed = Duration::from_mins(1);
    stage.cluster.acting_as(&one, needed).await.unwrap();
    stage.hang();
    let mut asking = stage.cluster.acting_as(&two, needed).boxed();
    assert!(poll!(&mut asking).is_pending());
    let known = stage.cluster.acting_as(&one, needed).now_or_never();
    known.expect("its token lasts").unwrap();
    stage.proxy.heal();
    drop(asking);
    let asked = timeout(PATIENCE, stage.cluster.acting_as(&two, needed)).await;
    asked.expect("the request that was given up is not waited for").unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_need_the_apis_at_the_same_time_share_a_request() {
    let stage = Stage::new("apis-share").await;
    let before = stage.requests();
    stage.cluster.apis().await.unwrap();
    let one = stage.requests() - before;
    stage.cluster.forget_apis();
    let all = (0..20).map(|_| stage.cluster.apis());
    let all = futures::future::join_all(all).await;
    assert!(all.iter().all(Result::is_ok), "{all:?}");
    assert_eq!(stage.requests() - before, 2 * one);
    stage
        .cluster
        .apis()
        .now_or_never()
        .expect("the answer is fresh")
        .unwrap();
}
