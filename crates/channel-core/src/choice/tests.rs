use std::time::Duration;

use clock::Tick;

use super::*;
use crate::candidate::Notes;
use crate::policy::Policy;

mod absence;
mod modes;
mod waits;

/// A Monday.
const START: &str = "2026-01-05T12:00:00Z";
const RUNS: &str = "1.4.2";

fn digest(name: &str) -> ImageDigest {
    let digit = |byte: u8| char::from(b"0123456789abcdef"[usize::from(byte % 16)]);
    let digits: String = name
        .bytes()
        .chain(std::iter::repeat(0))
        .take(32)
        .flat_map(|byte| [digit(byte >> 4), digit(byte)])
        .collect();
    ImageDigest::parse(&format!("sha256:{digits}")).unwrap()
}

fn tag(text: &str) -> Tag {
    Tag::parse(text).unwrap()
}

fn version(text: &str) -> Version {
    Version::parse(text).unwrap()
}

fn platform(text: &str) -> Platform {
    Platform::parse(text).unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The image of a version, with its index and its manifests for two platforms.
fn candidate(name: &str) -> Candidate {
    let manifest = |platform_name: &str| (platform(platform_name), digest(&format!("{name} {platform_name}")));
    Candidate {
        digest: digest(name),
        manifests: [manifest("linux/amd64"), manifest("linux/arm64")].into(),
        notes: Notes {
            version: Version::parse_full(name),
            state_formats: ["1".to_owned()].into(),
            ..Notes::default()
        },
        signature: Signature::NotAsked,
    }
}

/// The inputs of the choice of the next version, which a test may change.
#[derive(Debug, Clone)]
struct World {
    subject: Subject,
    running: Running,
    settings: Settings,
    seen: Seen,
    chart: Option<Version>,
    platforms: BTreeSet<Platform>,
    failed: BTreeSet<ImageDigest>,
    spent: BTreeSet<ImageDigest>,
    unclear: Option<(ImageDigest, Timestamp)>,
    activity: Activity,
    memory: Memory,
    now: Now,
}

impl World {
    /// Version 1.4.2 runs, and its tag `stable` points to it.
    fn new() -> Self {
        let mut world = Self {
            subject: Subject::Operator,
            running: Running {
                digests: [digest(RUNS)].into(),
                tag: Some(tag("stable")),
                version: Some(version(RUNS)),
                state_format: "1".to_owned(),
            },
            settings: Settings::default(),
            seen: Seen::default(),
            chart: Some(version("0.3.0")),
            platforms: [platform("linux/amd64")].into(),
            failed: BTreeSet::new(),
            spent: BTreeSet::new(),
            unclear: None,
            activity: Activity::Quiet,
            memory: Memory::default(),
            now: Now {
                tick: Tick::ZERO,
                wall: at(START),
            },
        };
        world.show("stable", RUNS);
        assert_eq!(world.choose(), Choice::Nothing(Idle::UpToDate));
        world
    }

    /// Makes the registry show a tag that points to this version.
    fn show(&mut self, name: &str, version: &str) {
        self.show_as(name, candidate(version));
    }

    fn show_as(&mut self, name: &str, candidate: Candidate) {
        self.seen.tags.insert(tag(name), Some(candidate.digest.clone()));
        self.seen.candidates.insert(candidate.digest.clone(), candidate);
    }

    fn follow(&mut self, channel: &str) {
        self.settings.channel = Some(Channel::parse(channel).unwrap());
    }

    fn approve(&mut self, name: &str) {
        self.settings.approved.insert(digest(name));
    }

    fn policy(&mut self, text: &str) {
        self.settings.policy = Policy::parse(text).unwrap();
    }

    fn pass(&mut self, time: Duration) {
        self.now.tick = self.now.tick + time;
        self.now.wall += time;
    }

    fn choose(&mut self) -> Choice {
        let situation = Situation {
            subject: self.subject,
            running: &self.running,
            settings: &self.settings,
            seen: &self.seen,
            chart: self.chart.as_ref(),
            platforms: &self.platforms,
            failed: &self.failed,
            spent: &self.spent,
            unclear: self.unclear.as_ref().map(|(digest, again)| (digest, *again)),
            activity: self.activity,
        };
        situation.choose(&mut self.memory, self.now)
    }

    /// The version whose trial begins; `None` if no trial begins.
    fn begins(&mut self) -> Option<String> {
        match self.choose() {
            Choice::Begin(target) => Some(target.version.unwrap().to_string()),
            Choice::Nothing(_) | Choice::Waits { .. } => None,
        }
    }

    /// The names of all reasons to wait.
    fn waits(&mut self) -> Vec<&'static str> {
        self.reasons().iter().map(Reason::label).collect()
    }

    fn reasons(&mut self) -> Vec<Reason> {
        match self.choose() {
            Choice::Waits { reasons, .. } => reasons,
            other => panic!("{other:?}"),
        }
    }

    fn next(&mut self) -> Option<Timestamp> {
        match self.choose() {
            Choice::Waits { next, .. } => next,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_moved_tag_begins_a_trial() {
    let mut world = World::new();
    world.show("stable", "1.4.3");
    let expected = Target {
        tag: Some(tag("stable")),
        digest: digest("1.4.3"),
        version: Some(version("1.4.3")),
    };
    assert_eq!(world.choose(), Choice::Begin(expected.clone()));
    assert_eq!(world.choose(), Choice::Begin(expected));
}

#[test]
fn an_index_whose_manifest_runs_is_no_news() {
    let mut world = World::new();
    let mut rebuilt = candidate("1.4.3");
    rebuilt.manifests.insert(platform("linux/amd64"), digest("same"));
    world.running.digests.insert(digest("same"));
    world.show_as("stable", rebuilt);
    assert_eq!(world.choose(), Choice::Nothing(Idle::UpToDate));
    world.platforms.insert(platform("linux/arm64"));
    assert_eq!(world.begins().as_deref(), Some("1.4.3"));
}

#[test]
fn the_highest_version_of_a_range_begins() {
    let mut world = World::new();
    world.follow("1.4.x");
    for name in ["1.4.2", "1.4.3", "1.4.10", "1.5.0", "latest"] {
        world.show(name, name);
    }
    assert_eq!(world.begins().as_deref(), Some("1.4.10"));
    world.follow(">=1.4 <2");
    assert_eq!(world.begins().as_deref(), Some("1.5.0"));
    world.follow("^3");
    assert!(matches!(world.choose(), Choice::Nothing(Idle::NoMatch(_))));
}

#[test]
fn a_digest_is_what_is_wanted_and_holds() {
    let mut world = World::new();
    world.show("1.4.1", "1.4.1");
    world.settings.channel = Some(Channel::Digest(digest("1.4.1")));
    assert_eq!(world.begins().as_deref(), Some("1.4.1"));
    world.running.digests = [digest("1.4.1")].into();
    world.running.version = Some(version("1.4.1"));
    assert_eq!(world.waits(), ["held"]);
    world.approve(RUNS);
    assert_eq!(world.waits(), ["held"]);
    assert_eq!(world.next(), None);
    world.seen = Seen::default();
    assert_eq!(world.choose(), Choice::Nothing(Idle::UpToDate));
    world.settings.channel = Some(Channel::Digest(digest("1.4.9")));
    assert!(matches!(world.choose(), Choice::Nothing(Idle::NotLookedAt(_))));
}

#[test]
fn an_image_that_names_a_digest_alone_follows_nothing() {
    let mut world = World::new();
    world.show("stable", "1.4.3");
    world.running.tag = None;
    assert_eq!(world.choose(), Choice::Nothing(Idle::Pinned));
    world.follow("stable");
    assert_eq!(world.begins().as_deref(), Some("1.4.3"));
}

#[test]
fn an_older_version_waits_until_a_person_asks_for_it() {
    let mut world = World::new();
    world.show("stable", "1.4.1");
    assert_eq!(world.waits(), ["older"]);
    world.approve("1.4.0");
    assert_eq!(world.waits(), ["older"]);
    world.approve("1.4.1");
    assert_eq!(world.begins().as_deref(), Some("1.4.1"));
}

#[test]
fn a_switch_asks_for_what_the_tag_means_then_and_for_nothing_later() {
    let mut world = World::new();
    world.follow("old");
    assert_eq!(world.choose(), Choice::Nothing(Idle::NoTag(tag("old"))));
    world.show("old", "1.3.5");
    assert_eq!(world.begins().as_deref(), Some("1.3.5"));
    let text = serde_json::to_string(&world.memory).unwrap();
    world.memory = serde_json::from_str(&text).unwrap();
    assert_eq!(world.begins().as_deref(), Some("1.3.5"));
    world.show("old", "1.3.4");
    assert_eq!(world.waits(), ["older"]);
    world.follow("stable");
    world.show("stable", "1.4.2");
    assert_eq!(world.choose(), Choice::Nothing(Idle::UpToDate));
    world.show("stable", "1.4.1");
    assert_eq!(world.waits(), ["older"]);
    // A range is no request for one version.
    world.follow("<1.4");
    world.show("1.3.5", "1.3.5");
    assert_eq!(world.waits(), ["older"]);
}

#[test]
fn the_first_channel_of_all_is_no_switch() {
    let mut world = World::new();
    world.memory = Memory::default();
    world.follow("1.4.1");
    world.show("1.4.1", "1.4.1");
    assert_eq!(world.waits(), ["older"]);
}

#[test]
fn a_version_that_is_not_told_may_be_older() {
    let mut world = World::new();
    let mut unnamed = candidate("x");
    unnamed.notes.version = None;
    world.show_as("stable", unnamed.clone());
    assert_eq!(world.waits(), ["no_version"]);
    world.follow("1.4.3");
    world.memory = Memory::default();
    world.show_as("1.4.3", unnamed);
    assert_eq!(world.begins().as_deref(), Some("1.4.3"));
    world.running.version = None;
    assert_eq!(world.waits(), ["no_version"]);
    world.approve("x");
    assert_eq!(world.begins().as_deref(), Some("1.4.3"));
}

#[test]
fn a_version_that_does_not_fit_waits_by_name_whoever_approves() {
    type Change = fn(&mut Candidate, &mut World);
    let rows: [(&str, Change, &str); 6] = [
        (
            "platform",
            |candidate, _| drop(candidate.manifests.remove(&platform("linux/amd64"))),
            "it does not exist for linux/amd64, which our pods run on",
        ),
        (
            "not_verified",
            |candidate, _| candidate.signature = Signature::Bad("nobody has signed it".to_owned()),
            "it is not verified: nobody has signed it",
        ),
        (
            "chart",
            |candidate, _| candidate.notes.lowest_chart = Some(version("0.3.1")),
            "it needs version 0.3.1 of the chart or a newer one, and 0.3.0 is installed",
        ),
        (
            "chart",
            |candidate, world| {
                candidate.notes.lowest_chart = Some(version("0.3.0"));
                world.chart = None;
            },
            "it needs version 0.3.0 of the chart or a newer one, and the label helm.sh/chart of the Deployment tells none",
        ),
        (
            "state_format",
            |candidate, _| candidate.notes.state_formats = ["2".to_owned()].into(),
            "it does not say that it knows format 1 of our state",
        ),
        (
            "unreadable",
            |candidate, _| candidate.notes.mistakes = vec!["its annotation a is 'b'".to_owned()],
            "its annotation a is 'b'",
        ),
    ];
    for (label, change, told) in rows {
        let mut world = World::new();
        let mut unfit = candidate("1.4.3");
        change(&mut unfit, &mut world);
        world.show_as("stable", unfit);
        world.approve("1.4.3");
        assert_eq!(world.waits(), [label]);
        assert_eq!(world.reasons()[0].to_string(), told);
        assert_eq!(world.next(), None, "{label}");
    }
    let mut world = World::new();
    let mut fit = candidate("1.4.3");
    fit.notes.lowest_chart = Some(version("0.3.0"));
    fit.signature = Signature::Good;
    world.show_as("stable", fit);
    assert_eq!(world.begins().as_deref(), Some("1.4.3"));
}

#[test]
fn a_failed_version_is_tried_again_by_its_own_approval_only() {
    let mut world = World::new();
    world.show("stable", "1.4.3");
    world.failed.insert(digest("1.4.3 linux/amd64"));
    assert_eq!(world.waits(), ["failed_before"]);
    world.approve("1.4.2");
    assert_eq!(world.waits(), ["failed_before"]);
    world.approve("1.4.3");
    assert_eq!(world.begins().as_deref(), Some("1.4.3"));
    // The version failed although it was approved.
    world.spent.insert(digest("1.4.3"));
    assert_eq!(world.waits(), ["failed_before"]);
    world.failed.insert(digest("1.4.4"));
    world.show("stable", "1.4.4");
    assert_eq!(world.waits(), ["failed_before"]);
    world.show("stable", "1.4.5");
    assert_eq!(world.begins().as_deref(), Some("1.4.5"));
}

#[test]
fn a_module_keeps_no_state_and_its_first_version_waits_for_nothing() {
    let mut world = World::new();
    world.subject = Subject::Module;
    let mut plain = candidate("1.4.3");
    plain.notes = Notes::default();
    world.show_as("stable", plain.clone());
    // Neither version nor format is known: a tag that moves is a new version.
    let choice = world.choose();
    assert!(matches!(choice, Choice::Begin(_)), "{choice:?}");
    world.policy("{mode: manual, delay: 1h}");
    assert_eq!(world.waits(), ["approval", "delay"]);
    let told = world.reasons()[0].told(Subject::Module);
    assert_eq!(
        told,
        "it wants an approval (the field approved of its source): the mode is manual"
    );
    world.running = Running::default();
    world.follow("stable");
    assert!(matches!(world.choose(), Choice::Begin(_)));
    plain.signature = Signature::Bad("no key".to_owned());
    world.show_as("stable", plain);
    assert_eq!(world.waits(), ["not_verified"]);
}

#[test]
fn a_module_never_goes_down_a_version_by_itself() {
    let mut world = World::new();
    world.subject = Subject::Module;
    world.show("stable", "1.4.1");
    assert_eq!(world.waits(), ["older"]);
    world.approve("1.4.1");
    assert_eq!(world.begins().as_deref(), Some("1.4.1"));
}
