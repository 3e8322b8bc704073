use super::*;
use crate::candidate::Notes;
use crate::choice::{Idle, Reason, Target};
use crate::platform::Platform;
use crate::reference::{Repository, Tag};
use crate::trial::record::{Failed, Remembered, Unclear};
use crate::version::Version;

/// The contents of the registry: tags, and existing digests.
#[derive(Default)]
struct Registry {
    tags: Vec<(&'static str, &'static str)>,
    images: Vec<&'static str>,
    signature: Option<Signature>,
    asked: Vec<Question>,
}

fn digest(name: &str) -> ImageDigest {
    let byte = name
        .bytes()
        .fold(7_u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte));
    ImageDigest::parse(&format!("sha256:{}", format!("{byte:02x}").repeat(32))).unwrap()
}

fn tag(text: &str) -> Tag {
    Tag::parse(text).unwrap()
}

fn version(text: &str) -> Version {
    Version::parse(text).unwrap()
}

fn platform() -> Platform {
    Platform::parse("linux/amd64").unwrap()
}

impl Registry {
    fn answer(&self, question: &Question) -> Answer {
        let known = |wanted: &ImageDigest| self.images.iter().find(|name| digest(name) == *wanted);
        match question {
            Question::Tags => Answer::Tags(self.tags.iter().map(|(name, _)| tag(name)).collect()),
            Question::Digest(wanted) => {
                let found = self.tags.iter().find(|(name, _)| *name == wanted.as_str());
                Answer::Digest(found.map(|(_, image)| digest(image)))
            }
            Question::Candidate(digest) => Answer::Candidate(known(digest).map(|name| {
                Box::new(Candidate {
                    digest: digest.clone(),
                    manifests: [(platform(), digest.clone())].into(),
                    notes: Notes {
                        version: Version::parse_full(name),
                        state_formats: ["1".to_owned()].into(),
                        ..Notes::default()
                    },
                    signature: self.signature.clone().unwrap_or(Signature::NotAsked),
                })
            })),
            Question::Presence(digest) => Answer::Presence(known(digest).is_some()),
        }
    }

    /// Answers all questions of a round, and returns the beginning of the next one.
    fn serve(&mut self, following: &mut Following, now: Now) -> Tick {
        self.asked.clear();
        loop {
            match following.next(now) {
                Move::Ask(question) => {
                    self.asked.push(question.clone());
                    following.hear(&question, Ok(self.answer(&question)), now);
                }
                Move::Wait(tick) => return tick,
                Move::Rest => panic!("it should ask"),
            }
        }
    }
}

fn at(seconds: u64) -> Now {
    let start: Timestamp = "2026-01-05T12:00:00Z".parse().unwrap();
    Now {
        tick: Tick::ZERO + Duration::from_secs(seconds),
        wall: start + Duration::from_secs(seconds),
    }
}

fn installed(runs: &str, of_tag: Option<&str>) -> Installed {
    Installed {
        repository: Repository::parse("registry.example/team/app").ok(),
        running: Running {
            digests: [digest(runs)].into(),
            tag: of_tag.map(tag),
            version: Version::parse_full(runs),
            state_format: "1".to_owned(),
        },
        platforms: [platform()].into(),
        ..Installed::default()
    }
}

/// A leader that runs version `runs` with the tag `of_tag` in its image, and follows this channel.
fn following(runs: &str, of_tag: Option<&str>, channel: Option<&str>) -> Following {
    let mut following = Following::new(Memory::default(), 1);
    following.lead(true);
    following.set(Some(Settings {
        channel: channel.map(|text| Channel::parse(text).unwrap()),
        ..Settings::default()
    }));
    following.find(Some(installed(runs, of_tag)));
    following
}

fn target(of_tag: &str, name: &str) -> Target {
    Target {
        tag: Some(tag(of_tag)),
        digest: digest(name),
        version: Some(version(name)),
    }
}

fn trouble(pause: Option<Duration>) -> Trouble {
    Trouble {
        text: "nobody answers".to_owned(),
        pause,
    }
}

#[test]
fn a_tag_that_moves_costs_one_question_a_round_until_it_does() {
    let mut following = following("1.0.0", Some("stable"), None);
    let mut registry = Registry {
        tags: vec![("stable", "1.0.0")],
        images: vec!["1.0.0"],
        ..Registry::default()
    };
    let next = registry.serve(&mut following, at(0));
    let (digest_of, look, there) = (
        Question::Digest(tag("stable")),
        |name| Question::Candidate(digest(name)),
        Question::Presence(digest("1.0.0")),
    );
    assert_eq!(registry.asked, [digest_of.clone(), look("1.0.0")]);
    assert!(next >= at(60).tick && next <= at(66).tick, "{next}");
    assert_eq!(
        following.choose(Activity::Quiet, at(0)),
        Some(&Choice::Nothing(Idle::UpToDate))
    );
    assert_eq!(following.next(at(30)), Move::Wait(next));

    registry.serve(&mut following, at(70));
    assert_eq!(
        registry.asked,
        [digest_of.clone(), there.clone()],
        "a digest says for ever what it says"
    );

    registry.tags = vec![("stable", "1.0.1")];
    registry.images.push("1.0.1");
    registry.serve(&mut following, at(140));
    assert_eq!(registry.asked, [digest_of, look("1.0.1"), there]);
    let begin = Choice::Begin(target("stable", "1.0.1"));
    assert_eq!(following.choose(Activity::Quiet, at(140)), Some(&begin));
}

#[test]
fn a_range_is_listed_and_only_its_highest_tag_looked_at() {
    let mut following = following("1.4.2", None, Some(">=1.4 <2"));
    let mut registry = Registry {
        tags: vec![
            ("1.4.2", "1.4.2"),
            ("1.5.0", "1.5.0"),
            ("2.0.0", "2.0.0"),
            ("latest", "2.0.0"),
        ],
        images: vec!["1.4.2", "1.5.0", "2.0.0"],
        ..Registry::default()
    };
    registry.serve(&mut following, at(0));
    assert_eq!(
        registry.asked,
        [
            Question::Tags,
            Question::Digest(tag("1.5.0")),
            Question::Candidate(digest("1.5.0")),
            Question::Candidate(digest("1.4.2"))
        ]
    );
    let begin = Choice::Begin(target("1.5.0", "1.5.0"));
    assert_eq!(following.choose(Activity::Quiet, at(0)), Some(&begin));
}

#[test]
fn a_digest_that_holds_lets_news_of_the_tag_be_told() {
    let held = digest("1.0.0").to_string();
    let mut following = following("1.0.0", Some("stable"), Some(&held));
    let mut registry = Registry {
        tags: vec![("stable", "1.0.1")],
        images: vec!["1.0.0", "1.0.1"],
        ..Registry::default()
    };
    registry.serve(&mut following, at(0));
    let Some(Choice::Waits {
        target: waits, reasons, ..
    }) = following.choose(Activity::Quiet, at(0))
    else {
        panic!("{:?}", following.status());
    };
    assert_eq!(
        (waits, reasons.as_slice()),
        (&target("stable", "1.0.1"), &[Reason::Held][..])
    );
}

#[test]
fn a_round_without_an_answer_changes_nothing_of_what_is_known() {
    let mut following = following("1.0.0", Some("stable"), None);
    let mut registry = Registry {
        tags: vec![("stable", "1.0.0")],
        images: vec!["1.0.0"],
        ..Registry::default()
    };
    registry.serve(&mut following, at(0));
    following.choose(Activity::Quiet, at(0));
    let known = following.seen.clone();
    registry.tags = vec![("stable", "1.0.1")];
    registry.images.push("1.0.1");
    // The tag has moved, and then the registry does not answer.
    let first = following.next(at(100));
    assert_eq!(first, Move::Ask(Question::Digest(tag("stable"))));
    let question = Question::Digest(tag("stable"));
    following.hear(&question, Ok(registry.answer(&question)), at(100));
    let look = Question::Candidate(digest("1.0.1"));
    assert_eq!(following.next(at(100)), Move::Ask(look.clone()));
    following.hear(&look, Err(trouble(None)), at(101));
    assert_eq!(following.seen, known);
    assert_eq!(
        following.choose(Activity::Quiet, at(101)),
        Some(&Choice::Nothing(Idle::UpToDate))
    );
    assert_eq!(following.status().trouble.as_deref(), Some("nobody answers"));
    let Move::Wait(next) = following.next(at(101)) else {
        panic!("it should wait")
    };
    assert!(next >= at(161).tick && next <= at(167).tick, "{next}");
    // After the wait the follower repeats all requests of the round.
    assert_eq!(following.next(at(170)), first);
    registry.serve(&mut following, at(170));
    assert_eq!(following.status().trouble, None);
}

#[test]
fn nothing_begins_while_the_registry_does_not_answer() {
    let mut following = following("1.0.0", Some("stable"), None);
    let mut registry = Registry {
        tags: vec![("stable", "1.0.1")],
        images: vec!["1.0.0", "1.0.1"],
        ..Registry::default()
    };
    registry.serve(&mut following, at(0));
    let begin = Choice::Begin(target("stable", "1.0.1"));
    assert_eq!(following.wanted(), None);
    assert_eq!(following.choose(Activity::Quiet, at(0)), Some(&begin));
    let wanted = following.wanted().unwrap();
    assert_eq!(wanted.target, target("stable", "1.0.1"));
    assert_eq!(wanted.digests, [digest("1.0.1")].into());
    let Move::Ask(question) = following.next(at(100)) else {
        panic!("it should ask")
    };
    following.hear(&question, Err(trouble(None)), at(100));
    assert_eq!(following.choose(Activity::Quiet, at(100)), None);
    assert_eq!(following.wanted(), None);
    registry.serve(&mut following, at(200));
    assert_eq!(following.choose(Activity::Quiet, at(200)), Some(&begin));
}

#[test]
fn before_the_first_answer_nothing_is_chosen() {
    let mut following = following("1.0.0", Some("stable"), None);
    assert_eq!(following.choose(Activity::Quiet, at(0)), None);
    let Move::Ask(question) = following.next(at(0)) else {
        panic!("it should ask")
    };
    following.hear(&question, Err(trouble(None)), at(0));
    assert_eq!(following.choose(Activity::Quiet, at(0)), None);
}

#[test]
fn a_registry_that_wants_to_be_left_alone_is_for_an_hour_at_most() {
    for (wanted, least) in [(5, 60), (600, 600), (100_000, 3600)] {
        let mut following = following("1.0.0", Some("stable"), None);
        let Move::Ask(question) = following.next(at(0)) else {
            panic!("it should ask")
        };
        following.hear(&question, Err(trouble(Some(Duration::from_secs(wanted)))), at(0));
        let Move::Wait(next) = following.next(at(0)) else {
            panic!("it should wait")
        };
        assert!(next >= at(least).tick && next <= at(least + 6).tick, "{wanted}: {next}");
        let left_alone = at(wanted.min(3600)).wall;
        assert_eq!(following.status().left_alone, Some(left_alone), "{wanted}");
    }
}

#[test]
fn only_who_leads_and_knows_what_runs_asks() {
    let mut following = following("1.0.0", Some("stable"), None);
    following.lead(false);
    assert_eq!(following.next(at(0)), Move::Rest);
    following.lead(true);
    following.find(None);
    assert_eq!(following.next(at(0)), Move::Rest);
    following.find(Some(installed("1.0.0", Some("stable"))));
    following.set(None);
    assert_eq!(following.next(at(0)), Move::Rest);
}

#[test]
fn another_channel_is_asked_for_at_once_and_the_same_is_not() {
    let mut following = following("1.0.0", Some("stable"), None);
    let mut registry = Registry {
        tags: vec![("stable", "1.0.0"), ("beta", "1.1.0")],
        images: vec!["1.0.0", "1.1.0"],
        ..Registry::default()
    };
    let next = registry.serve(&mut following, at(0));
    following.set(Some(Settings::default()));
    assert_eq!(following.next(at(1)), Move::Wait(next));
    following.set(Some(Settings {
        channel: Channel::parse("beta").ok(),
        ..Settings::default()
    }));
    assert_eq!(following.next(at(1)), Move::Ask(Question::Digest(tag("beta"))));
    // The answer to a question of the old round does not count any more.
    let before = Question::Digest(tag("stable"));
    following.hear(&before, Ok(Answer::Digest(None)), at(1));
    assert_eq!(following.next(at(1)), Move::Ask(Question::Digest(tag("beta"))));
    registry.serve(&mut following, at(1));
    assert_eq!(following.status().channel, Channel::parse("beta").ok());
    following.hasten();
    assert_eq!(following.next(at(2)), Move::Ask(Question::Digest(tag("beta"))));
}

#[test]
fn a_registry_that_wants_to_be_left_alone_is_not_hastened() {
    let mut following = following("1.0.0", Some("stable"), None);
    let Move::Ask(question) = following.next(at(0)) else {
        panic!("it should ask")
    };
    following.hear(&question, Err(trouble(Some(Duration::from_mins(5)))), at(0));
    following.hasten();
    assert_eq!(following.next(at(1)), Move::Wait(at(300).tick));
    assert_eq!(following.next(at(300)), Move::Ask(question.clone()));
    following.hear(&question, Err(trouble(None)), at(300));
    assert_eq!(following.status().left_alone, None);
    following.hasten();
    assert_eq!(following.next(at(301)), Move::Ask(question));
}

#[test]
fn nothing_that_was_learnt_counts_for_another_repository() {
    let mut following = following("1.0.0", Some("stable"), None);
    let mut registry = Registry {
        tags: vec![("stable", "1.0.1")],
        images: vec!["1.0.0", "1.0.1"],
        ..Registry::default()
    };
    let elsewhere = |name| Installed {
        repository: Repository::parse(name).ok(),
        ..installed("1.0.0", Some("stable"))
    };
    registry.serve(&mut following, at(0));
    following.find(Some(elsewhere("mirror.example/team/app")));
    assert_eq!(following.choose(Activity::Quiet, at(1)), None);
    assert_eq!(following.status(), &Status::default());
    registry.serve(&mut following, at(1));
    let look = Question::Candidate(digest("1.0.1"));
    assert!(registry.asked.contains(&look), "it is looked at anew");
    assert_eq!(
        following.choose(Activity::Quiet, at(1)),
        Some(&Choice::Begin(target("stable", "1.0.1")))
    );
    following.find(Some(Installed {
        repository: None,
        ..elsewhere("mirror.example/team/app")
    }));
    assert_eq!(following.next(at(100)), Move::Rest);
}

#[test]
fn the_version_that_runs_is_looked_at_once() {
    let mut following = following("1.0.0", Some("stable"), None);
    let mut registry = Registry {
        tags: vec![("stable", "1.0.1")],
        images: vec!["1.0.0", "1.0.1"],
        signature: Some(Signature::Good),
        ..Registry::default()
    };
    let mut found = installed("1.0.0", Some("stable"));
    found.running.version = None;
    following.find(Some(found));
    assert_eq!(following.signature(), None);
    registry.serve(&mut following, at(0));
    let look = |name| Question::Candidate(digest(name));
    let tag = Question::Digest(tag("stable"));
    assert_eq!(registry.asked, [tag.clone(), look("1.0.1"), look("1.0.0")]);
    assert_eq!(following.signature(), Some(&Signature::Good));
    assert_eq!(following.running().unwrap().version, Some(version("1.0.0")));
    // The image's notes tell whether the other version is older.
    assert_eq!(
        following.choose(Activity::Quiet, at(0)),
        Some(&Choice::Begin(target("stable", "1.0.1")))
    );
    registry.serve(&mut following, at(100));
    assert_eq!(registry.asked, [tag, Question::Presence(digest("1.0.0"))]);
    assert_eq!(following.signature(), Some(&Signature::Good));
}

#[test]
fn a_signature_may_be_made_later() {
    let mut following = following("1.0.0", Some("stable"), None);
    let mut registry = Registry {
        tags: vec![("stable", "1.0.1")],
        images: vec!["1.0.0", "1.0.1"],
        signature: Some(Signature::Bad("nobody has signed it".to_owned())),
        ..Registry::default()
    };
    registry.serve(&mut following, at(0));
    assert!(matches!(
        following.choose(Activity::Quiet, at(0)),
        Some(Choice::Waits { .. })
    ));
    registry.signature = Some(Signature::Good);
    registry.serve(&mut following, at(100));
    assert!(registry.asked.contains(&Question::Candidate(digest("1.0.1"))));
    assert_eq!(
        following.choose(Activity::Quiet, at(100)),
        Some(&Choice::Begin(target("stable", "1.0.1")))
    );
}

#[test]
fn news_is_told_once() {
    let mut following = following("1.0.0", Some("stable"), None);
    let mut registry = Registry {
        tags: vec![("stable", "0.9.0")],
        images: vec!["0.9.0"],
        ..Registry::default()
    };
    let checked = |is_answered| News::Checked { is_answered };
    registry.serve(&mut following, at(0));
    following.choose(Activity::Quiet, at(0));
    let older = target("stable", "0.9.0");
    let waits = News::Waits {
        target: older.clone(),
        reasons: vec![Reason::Older {
            running: Some(version("1.0.0")),
        }],
    };
    assert_eq!(
        following.news(),
        [
            checked(true),
            News::Missing([digest("1.0.0")].into()),
            News::Available(older),
            waits
        ]
    );
    registry.serve(&mut following, at(100));
    following.choose(Activity::Quiet, at(100));
    assert_eq!(following.news(), [checked(true)]);

    let mut told = Vec::new();
    for round in 2..7 {
        let Move::Ask(question) = following.next(at(round * 100)) else {
            panic!("it should ask")
        };
        following.hear(&question, Err(trouble(None)), at(round * 100));
        told.extend(following.news());
    }
    let unreachable = News::Unreachable("nobody answers".to_owned());
    assert_eq!(told.iter().filter(|news| **news == unreachable).count(), 1);
    assert_eq!(told[3], unreachable, "after three rounds: {told:?}");
    registry.serve(&mut following, at(1000));
    assert_eq!(following.news(), [checked(true), News::Answers]);
}

#[test]
fn what_is_remembered_of_trials_counts_in_the_choice() {
    let mut following = following("1.0.0", Some("stable"), None);
    let mut registry = Registry {
        tags: vec![("stable", "1.1.0")],
        images: vec!["1.0.0", "1.1.0"],
        ..Registry::default()
    };
    registry.serve(&mut following, at(0));
    let mut labels = |remembered: &Remembered| {
        following.find(Some(installed("1.0.0", Some("stable")).after(remembered)));
        match following.choose(Activity::Quiet, at(1)) {
            Some(Choice::Waits { reasons, .. }) => reasons.iter().map(Reason::label).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        }
    };
    let why = "it hangs".to_owned();
    let failed = Remembered {
        failed: [(digest("1.1.0"), Failed { why, at: at(0).wall })].into(),
        ..Remembered::default()
    };
    assert_eq!(labels(&failed), ["failed_before"]);
    let unclear = Unclear {
        digest: digest("1.1.0"),
        times: 1,
        at: at(0).wall,
        again: at(2).wall,
        why: "no machine".to_owned(),
    };
    let unclear = Remembered {
        unclear: Some(unclear),
        ..Remembered::default()
    };
    assert_eq!(labels(&unclear), ["unclear"]);
}
