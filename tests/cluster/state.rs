//! Our own state in its Secret.

use std::collections::BTreeMap;

use addon_core::release::{Intent, IntentKind};

use super::world::World;

fn intent(revision_before: u32) -> Intent {
    Intent {
        kind: IntentKind::Upgrade,
        revision_before,
        digest: "d".to_owned(),
        started: 7,
        holder: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_saved_is_loaded() {
    let world = World::new("state").await;
    let cluster = &world.tools.cluster;
    assert!(cluster.load_state().await.unwrap().last_good.is_empty());
    let last_good: BTreeMap<_, _> = [("one".to_owned(), "a: 1\n".to_owned())].into();
    cluster.save_last_good(&last_good).await.unwrap();
    assert_eq!(cluster.load_state().await.unwrap().last_good, last_good);
    cluster.save_last_good(&BTreeMap::new()).await.unwrap();
    assert!(cluster.load_state().await.unwrap().last_good.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_at_the_same_time_disturb_nobody() {
    let world = World::new("intents").await;
    let cluster = &world.tools.cluster;
    let names: Vec<_> = (0..8).map(|number| format!("release-{number}")).collect();
    let intents: Vec<_> = (0..8).map(intent).collect();
    let writers = names
        .iter()
        .zip(&intents)
        .map(|(name, intent)| cluster.record_intent(name, intent));
    for outcome in futures::future::join_all(writers).await {
        outcome.unwrap();
    }
    for (name, intent) in names.iter().zip(&intents) {
        assert_eq!(cluster.intent(name).await.unwrap().as_ref(), Some(intent));
    }
    cluster.clear_intent(&names[0]).await.unwrap();
    cluster.clear_intent("never-there").await.unwrap();
    assert_eq!(cluster.intent(&names[0]).await.unwrap(), None);
    assert_eq!(cluster.intent(&names[1]).await.unwrap().as_ref(), Some(&intents[1]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_stops_nobody_and_what_is_newer_stays() {
    let world = World::new("newer").await;
    let cluster = &world.tools.cluster;
    world.kubectl("create secret generic addon-operator-state --from-literal=version=2 --from-literal=last-good={oh --from-literal=unheard-of=x");
    assert!(cluster.load_state().await.unwrap().last_good.is_empty());
    cluster.record_intent("one", &intent(1)).await.unwrap();
    cluster.save_last_good(&BTreeMap::new()).await.unwrap();
    let data = world.kubectl("get secret addon-operator-state -o=jsonpath={.data.version}:{.data.unheard-of}");
    assert_eq!(data, "Mg==:eA==");
}
