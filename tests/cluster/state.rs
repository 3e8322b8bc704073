//! The operator's own state in its Secret.

use std::collections::BTreeMap;

use addon_core::module::outline::ValuesFile;
use addon_core::operator::provenance::Made;
use addon_core::release::{Intent, IntentKind};
use names::ModuleName;
use saved_state::{
    clear_intent, clear_recorded, load_state, note_end, record_intent, save_last_good, save_values_files,
};

use super::world::World;

pub(crate) fn intent(revision_before: u32) -> Intent {
    Intent {
        kind: IntentKind::Upgrade,
        revision_before,
        digest: "d".to_owned(),
        started: 7,
        marks: true,
        holder: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_saved_is_loaded() {
    let world = World::new("state").await;
    let cluster = &world.tools.ground.cluster;
    assert!(load_state(cluster).await.unwrap().last_good.is_none());
    let last_good: BTreeMap<_, _> = [("one".to_owned(), "a: 1\n".to_owned())].into();
    let made = Made {
        uid: "uid".to_owned(),
        edited: true,
        unsaid: ["one".to_owned()].into(),
    };
    save_last_good(cluster, &last_good, Some(&made)).await.unwrap();
    let state = load_state(cluster).await.unwrap();
    assert_eq!((state.last_good, state.made), (Some(last_good), Some(made)));
    save_last_good(cluster, &BTreeMap::new(), None).await.unwrap();
    let state = load_state(cluster).await.unwrap();
    assert_eq!((state.last_good, state.made), (Some(BTreeMap::new()), None));

    assert_eq!(load_state(cluster).await.unwrap().values_files, None);
    let flags = [(ModuleName::parse("one").unwrap(), true)].into();
    let sections = ["global".to_owned()].into();
    let files = [
        ("a/values.yaml".to_owned(), Some(ValuesFile { flags, sections })),
        ("b/values.yaml".to_owned(), None),
    ];
    let files = files.into();
    save_values_files(cluster, &files).await.unwrap();
    assert_eq!(load_state(cluster).await.unwrap().values_files, Some(files));
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_at_the_same_time_disturb_nobody() {
    let world = World::new("intents").await;
    let cluster = &world.tools.ground.cluster;
    let names: Vec<_> = (0..8).map(|number| format!("release-{number}")).collect();
    let intents: Vec<_> = (0..8).map(intent).collect();
    let writers = names
        .iter()
        .zip(&intents)
        .map(|(name, intent)| record_intent(cluster, name, intent));
    for outcome in futures::future::join_all(writers).await {
        outcome.unwrap();
    }
    for (name, intent) in names.iter().zip(&intents) {
        assert_eq!(saved_state::intent(cluster, name).await.unwrap().as_ref(), Some(intent));
    }
    clear_intent(cluster, &names[0]).await.unwrap();
    clear_intent(cluster, "never-there").await.unwrap();
    assert_eq!(saved_state::intent(cluster, &names[0]).await.unwrap(), None);
    assert_eq!(
        saved_state::intent(cluster, &names[1]).await.unwrap().as_ref(),
        Some(&intents[1])
    );
}

/// A writer remembers the Secret from its own last write, but other programs write to it too.
#[tokio::test(flavor = "multi_thread")]
async fn changes_of_others_since_the_last_write_stay() {
    let mut world = World::new("beside").await;
    let proxy = world.restart_behind_a_proxy().await;
    let cluster = &world.tools.ground.cluster;
    let first = record_intent(cluster, "one", &intent(1)).await.unwrap();
    clear_recorded(cluster, first).await.unwrap();
    let (before, _) = proxy.seen();
    let second = record_intent(cluster, "one", &intent(2)).await.unwrap();
    clear_recorded(cluster, second).await.unwrap();
    assert_eq!(
        proxy.seen().0 - before,
        2,
        "a Secret is made and deleted without a look"
    );

    record_intent(cluster, "one", &intent(3)).await.unwrap();
    let others = r#"patch secret addon-operator-intents -p {"data":{"other":"eA=="}}"#;
    world.kubectl(others);
    record_intent(cluster, "two", &intent(4)).await.unwrap();
    let data = world.kubectl("get secret addon-operator-intents -o=jsonpath={.data.other}");
    assert_eq!(data, "eA==", "the key that another one wrote stays");
    assert_eq!(saved_state::intent(cluster, "one").await.unwrap(), Some(intent(3)));

    world.kubectl("delete secret addon-operator-intents");
    record_intent(cluster, "two", &intent(4)).await.unwrap();
    assert_eq!(
        saved_state::intent(cluster, "two").await.unwrap(),
        Some(intent(4)),
        "the deleted secret is created again"
    );
    world.kubectl("delete secret addon-operator-intents");
    record_intent(cluster, "two", &intent(5)).await.unwrap();
    assert_eq!(saved_state::intent(cluster, "two").await.unwrap(), Some(intent(5)));
}

/// Runs of helm that end well cost one write each: the next intent takes the place of those before.
#[tokio::test(flavor = "multi_thread")]
async fn intents_of_children_that_have_ended_go_with_the_next_write() {
    let mut world = World::new("ended").await;
    let proxy = world.restart_behind_a_proxy().await;
    let cluster = world.tools.ground.cluster.clone();
    let names = ["one", "two", "three"];
    let (before, _) = proxy.seen();
    let mut recorded = Vec::new();
    for name in names {
        recorded.push(record_intent(&cluster, name, &intent(1)).await.unwrap());
    }
    for recorded in recorded {
        note_end(&cluster, recorded);
    }
    let four = record_intent(&cluster, "four", &intent(1)).await.unwrap();
    // One look at a Secret that is not there, and four writes.
    assert_eq!(proxy.seen().0 - before, 5);
    let keys = |world: &World| {
        let data = world.kubectl("get secret addon-operator-intents -o=jsonpath={.data}");
        let data: BTreeMap<String, String> = serde_json::from_str(&data).unwrap();
        data.into_keys().collect::<Vec<_>>()
    };
    assert_eq!(keys(&world), ["intent.four", "version"]);
    note_end(&cluster, four);
    assert_eq!(
        saved_state::intent(&cluster, "four").await.unwrap(),
        None,
        "its child has ended"
    );
    assert_eq!(keys(&world), ["intent.four", "version"], "nothing is written for that");

    // Another process has an intent of its own for the same release, which stays.
    world.restart().await;
    record_intent(&world.tools.ground.cluster, "four", &intent(2))
        .await
        .unwrap();
    let five = record_intent(&cluster, "five", &intent(1)).await.unwrap();
    assert_eq!(keys(&world), ["intent.five", "intent.four", "version"]);
    assert_eq!(saved_state::intent(&cluster, "four").await.unwrap(), Some(intent(2)));
    clear_recorded(&cluster, five).await.unwrap();
    assert_eq!(keys(&world), ["intent.four", "version"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_stops_nobody_and_what_is_newer_stays() {
    let world = World::new("newer").await;
    let cluster = &world.tools.ground.cluster;
    world.kubectl("create secret generic addon-operator-state --from-literal=version=2 --from-literal=last-good={oh --from-literal=unheard-of=x");
    assert!(load_state(cluster).await.unwrap().last_good.is_none());
    record_intent(cluster, "one", &intent(1)).await.unwrap();
    save_last_good(cluster, &BTreeMap::new(), None).await.unwrap();
    let data = world.kubectl("get secret addon-operator-state -o=jsonpath={.data.version}:{.data.unheard-of}");
    assert_eq!(data, "Mg==:eA==");
}

#[tokio::test(flavor = "multi_thread")]
async fn sections_that_fill_the_secret_leave_room_for_intents() {
    let world = World::new("full").await;
    let cluster = &world.tools.ground.cluster;
    let mut state = 1_u64;
    let mut letter = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'0' + (state >> 58) as u8)
    };
    let mut section = |length| (0..length).map(|_| letter()).collect::<String>();
    for lengths in [&[20, 1_040_000][..], &[20, 500_000, 530_000]] {
        let named = (0..).zip(lengths);
        let last_good: BTreeMap<_, _> = named
            .map(|(nth, length)| (format!("s{nth}"), section(*length)))
            .collect();
        assert_eq!(save_last_good(cluster, &last_good, None).await.unwrap(), [""; 0]);
        assert_eq!(load_state(cluster).await.unwrap().last_good.as_ref(), Some(&last_good));
        let recorded = record_intent(cluster, "one", &intent(1)).await.unwrap();
        assert_eq!(saved_state::intent(cluster, "one").await.unwrap(), Some(intent(1)));
        clear_recorded(cluster, recorded).await.unwrap();
        assert_eq!(load_state(cluster).await.unwrap().last_good.as_ref(), Some(&last_good));
    }
    let last_good = [
        ("large".to_owned(), section(1_500_000)),
        ("small".to_owned(), section(20)),
    ]
    .into();
    assert_eq!(save_last_good(cluster, &last_good, None).await.unwrap(), ["large"]);
    let kept = load_state(cluster).await.unwrap().last_good;
    assert_eq!(kept.unwrap_or_default().into_keys().collect::<Vec<_>>(), ["small"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_earlier_versions_recorded_is_read_and_forgotten() {
    let world = World::new("earlier").await;
    let cluster = &world.tools.ground.cluster;
    let text = serde_json::to_string(&intent(3)).unwrap();
    world.kubectl(&format!(
        "create secret generic addon-operator-state --from-literal=version=1 --from-literal=intent.one={text}"
    ));
    assert_eq!(saved_state::intent(cluster, "one").await.unwrap(), Some(intent(3)));
    clear_intent(cluster, "one").await.unwrap();
    assert_eq!(saved_state::intent(cluster, "one").await.unwrap(), None);
    assert_eq!(
        world.kubectl("get secrets -o=name"),
        "",
        "nothing is left to be remembered"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_put_aside_before_it_is_written_over() {
    let world = World::new("aside").await;
    let cluster = &world.tools.ground.cluster;
    world.kubectl("create secret generic addon-operator-state --from-literal=version=1 --from-literal=last-good={oh --from-literal=last-good.gz=no");
    let last_good: BTreeMap<_, _> = [("one".to_owned(), "a: 1\n".to_owned())].into();
    for _ in 0..2 {
        save_last_good(cluster, &last_good, None).await.unwrap();
    }
    assert_eq!(load_state(cluster).await.unwrap().last_good.as_ref(), Some(&last_good));
    let aside = world.kubectl("get secret addon-operator-state-unreadable -o=jsonpath={.data}");
    assert_eq!(aside, r#"{"last-good":"e29o","last-good.gz":"bm8="}"#);
}
