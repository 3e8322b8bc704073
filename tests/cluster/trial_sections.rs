//! Sections that hooks save while their version is on trial: each is noted before the write, and put back after a trial
//! that failed.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use addon_core::operator::event::{ConfigRead, Saved, Settled};
use addon_core::operator::policy::OnTrial;
use channel_core::trial::record::Ruling;
use config_map::section::{self, Section};
use saved_state::load_state;
use serde_json::Value;

use super::world::World;

const SECRET: &str = "get secret addon-operator-state -o=json";

async fn saved(world: &World, key: &str, base: Option<&str>, text: &str) -> Saved {
    save(world, key, base, text, OnTrial::Yes).await
}

async fn save(world: &World, key: &str, base: Option<&str>, text: &str, on_trial: OnTrial) -> Saved {
    let section = Section {
        key,
        text: text.to_owned(),
        base,
        create: false,
    };
    let saved = section::save(&world.tools.ground, &world.tools.config_map, section, on_trial);
    Box::pin(saved).await.unwrap()
}

async fn settle(world: &World, ruling: Ruling) -> Settled {
    let settled = section::settle(&world.tools.ground, &world.tools.config_map, ruling);
    Box::pin(settled).await.unwrap()
}

fn data(world: &World) -> Value {
    let text = world.kubectl("get configmap addon-operator -o=jsonpath={.data}");
    serde_json::from_str(&text).unwrap()
}

/// The note in the Secret, base64-encoded.
fn note(world: &World) -> Option<String> {
    let secret: Value = serde_json::from_str(&world.kubectl(SECRET)).unwrap();
    secret["data"]["trial-sections"].as_str().map(str::to_owned)
}

fn edit(world: &World, key: &str, text: &str) {
    world.kubectl(&format!(
        "patch configmap addon-operator --type=merge --patch={{\"data\":{{\"{key}\":\"{text}\"}}}}"
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_hooks_saved_is_put_back_once_and_what_people_edited_stays() {
    let world = World::new("trial-sections").await;
    world.kubectl("create configmap addon-operator --from-literal=one=a --from-literal=two=b --from-literal=other=c");
    saved(&world, "one", Some("a"), "one-on-trial").await;
    saved(&world, "two", Some("b"), "two-on-trial").await;
    saved(&world, "three", None, "three-on-trial").await;
    // Another program was faster: the section is noted and not written.
    let conflict = saved(&world, "other", Some("x"), "other-on-trial").await;
    assert!(matches!(conflict, Saved::Conflict(_)), "{conflict:?}");
    edit(&world, "two", "edited");
    let noted = note(&world).unwrap();
    let state = load_state(&world.tools.ground.cluster).await.unwrap();
    assert_eq!(
        state.trial_sections.keys().collect::<Vec<_>>(),
        ["one", "other", "three", "two"]
    );

    let settled = settle(&world, Ruling::Failed).await;
    assert_eq!(
        (settled.put_back, settled.edited),
        (keys(["one", "three"]), keys(["other", "two"]))
    );
    let expected = serde_json::json!({"one": "a", "two": "edited", "other": "c"});
    assert_eq!(data(&world), expected);
    let Some(ConfigRead::Present { data: read, .. }) = settled.read else {
        unreachable!("it was written: {:?}", settled.read)
    };
    assert_eq!(serde_json::json!(read), expected);
    assert_eq!(note(&world), None);

    // The process was killed before it deleted the note, and a person edited the section meanwhile.
    edit(&world, "one", "edited");
    world.kubectl(&format!(
        "patch secret addon-operator-state --type=merge --patch={{\"data\":{{\"trial-sections\":\"{noted}\"}}}}"
    ));
    let settled = settle(&world, Ruling::Unclear).await;
    assert_eq!((settled.put_back, settled.read), (Vec::new(), None));
    assert_eq!(data(&world)["one"], "edited");
    assert_eq!(note(&world), None);
}

fn keys<const N: usize>(keys: [&str; N]) -> Vec<String> {
    keys.map(str::to_owned).into()
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_trial_that_was_passed_only_the_note_goes() {
    let world = World::new("trial-passed").await;
    world.kubectl("create configmap addon-operator --from-literal=one=a");
    saved(&world, "one", Some("a"), "b").await;
    assert!(note(&world).is_some());
    assert_eq!(settle(&world, Ruling::Passed).await, Settled::default());
    assert_eq!((note(&world), data(&world)["one"].as_str()), (None, Some("b")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_section_that_finds_no_room_is_saved_all_the_same_and_costs_no_other() {
    let world = World::new("trial-room").await;
    world.kubectl("create configmap addon-operator --from-literal=one=a");
    saved(&world, "one", Some("a"), "b").await;
    let large = "x".repeat(100_000);
    save(&world, "two", None, &large, OnTrial::No).await;
    saved(&world, "two", Some(&large), "short").await;
    let settled = settle(&world, Ruling::Void).await;
    assert_eq!(settled.put_back, ["one"]);
    assert_eq!(data(&world), serde_json::json!({"one": "a", "two": "short"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_config_map_that_people_took_away_is_not_made_again() {
    let world = World::new("trial-gone").await;
    world.kubectl("create configmap addon-operator --from-literal=one=a");
    saved(&world, "one", Some("a"), "b").await;
    world.kubectl("delete configmap addon-operator");
    let settled = settle(&world, Ruling::Failed).await;
    assert_eq!((settled.put_back, settled.edited), (Vec::new(), keys(["one"])));
    assert_eq!(world.kubectl("get configmap addon-operator --ignore-not-found"), "");
    assert_eq!(note(&world), None);
}
