//! The operator's own rate limit: it delays requests, metrics show it, and a delay is not taken for a slow server.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::num::NonZero;
use std::sync::Arc;
use std::time::{Duration, Instant};

use addon_core::failure::Class;
use addon_core::hook::config::{HookConfig, HookKind};
use addon_core::object::patch;
use addon_core::operator::effect::MonitorStart;
use futures::future::try_join_all;
use kube_access::Cluster;
use kube_access::kinds::Kinds;
use kube_access::kubeconfig::Address;
use names::MonitorId;
use objects::Patcher;
use serde_json::json;
use settings::RateLimit;
use telling::meters::Meters;
use tempfile::TempDir;
use testbed::namespace::Namespace;
use testbed::plane::User;
use testbed::proxy::{Fault, On, Proxy, What};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use watches::{Monitors, Settings};

use super::monitor_stage::hook;

struct Stage {
    namespace: Namespace<'static>,
    cluster: Cluster,
    meters: Arc<Meters>,
    _dir: TempDir,
}

impl Stage {
    async fn new(prefix: &str, server: Option<String>) -> Self {
        let namespace = testbed::shared::plane().namespace(prefix).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let address = Address {
            kube_config: vec![namespace.kubeconfig(User::Operator)],
            server,
            ..Address::default()
        };
        let meters = Arc::new(Meters::new("own_"));
        let cluster = Cluster::connect(&address, namespace.name(), Some(dir.path()), Arc::clone(&meters));
        Self {
            cluster: cluster.await.unwrap(),
            namespace,
            meters,
            _dir: dir,
        }
    }

    /// A patcher with this rate limit. Requests for discovery are not limited.
    fn patcher(&self, limit: RateLimit, patience: Duration) -> Patcher {
        let patching = self.cluster.limited(limit).within(patience);
        Patcher::new(patching, Kinds::new(self.cluster.clone()), hooks::filters::jq)
    }

    fn create(&self, name: &str) -> String {
        let namespace = self.namespace.name();
        let metadata = json!({"name": name, "namespace": namespace});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        json!({"operation": "Create", "object": object}).to_string()
    }

    async fn apply(&self, patcher: &Patcher, text: &str) -> Result<(), addon_core::failure::Failure> {
        let operations = patch::parse(text).unwrap();
        patcher.apply(&operations, &CancellationToken::new()).await
    }

    /// The total duration of requests with this verb, from the metrics.
    fn told_seconds(&self, verb: &str) -> f64 {
        let page = self.meters.render(None);
        let lines = page.lines().filter(|line| {
            line.starts_with("own_kubernetes_client_rate_limiter_latency_seconds_sum{")
                && line.contains(&format!("verb=\"{verb}\""))
        });
        let values = lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap());
        values.sum()
    }
}

fn limit(per_second: f64, burst: usize) -> RateLimit {
    RateLimit {
        per_second: Some(per_second),
        burst: NonZero::new(burst),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn object_patches_keep_to_their_limit_and_the_wait_is_seen() {
    let stage = Stage::new("pace-patch", None).await;
    let patcher = stage.patcher(limit(20.0, 2), Duration::from_secs(10));
    let text = (0..12).map(|number| stage.create(&format!("c-{number}")));
    let text = text.collect::<Vec<_>>().join("\n---\n");
    let begin = Instant::now();
    stage.apply(&patcher, &text).await.unwrap();
    // Two requests at once, and ten more at intervals of a twentieth of a second.
    assert!(begin.elapsed() >= Duration::from_millis(500), "{:?}", begin.elapsed());
    let told = stage.told_seconds("POST");
    assert!(told >= 0.4, "{told}");
    // Other requests are not limited: with this limit they would take more than three minutes.
    let slow = stage.patcher(limit(0.1, 1), Duration::from_secs(10));
    stage.apply(&slow, &stage.create("c-slow")).await.unwrap();
    let begin = Instant::now();
    for _ in 0..20 {
        config_map::read_config(&stage.cluster, "none").await.unwrap();
    }
    assert!(begin.elapsed() < Duration::from_mins(1), "{:?}", begin.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_a_turn_does_not_run_out_of_patience() {
    let stage = Stage::new("pace-wait", None).await;
    let patience = Duration::from_millis(600);
    let patcher = stage.patcher(limit(5.0, 1), patience);
    let texts: Vec<String> = (0..8).map(|number| stage.create(&format!("c-{number}"))).collect();
    let begin = Instant::now();
    try_join_all(texts.iter().map(|text| stage.apply(&patcher, text)))
        .await
        .unwrap();
    assert!(begin.elapsed() > 2 * patience, "{:?}", begin.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_patch_is_waited_for_as_long_as_was_said() {
    let proxy = Proxy::start(testbed::shared::plane(), User::Operator).unwrap();
    let stage = Stage::new("pace-mute", Some(proxy.server())).await;
    let patcher = stage.patcher(RateLimit::default(), Duration::from_millis(400));
    stage.apply(&patcher, &stage.create("heard")).await.unwrap();
    proxy.impose(vec![Fault {
        on: On::Everything,
        what: What::BlackHole,
    }]);
    let begin = Instant::now();
    let failure = stage.apply(&patcher, &stage.create("unheard")).await.unwrap_err();
    assert_eq!(failure.class, Class::Unavailable, "{failure}");
    assert!(failure.report.ends_with("within 400ms"), "{failure}");
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_wait_for_their_turn_when_they_begin_and_never_after() {
    const MANY: u64 = 6;
    // So slow that events on a busy machine are still sooner than their turn would be.
    const PER_SECOND: f64 = 2.0;
    const TURNS: Duration = Duration::from_millis(2_500);
    let stage = Stage::new("pace-watch", None).await;
    let cluster = stage.cluster.limited(limit(PER_SECOND, 1));
    let (door, mut changes) = mpsc::channel(256);
    let settings = Settings {
        bound: Settings::BOUND,
        patience: Settings::PATIENCE,
        compile: |_| Err("no filters here".to_owned()),
    };
    let kinds = Kinds::new(stage.cluster.clone());
    let monitors = Monitors::new(&cluster, &kinds, door, settings, Arc::new(|_| {}));
    let bindings: Vec<_> = (0..MANY)
        .map(|number| {
            json!({"kind": "ConfigMap", "nameSelector": {"matchNames": [format!("c-{number}")]},
                "namespace": {"nameSelector": {"matchNames": [stage.namespace.name()]}}})
        })
        .collect();
    let config = json!({"configVersion": "v1", "kubernetes": bindings}).to_string();
    let config = HookConfig::parse(&config, HookKind::Global).unwrap();
    let ids = (1..).map(MonitorId);
    let starts = ids
        .zip(config.kubernetes)
        .map(|(id, binding)| MonitorStart { id, binding });
    let begin = Instant::now();
    monitors.start(&hook(), starts.collect()).await.unwrap();
    assert!(begin.elapsed() >= TURNS, "{:?}", begin.elapsed());
    let begin = Instant::now();
    let text = (0..MANY).map(|number| stage.create(&format!("c-{number}")));
    let text = text.collect::<Vec<_>>().join("\n---\n");
    let patcher = stage.patcher(RateLimit::default(), Settings::PATIENCE);
    stage.apply(&patcher, &text).await.unwrap();
    for _ in 0..MANY {
        changes.recv().await.unwrap();
    }
    assert!(begin.elapsed() < TURNS, "{:?}", begin.elapsed());
    monitors.shutdown().await;
}
