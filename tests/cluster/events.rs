//! The operator's Kubernetes Events: equal ones are counted in one Event, the next process finds it again, and a lost
//! Event fails nothing.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::sync::Arc;

use addon_operator::app::announcing::Writer;
use channel_core::following::News;
use fs_err as fs;
use jiff::Timestamp;
use kube_access::Cluster;
use kube_access::events::{Object, Saying};
use kube_access::kubeconfig::Address;
use report::secrets::Secrets;
use serde_json::Value;
use telling::meters::Meters;
use telling::notices::announcements::{About, Announcement, Announcer, Weight};
use testbed::plane::User;
use testbed::wait::wait_until;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::world::{PATIENCE, World};

const SAYING: Saying<'_> = Saying {
    subject: "one",
    reason: "ModuleFailed",
    action: "Run",
    weight: "Warning",
    note: "module 'one' failed",
    last: Timestamp::UNIX_EPOCH,
};

/// The Events of the namespace, read by the API through which the operator writes them.
fn events(world: &World) -> Vec<Value> {
    let text = world.kubectl("get events.events.k8s.io -o=json");
    let list: Value = serde_json::from_str(&text).unwrap();
    list["items"].as_array().unwrap().clone()
}

fn now(saying: Saying<'_>) -> Saying<'_> {
    Saying {
        last: Timestamp::now(),
        ..saying
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_written_once_and_counted_on() {
    let world = World::new("events").await;
    world.kubectl("create configmap addon-operator");
    let cluster = &world.tools.ground.cluster;
    let regarding = cluster
        .regarding(Object::ConfigMap("addon-operator"), Some("our-pod"))
        .await
        .unwrap();
    cluster.say(&regarding, &now(SAYING), 1, true).await.unwrap();
    let [told] = events(&world).try_into().unwrap();
    for (pointer, expected) in [
        ("/type", "Warning"),
        ("/reason", "ModuleFailed"),
        ("/action", "Run"),
        ("/note", "module 'one' failed"),
        ("/regarding/kind", "ConfigMap"),
        ("/regarding/name", "addon-operator"),
        ("/related/name", "our-pod"),
        ("/reportingController", "addon-operator"),
        ("/reportingInstance", "our-pod"),
    ] {
        assert_eq!(told.pointer(pointer).unwrap(), expected, "{pointer}");
    }
    assert!(told.get("series").is_none());
    // Kubectl finds Events by the object's uid.
    assert!(
        world
            .kubectl("describe configmap addon-operator")
            .contains("module 'one' failed")
    );

    // The next process finds the existing Event, and its first report changes nothing.
    cluster.say(&regarding, &now(SAYING), 1, true).await.unwrap();
    assert_eq!(events(&world), [told]);
    cluster.say(&regarding, &now(SAYING), 3, false).await.unwrap();
    cluster.say(&regarding, &now(SAYING), 1, false).await.unwrap();
    let [told] = events(&world).try_into().unwrap();
    assert_eq!(told["series"]["count"], 5);
    assert!(told["series"]["lastObservedTime"].as_str() > told["eventTime"].as_str());
    assert!(world.kubectl("get events").contains("module 'one' failed"));

    // The API server deletes Events after a while.
    world.kubectl("delete events --all");
    cluster.say(&regarding, &now(SAYING), 2, false).await.unwrap();
    let [told] = events(&world).try_into().unwrap();
    assert_eq!(told["series"]["count"], 2);
    let other = Saying {
        note: "module 'one' failed for another reason",
        ..SAYING
    };
    cluster.say(&regarding, &now(other), 1, false).await.unwrap();
    assert_eq!(events(&world).len(), 2);
}

fn word(subject: &str) -> Announcement {
    Announcement {
        about: About::ConfigMap,
        subject: subject.to_owned(),
        reason: "ModuleFailed",
        action: "Run",
        weight: Weight::Warning,
        note: format!("module '{subject}' failed"),
    }
}

/// A running writer of Events, the channel to it, and its metrics. The writer ends with the set.
fn writer(cluster: Cluster) -> (JoinSet<()>, mpsc::Sender<Announcement>, Arc<Meters>) {
    let meters = Arc::new(Meters::new("own_"));
    let writer = Writer {
        secrets: Secrets::default(),
        cluster,
        config_map: "addon-operator".to_owned(),
        deployment: Arc::default(),
        pod: None,
        meters: Arc::clone(&meters),
    };
    let (door, announcements) = mpsc::channel(256);
    let mut tasks = JoinSet::new();
    tasks.spawn(writer.run(announcements));
    (tasks, door, meters)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_that_fails_again_and_again_is_one_event() {
    let world = World::new("events-storm").await;
    // There is no ConfigMap, as at the first start.
    let (_tasks, door, _) = writer(world.tools.ground.cluster.clone());
    for subject in ["one", "one", "one", "two"] {
        door.send(word(subject)).await.unwrap();
        let look = || Ok::<_, String>(events(&world).into_iter().find(|event| says(event, subject)));
        wait_until(PATIENCE, subject, look).unwrap();
    }
    let told = events(&world);
    assert_eq!(told.len(), 2, "{told:#?}");
    // Repetitions are counted only after a minute, so no Event has a series yet.
    assert!(told.iter().all(|event| event.get("series").is_none()), "{told:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_becomes_of_our_version_is_told_about_the_deployment() {
    let world = World::new("events-channel").await;
    world.kubectl("create configmap addon-operator");
    world.kubectl("create deployment ao --image=registry.example.com/ao:1 --replicas=0");
    let meters = Arc::new(Meters::new("own_"));
    let (announcer, announcements) = Announcer::new(Arc::clone(&meters));
    let writer = Writer {
        secrets: Secrets::default(),
        cluster: world.tools.ground.cluster.clone(),
        config_map: "addon-operator".to_owned(),
        deployment: Arc::new("ao".to_owned().into()),
        pod: None,
        meters,
    };
    let mut tasks = JoinSet::new();
    tasks.spawn(writer.run(announcements));
    let unreachable = News::Unreachable("cannot ask for the tag 'stable'".to_owned());
    announcer.of_channel().hear(&unreachable.into());
    let look = || {
        let described = world.kubectl("describe deployment ao");
        let is_told =
            described.contains("RegistryUnreachable") && described.contains("cannot ask for the tag 'stable'");
        if is_told { Ok(Some(())) } else { Err(described) }
    };
    wait_until(PATIENCE, "an Event about the Deployment", look).unwrap();
    let [told] = events(&world).try_into().unwrap();
    assert_eq!(
        (&told["regarding"]["kind"], &told["regarding"]["apiVersion"]),
        (&"Deployment".into(), &"apps/v1".into())
    );
}

fn says(event: &Value, subject: &str) -> bool {
    event["note"] == format!("module '{subject}' failed")
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_right_events_are_counted_as_lost() {
    let world = World::new("events-right").await;
    let dir = tempfile::tempdir().unwrap();
    let kubeconfig = dir.path().join("kubeconfig");
    fs::copy(world.namespace.kubeconfig(User::Operator), &kubeconfig).unwrap();
    let token = world.kubectl("create token default");
    let file = kubeconfig.display();
    let token = token.trim();
    world.kubectl(&format!(
        "config --kubeconfig={file} set-credentials nobody --token={token}"
    ));
    world.kubectl(&format!(
        "config --kubeconfig={file} set-context --current --user=nobody"
    ));
    let right = "--verb=get --resource=configmaps";
    world.kubectl(&format!("create role reader {right}"));
    let account = format!("--serviceaccount={}:default", world.namespace.name());
    world.kubectl(&format!("create rolebinding reader --role=reader {account}"));
    let address = Address {
        kube_config: vec![kubeconfig],
        ..Address::default()
    };
    let cluster = Cluster::connect(&address, world.namespace.name(), None, super::hook_tools::meters());
    let (_tasks, door, meters) = writer(cluster.await.unwrap());
    for subject in ["one", "two", "three"] {
        door.send(word(subject)).await.unwrap();
    }
    let look = || {
        let text = meters.render(None);
        let all = text.contains("own_cluster_events_dropped_total 3");
        if all { Ok(Some(())) } else { Err(text) }
    };
    wait_until(PATIENCE, "three lost Events", look).unwrap();
    assert_eq!(events(&world), [] as [Value; 0]);
}
