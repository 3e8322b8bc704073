//! Look-ups of kinds while the API server answers slowly or not at all.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::time::Duration;

use addon_operator::cluster::Cluster;
use addon_operator::cluster::kinds::Kinds;
use addon_operator::cluster::kubeconfig::Address;
use futures::{FutureExt as _, poll};
use tempfile::TempDir;
use testbed::namespace::Namespace;
use testbed::plane::User;
use testbed::proxy::{Fault, On, Proxy, What};
use tokio::time::timeout;

use super::tools::meters;
use super::world::PATIENCE;

/// Kinds that are asked for through a proxy.
struct Stage {
    kinds: Kinds,
    proxy: Proxy,
    _namespace: Namespace<'static>,
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
        let cluster = Cluster::connect(&address, namespace.name(), Some(dir.path()), meters());
        Self {
            kinds: Kinds::new(cluster.await.unwrap()),
            proxy,
            _namespace: namespace,
            _dir: dir,
        }
    }

    fn requests(&self) -> u64 {
        self.proxy.seen().0
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_kind_is_found_while_the_list_for_another_kind_hangs() {
    let stage = Stage::new("kinds-hang").await;
    stage.kinds.resolve(Some("v1"), "ConfigMap").await.unwrap();
    stage.proxy.impose(vec![Fault {
        on: On::Everything,
        what: What::BlackHole,
    }]);
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
