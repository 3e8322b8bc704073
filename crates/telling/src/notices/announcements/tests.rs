use std::time::Duration;

use super::*;

fn module(name: &str) -> ModuleName {
    ModuleName::parse(name).unwrap()
}

fn ready(action: Option<SyncAction>) -> Notice {
    ready_of("one", action)
}

fn ready_of(name: &str, action: Option<SyncAction>) -> Notice {
    Notice::ModuleReady {
        module: module(name),
        action,
        took: Duration::ZERO,
        activation: "",
    }
}

fn failed(class: Class, report: &str) -> Notice {
    Notice::ModuleFailed {
        module: module("one"),
        step: "helm",
        failure: Failure::new(class, report),
        took: Duration::ZERO,
        helm: None,
        activation: "",
        attempts: 3,
        retry_in: Duration::from_secs(5),
    }
}

fn switched(enabled: bool) -> Notice {
    Notice::ModuleSwitched {
        module: module("one"),
        enabled,
        reason: "ConfigMap".to_owned(),
    }
}

fn converged() -> Notice {
    Notice::ConvergeFinished {
        reason: "Operator-Startup".to_owned(),
        took: Duration::ZERO,
        first: true,
        failing: Vec::new(),
    }
}

fn announcer() -> (Announcer, mpsc::Receiver<Announcement>) {
    Announcer::new(Arc::new(Meters::new("own_")))
}

/// The reasons and notes of the Events for these notices.
fn told(notices: &[Notice]) -> Vec<(&'static str, String)> {
    let (mut announcer, mut announcements) = announcer();
    for notice in notices {
        announcer.hear(notice);
    }
    std::iter::from_fn(|| announcements.try_recv().ok())
        .map(|announcement| (announcement.reason, announcement.note))
        .collect()
}

fn reasons(notices: &[Notice]) -> Vec<&'static str> {
    told(notices).into_iter().map(|(reason, _)| reason).collect()
}

#[test]
fn a_start_that_finds_everything_as_it_was_is_no_news() {
    let unchanged = ready(Some(SyncAction::Unchanged));
    let recorded = ready(Some(SyncAction::Recorded));
    let start = [
        switched(true),
        unchanged.clone(),
        ready(None),
        recorded,
        converged(),
        unchanged,
    ];
    assert_eq!(reasons(&start), [""; 0]);
}

#[test]
fn a_release_that_was_upgraded_is_news_each_time() {
    let upgraded = ready(Some(SyncAction::Upgraded));
    let expected = "module 'one' is ready, its release is installed or upgraded";
    let told = told(&[converged(), upgraded.clone(), upgraded]);
    assert_eq!(
        told,
        [
            ("ModuleReady", expected.to_owned()),
            ("ModuleReady", expected.to_owned())
        ]
    );
}

#[test]
fn releases_that_the_first_converge_upgrades_are_told_together_unless_they_fail_then() {
    let upgraded = |name| ready_of(name, Some(SyncAction::Upgraded));
    let start = [upgraded("two"), upgraded("one"), upgraded("three")];
    assert_eq!(reasons(&start), [""; 0], "the first converge is not over");
    let whole = [start.as_slice(), &[converged()]].concat();
    let expected = "modules are ready, their releases are installed or upgraded: one, three, two";
    assert_eq!(told(&whole), [("ModuleReady", expected.to_owned())]);
    let failing = [
        start.as_slice(),
        &[failed(Class::Unavailable, "no answer"), converged()],
    ]
    .concat();
    let told = told(&failing);
    assert_eq!(told[0].0, "ModuleFailed");
    assert!(told.len() == 2 && told[1].1.ends_with(": three, two"), "{told:?}");
}

#[test]
fn a_module_that_failed_is_told_to_be_ready_again_once() {
    let unchanged = ready(Some(SyncAction::Unchanged));
    let life = [failed(Class::Unavailable, "no answer"), unchanged.clone(), unchanged];
    let expected = [
        ("ModuleFailed", "module 'one' failed, step helm: no answer".to_owned()),
        ("ModuleReady", "module 'one' is ready".to_owned()),
    ];
    assert_eq!(told(&life), expected);
}

#[test]
fn what_we_cancelled_ourselves_is_no_news() {
    assert_eq!(reasons(&[failed(Class::Cancelled, "it was cancelled")]), [""; 0]);
}

#[test]
fn switching_is_news_once_the_first_converge_is_over() {
    let deleted = Notice::ModuleDeleted { module: module("one") };
    let life = [
        switched(true),
        converged(),
        switched(false),
        deleted,
        switched(true),
        ready(None),
    ];
    let expected = ["ModuleDisabled", "ModuleDeleted", "ModuleEnabled", "ModuleReady"];
    assert_eq!(reasons(&life), expected);
}

#[test]
fn what_keeps_things_from_changing_is_told() {
    let refused = || Failure::new(Class::Invalid, "it needs 'two', which is not there");
    let notices = [
        Notice::ModuleBlocked {
            module: module("one"),
            failure: refused(),
        },
        Notice::ScriptFailed {
            module: module("one"),
            failure: refused(),
            retry_in: Duration::ZERO,
        },
        Notice::ModuleDeleteFailed {
            module: module("one"),
            failure: refused(),
            retry_in: Duration::ZERO,
        },
        Notice::ConfigRejected {
            key: "one".to_owned(),
            message: "line 1: not a map".to_owned(),
        },
        Notice::ConfigLost {
            releases: vec!["a".to_owned()],
        },
        Notice::PurgeHeld {
            releases: vec!["a".to_owned(), "b".to_owned()],
            reason: HeldFor::Confirmation { goes: 3, of: 4 },
        },
        Notice::PurgeConfirmed {
            releases: vec!["a".to_owned()],
        },
        Notice::PurgeFailed {
            release: "a".to_owned(),
            failure: refused(),
            retry_in: Duration::ZERO,
        },
        Notice::ReleasePurged {
            release: "a".to_owned(),
        },
        Notice::ModuleLate {
            module: module("one"),
            waits_for: "hook 'a.sh', for 60s".to_owned(),
        },
        Notice::SectionsNotKept {
            keys: vec!["one".to_owned()],
        },
    ];
    let told = told(&notices);
    let reasons: Vec<_> = told.iter().map(|(reason, _)| *reason).collect();
    let expected = [
        "ModuleHeld",
        "EnabledScriptFailed",
        "ModuleDeleteFailed",
        "ConfigInvalid",
        "ConfigurationLost",
        "PurgeHeld",
        "PurgeConfirmed",
        "ReleasePurgeFailed",
        "ReleasePurged",
        "ModuleLate",
        "SectionsNotKept",
    ];
    assert_eq!(reasons, expected);
    assert_eq!(
        told[5].1,
        "releases whose modules are no longer named are kept, 3 of our 4 releases would go within ten minutes, and nobody said so: a, b"
    );
}

#[test]
fn a_note_is_one_line_that_the_api_server_takes() {
    let lines = told(&[failed(Class::HookFailed, "first\nsecond\r\n\tthird")]);
    assert_eq!(lines[0].1, "module 'one' failed, step helm: first second third");
    for filler in ["x", "ü", "€"] {
        let long = &told(&[failed(Class::HookFailed, &filler.repeat(5000))])[0].1;
        assert!(
            long.len() <= NOTE_LIMIT && long.len() > NOTE_LIMIT - 8,
            "{}",
            long.len()
        );
        assert!(long.ends_with(&format!("{filler} …")), "{long}");
    }
}

#[test]
fn what_nobody_takes_is_counted_and_lost() {
    let meters = Arc::new(Meters::new("own_"));
    let (mut announcer, announcements) = Announcer::new(Arc::clone(&meters));
    for _ in 0..WAITING + 3 {
        announcer.hear(&failed(Class::Unavailable, "no answer"));
    }
    assert_eq!(announcements.len(), WAITING);
    let text = meters.render(None);
    assert!(text.contains("own_cluster_events_dropped_total 3"), "{text}");
}
