use super::tenure::Holder;
use super::*;

mod returning;

const STARTED: u64 = 1_000_000;
const TIMEOUT: Duration = Duration::from_mins(20);

fn newest(status: Status) -> Newest {
    Newest {
        revision: 3,
        status,
        ours: true,
        unmanaged: false,
        inputs: Some("same".to_owned()),
        checksum: Some("text".to_owned()),
        begun: Some(STARTED),
        held: None,
        confirmed: None,
        good: None,
        returned: None,
    }
}

fn facts(newest: Option<Newest>) -> Facts {
    Facts {
        release: "one".to_owned(),
        inputs: "same".to_owned(),
        asked: asked("as ever"),
        version: Some("0.1.0".to_owned()),
        unmanaged: false,
        unhealthy: None,
        newest,
        known: Known::Read,
        records: Records::Examined,
        objects: Objects::Unknown,
        base: Some(base(&[])),
        rendered: None,
        likeness: None,
        intent: None,
        torn: false,
        tenure: None,
        unchanged: Duration::from_secs(5),
        helm_timeout: TIMEOUT,
    }
}

fn asked(section: &str) -> Asked {
    Asked {
        section: section.to_owned(),
        global: "none".to_owned(),
    }
}

fn parts(names: &[&str]) -> BTreeSet<Part> {
    let part = |name: &&str| {
        let (kind, name) = name.split_once('/').expect("a test writes Kind/name");
        let group = if kind == "CustomResourceDefinition" {
            "apiextensions.k8s.io"
        } else {
            ""
        };
        Part {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: None,
            name: name.to_owned(),
        }
    };
    names.iter().map(part).collect()
}

fn base(names: &[&str]) -> Base {
    Base {
        asked: Some(asked("as ever")),
        confirmed: None,
        version: Some("0.1.0".to_owned()),
        parts: parts(names),
        altered: Vec::new(),
        is_outdated: false,
    }
}

#[expect(clippy::unnecessary_wraps, reason = "it is handed on as it is")]
fn rendered(checksum: &str, names: &[&str]) -> Option<Rendered> {
    Some(Rendered {
        checksum: checksum.to_owned(),
        parts: parts(names),
    })
}

fn intent(kind: IntentKind, revision_before: u32) -> Intent {
    Intent {
        kind,
        revision_before,
        digest: "same".to_owned(),
        started: STARTED,
        marks: true,
        holder: None,
    }
}

#[test]
fn a_helm_that_left_no_revision_is_followed_by_another() {
    let intent = intent(IntentKind::Upgrade, 3);
    assert!(intent.left_nothing(Some(3)) && intent.left_nothing(Some(2)) && intent.left_nothing(None));
    assert!(!intent.left_nothing(Some(4)), "a revision of its own says more");
    let torn = |newest| Facts {
        torn: true,
        ..facts(newest)
    };
    let deployed = newest(Status::Deployed);
    for inputs in ["same", "other"] {
        let mut facts = torn(Some(deployed.clone()));
        facts.inputs = inputs.to_owned();
        assert_eq!(
            decide(&facts),
            ReleaseStep::Render,
            "what it takes away may have to wait"
        );
        facts.rendered = rendered("text", &[]);
        assert_eq!(decide(&facts), ReleaseStep::Upgrade(Reason::Torn), "{inputs}");
    }
    assert_eq!(decide(&torn(None)), ReleaseStep::Upgrade(Reason::NotInstalled));
    let mut unmanaged = torn(Some(Newest {
        unmanaged: true,
        ..deployed
    }));
    unmanaged.unmanaged = true;
    assert!(matches!(decide(&unmanaged), ReleaseStep::LeaveAlone { .. }));
}

#[test]
fn a_release_that_does_not_exist_is_installed_without_rendering_it_first() {
    assert_eq!(decide(&facts(None)), ReleaseStep::Upgrade(Reason::NotInstalled));
}

#[test]
fn a_foreign_release_is_refused_in_whatever_state_it_is() {
    for status in [
        Status::Deployed,
        Status::Failed,
        Status::PendingUpgrade,
        Status::Unknown,
    ] {
        let mut facts = facts(Some(Newest {
            ours: false,
            ..newest(status)
        }));
        facts.intent = Some(intent(IntentKind::Upgrade, 2));
        let ReleaseStep::Refuse(failure) = decide(&facts) else {
            panic!("{status}: not refused")
        };
        assert_eq!(failure.class, Class::Refused);
        assert!(failure.report.contains("'one'"), "{failure}");
        assert_eq!(delay_of_removal(&facts), Some(failure));
    }
}

#[test]
fn equal_inputs_ask_for_the_objects_and_never_for_a_rendering() {
    let mut facts = facts(Some(newest(Status::Deployed)));
    assert_eq!(decide(&facts), ReleaseStep::LookAtObjects);
    facts.objects = Objects::Present;
    assert_eq!(decide(&facts), ReleaseStep::Keep { revision: 3 });
    facts.objects = Objects::Missing("ns/ConfigMap/x".to_owned());
    assert_eq!(
        decide(&facts),
        ReleaseStep::Upgrade(Reason::Absent("ns/ConfigMap/x".to_owned()))
    );
}

#[test]
fn by_what_a_watch_shows_a_release_is_kept_and_nothing_else_is_done() {
    let seen = |newest: Newest, known| Facts {
        known,
        objects: Objects::Present,
        ..facts(Some(newest))
    };
    let (current, outdated) = (Known::Watched(Notes::Current), Known::Watched(Notes::Outdated));
    let deployed = newest(Status::Deployed);
    let kept = ReleaseStep::Keep { revision: 3 };
    assert_eq!(decide(&seen(deployed.clone(), current)), kept);
    assert_eq!(
        decide(&seen(deployed.clone(), outdated)),
        ReleaseStep::Read,
        "a note is a write"
    );
    let unknown = Facts {
        objects: Objects::Unknown,
        ..seen(deployed.clone(), current)
    };
    assert_eq!(decide(&unknown), ReleaseStep::LookAtObjects);
    let missing = Facts {
        objects: Objects::Missing("ConfigMap/a".to_owned()),
        ..seen(deployed.clone(), current)
    };
    assert_eq!(decide(&missing), ReleaseStep::Read);
    let yielded = Newest {
        unmanaged: true,
        ..deployed.clone()
    };
    let mut left = seen(yielded.clone(), outdated);
    left.unmanaged = true;
    assert_eq!(decide(&left), ReleaseStep::LeaveAlone { revision: 3 });
    let (foreign, other) = (
        Newest {
            ours: false,
            ..deployed.clone()
        },
        Newest {
            inputs: None,
            ..deployed
        },
    );
    let unfinished = [Status::Failed, Status::PendingUpgrade, Status::Uninstalling].map(newest);
    for revision in [foreign, other, yielded].into_iter().chain(unfinished) {
        assert_eq!(
            decide(&seen(revision.clone(), current)),
            ReleaseStep::Read,
            "{revision:?}"
        );
    }
    let absent = Facts {
        known: current,
        ..facts(None)
    };
    assert_eq!(decide(&absent), ReleaseStep::Read);
}

#[test]
fn other_inputs_are_rendered_and_an_equal_rendering_is_only_recorded() {
    let mut facts = facts(Some(newest(Status::Deployed)));
    facts.inputs = "other".to_owned();
    assert_eq!(decide(&facts), ReleaseStep::Render);
    facts.rendered = rendered("text", &[]);
    assert_eq!(decide(&facts), ReleaseStep::LookAtObjects);
    facts.objects = Objects::Present;
    let checksum = "text".to_owned();
    assert_eq!(decide(&facts), ReleaseStep::Record { revision: 3, checksum });
    facts.objects = Objects::Missing("x".to_owned());
    assert_eq!(decide(&facts), ReleaseStep::Upgrade(Reason::Absent("x".to_owned())));
}

#[test]
fn another_rendering_is_an_upgrade_without_a_look_at_the_objects() {
    let mut facts = facts(Some(newest(Status::Deployed)));
    facts.inputs = "other".to_owned();
    facts.rendered = rendered("other text", &[]);
    assert_eq!(decide(&facts), ReleaseStep::Compare);
    facts.likeness = Some(Likeness::Other);
    assert_eq!(decide(&facts), ReleaseStep::Upgrade(Reason::Changed));
}

#[test]
fn a_revision_without_our_mark_is_compared_by_its_objects_and_keeps_its_checksum() {
    for (found, noted) in [(Some("text"), "text"), (Some("theirs"), "theirs"), (None, "text")] {
        let mut facts = facts(Some(Newest {
            inputs: None,
            checksum: found.map(str::to_owned),
            ..newest(Status::Deployed)
        }));
        assert_eq!(decide(&facts), ReleaseStep::Render);
        facts.rendered = rendered("text", &[]);
        assert_eq!(
            decide(&facts),
            ReleaseStep::Compare,
            "also where the copied checksum is equal"
        );
        facts.likeness = Some(Likeness::Other);
        assert_eq!(decide(&facts), ReleaseStep::Upgrade(Reason::Changed));
        facts.likeness = Some(Likeness::Same);
        assert_eq!(decide(&facts), ReleaseStep::LookAtObjects);
        facts.objects = Objects::Present;
        let checksum = noted.to_owned();
        assert_eq!(decide(&facts), ReleaseStep::Record { revision: 3, checksum });
    }
}

#[test]
fn a_text_that_is_written_in_another_way_is_no_reason_for_a_revision() {
    let mut facts = facts(Some(newest(Status::Deployed)));
    facts.inputs = "other".to_owned();
    facts.rendered = rendered("other text", &[]);
    facts.likeness = Some(Likeness::Same);
    facts.objects = Objects::Present;
    let checksum = "text".to_owned();
    assert_eq!(decide(&facts), ReleaseStep::Record { revision: 3, checksum });
}

#[test]
fn an_attempt_that_did_not_end_well_is_repeated_also_with_equal_inputs() {
    for status in [Status::Failed, Status::Superseded, Status::Uninstalled, Status::Unknown] {
        let mut facts = facts(Some(newest(status)));
        facts.rendered = rendered("text", &[]);
        assert_eq!(decide(&facts), ReleaseStep::Upgrade(Reason::Last(status)));
    }
}

#[test]
fn what_our_killed_child_left_is_repaired_at_once() {
    for (status, intent) in [
        (Status::PendingInstall, intent(IntentKind::Upgrade, 2)),
        (Status::PendingUpgrade, intent(IntentKind::Upgrade, 2)),
        (Status::Uninstalling, intent(IntentKind::Uninstall, 3)),
    ] {
        let mut facts = facts(Some(newest(status)));
        facts.intent = Some(intent);
        assert_eq!(
            decide(&facts),
            ReleaseStep::Repair {
                revision: 3,
                left: status
            }
        );
        assert_eq!(delay_of_removal(&facts), None);
    }
}

#[test]
fn what_another_helm_does_is_left_alone_until_its_time_is_over() {
    for intent in [
        None,
        Some(intent(IntentKind::Upgrade, 1)),
        Some(intent(IntentKind::Uninstall, 3)),
    ] {
        let mut facts = facts(Some(newest(Status::PendingUpgrade)));
        facts.intent = intent;
        let ReleaseStep::Refuse(failure) = decide(&facts) else {
            panic!("not refused: {:?}", facts.intent)
        };
        assert_eq!(failure.class, Class::Unavailable);
        assert!(
            failure
                .report
                .contains("pending-upgrade, unchanged since we have looked for 5 s"),
            "{failure}"
        );
        assert_eq!(delay_of_removal(&facts), Some(failure));

        facts.unchanged = TIMEOUT;
        assert_eq!(
            decide(&facts),
            ReleaseStep::Repair {
                revision: 3,
                left: Status::PendingUpgrade
            }
        );
        assert_eq!(delay_of_removal(&facts), None);
    }
}

#[test]
fn every_state_survives_its_word() {
    for word in [
        "deployed",
        "failed",
        "superseded",
        "uninstalled",
        "uninstalling",
        "pending-install",
        "pending-upgrade",
        "pending-rollback",
        "unknown",
    ] {
        assert_eq!(Status::parse(word).word(), word);
    }
    assert_eq!(Status::parse("sleeping"), Status::Unknown);
}

#[test]
fn a_release_in_the_hands_of_people_is_marked_once_and_then_left_alone() {
    let wanted = |wanted, is, status| {
        let newest = Newest {
            unmanaged: is,
            ..newest(status)
        };
        decide(&Facts {
            unmanaged: wanted,
            inputs: "other".to_owned(),
            objects: Objects::Missing("ConfigMap/x".to_owned()),
            rendered: rendered("other text", &[]),
            likeness: Some(Likeness::Other),
            ..facts(Some(newest))
        })
    };
    assert_eq!(
        wanted(true, false, Status::Deployed),
        ReleaseStep::Upgrade(Reason::Yielded)
    );
    for status in [Status::Deployed, Status::Failed] {
        assert_eq!(wanted(true, true, status), ReleaseStep::LeaveAlone { revision: 3 });
    }
    assert_eq!(
        wanted(false, true, Status::Deployed),
        ReleaseStep::Upgrade(Reason::TakenBack)
    );
    assert!(
        matches!(wanted(true, true, Status::PendingUpgrade), ReleaseStep::Refuse(_)),
        "another helm may be at work"
    );
}

#[test]
fn a_release_that_is_not_there_is_installed_also_for_the_hands_of_people() {
    let facts = Facts {
        unmanaged: true,
        ..facts(None)
    };
    assert_eq!(decide(&facts), ReleaseStep::Upgrade(Reason::NotInstalled));
}

fn holder(identity: &str, transitions: u32) -> Holder {
    Holder {
        identity: identity.to_owned(),
        transitions,
    }
}

#[test]
fn what_one_who_led_before_us_works_on_is_left_alone_until_nothing_of_it_can_run() {
    let theirs = |kind, revision| Intent {
        holder: Some(holder("a", 3)),
        ..intent(kind, revision)
    };
    let rows = [
        (Some(newest(Status::PendingUpgrade)), theirs(IntentKind::Upgrade, 2)),
        // The helm of the earlier leader may be about to write its revision.
        (Some(newest(Status::Failed)), theirs(IntentKind::Upgrade, 3)),
        (None, theirs(IntentKind::Upgrade, 0)),
        (Some(newest(Status::Uninstalling)), theirs(IntentKind::Uninstall, 3)),
    ];
    for (newest, intent) in rows {
        let mut facts = facts(newest);
        facts.rendered = rendered("text", &[]);
        facts.intent = Some(intent);
        let mut tenure = Tenure {
            holder: holder("b", 4),
            overlap: Duration::from_secs(1),
        };
        facts.tenure = Some(tenure.clone());
        let ReleaseStep::Refuse(failure) = decide(&facts) else {
            panic!("not refused: {facts:?}")
        };
        assert!(failure.report.contains("is left to 'a'"), "{failure}");
        assert_eq!(delay_of_removal(&facts).is_some(), facts.newest.is_some());

        tenure.overlap = Duration::ZERO;
        facts.tenure = Some(tenure.clone());
        assert!(
            matches!(decide(&facts), ReleaseStep::Repair { .. } | ReleaseStep::Upgrade(_)),
            "{facts:?}"
        );
        assert_eq!(delay_of_removal(&facts), None);
        // A revision that was left in our own time as leader is repaired at once.
        tenure.overlap = Duration::from_secs(1);
        tenure.holder = holder("a", 3);
        facts.tenure = Some(tenure);
        assert!(
            matches!(decide(&facts), ReleaseStep::Repair { .. } | ReleaseStep::Upgrade(_)),
            "{facts:?}"
        );
    }
}

#[test]
fn a_release_that_is_as_it_should_be_is_no_reason_to_wait_for_anybody() {
    let mut facts = facts(Some(newest(Status::Deployed)));
    facts.objects = Objects::Present;
    facts.intent = Some(Intent {
        holder: Some(holder("a", 3)),
        ..intent(IntentKind::Upgrade, 3)
    });
    facts.tenure = Some(Tenure {
        holder: holder("b", 4),
        overlap: Duration::from_secs(1),
    });
    assert_eq!(decide(&facts), ReleaseStep::Keep { revision: 3 });
}

#[test]
fn an_intent_of_an_older_version_has_no_holder_and_may_be_of_a_child_without_a_mark() {
    let old = r#"{"kind":"upgrade","revision_before":2,"digest":"same","started":1000000}"#;
    let read: Intent = serde_json::from_str(old).unwrap();
    let expected = Intent {
        marks: false,
        ..intent(IntentKind::Upgrade, 2)
    };
    assert_eq!(read, expected);
    assert_eq!(serde_json::to_string(&read).unwrap(), old);
}

#[test]
fn what_a_person_began_where_our_child_was_killed_is_not_ours() {
    let repairs = |begun, status, marks| {
        let mut facts = facts(Some(Newest {
            begun,
            ..newest(status)
        }));
        facts.intent = Some(Intent {
            marks,
            ..intent(IntentKind::Upgrade, 2)
        });
        matches!(decide(&facts), ReleaseStep::Repair { .. })
    };
    let pending = Status::PendingUpgrade;
    for (begun, is_ours) in [(Some(STARTED), true), (Some(STARTED - 60), false), (None, false)] {
        assert_eq!(repairs(begun, pending, true), is_ours, "{begun:?}");
    }
    assert!(repairs(None, pending, false), "children of older versions left no mark");
    // The note about a child that has ended may stay, and a person removes the revision of that child.
    assert!(!repairs(Some(STARTED), Status::Uninstalling, true));
}

/// The facts of an upgrade after the rendering changed.
fn changed(deployed: &[&str], now: &[&str]) -> Facts {
    Facts {
        inputs: "other".to_owned(),
        base: Some(base(deployed)),
        rendered: rendered("other text", now),
        likeness: Some(Likeness::Other),
        ..facts(Some(newest(Status::Deployed)))
    }
}

fn held(facts: &Facts) -> Held {
    match decide(facts) {
        ReleaseStep::Hold(held) => held,
        step => panic!("not held: {step:?}"),
    }
}

const UPGRADE: ReleaseStep = ReleaseStep::Upgrade(Reason::Changed);

#[test]
fn an_upgrade_that_takes_away_what_holds_others_or_most_of_a_release_is_held() {
    let five = ["ConfigMap/a", "ConfigMap/b", "ConfigMap/c", "Secret/d", "Secret/e"];
    for (deployed, now, taken) in [
        (&["ConfigMap/a", "PersistentVolumeClaim/p"][..], &["ConfigMap/a"][..], 1),
        (
            &["ConfigMap/a", "ConfigMap/b", "Namespace/n"],
            &["ConfigMap/a", "ConfigMap/b"],
            1,
        ),
        (
            &["CustomResourceDefinition/c", "ConfigMap/a"],
            &["ConfigMap/a", "ConfigMap/z"],
            1,
        ),
        (&five, &five[..2], 3),
        (&five, &[], 5),
        (
            &five,
            &[
                "ConfigMap/v",
                "ConfigMap/w",
                "ConfigMap/x",
                "ConfigMap/y",
                "ConfigMap/z",
            ],
            5,
        ),
    ] {
        let held = held(&changed(deployed, now));
        assert_eq!(
            (held.taken, held.of),
            (taken, deployed.len()),
            "{deployed:?} -> {now:?}"
        );
        assert_eq!(held.takes.len(), taken);
    }
    for (deployed, now) in [
        (&["ConfigMap/a", "ConfigMap/b"][..], &[][..]),
        (&five, &five[..3]),
        (&five[..4], &five[..2]),
        (
            &["PersistentVolumeClaim/p"],
            &["PersistentVolumeClaim/p", "ConfigMap/a"],
        ),
        (&[], &five),
    ] {
        assert_eq!(decide(&changed(deployed, now)), UPGRADE, "{deployed:?} -> {now:?}");
    }
    let whole = held(&changed(
        &["ConfigMap/a", "Namespace/n", "PersistentVolumeClaim/p", "ConfigMap/b"],
        &[],
    ));
    assert_eq!(
        whole.takes,
        ["Namespace/n", "PersistentVolumeClaim/p", "ConfigMap/a", "ConfigMap/b"],
        "what matters most comes first"
    );
}

#[test]
fn a_small_release_of_which_nothing_would_be_left_is_held_if_its_files_are_not_what_they_were() {
    let altered = |deployed: &[&str], now: &[&str]| {
        let mut facts = changed(deployed, now);
        facts.base.as_mut().expect("it was put there").altered = vec!["templates/a.yaml".to_owned()];
        facts
    };
    assert_eq!(held(&altered(&["ConfigMap/a"], &[])).taken, 1);
    assert_eq!(held(&altered(&["ConfigMap/a", "ConfigMap/b"], &[])).taken, 2);
    for (deployed, now) in [
        (&["ConfigMap/a", "ConfigMap/b"][..], &["ConfigMap/b"][..]),
        (&["ConfigMap/a"], &["ConfigMap/c"]),
        (&[], &[]),
    ] {
        assert_eq!(decide(&altered(deployed, now)), UPGRADE, "{deployed:?} -> {now:?}");
    }
}

#[test]
fn what_people_changed_or_nobody_knows_is_not_held() {
    type Change = fn(&mut Facts, &mut Base);
    let facts = || changed(&["PersistentVolumeClaim/p"], &[]);
    held(&facts());
    let mut everywhere = facts();
    everywhere.asked.global = "another".to_owned();
    held(&everywhere);
    let changes: [Change; 3] = [
        |facts, _| facts.asked.section = "another".to_owned(),
        |facts, _| facts.version = Some("0.2.0".to_owned()),
        |_, base| base.asked = None,
    ];
    for change in changes {
        let mut facts = facts();
        let mut base = facts.base.take().expect("it was put there");
        change(&mut facts, &mut base);
        facts.base = Some(base);
        facts.rendered = rendered("other text", &[]);
        assert_eq!(decide(&facts), UPGRADE);
    }
}

#[test]
fn an_attempt_that_did_not_end_well_and_other_hands_lift_no_brake() {
    let mut failed = changed(&["PersistentVolumeClaim/p"], &[]);
    failed.newest = Some(newest(Status::Failed));
    held(&failed);
    failed.rendered = None;
    assert_eq!(decide(&failed), ReleaseStep::Render);
    failed.base = None;
    assert_eq!(
        decide(&failed),
        ReleaseStep::LookAtBase,
        "what is cheap to know comes first"
    );

    let mut yielded = changed(&["PersistentVolumeClaim/p"], &[]);
    yielded.unmanaged = true;
    held(&yielded);

    let mut uninstalled = changed(&["PersistentVolumeClaim/p"], &[]);
    uninstalled.newest = Some(newest(Status::Uninstalled));
    assert_eq!(
        decide(&uninstalled),
        ReleaseStep::Upgrade(Reason::Last(Status::Uninstalled)),
        "nothing of it is there"
    );
}

#[test]
fn a_record_that_names_kinds_of_the_past_is_rewritten_before_anything_else_and_by_nobody_but_its_holder() {
    let mut outdated = changed(&["PersistentVolumeClaim/p"], &[]);
    if let Some(base) = &mut outdated.base {
        base.is_outdated = true;
    }
    assert_eq!(decide(&outdated), ReleaseStep::Amend);
    let mut asked_for = outdated.clone();
    asked_for.version = Some("0.2.0".to_owned());
    assert_eq!(decide(&asked_for), ReleaseStep::Amend);
    // Helm has nothing to do for an unchanged release.
    let mut same = outdated.clone();
    (same.inputs, same.objects) = ("same".to_owned(), Objects::Present);
    assert_eq!(decide(&same), ReleaseStep::Keep { revision: 3 });

    outdated.intent = Some(Intent {
        holder: Some(holder("a", 3)),
        ..intent(IntentKind::Upgrade, 3)
    });
    outdated.tenure = Some(Tenure {
        holder: holder("b", 4),
        overlap: Duration::from_secs(1),
    });
    assert!(matches!(decide(&outdated), ReleaseStep::Refuse(_)));
}

#[test]
fn a_confirmation_counts_for_what_it_names() {
    let mut facts = changed(&["PersistentVolumeClaim/p", "ConfigMap/a"], &["ConfigMap/a"]);
    let note = held(&facts);
    let mut newest = newest(Status::Deployed);
    newest.confirmed = Some(note.digest.clone());
    newest.held = Some(note);
    facts.newest = Some(newest);
    assert_eq!(decide(&facts), UPGRADE);
    facts.rendered = rendered("text with a time of day", &["ConfigMap/a"]);
    assert_eq!(decide(&facts), UPGRADE, "another rendering takes away the same");
    let mut failed = facts.clone();
    (failed.newest, failed.base) = (
        Some(tests::newest(Status::Failed)),
        facts.base.clone().map(|base| Base {
            confirmed: facts.newest.as_ref().and_then(|newest| newest.confirmed.clone()),
            ..base
        }),
    );
    assert_eq!(
        decide(&failed),
        ReleaseStep::Upgrade(Reason::Last(Status::Failed)),
        "who confirmed what then failed"
    );
    facts.rendered = rendered("less text", &[]);
    assert_eq!(held(&facts).taken, 2, "another rendering takes away more");
}

#[test]
fn what_is_held_costs_no_rendering_until_something_changes() {
    let mut facts = changed(&["PersistentVolumeClaim/p"], &[]);
    let note = held(&facts);
    let mut newest = newest(Status::Deployed);
    newest.held = Some(note.clone());
    facts.newest = Some(newest);
    (facts.rendered, facts.base) = (None, None);
    assert_eq!(decide(&facts), ReleaseStep::Hold(note));
    for change in [
        (|facts| facts.inputs = "a file was put back".to_owned()) as fn(&mut Facts),
        |facts| facts.asked.section = "another".to_owned(),
    ] {
        let mut facts = facts.clone();
        change(&mut facts);
        assert_eq!(decide(&facts), ReleaseStep::Render);
    }
}

#[test]
fn a_record_without_the_version_of_its_chart_is_no_request_of_people() {
    let mut facts = changed(&["PersistentVolumeClaim/p"], &[]);
    facts.base = Some(Base {
        version: None,
        ..base(&["PersistentVolumeClaim/p"])
    });
    assert_eq!(held(&facts).taken, 1);
}

#[test]
fn what_is_held_is_told_with_the_way_on() {
    let names: Vec<String> = (0..9).map(|number| format!("ConfigMap/c{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let failure = held(&changed(&names, &[])).failure("one");
    assert_eq!(failure.class, Class::Held);
    assert!(
        failure.report.contains("'one'") && failure.report.contains("9 of 9") && failure.report.contains("and 4 more"),
        "{failure}"
    );
    assert!(failure.hints[1].contains("module upgrade one --confirm"), "{failure:?}");
}

#[test]
fn doubtful_records_are_examined_before_anything_else_is_done() {
    let with = |newest: Newest, records| Facts {
        records,
        ..facts(Some(newest))
    };
    let doubtful = |newest| with(newest, Records::Doubtful);
    for status in [
        Status::Deployed,
        Status::Failed,
        Status::Superseded,
        Status::PendingUpgrade,
    ] {
        assert_eq!(decide(&doubtful(newest(status))), ReleaseStep::Examine, "{status}");
    }
    let foreign = Newest {
        ours: false,
        ..newest(Status::Deployed)
    };
    assert!(matches!(decide(&doubtful(foreign)), ReleaseStep::Refuse(_)));
    let yielded = Newest {
        unmanaged: true,
        ..newest(Status::Deployed)
    };
    let of_people = Facts {
        unmanaged: true,
        ..doubtful(yielded)
    };
    assert_eq!(decide(&of_people), ReleaseStep::LeaveAlone { revision: 3 });
    let watched = Facts {
        known: Known::Watched(Notes::Current),
        ..doubtful(newest(Status::Deployed))
    };
    assert_eq!(decide(&watched), ReleaseStep::Read);
}

#[test]
fn an_unfinished_revision_is_waited_for_only_if_its_contents_are_unfinished_too() {
    let unread = Facts {
        records: Records::Unread,
        ..facts(Some(newest(Status::PendingUpgrade)))
    };
    assert_eq!(decide(&unread), ReleaseStep::Examine);
    // A removal is never begun by the label alone.
    assert_eq!(
        delay_of_removal(&unread).map(|failure| failure.class),
        Some(Class::Unavailable)
    );
    let examined = facts(Some(newest(Status::PendingUpgrade)));
    assert!(matches!(decide(&examined), ReleaseStep::Refuse(_)));
}
