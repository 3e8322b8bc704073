//! A hundred seeded plans of faults between watches and the API server, while objects are created, changed and deleted.
//!
//! The changes that an observer is told must be consistent at every moment, and at the end must lead to the real
//! objects.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::collections::BTreeMap;
use std::time::Duration;

use addon_core::hook::config::WatchEvent;
use addon_core::operator::event::{Event, ObjectChange};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use names::MonitorId;
use serde_json::{Value, json};
use testbed::plane::User;
use testbed::proxy::{Fault, On, Proxy, What};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep, timeout};

use super::monitor_stage::Stage;
use super::world::PATIENCE;

const PLANS: u64 = 100;
/// The number of plans that are played at the same time.
const AT_ONCE: usize = 8;
const ROUNDS: u64 = 14;
const OBJECTS: u64 = 5;
/// The bound of watches, so short that a silent connection is detected within a plan.
const BOUND: Duration = Duration::from_secs(2);
const MARK: &str = "mark";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whatever_happens_on_the_way_everybody_knows_the_end() {
    let mut plans = JoinSet::new();
    let (mut hits, mut failed) = (0, 0);
    let mut tally = |outcome: Result<u64, JoinError>| match outcome {
        Ok(harm) => hits += harm,
        Err(_) => failed += 1,
    };
    for seed in 0..PLANS {
        if plans.len() >= AT_ONCE {
            plans.join_next().await.into_iter().for_each(&mut tally);
        }
        plans.spawn(play(seed));
    }
    while let Some(outcome) = plans.join_next().await {
        tally(outcome);
    }
    assert_eq!(failed, 0, "plans that failed; each has said why above");
    assert!(hits > PLANS, "the faults hit next to nothing: {hits}");
}

/// Plays one plan; returns how often a fault hit.
async fn play(seed: u64) -> u64 {
    let plane = testbed::shared::plane();
    let proxy = Proxy::start(plane, User::Operator).unwrap();
    let mut stage = Stage::at(plane, &format!("plan-{seed}"), Some(proxy.server()), BOUND).await;
    let api = objects(&stage).await;
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut world = World::default();
    for _ in 0..2 {
        world.act(&api, &mut dice).await;
    }
    let bindings = json!([
        {"name": "whole", "kind": "ConfigMap", "namespace": {"nameSelector": {"matchNames": ["NS"]}},
         "labelSelector": {"matchLabels": {"plan": "yes"}}},
        {"name": "cut", "kind": "ConfigMap", "namespace": {"nameSelector": {"matchNames": ["NS"]}},
         "labelSelector": {"matchLabels": {"plan": "yes"}}, "jqFilter": ".data.x", "keepFullObjectsInMemory": false},
    ]);
    let ids = stage.start(1, bindings).await.unwrap();
    let mut observers: BTreeMap<MonitorId, Observer> = BTreeMap::new();
    for id in &ids {
        observers.insert(*id, Observer::of(&stage.shown(*id)));
    }
    // The filter results before the first change are not told, so the second observer begins with the first one's
    // state.
    let known = observers[&ids[0]].clone();
    observers.insert(ids[1], known);
    for _ in 0..ROUNDS {
        match dice.below(4) {
            0 => proxy.heal(),
            _ => proxy.impose(vec![fault(&mut dice)]),
        }
        for _ in 0..=dice.below(3) {
            world.act(&api, &mut dice).await;
        }
        // A fault has to last for a while to do harm.
        sleep(Duration::from_millis(20 + dice.below(300))).await;
        while let Ok(event) = stage.changes.try_recv() {
            hear(&mut observers, event, seed);
        }
    }
    proxy.heal();
    world.put(&api, MARK).await;
    while observers.values().any(|observer| observer.known != world.objects) {
        match timeout(PATIENCE, stage.changes.recv()).await {
            Ok(event) => hear(&mut observers, event.unwrap(), seed),
            Err(_) => break,
        }
    }
    for (id, observer) in &observers {
        assert_eq!(observer.known, world.objects, "plan {seed}, monitor {}: the end", id.0);
    }
    for id in ids {
        assert_eq!(
            stage.read(id).objects.len(),
            world.objects.len(),
            "plan {seed}: the snapshot"
        );
    }
    assert!(
        stage.changes.try_recv().is_err(),
        "plan {seed}: something is told after the end"
    );
    proxy.seen().1
}

fn hear(observers: &mut BTreeMap<MonitorId, Observer>, event: Event, seed: u64) {
    let Event::ObjectChanged(change) = event else {
        unreachable!("plan {seed}: a monitor tells changes of objects: {event:?}");
    };
    let observer = observers.get_mut(&change.monitor).unwrap();
    let sense = observer.hear(&change);
    assert_eq!(sense, Ok(()), "plan {seed}, monitor {}: {change:?}", change.monitor.0);
}

/// The objects as known to an observer that is told only of changes.
#[derive(Clone, Default)]
struct Observer {
    known: BTreeMap<String, u64>,
    /// The last value of each object, including deleted ones.
    last: BTreeMap<String, u64>,
}

impl Observer {
    /// An observer that begins with a snapshot, written as `a:1 b:2`.
    fn of(shown: &str) -> Self {
        let pairs = shown.split(' ').filter_map(|pair| pair.split_once(':'));
        let known: BTreeMap<String, u64> = pairs
            .filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?)))
            .collect();
        Self {
            last: known.clone(),
            known,
        }
    }

    fn hear(&mut self, change: &ObjectChange) -> Result<(), &'static str> {
        let name = &change.name.name;
        if change.event == WatchEvent::Deleted {
            return self
                .known
                .remove(name)
                .map(drop)
                .ok_or("an object goes that was not there");
        }
        let value = value_of(change).ok_or("there is no value")?;
        if self.last.insert(name.clone(), value).is_some_and(|last| last >= value) {
            return Err("a change is told twice, or an older one after a newer one");
        }
        let was_there = self.known.insert(name.clone(), value).is_some();
        match (change.event, was_there) {
            (WatchEvent::Added, true) => Err("an object comes that was there"),
            (WatchEvent::Modified, false) => Err("an object changes that was not there"),
            _ => Ok(()),
        }
    }
}

fn value_of(change: &ObjectChange) -> Option<u64> {
    let value = match (&change.view.filter_result, &change.view.object) {
        (Some(result), _) => result.to_value(),
        (None, Some(object)) => object.to_value().pointer("/data/x").cloned()?,
        (None, None) => return None,
    };
    value.as_str()?.parse().ok()
}

fn fault(dice: &mut Dice) -> Fault {
    let on = [On::Watches, On::Watches, On::Everything, On::Others][usize::try_from(dice.below(4)).unwrap()];
    let bytes = usize::try_from(dice.below(3000)).unwrap();
    let what = match dice.below(9) {
        0 => What::Delay(Duration::from_millis(dice.below(400))),
        1 => What::Refuse,
        2 => What::BlackHole,
        3 => What::Stall,
        4 => What::Cut(bytes),
        5 => What::Status(503, None),
        6 => What::Status(429, Some(1)),
        7 => What::Status(500, None),
        _ => What::Gone,
    };
    Fault { on, what }
}

/// The objects as they are.
#[derive(Default)]
struct World {
    objects: BTreeMap<String, u64>,
    last: u64,
}

impl World {
    async fn act(&mut self, api: &Api<ConfigMap>, dice: &mut Dice) {
        let name = format!("o{}", dice.below(OBJECTS));
        if self.objects.contains_key(&name) && dice.below(3) == 0 {
            api.delete(&name, &DeleteParams::default()).await.unwrap();
            self.objects.remove(&name);
        } else {
            self.put(api, &name).await;
        }
    }

    async fn put(&mut self, api: &Api<ConfigMap>, name: &str) {
        self.last += 1;
        let object = ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                labels: Some(BTreeMap::from([("plan".to_owned(), "yes".to_owned())])),
                ..ObjectMeta::default()
            },
            data: Some(BTreeMap::from([("x".to_owned(), self.last.to_string())])),
            ..ConfigMap::default()
        };
        let params = PatchParams::apply("campaign").force();
        api.patch(name, &params, &Patch::Apply(&object)).await.unwrap();
        self.objects.insert(name.to_owned(), self.last);
    }
}

/// The ConfigMaps of the stage's namespace, read without the proxy.
async fn objects(stage: &Stage) -> Api<ConfigMap> {
    let kubeconfig = Kubeconfig::read_from(stage.namespace.kubeconfig(User::Admin)).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .unwrap();
    Api::namespaced(Client::try_from(config).unwrap(), stage.namespace.name())
}

/// A random generator with a seed (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

#[test]
fn an_observer_notices_nonsense() {
    let change = |event, x: &str| {
        let object = json!({"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": x}});
        ObjectChange {
            monitor: MonitorId(1),
            seq: 1,
            event,
            name: addon_core::object::ObjectName::of(&object),
            view: addon_core::object::ObjectView {
                object: Some((&object as &Value).into()),
                filter_result: None,
            },
            version: 0,
            release: None,
            by_tool: false,
        }
    };
    let mut observer = Observer::of("a:3 b:1");
    assert!(observer.hear(&change(WatchEvent::Added, "4")).is_err());
    assert!(
        observer.hear(&change(WatchEvent::Modified, "4")).is_err(),
        "it is told twice"
    );
    assert!(observer.hear(&change(WatchEvent::Modified, "5")).is_ok());
    assert!(observer.hear(&change(WatchEvent::Deleted, "5")).is_ok());
    assert!(observer.hear(&change(WatchEvent::Deleted, "5")).is_err());
    assert!(observer.hear(&change(WatchEvent::Modified, "6")).is_err());
}
