//! `make campaign-update`: in each round a bad version is pushed and a pod is killed. The old version must lead again
//! each time, and the Deployment must never name another one.

mod page;
mod steps;

use std::cell::RefCell;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use testbed::campaign::Campaign;
use testbed::draw::Draw;
use testbed::report::tell;

use self::page::{LEADS_NOTIFIED, LEADS_POLLED, page};
use self::steps::{Mark, Steps};
use super::bad::{FAILS, HOOK, SHORT, UNKEPT, script};
use super::followed::{ALONE, Change, Followed};
use crate::installed::health::push_image;
use crate::installed::stage::{Image, start};

/// The number of installations at the same time; they mostly wait.
const AT_ONCE: usize = 8;
/// The number of rounds in a test.
const FEW: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Crashes,
    NeverReady,
    EndsAsLeader,
    HangsAsLeader,
    BreaksAModule,
    /// The version brings a module whose image does not exist.
    PodsCannotStart,
    /// The version brings a module whose pods work for 40 seconds at a time.
    PodsCrashLater,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Victim {
    Leader,
    Standby,
    OnTrial,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    /// The given number of seconds after the tag was moved.
    After(u64),
    Begun,
    NewOneLeads,
    OldOneLeadsAgain,
}

const KINDS: [Kind; 7] = [
    Kind::Crashes,
    Kind::NeverReady,
    Kind::EndsAsLeader,
    Kind::HangsAsLeader,
    Kind::BreaksAModule,
    Kind::PodsCannotStart,
    Kind::PodsCrashLater,
];
const VICTIMS: [Victim; 3] = [Victim::Leader, Victim::Standby, Victim::OnTrial];

/// Settings of the installations, which differ in the conditions for a trial.
const SETUPS: [&[&str]; 4] = [
    &[],
    &["replicas=1"],
    ALONE,
    &["strategy.type=Recreate", "strategy.rollingUpdate=null"],
];

#[derive(Clone, Copy, Debug)]
struct Plan {
    kind: Kind,
    victim: Victim,
    moment: Moment,
    is_notified: bool,
}

impl Plan {
    fn drawn(draw: &mut Draw) -> Self {
        let seconds = draw.below(60) as u64;
        let moments = [
            Moment::After(seconds),
            Moment::Begun,
            Moment::NewOneLeads,
            Moment::OldOneLeadsAgain,
        ];
        Self {
            kind: draw.pick(&KINDS),
            victim: draw.pick(&VICTIMS),
            moment: draw.pick(&moments),
            is_notified: draw.below(2) == 0,
        }
    }
}

#[derive(Debug, Default)]
struct Outcome {
    /// The time from the push until the new version led; none if it did not lead.
    led: Option<Duration>,
    /// The steps before the new version led.
    steps: Steps,
    /// Whether a pod was killed before the new version led.
    is_disturbed: bool,
    /// From the last sign that the new version led until the old one led; nothing if the new one never led.
    returned: Option<Duration>,
    /// From the verdict until the old one led; nothing if the old one led before the verdict.
    followed: Option<Duration>,
    /// `failed`, or `unclear` if the harm of the round was the cause.
    ruling: String,
    is_killed: bool,
}

#[test]
fn campaign() {
    if testbed::shared::has_no_node() {
        return;
    }
    let campaign = Campaign::of_this_run().unwrap();
    let rounds = campaign.rounds().unwrap_or(FEW);
    tell(&format!("seed {}, {rounds} rounds", campaign.seed));
    let mut draw = Draw::new(campaign.seed);
    let plans: Vec<Plan> = (0..rounds).map(|_| Plan::drawn(&mut draw)).collect();
    let left = Mutex::new(plans.iter().enumerate().collect::<Vec<_>>());
    let done = Mutex::new(Vec::new());
    let plane = start();
    let image = Image::push(&plane, "versions");
    let of_pods = push_image(&plane);
    let of_pods = of_pods.as_str();
    let (plane, image, left, done) = (&plane, &image, &left, &done);
    thread::scope(|scope| {
        for setup in SETUPS.iter().cycle().take(rounds.min(AT_ONCE)) {
            scope.spawn(move || {
                let values: Vec<&str> = setup.iter().copied().chain([SHORT]).collect();
                let followed = Followed::begin(plane, image, &values);
                loop {
                    let Some((number, plan)) = left.lock().unwrap().pop() else {
                        return;
                    };
                    let outcome = round(&followed, of_pods, number, *plan);
                    tell(&format!("round {number}, {setup:?}: {plan:?}: {outcome:?}"));
                    done.lock().unwrap().push((number, *plan, outcome));
                }
            });
        }
    });
    let done = done.lock().unwrap();
    assert_eq!(done.len(), rounds);
    campaign.keep("update", &page(&done)).unwrap();
}

/// Pushes the version of one round and does its harm. At the end the state is as before.
fn round(followed: &Followed<'_>, of_pods: &str, number: usize, plan: Plan) -> Outcome {
    let side = followed.revision("side");
    let bad = push(followed, of_pods, number, plan.kind);
    let pushed = Instant::now();
    let course = RefCell::new(Course::default());
    if plan.is_notified {
        // A new leader may refuse to ask the registry for a moment.
        followed.wait_for("a question to the registry", || followed.has_checked());
        course.borrow_mut().outcome.steps.note(Mark::Asked, pushed);
    }
    followed.wait_for(&format!("the end of round {number}, {plan:?}"), || {
        let mut course = course.borrow_mut();
        let has_led = course.outcome.led.is_some();
        course.look(followed, &bad, pushed);
        if let Some(led) = course.outcome.led.filter(|_| !has_led) {
            explain(followed, number, plan, led, &course.outcome.steps);
        }
        if !course.is_killed && course.has_come(plan.moment, pushed) {
            course.is_killed = true;
            // There may be no pod of this kind at the moment. Then the round has no kill.
            course.outcome.is_killed = followed.victim(plan.victim).is_some_and(|pod| followed.kill(&pod));
            course.outcome.is_disturbed = course.outcome.is_killed && course.outcome.led.is_none();
        }
        course.is_killed && course.is_over(followed)
    });
    assert!(followed.names(&followed.first), "{}", followed.image());
    assert!(
        !followed.has_rolled_out(&bad),
        "the Deployment never names a bad version: {plan:?}"
    );
    assert_eq!(followed.revision("side"), side, "no release is written anew: {plan:?}");
    followed.wait_for("the end of the module that only the bad version had", || {
        let web = followed.stage.namespace.object("deployment", "web");
        web.is_ok_and(|web| web.is_none())
    });
    // The next round begins when all pods are ready.
    followed.stage.roll_out();
    course.into_inner().outcome
}

/// If a round took longer than allowed, prints the time of each step while the logs and objects still exist.
fn explain(followed: &Followed<'_>, number: usize, plan: Plan, led: Duration, steps: &Steps) {
    let bound = if plan.is_notified { LEADS_NOTIFIED } else { LEADS_POLLED };
    if led <= Duration::from_secs(bound) {
        return;
    }
    let waits = steps.waits();
    tell(&format!(
        "round {number}, {plan:?}: the new version led after {led:.1?}, and may take {bound} s: {waits:.1?}, \
         {} pods on trial before\n{}",
        steps.lost,
        followed.evidence_in_full()
    ));
}

fn push(followed: &Followed<'_>, of_pods: &str, number: usize, kind: Kind) -> String {
    let (ends, hangs) = (script("KILL"), script("STOP"));
    let (ends, hangs) = (["/bin/bash", "-c", &ends, "bash"], ["/bin/bash", "-c", &hangs, "bash"]);
    let values = |tag: &str, script: &str| {
        let web = json!({ "image": of_pods, "suffix": tag, "script": script });
        let all =
            json!({ "greeterEnabled": true, "sideEnabled": true, "poorEnabled": true, "webEnabled": true, "web": web });
        all.to_string()
    };
    let missing = values(":typo", "exec sleep inf");
    let crashing = values(":1", "touch /tmp/ready; sleep 40; exit 1");
    let (missing, crashing) = (web(&missing), web(&crashing));
    let mut change = Change::default();
    match kind {
        Kind::Crashes => change.entrypoint = Some(&["/bin/false"]),
        Kind::NeverReady => change.entrypoint = Some(&["/bin/sleep", "infinity"]),
        Kind::EndsAsLeader => change.entrypoint = Some(&ends),
        Kind::HangsAsLeader => change.entrypoint = Some(&hangs),
        Kind::BreaksAModule => change.files = &[UNKEPT, (HOOK, FAILS)],
        Kind::PodsCannotStart => change.files = &missing,
        Kind::PodsCrashLater => change.files = &crashing,
    }
    followed.push(&format!("1.{number}.0"), &change)
}

/// The files of a version with one more module, and with these values of all modules.
fn web(values: &str) -> [(&str, &[u8]); 4] {
    [
        UNKEPT,
        ("trial/versions/values.yaml", values.as_bytes()),
        (
            "trial/versions/040-web/Chart.yaml",
            include_bytes!("../trial/health/010-web/Chart.yaml"),
        ),
        (
            "trial/versions/040-web/templates/web.yaml",
            include_bytes!("../trial/health/010-web/templates/web.yaml"),
        ),
    ]
}

/// The observations of a round so far.
#[derive(Default)]
struct Course {
    outcome: Outcome,
    is_killed: bool,
    has_begun: bool,
    /// The last sign that the new version led, and the time at which it was observed.
    last_sign: Option<(String, Instant)>,
    judged: Option<Instant>,
}

impl Course {
    fn look(&mut self, followed: &Followed<'_>, bad: &str, pushed: Instant) {
        let sight = followed.sight();
        let now = Instant::now();
        self.has_begun |= sight.trial_of(bad).is_some();
        if self.outcome.led.is_none() {
            self.outcome.steps.look(&sight, bad, pushed);
        }
        if let Some(ruling) = sight.ruling(bad) {
            self.judged.get_or_insert(now);
            self.outcome.ruling = ruling;
        }
        if sight.is_led_by_the_new_one() {
            let outcome = &mut self.outcome;
            outcome.led.get_or_insert(now - pushed);
            outcome.returned = None;
            outcome.followed = None;
            if self.last_sign.as_ref().is_none_or(|(sign, _)| *sign != sight.renewed) {
                self.last_sign = Some((sight.renewed, now));
            }
        } else if !sight.holder.is_empty() && self.outcome.returned.is_none() {
            let since = self.last_sign.as_ref().map(|(_, seen)| *seen);
            self.outcome.returned = since.map(|since| now - since);
            self.outcome.followed = self.judged.filter(|_| since.is_some()).map(|judged| now - judged);
        }
    }

    fn has_come(&self, moment: Moment, pushed: Instant) -> bool {
        // A version that never leads, or is not tried for long, must not keep a round open.
        let is_late = self.judged.is_some() || self.outcome.returned.is_some();
        is_late
            || match moment {
                Moment::After(seconds) => pushed.elapsed() >= Duration::from_secs(seconds),
                Moment::Begun => self.has_begun,
                Moment::NewOneLeads => self.outcome.led.is_some(),
                Moment::OldOneLeadsAgain => false,
            }
    }

    fn is_over(&self, followed: &Followed<'_>) -> bool {
        self.judged.is_some() && followed.is_at_rest()
    }
}
