//! Questions of the API server: which hook answers, when, and the reply if no hook can.

use super::*;
use crate::review::reply::NoAnswer;
use crate::review::request::{AdmissionRequest, ConversionRequest, ReviewRequest};
use crate::review::response::{AdmissionResponse, ConversionResponse};

const VALIDATING: &str = "kubernetesValidating:\n- name: check.example.com\n  rules:\n  - {apiGroups: [''], \
                          apiVersions: [v1], operations: [CREATE], resources: [pods], scope: '*'}";
const PATH: &str = "/hooks/check-example-com";

fn asked(path: &str) -> Asked {
    let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u"}});
    Asked {
        path: path.to_owned(),
        request: ReviewRequest::Admission(AdmissionRequest::parse(body.to_string().as_bytes()).unwrap()),
        within: Duration::from_secs(10),
    }
}

fn ask(world: &mut World, number: u64) {
    world.handle(Event::ReviewRequested(ReviewId(number), asked(PATH)));
}

fn allowing(mut world: World, words: &str) -> World {
    let admission = Some(AdmissionResponse {
        allowed: true,
        ..AdmissionResponse::default()
    });
    let response = HookResponse {
        admission,
        conversion: None,
    };
    world.responses.insert(words.to_owned(), response);
    world
}

/// The result in the last reply, or the reason why there is none.
fn verdict(world: &World) -> Value {
    match &world.replies.last().unwrap().1 {
        Reply::Review(review) => review.to_value()["response"]["allowed"].clone(),
        Reply::NoAnswer(why) => json!(why.to_string()),
    }
}

fn alone(config: &str) -> World {
    let mut world = allowing(World::alone().hook("", "a.sh", config), "a.sh kubernetesValidating");
    let inventory = world.inventory.clone();
    world.handle(Event::InventoryChanged(inventory));
    world.take_log();
    world
}

#[test]
fn a_hook_answers_beside_its_queue() {
    let mut world = alone(&format!("{VALIDATING}\nonStartup: 1"));
    world.failing.insert("a.sh onStartup".to_owned(), 0);
    ask(&mut world, 1);
    assert_eq!(world.take_log(), ["a.sh kubernetesValidating"]);
    assert_eq!((world.replies.len(), verdict(&world)), (1, json!(true)));
    world.failing.insert("a.sh kubernetesValidating".to_owned(), 1);
    ask(&mut world, 2);
    assert_eq!(
        verdict(&world),
        json!(false),
        "a hook that fails denies, and is not tried again"
    );
    world.handle(Event::ReviewRequested(ReviewId(3), asked("/hooks/other")));
    assert_eq!(world.replies.len(), 3);
}

#[test]
fn who_waits_for_a_slot_or_a_hook_is_told_in_time() {
    let mut world = alone(VALIDATING);
    world.open.insert("a.sh kubernetesValidating".to_owned());
    for number in 1..=3 {
        ask(&mut world, number);
    }
    assert_eq!(world.pending.len(), 2, "as many as there are slots for reviews");
    let (at, waiting) = world.operator.poll_timeout().unwrap();
    assert!(matches!(waiting, Waiting::Review(_)) && at - world.tick <= Duration::from_secs(10));
    world.tick = at + Duration::from_secs(1);
    world.handle(Event::TimerFired);
    assert_eq!(world.replies.len(), 3);
    let late = |reply: &(ReviewId, Reply)| matches!(reply.1, Reply::NoAnswer(NoAnswer::Late(..)));
    assert!(world.replies.iter().all(late), "{:?}", world.replies);
    assert_eq!(
        world
            .take_log()
            .iter()
            .filter(|line| line.starts_with("cancel"))
            .count(),
        2
    );
    world.close("a.sh kubernetesValidating");
    assert_eq!(world.replies.len(), 3, "nobody waits for what comes now");
}

#[test]
fn a_review_runs_for_as_long_as_its_binding_says_but_never_longer_than_somebody_waits() {
    for (timeout, seconds) in [("", 10), ("  timeout: 3s\n", 3), ("  timeout: 1m\n", 10)] {
        let mut world = alone(&VALIDATING.replace("  rules", &format!("{timeout}  rules")));
        world.open.insert("a.sh kubernetesValidating".to_owned());
        ask(&mut world, 1);
        let Job::RunHook(run, _) = &world.pending[0] else {
            panic!()
        };
        assert_eq!(run.deadline, Duration::from_secs(seconds), "{timeout:?}");
    }
}

#[test]
fn a_hook_that_takes_too_long_leaves_the_answer_to_the_failure_policy() {
    let mut world = alone(VALIDATING);
    world.open.insert("a.sh kubernetesValidating".to_owned());
    ask(&mut world, 1);
    let job = world.pending.remove(0);
    world.handle(Event::JobFinished(
        job.failed(Failure::new(Class::TimedOut, "it hangs")),
    ));
    assert_eq!(verdict(&world), json!("hook 'a.sh' has not answered in time"));
    let told = |notice: &Notice| matches!(notice, Notice::HookFailed { failure, .. } if failure.report == "a.sh FAILED: it hangs");
    assert!(world.notices.iter().any(told));
}

#[test]
fn a_module_answers_from_its_start_until_it_is_switched_off() {
    let world = World::new(vec![module(10, "one")]).hook("one", "a.sh", &format!("{VALIDATING}\nbeforeHelm: 1"));
    let mut world = allowing(world, "one/a.sh kubernetesValidating");
    ask(&mut world, 1);
    assert_eq!(verdict(&world), json!("hooks are still being configured"));
    let mut world = world.start();
    ask(&mut world, 2);
    assert_eq!(verdict(&world), json!(true));
    world.edit(&[("oneEnabled", Some("false"))]);
    ask(&mut world, 3);
    let Reply::Review(review) = &world.replies.last().unwrap().1 else {
        panic!("nobody has this path any more")
    };
    assert_eq!(review.to_value()["response"]["status"]["code"], json!(500));
}

#[test]
fn values_cannot_be_changed_on_the_way() {
    let world = World::new(vec![module(10, "one")]).hook("one", "a.sh", VALIDATING);
    let patch = json!([{"op": "add", "path": "/one/x", "value": 1}]);
    let world = world.patching("one/a.sh kubernetesValidating", &patch, &json!([]));
    let mut world = allowing(world, "one/a.sh kubernetesValidating").start();
    ask(&mut world, 1);
    assert_eq!(verdict(&world), json!(false));
    let refused = |notice: &Notice| matches!(notice, Notice::HookFailed { failure, .. } if failure.report.contains("cannot change values"));
    assert!(world.notices.iter().any(refused));
}

#[test]
fn a_shutdown_leaves_nobody_without_an_answer() {
    let mut world = alone(VALIDATING);
    world.open.insert("a.sh kubernetesValidating".to_owned());
    for number in 1..=3 {
        ask(&mut world, number);
    }
    world.handle(Event::ShutdownRequested);
    assert_eq!(verdict(&world), json!("the operator is shutting down"));
    ask(&mut world, 4);
    assert_eq!(world.replies.len(), 2);
    world.close("a.sh kubernetesValidating");
    assert_eq!(world.replies.len(), 4);
}

#[test]
fn nor_in_the_midst_of_a_conversion() {
    let config = "kubernetesCustomResourceConversion:\n- name: c\n  crdName: things.example.com\n  conversions:\n  \
                  - {fromVersion: v1, toVersion: v2}\n  - {fromVersion: v2, toVersion: v3}";
    let words = "a.sh kubernetesCustomResourceConversion";
    let mut world = World::alone().hook("", "a.sh", config);
    let object = |version: &str| json!({"apiVersion": version, "kind": "Thing", "metadata": {"name": "a"}});
    let converted = ConversionResponse {
        objects: vec![object("v2")],
        failed: String::new(),
    };
    let response = HookResponse {
        admission: None,
        conversion: Some(converted),
    };
    world.responses.insert(words.to_owned(), response);
    let inventory = world.inventory.clone();
    world.handle(Event::InventoryChanged(inventory));
    world.open.insert(words.to_owned());
    let body = json!({"request": {"uid": "u", "desiredAPIVersion": "v3", "objects": [object("v1")]}});
    let asked = Asked {
        path: "/things.example.com".to_owned(),
        request: ReviewRequest::Conversion(ConversionRequest::parse(body.to_string().as_bytes()).unwrap()),
        within: Duration::from_secs(10),
    };
    world.handle(Event::ReviewRequested(ReviewId(1), asked));
    world.handle(Event::ShutdownRequested);
    assert_eq!((world.pending.len(), world.replies.len()), (1, 0));
    world.take_log();
    world.close(words);
    assert_eq!(verdict(&world), json!("the operator is shutting down"));
    assert_eq!(world.take_log(), [words, "exit"], "its second step is not begun");
}

#[test]
fn who_comes_to_answer_without_a_job_is_published_at_once() {
    let silent = Module {
        has_chart: false,
        ..module(10, "one")
    };
    let mut world = World::new(vec![silent]).hook("one", "a.sh", VALIDATING).start();
    assert_eq!(world.state("one"), "Ready");
    assert_eq!(world.take_log(), ["publish"]);
}

#[test]
fn objects_that_hooks_convert_are_listed_once_the_api_server_knows_whom_to_ask() {
    let conversion = "kubernetesCustomResourceConversion:\n- name: c\n  crdName: things.example.com\n  conversions:\n  \
                      - {fromVersion: v1, toVersion: v2}\nkubernetes:\n- name: things\n  kind: Thing";
    let mut world = World::alone().hook("", "a.sh", conversion);
    let inventory = world.inventory.clone();
    world.handle(Event::InventoryChanged(inventory));
    assert_eq!(
        world.take_log(),
        ["publish", "a.sh watch", "a.sh kubernetes [things all]"]
    );
}

#[test]
fn what_somebody_touches_is_looked_after_soon_and_not_all_the_time() {
    let mut world = alone(VALIDATING);
    let due = |world: &World| world.operator.poll_timeout().unwrap().0;
    let waits = |world: &World| (due(world) - world.tick).as_secs();
    assert!(waits(&world) >= 59);
    world.handle(Event::WebhooksTouched);
    let soon = due(&world);
    assert!(waits(&world) <= 2);
    // Repeated changes neither delay the comparison nor make it more frequent.
    world.handle(Event::WebhooksTouched);
    assert_eq!((due(&world), world.take_log()), (soon, Vec::new()));
    world.tick = soon;
    world.open.insert("publish".to_owned());
    world.handle(Event::TimerFired);
    assert_eq!(world.pending.len(), 1);
    world.handle(Event::WebhooksTouched);
    world.close("publish");
    assert_eq!(world.take_log(), ["publish"]);
    assert!(waits(&world) <= 2, "it was touched while it was being compared");
    world.tick = due(&world);
    world.handle(Event::TimerFired);
    assert_eq!(world.take_log(), ["publish"]);
    assert!(waits(&world) >= 59);
}

#[test]
fn nobody_looks_after_webhooks_that_nobody_wants() {
    let mut world = alone("onStartup: 1");
    world.handle(Event::WebhooksTouched);
    assert_eq!(world.operator.poll_timeout().map(|(_, waiting)| waiting), None);
    assert_eq!(world.take_log(), [] as [&str; 0]);
}

#[test]
fn what_a_module_wants_to_be_asked_is_published_as_soon_as_it_has_started() {
    let mut one = module(10, "one");
    one.has_chart = false;
    let world = World::new(vec![one]).hook("one", "a.sh", VALIDATING);
    let mut world = allowing(world, "one/a.sh kubernetesValidating").start();
    let log = world.take_log();
    assert_eq!(log.iter().filter(|line| *line == "publish").count(), 1, "{log:?}");
}

#[test]
fn nobody_is_told_to_ask_a_module_that_comes_up_and_goes_in_one_step() {
    let mut module = module(10, "one");
    module.has_chart = false;
    let mut world = World::new(vec![module]).hook("one", "h.sh", &format!("{VALIDATING}\nonStartup: 1"));
    world.open.insert("one/h.sh onStartup".to_owned());
    let mut world = world.start();
    world.edit(&[("oneEnabled", Some("false"))]);
    world.open.insert(String::new());
    world.close("one/h.sh onStartup");
    assert_eq!(world.state("one"), "Disabled");
    let published = |job: &Job| matches!(job, Job::PublishWebhooks(..));
    assert!(!world.pending.iter().any(published), "{:?}", world.pending);
}
