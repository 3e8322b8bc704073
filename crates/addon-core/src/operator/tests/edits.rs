//! Edits of the ConfigMap that the API server asks us about.

use channel_core::choice::Activity;
use channel_core::settings::Settings;
use values_schema::schema::Files;

use super::*;
use crate::operator::policy::Edits;
use crate::review::reply::NoAnswer;
use crate::review::request::{AdmissionRequest, ReviewRequest};

const PATH: &str = "/config-map";

fn asked(before: &Value, after: &Value) -> Asked {
    let object = |data: &Value| json!({"metadata": {"name": "config"}, "data": data});
    let request = json!({"uid": "u", "operation": "UPDATE", "oldObject": object(before), "object": object(after)});
    let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
    Asked {
        path: PATH.to_owned(),
        request: ReviewRequest::Admission(AdmissionRequest::parse(body.to_string().as_bytes()).unwrap()),
        within: Duration::from_secs(3),
    }
}

fn ask(world: &mut World, number: u64, before: &Value, after: &Value) {
    world.handle(Event::ReviewRequested(ReviewId(number), asked(before, after)));
}

/// A world with a module whose section has a size.
fn world(edits: Edits) -> World {
    let mut files = Files::default();
    files.insert("c", "properties: {size: {type: integer, default: 1}}");
    let described = Module {
        schemas: Schemas::load(&files, Some("c"), None).unwrap(),
        ..module(10, "one")
    };
    let mut world = World::new(vec![described]);
    let policy = Policy {
        edits,
        ..Policy::default()
    };
    world.operator = Operator::new(1, policy);
    world
}

fn always() -> Edits {
    Edits::Always {
        config_map: "config".to_owned(),
    }
}

fn with_hooks() -> Edits {
    Edits::WithHooks {
        config_map: "config".to_owned(),
    }
}

fn last(world: &World) -> Value {
    match &world.replies.last().unwrap().1 {
        Reply::Review(review) => review.to_value()["response"].clone(),
        Reply::NoAnswer(why) => json!(why.to_string()),
    }
}

#[test]
fn the_api_server_is_told_to_ask_when_it_is_known_how_we_are_reached() {
    let published = |world: World| world.start().log.contains(&"publish".to_owned());
    assert!(published(world(always())));
    assert!(!published(world(with_hooks())));
    let hook = "kubernetesValidating:\n- name: check.example.com\n  rules:\n  - {apiGroups: [''], apiVersions: [v1], \
                operations: [CREATE], resources: [pods], scope: '*'}";
    let mut world = world(with_hooks()).hook("", "a.sh", hook).start();
    ask(&mut world, 1, &json!({}), &json!({"oneEnabled": "yes"}));
    assert_eq!(last(&world)["allowed"], json!(false));
}

#[test]
fn an_edit_is_judged_by_what_is_in_force() {
    let mut world = world(always()).start();
    ask(&mut world, 1, &json!({}), &json!({"one": "size: 5", "two": "{}"}));
    let said = last(&world);
    assert_eq!((&said["allowed"], &said["uid"]), (&json!(true), &json!("u")));
    assert_eq!(
        said["warnings"],
        json!(["key 'two': there is no module 'two', so it says nothing"])
    );
    ask(&mut world, 2, &json!({}), &json!({"one": "size: big"}));
    let said = last(&world);
    assert_eq!(
        said["status"]["message"],
        json!("key 'one' of module 'one': 1 error occurred:\n\t* one.size in body must be of type integer: \"string\"")
    );
    world.take_log();
    world.edit(&[("one", Some("size: 7"))]);
    assert_eq!(
        world.take_log(),
        ["one sync"],
        "what was asked about has set off nothing"
    );
}

#[test]
fn our_own_write_passes_while_it_is_on_its_way() {
    let wish = json!([{"op": "add", "path": "/one/size", "value": 5}]);
    let mut world =
        world(always())
            .hook("one", "h.sh", "beforeHelm: 1")
            .patching("one/h.sh beforeHelm", &json!([]), &wish);
    world.open.insert("save one".to_owned());
    let mut world = world.start();
    let Some(Job::SaveConfig { text, .. }) = world.pending.first().cloned() else {
        panic!("{:?}", world.pending)
    };
    world.open.insert("judge".to_owned());
    ask(&mut world, 1, &json!({}), &json!({"one": text}));
    let Some(Job::JudgeEdit(edit, _)) = world.pending.last().cloned() else {
        panic!("{:?}", world.pending)
    };
    assert_eq!(edit.known.get("one"), Some(&text));
    world.close("judge");
    assert_eq!(last(&world)["allowed"], json!(true));
}

#[test]
fn every_question_is_answered_in_turn_or_in_time() {
    let mut world = world(always()).start();
    world.open.insert("judge".to_owned());
    for number in 1..=3 {
        ask(&mut world, number, &json!({}), &json!({}));
    }
    assert_eq!(world.pending.len(), 1, "one after another");
    let (at, waiting) = world.operator.poll_timeout().unwrap();
    assert_eq!(waiting, Waiting::Edit);
    world.tick = at + Duration::from_secs(1);
    world.handle(Event::TimerFired);
    let late = |reply: &(ReviewId, Reply)| reply.1 == Reply::NoAnswer(NoAnswer::Unjudged);
    assert!(
        world.replies.len() == 3 && world.replies.iter().all(late),
        "{:?}",
        world.replies
    );
    ask(&mut world, 4, &json!({}), &json!({}));
    world.close("judge");
    assert_eq!((world.replies.len(), &last(&world)["allowed"]), (4, &json!(true)));
}

#[test]
fn who_cannot_judge_leaves_it_to_the_failure_policy() {
    let mut early = world(always());
    ask(&mut early, 1, &json!({}), &json!({}));
    assert_eq!(last(&early), json!("hooks are still being configured"));
    let mut unasked = world(with_hooks()).start();
    ask(&mut unasked, 1, &json!({}), &json!({"oneEnabled": "yes"}));
    assert_eq!(
        last(&unasked),
        json!("the edit of the ConfigMap could not be judged in time")
    );
    let mut failing = world(always()).start();
    failing.failing.insert("judge".to_owned(), 1);
    ask(&mut failing, 1, &json!({}), &json!({}));
    assert_eq!(
        last(&failing),
        json!("the edit of the ConfigMap could not be judged in time")
    );
    let mut stopping = world(always()).start();
    stopping.open.insert("judge".to_owned());
    ask(&mut stopping, 1, &json!({}), &json!({}));
    ask(&mut stopping, 2, &json!({}), &json!({}));
    stopping.handle(Event::ShutdownRequested);
    assert_eq!(last(&stopping), json!("the operator is shutting down"));
    stopping.close("judge");
    assert_eq!(last(&stopping)["allowed"], json!(true));
}

#[test]
fn an_edit_of_global_values_lets_a_hook_that_failed_at_start_up_try_again_at_once() {
    let mut world = World::new(vec![module(10, "one")]).hook("", "g.sh", "onStartup: 1");
    world.failing.insert("g.sh onStartup".to_owned(), 1);
    let mut world = world.start();
    assert_eq!(world.take_log(), ["g.sh onStartup fails"]);
    assert!(
        world
            .status()
            .waiting
            .iter()
            .any(|line| line.contains("global hook 'g.sh' (onStartup)"))
    );
    world.edit(&[("global", Some("color: red"))]);
    assert_eq!(world.take_log(), ["g.sh onStartup", "one sync"]);
}

fn channel_settings(world: &World) -> Option<Settings> {
    world.operator.answer(&ChannelQuery).settings
}

#[test]
fn settings_of_the_channel_are_in_force_as_they_were_last_good() {
    let mut world = world(always());
    assert_eq!(channel_settings(&world), None);
    world = world.start();
    let channel = |world: &World| {
        let settings = channel_settings(world)?;
        Some(settings.channel.map(|channel| channel.to_string()).unwrap_or_default())
    };
    assert_eq!(channel(&world).as_deref(), Some(""));
    world.take_log();
    world.edit(&[
        ("releaseChannel", Some("1.4.x")),
        ("releasePolicy", Some("mode: manual")),
    ]);
    assert_eq!(channel(&world).as_deref(), Some("1.4.x"));
    assert!(world.notices.iter().any(
        |notice| matches!(notice, Notice::ConfigApplied { keys } if *keys == ["releaseChannel", "releasePolicy"])
    ));
    world.edit(&[("releaseChannel", Some(">=1.4<2"))]);
    assert_eq!(channel(&world).as_deref(), Some("1.4.x"));
    assert!(world.status().config_problems.contains_key("releaseChannel"));
    world.edit(&[("releaseChannel", Some("stable"))]);
    assert_eq!(channel(&world).as_deref(), Some("stable"));
    world.edit(&[("releaseChannel", None)]);
    assert_eq!(channel(&world).as_deref(), Some(""));
    assert_eq!(world.take_log(), [""; 0]);
    // A missing ConfigMap leaves the settings as they were.
    world.edit(&[("releaseChannel", Some("stable"))]);
    world.handle(Event::ConfigChanged(ConfigRead::Missing));
    assert_eq!(channel(&world).as_deref(), Some("stable"));
    world.edit(&[("releaseChannel", None)]);
    // A broken key leaves the settings unknown.
    world.edit(&[("releaseChannel", Some("sha256:12"))]);
    assert_eq!(channel(&world), None);
}

#[test]
fn a_moment_is_quiet_when_no_helm_runs_and_main_is_empty() {
    let activity = |world: &World| world.operator.answer(&ChannelQuery).activity;
    let mut world = world(always());
    assert_eq!(activity(&world), Activity::Busy, "nothing has begun");
    world.open.insert("one sync".to_owned());
    world = world.start();
    assert_eq!(activity(&world), Activity::Busy, "the first converge goes on");
    world.close("one sync");
    assert_eq!(activity(&world), Activity::Quiet);
    world.open.insert("one sync".to_owned());
    world.edit(&[("one", Some("size: 2"))]);
    assert_eq!(activity(&world), Activity::Busy);
    world.close("one sync");
    assert_eq!(activity(&world), Activity::Quiet);
}

#[test]
fn settings_of_the_channel_are_not_known_while_there_has_never_been_a_config_map() {
    let mut world = World::new(vec![module(10, "one")]);
    world.handle(Event::InventoryChanged(world.inventory.clone()));
    world.handle(Event::ConfigChanged(ConfigRead::Missing));
    assert_eq!(channel_settings(&world), None);
    world.edit(&[]);
    assert_eq!(channel_settings(&world), Some(Settings::default()));
}

#[test]
fn an_edit_with_a_bad_setting_of_the_channel_is_refused() {
    let mut world = world(always()).start();
    ask(
        &mut world,
        1,
        &json!({}),
        &json!({"releaseChannel": "1.4.x", "releaseApproved": ""}),
    );
    assert_eq!(last(&world)["allowed"], json!(true));
    assert_eq!(last(&world)["warnings"], Value::Null);
    ask(&mut world, 2, &json!({}), &json!({"releasePolicy": "mode: never"}));
    let said = last(&world);
    assert_eq!(said["allowed"], json!(false));
    assert_eq!(
        said["status"]["message"],
        json!("key 'releasePolicy': 'mode' is \"never\": write auto, patch or manual")
    );
    ask(
        &mut world,
        3,
        &json!({"releasePolicy": "mode: never"}),
        &json!({"releasePolicy": "mode: never", "one": "size: 5"}),
    );
    assert_eq!(last(&world)["allowed"], json!(true));
}
