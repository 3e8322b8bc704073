use std::time::Duration;

use super::*;
use crate::channel::Channel as Wanted;
use crate::choice::{Choice, Idle, Reason, Running as Runs, VersionStep};
use crate::platform::Platform;
use crate::policy::{Mode, Policy as Way};
use crate::reference::{Reference, Tag};
use crate::trial::record;
use crate::trial::record::{Failures, Verdict as Ruled};
use crate::trial::sight::{PodState, TrialPod};
use crate::version::Version;

const NOW: &str = "2026-01-05T12:00:00Z";
const IMAGE: &str = "ghcr.io/team/addon-operator:stable";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn digest(c: char) -> ImageDigest {
    ImageDigest::parse(&format!("sha256:{}", c.to_string().repeat(64))).unwrap()
}

fn target(version: &str, c: char) -> Target {
    Target {
        tag: Tag::parse("stable").ok(),
        digest: digest(c),
        version: Version::parse(version).ok(),
    }
}

/// Version 1.4.2 runs, pinned by its digest. The registry was asked 20 s ago.
fn known(choice: Choice) -> Known {
    let tag = Tag::parse("stable").unwrap();
    Known {
        settings: Some(Settings::default()),
        installed: Some(Installed {
            running: Runs {
                digests: [digest('a')].into(),
                tag: Some(tag.clone()),
                version: Version::parse("1.4.2").ok(),
                state_format: "1".to_owned(),
            },
            ..Installed::default()
        }),
        deployment: Some(deployment(&format!("{IMAGE}@{}", digest('a')))),
        signature: Some(Signature::NotAsked),
        following: following::Status {
            channel: Some(Wanted::Tag(tag)),
            choice: Some(choice),
            checked: Some(at("2026-01-05T11:59:40.5Z")),
            trouble: None,
            missing: BTreeSet::new(),
            next: Some(at("2026-01-05T12:00:42.25Z")),
            left_alone: None,
        },
        rounds: 1,
        records: Some(Records::default()),
        trial_set: None,
        hold: None,
        stage: None,
        trial_stage: None,
    }
}

fn deployment(image: &str) -> Deployment {
    Deployment {
        image: image.to_owned(),
        reference: Reference::parse(image).ok(),
        template: "t".to_owned(),
        chart: None,
        patched: None,
        former: None,
        chart_image: None,
        chart_image_then: None,
        resumed: None,
        manager: None,
        pulls_always: false,
        is_rolled_out: true,
        stuck: None,
    }
}

fn waits(reasons: Vec<Reason>, next: Option<&str>) -> Choice {
    Choice::Waits {
        target: target("1.4.3", 'b'),
        reasons,
        next: next.map(at),
    }
}

fn trial(verdict: Option<(Ruling, &str)>) -> Trial {
    Trial {
        from: [digest('a')].into(),
        image: format!("{IMAGE}@{}", digest('a')),
        to: target("1.4.3", 'b'),
        to_digests: [digest('b'), digest('c')].into(),
        template: "t".to_owned(),
        failing: ["module site".to_owned()].into(),
        unwell: BTreeSet::new(),
        revisions: BTreeMap::new(),
        begun: at("2026-01-05T11:57:00Z"),
        by: "addon-operator-1".to_owned(),
        channel: None,
        is_approved: false,
        pod: None,
        lost: 0,
        handed: 0,
        limit: Duration::from_mins(15),
        verdict: verdict.map(|(ruling, why)| Ruled {
            ruling,
            why: why.to_owned(),
            at: at("2026-01-05T11:59:55Z"),
            judge: "addon-operator-1".to_owned(),
        }),
    }
}

fn on_trial(verdict: Option<(Ruling, &str)>) -> Known {
    Known {
        records: Some(Records {
            trial: Some(trial(verdict)),
            report: Some(Report {
                of: digest('c'),
                pod: "addon-operator-trial-x".to_owned(),
                number: 7,
                converged: Some(at("2026-01-05T11:59:30Z")),
                failing: [
                    ("module site".to_owned(), Failures::InARow(3)),
                    ("hook hooks/a.sh".to_owned(), Failures::InARow(1)),
                ]
                .into(),
                hindered: BTreeSet::new(),
                unhealthy: BTreeMap::new(),
            }),
            remembered: Remembered::default(),
        }),
        trial_set: Some(TrialSet {
            uid: "u".to_owned(),
            digest: digest('b'),
            is_going: false,
            pod: Some(TrialPod {
                name: "addon-operator-trial-x".to_owned(),
                uid: "u".to_owned(),
                state: PodState::Ready,
                restarts: 1,
                was_overdue: false,
            }),
        }),
        stage: Some("the new version leads".to_owned()),
        trial_stage: Some(Stage::Fails(target("1.4.3", 'b'), "trouble".to_owned())),
        ..known(Choice::Begin(target("1.4.3", 'b')))
    }
}

fn shown(known: Known) -> String {
    let state = ChannelState::On(Box::new(known));
    let text = View::of(&state, Answerer::Leader, at(NOW)).text(at(NOW));
    // The report shows whole digests. Here they are cut.
    ['a', 'b', 'c', 'd'].into_iter().fold(text, |text, c| {
        text.replace(digest(c).as_str(), &format!("sha256:{}…", c.to_string().repeat(4)))
    })
}

/// The lines that all reports of this file have in common, for a version that is up to date.
const RUNS: &str = "\
running:    1.4.2
image:      ghcr.io/team/addon-operator:stable@sha256:aaaa…
verified:   no: no keys are set (verification.keys of the chart)
channel:    stable, the tag of the operator's own image
policy:     mode auto, at any time
";
const AVAILABLE: &str = "available:  1.4.3, sha256:bbbb…\n";
const CHECKED: &str = "checked:    19s ago, again in 42s\n";

fn check(known: Known, expected: &[&str]) {
    let shown = shown(known);
    assert_eq!(shown, expected.concat(), "\n{shown}");
}

#[test]
fn nothing_is_to_be_done() {
    let next = "next:       the registry is asked again in 42s\n";
    check(
        known(Choice::Nothing(Idle::UpToDate)),
        &["state:      up-to-date\n", RUNS, next, CHECKED],
    );
    let mut gone = known(Choice::Nothing(Idle::NoTag(Tag::parse("stable").unwrap())));
    gone.following.missing = [digest('a')].into();
    let why = "state:      not-found\nwhy:        the registry shows no tag 'stable'\n";
    let lost = "warning:    the registry has lost what runs: a pod on another machine cannot pull it; push it again (sha256:aaaa…)\n";
    check(gone, &[why, RUNS, next, CHECKED, lost]);
}

#[test]
fn little_is_known_at_first() {
    let asked = "next:       the registry is asked, as soon as the replica that leads can\n";
    let unread =
        "warning:    the records of trials have not been read yet, so that nothing is known of one that goes on\n";
    let why = "state:      unknown\nwhy:        the ConfigMap has not been read yet\n";
    check(Known::default(), &[why, asked, unread]);

    let mut unanswered = known(Choice::Nothing(Idle::UpToDate));
    unanswered.following = following::Status {
        trouble: Some("cannot ask ghcr.io for the tag 'stable'".to_owned()),
        ..following::Status::default()
    };
    let why = "state:      unknown\nwhy:        the registry has not answered yet\n";
    let trouble = "trouble:    cannot ask ghcr.io for the tag 'stable'\n";
    check(unanswered, &[why, RUNS, asked, trouble]);
}

#[test]
fn a_person_is_waited_for() {
    let approval = Reason::Approval {
        mode: Mode::Patch,
        step: VersionStep::Minor,
    };
    let window = Reason::Window {
        opens: Some(at("2026-01-06T02:00:00Z")),
    };
    let waits = "\
waits for:  it wants an approval (releaseApproved): the mode is patch, and more than the patch level rises
            no window is open; the next one opens at 2026-01-06T02:00:00Z
next:       its trial, once a person has removed what it waits for
";
    let hint = "hint: `addon-operator channel approve` approves of it\n";
    check(
        known(self::waits(vec![approval, window], None)),
        &["state:      waits\n", RUNS, AVAILABLE, waits, CHECKED, hint],
    );
}

#[test]
fn time_is_waited_for_with_a_policy_of_ones_own() {
    let until = "2026-01-06T02:00:00.25Z";
    let mut known = known(waits(vec![Reason::Delay { until: at(until) }], Some(until)));
    known.settings = Some(Settings {
        channel: Wanted::parse("1.4.x").ok(),
        policy: Way::parse(
            "{mode: patch, delay: 24h, trialLimit: 1h, windows: [{days: [Tue, Sat], from: \"02:00\", to: \"05:00\", \
             zone: Europe/Berlin}, {from: \"23:00\", to: \"24:00\"}]}",
        )
        .unwrap(),
        approved: [digest('d')].into(),
    });
    check(
        known,
        &["\
state:      waits
running:    1.4.2
image:      ghcr.io/team/addon-operator:stable@sha256:aaaa…
verified:   no: no keys are set (verification.keys of the chart)
channel:    1.4.x, a range (releaseChannel)
policy:     mode patch, delay 1d, Tue,Sat 02:00-05:00 Europe/Berlin or each day 23:00-24:00 UTC, trials up to 1h
approved:   sha256:dddd…
available:  1.4.3, sha256:bbbb…
waits for:  it was first seen a short time ago, and waits until 2026-01-06T02:00:00Z
next:       its trial may begin at 2026-01-06T02:00:00Z, in 14h
checked:    19s ago, again in 42s
hint: `addon-operator channel approve` lifts the delay for it
"],
    );
}

#[test]
fn nothing_is_taken_while_the_registry_does_not_answer() {
    let platform = Platform::parse("linux/arm64").unwrap();
    let mut known = known(waits(
        vec![Reason::OtherPlatform {
            missing: [platform].into(),
        }],
        None,
    ));
    known.following.trouble = Some("cannot ask".to_owned());
    known.signature = Some(Signature::Bad("no signature is there".to_owned()));
    let told = shown(known);
    for line in [
        "verified:   no: no signature is there\n",
        "waits for:  it does not exist for linux/arm64, which our pods run on\n",
        "trouble:    cannot ask\n",
        "warning:    1.4.3 is not taken while the registry does not answer: cannot ask\n",
        "hint: build it for these platforms, too\n",
    ] {
        assert!(told.contains(line), "{line}{told}");
    }
}

#[test]
fn a_trial_goes_on() {
    let trial = "\
trial:      of 1.4.3, sha256:bbbb…, begun 3m ago
stage:      the new version leads
pod:        addon-operator-trial-x, ready, started again once
reports:    its first converge was over 30s ago
fails:      hook hooks/a.sh, once
            module site, 3 times, as it did before
next:       the pods of the old version judge
";
    check(
        on_trial(None),
        &["state:      on-trial\n", RUNS, AVAILABLE, trial, CHECKED],
    );
    let mut silent = on_trial(None);
    silent.records.as_mut().unwrap().report = None;
    let told = shown(silent);
    let next = "next:       the pods of the old version judge; it fails unless its first converge is over in 12m\n";
    assert!(told.contains(next) && !told.contains("reports"), "{told}");
    let mut broken = on_trial(None);
    let report = broken.records.as_mut().unwrap().report.as_mut().unwrap();
    report.failing = [("module site".to_owned(), Failures::ForGood)].into();
    let told = shown(broken);
    assert!(
        told.contains("fails:      module site, not to be run as it is declared"),
        "{told}"
    );
    // The report of another version does not belong to this trial.
    let mut other = on_trial(None);
    other.records.as_mut().unwrap().report.as_mut().unwrap().of = digest('d');
    let told = shown(other);
    assert!(
        told.contains(next) && !told.contains("fails:") && !told.contains("reports"),
        "{told}"
    );
    // The choice was made before the trial.
    let mut chosen = on_trial(None);
    chosen.following = known(waits(vec![Reason::FailedBefore], None)).following;
    assert!(!shown(chosen).contains("waits for"));
}

#[test]
fn a_trial_is_over_and_what_follows_is_told() {
    let told = shown(on_trial(Some((Ruling::Failed, "it was started again twice"))));
    let verdict = "\
verdict:    failed, 5s ago, by addon-operator-1: it was started again twice
next:       the old version takes the lease again, and the pod of the trial goes
";
    assert!(
        told.starts_with("state:      returning\n") && told.contains(verdict),
        "{told}"
    );
    let told = shown(on_trial(Some((Ruling::Passed, "it led for a minute"))));
    assert!(told.starts_with("state:      rolling-out\n"), "{told}");
}

#[test]
fn what_was_tried_is_remembered() {
    let mut known = known(waits(vec![Reason::FailedBefore], None));
    known.records.as_mut().unwrap().remembered = Remembered {
        failed: [(
            digest('b'),
            record::Failed {
                why: "it was started again twice".to_owned(),
                at: at(NOW),
            },
        )]
        .into(),
        unclear: Some(record::Unclear {
            digest: digest('c'),
            times: 2,
            at: at("2026-01-05T11:50:00Z"),
            again: at("2026-01-05T12:10:00Z"),
            why: "no node takes it".to_owned(),
        }),
        ..Remembered::default()
    };
    let told = shown(known);
    let tried = "\
failed:     sha256:bbbb…: it was started again twice
unclear:    sha256:cccc…: no node takes it; 2 times without a result, another in 10m
hint: `addon-operator channel approve` approves of it
";
    assert!(told.ends_with(tried), "{told}");
}

#[test]
fn what_is_held_or_stopped_says_how_it_goes_on() {
    let mut pinned = known(Choice::Nothing(Idle::UpToDate));
    let channel = Wanted::Digest(digest('a'));
    pinned.settings.as_mut().unwrap().channel = Some(channel.clone());
    pinned.following.channel = Some(channel);
    let told = shown(pinned);
    let lines = [
        "state:      held\nwhy:        releaseChannel is sha256:aaaa…, which runs\n",
        "channel:    sha256:aaaa…, a digest (releaseChannel)\n",
        "next:       nothing, before a person says `addon-operator channel resume`\n",
    ];
    assert!(lines.iter().all(|line| told.contains(line)), "{told}");

    let mut held = known(Choice::Begin(target("1.4.3", 'b')));
    held.hold = Some("a person has put the image into the Deployment".to_owned());
    held.stage.clone_from(&held.hold);
    let told = shown(held.clone());
    let head = "state:      held\nwhy:        a person has put the image into the Deployment\n";
    assert!(told.starts_with(head) && !told.contains("stage:"), "{told}");

    held.records.as_mut().unwrap().remembered.stopped = Some("argocd puts another image back".to_owned());
    let told = shown(held);
    let head = "state:      stopped\nwhy:        argocd puts another image back\n";
    assert!(told.starts_with(head) && told.contains("mends that and says"), "{told}");
}

#[test]
fn an_image_that_is_pulled_anew_or_does_not_roll_out_is_warned_of() {
    let mut known = known(Choice::Nothing(Idle::UpToDate));
    known.deployment = Some(Deployment {
        pulls_always: true,
        stuck: Some("its deadline has passed".to_owned()),
        ..deployment(IMAGE)
    });
    let told = shown(known);
    for line in [
        "digests:    sha256:aaaa…\n",
        "warning:    imagePullPolicy is Always: ",
        "            the Deployment names its image by tag alone: ",
        "            the rollout of the Deployment does not get on: its deadline has passed\n",
    ] {
        assert!(told.contains(line), "{line}{told}");
    }
}

#[test]
fn a_document_has_the_same_keys_whatever_is_known() {
    let keys = |state: &ChannelState| -> Vec<String> {
        let view = serde_json::to_value(View::of(state, Answerer::Standby(Some("b")), at(NOW))).unwrap();
        view.as_object().unwrap().keys().cloned().collect()
    };
    let off = ChannelState::Off { why: "why".to_owned() };
    let on = ChannelState::On(Box::new(on_trial(None)));
    assert_eq!(keys(&off), keys(&on));
    let view = serde_json::to_value(View::of(&on, Answerer::Standby(Some("b")), at(NOW))).unwrap();
    for (pointer, expected) in [
        ("/state", "\"on-trial\""),
        (
            "/running/notVerified",
            "\"no keys are set (verification.keys of the chart)\"",
        ),
        ("/channel", "{\"from\":\"image\",\"kind\":\"tag\",\"name\":\"stable\"}"),
        ("/available/version", "\"1.4.3\""),
        ("/check/at", "\"2026-01-05T11:59:41Z\""),
        ("/trial/failedBefore", "[\"module site\"]"),
        ("/policy/trialLimit", "900"),
        ("/replica", "{\"leader\":\"b\",\"leads\":false}"),
    ] {
        assert_eq!(view.pointer(pointer).unwrap().to_string(), expected, "{pointer}");
    }
    let words: BTreeSet<&str> = State::ALL.into_iter().map(State::word).collect();
    assert_eq!(words.len(), State::ALL.len());
}

#[test]
fn a_trial_tells_the_steps_behind_it() {
    let steps = |known: &Known| {
        let view = View::of(&ChannelState::On(Box::new(known.clone())), Answerer::Leader, at(NOW));
        let steps = view.trial.unwrap().steps;
        steps.iter().map(|step| step.is).collect::<Vec<_>>().join(" ")
    };
    let target = target("1.4.3", 'b');
    let mut known = on_trial(None);
    assert_eq!(steps(&known), "done done done now later later");
    // A version can fail before the end of its first converge.
    known.records.as_mut().unwrap().report.as_mut().unwrap().converged = None;
    assert_eq!(steps(&known), "done done now later later later");
    let cases = [
        (
            Stage::Starts(target.clone(), "no pod yet".to_owned()),
            "now later later later later later",
        ),
        (Stage::HandsOver(target.clone()), "done now later later later later"),
        (Stage::Promotes(target.clone()), "done done done done now later"),
        (Stage::RollsOut(target, None), "done done done done done now"),
        (Stage::Unheard, ""),
    ];
    for (stage, expected) in cases {
        known.trial_stage = Some(stage);
        assert_eq!(steps(&known), expected);
    }
}
