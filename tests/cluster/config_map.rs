//! The `ConfigMap`: watched, and written one key at a time.

use std::pin::pin;

use addon_core::failure::{Class, Failure};
use addon_core::operator::event::{ConfigRead, Saved};
use addon_operator::cluster::Cluster;
use addon_operator::cluster::kubeconfig::Address;
use futures::{Stream, StreamExt as _};
use tokio::sync::watch;

use super::tools::meters;
use super::world::{PATIENCE, World};

const NAME: &str = "addon-operator";

async fn next(stream: &mut (impl Stream<Item = ConfigRead> + Unpin)) -> ConfigRead {
    tokio::time::timeout(PATIENCE, stream.next())
        .await
        .expect("the watch brings nothing")
        .expect("the watch ended")
}

fn entry(read: &ConfigRead, key: &str) -> Option<String> {
    match read {
        ConfigRead::Missing => None,
        ConfigRead::Present { data, .. } => data.get(key).cloned(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_is_read_and_only_the_server_says_missing() {
    let world = World::new("watch").await;
    let mut stream = pin!(world.tools.cluster.watch_config(NAME, watch::channel(None).0));
    assert_eq!(next(&mut stream).await, ConfigRead::Missing);
    world.kubectl("create configmap addon-operator --from-literal=one=a");
    assert_eq!(entry(&next(&mut stream).await, "one").as_deref(), Some("a"));
    world.kubectl("create configmap other --from-literal=one=b");
    world.kubectl("delete configmap addon-operator");
    assert_eq!(
        next(&mut stream).await,
        ConfigRead::Missing,
        "another ConfigMap is none of our business"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_written_only_over_what_the_writer_saw() {
    let world = World::new("save").await;
    let cluster = &world.tools.cluster;
    let save = |key: &'static str, text: &str, base: Option<&'static str>| {
        let text = text.to_owned();
        async move {
            cluster
                .save_config(NAME, key, text, base, true)
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
    let read = cluster.read_config(NAME).await.expect("the API server is there");
    assert_eq!(entry(&read, "one").as_deref(), Some("2"));
    assert_eq!(entry(&read, "two").as_deref(), Some("kept"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_config_map_that_is_gone_is_made_again_only_if_that_was_asked_for() {
    let world = World::new("gone").await;
    let cluster = &world.tools.cluster;
    let saved = cluster.save_config(NAME, "one", "1".to_owned(), None, false).await;
    assert_eq!(
        saved.expect("the API server is there"),
        Saved::Conflict(ConfigRead::Missing)
    );
    let read = cluster.read_config(NAME).await.expect("the API server is there");
    assert_eq!(read, ConfigRead::Missing);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_writers_at_the_same_time_one_wins_and_the_others_hear_of_it() {
    let world = World::new("race").await;
    let cluster = &world.tools.cluster;
    let writers = (0..8).map(|writer| cluster.save_config(NAME, "one", writer.to_string(), None, true));
    let outcomes = futures::future::join_all(writers).await;
    let mut winners = Vec::new();
    for (writer, outcome) in outcomes.into_iter().enumerate() {
        match outcome.expect("the API server is there") {
            Saved::Written { .. } => winners.push(writer.to_string()),
            Saved::Conflict(_) => {}
        }
    }
    let read = cluster.read_config(NAME).await.expect("the API server is there");
    assert_eq!(winners.len(), 1);
    assert_eq!(entry(&read, "one").as_ref(), winners.first());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_server_is_named_and_is_no_reading() {
    let world = World::new("unreachable").await;
    let dir = tempfile::tempdir().expect("there is room for a directory");
    // Port 1 is reserved and nobody listens there.
    let address = Address {
        kube_config: vec![world.namespace.kubeconfig(testbed::plane::User::Operator)],
        server: Some("https://127.0.0.1:1".to_owned()),
        ..Address::default()
    };
    let cluster = Cluster::connect(&address, "ns", Some(dir.path()), meters())
        .await
        .expect("no request is made");
    let failure = Failure::from(cluster.read_config(NAME).await.expect_err("nobody is there"));
    assert_eq!(failure.class, Class::Unavailable);
    assert!(failure.hints[0].contains("https://127.0.0.1:1"), "{failure:?}");
    let mut stream = pin!(cluster.watch_config(NAME, watch::channel(None).0));
    assert!(futures::poll!(stream.next()).is_pending());
}
