//! All combinations of modes, windows and kinds of steps, by a clock that the test sets.

use super::*;

/// Mondays from 2:00 to 5:00 UTC.
const WINDOWS: &str = "windows: [{days: [Mon], from: \"02:00\", to: \"05:00\"}]";
const CLOSED: &str = START;
const OPEN: &str = "2026-01-05T02:00:00Z";
const NEXT: &str = "2026-01-12T02:00:00Z";

#[test]
fn mode_window_and_kind_of_step_decide_together() {
    let steps = [
        ("1.4.3", VersionStep::Patch),
        ("1.5.0", VersionStep::Minor),
        ("1.4.3-rc.1", VersionStep::Minor),
        ("2.0.0", VersionStep::Major),
        ("1.4.1", VersionStep::Older),
        (RUNS, VersionStep::Same),
    ];
    for mode in ["auto", "patch", "manual"] {
        for (window, wall) in [("", CLOSED), (WINDOWS, OPEN), (WINDOWS, CLOSED)] {
            for (name, step) in steps {
                for approved in [false, true] {
                    let mut world = World::new();
                    world.policy(&format!("mode: {mode}\n{window}"));
                    world.now.wall = at(wall);
                    let mut built = candidate(name);
                    // The running version, built again, has another digest.
                    built.digest = digest("other");
                    built
                        .manifests
                        .values_mut()
                        .for_each(|manifest| *manifest = digest("other"));
                    world.show_as("stable", built);
                    if approved {
                        world.approve("other");
                    }
                    let mut expected = Vec::new();
                    if step == VersionStep::Older && !approved {
                        expected.push("older");
                    }
                    let wants_approval = match mode {
                        "auto" => false,
                        "patch" => step != VersionStep::Patch,
                        _ => true,
                    };
                    if wants_approval && !approved {
                        expected.push("approval");
                    }
                    if !window.is_empty() && wall == CLOSED {
                        expected.push("window");
                    }
                    let told = format!("{mode}, {window:?} at {wall}, {name}, approved: {approved}");
                    if expected.is_empty() {
                        assert_eq!(world.begins().as_deref(), Some(name), "{told}");
                        continue;
                    }
                    assert_eq!(world.waits(), expected, "{told}");
                    let next = (expected == ["window"]).then(|| at(NEXT));
                    assert_eq!(world.next(), next, "{told}");
                }
            }
        }
    }
}

#[test]
fn an_approval_of_one_version_never_moves_another() {
    let mut world = World::new();
    world.policy("mode: manual\ndelay: 24h");
    world.approve("1.4.3");
    for other in ["1.4.4", "1.4.1", "2.0.0"] {
        world.show("stable", other);
        assert!(world.waits().contains(&"approval"), "{other}");
        assert!(world.waits().contains(&"delay"), "{other}");
    }
    // Only the first index is approved, and the second index has the same manifest.
    let mut sharing = candidate("1.4.4");
    let own = candidate("1.4.3").manifests;
    sharing
        .manifests
        .insert(platform("linux/amd64"), own[&platform("linux/amd64")].clone());
    world.show_as("stable", sharing);
    assert_eq!(world.waits(), ["approval", "delay"]);
    world.show("stable", "1.4.3");
    assert_eq!(world.begins().as_deref(), Some("1.4.3"));
}

#[test]
fn time_alone_tells_when_a_version_may_be_taken() {
    let mut world = World::new();
    world.policy(&format!("delay: 7d\n{WINDOWS}"));
    world.show("stable", "1.4.3");
    assert_eq!(world.waits(), ["delay", "window"]);
    // The window of the next Monday ends before the delay does.
    assert_eq!(world.next(), Some(at("2026-01-19T02:00:00Z")));
    world.now.wall = at("2026-01-19T01:59:59Z");
    assert_eq!(world.waits(), ["window"]);
    world.now.wall = at("2026-01-19T02:00:00Z");
    assert_eq!(world.begins().as_deref(), Some("1.4.3"));
    world.policy("mode: manual\ndelay: 40d");
    assert_eq!(world.waits(), ["approval", "delay"]);
    assert_eq!(world.next(), None);
}

#[test]
fn a_window_that_closes_while_a_quiet_moment_is_waited_for_holds_again() {
    let mut world = World::new();
    world.policy(WINDOWS);
    world.show("stable", "1.4.3");
    world.activity = Activity::Busy;
    world.now.wall = at("2026-01-05T04:55:00Z");
    assert_eq!(world.waits(), ["busy"]);
    world.pass(Duration::from_mins(5));
    assert_eq!(world.waits(), ["window"]);
    world.pass(Duration::from_mins(6));
    assert_eq!(world.waits(), ["window"]);
    world.now.wall = at(NEXT);
    assert_eq!(world.waits(), ["busy"]);
}

#[test]
fn each_reason_is_a_sentence() {
    let then = at("2026-01-12T02:00:00Z");
    let approval = |mode, step| Reason::Approval { mode, step };
    let rows = [
        (Reason::Held, "releaseChannel is the digest that runs, which holds it"),
        (
            Reason::Withdrawn {
                higher: version("1.4.5"),
            },
            "the registry showed 1.4.5 before and does not any more; another releaseChannel says that this one is wanted instead",
        ),
        (
            Reason::Older {
                running: Some(version(RUNS)),
            },
            "it is older than the version that runs, 1.4.2, and no person has asked for it by releaseChannel or releaseApproved",
        ),
        (
            Reason::FailedBefore,
            "it failed on trial and is not tried again; releaseApproved with its digest lifts that for one trial",
        ),
        (
            approval(Mode::Manual, VersionStep::Patch),
            "it wants an approval (releaseApproved): the mode is manual",
        ),
        (
            approval(Mode::Patch, VersionStep::Minor),
            "it wants an approval (releaseApproved): the mode is patch, and more than the patch level rises",
        ),
        (
            Reason::Delay { until: then },
            "it was first seen a short time ago, and waits until 2026-01-12T02:00:00Z",
        ),
        (
            Reason::Unclear { again: then },
            "its last trial had no result; there is another after 2026-01-12T02:00:00Z",
        ),
        (
            Reason::Window { opens: Some(then) },
            "no window is open; the next one opens at 2026-01-12T02:00:00Z",
        ),
        (
            Reason::Busy { until: then },
            "something is under way that is to end first; after 2026-01-12T02:00:00Z it is not waited for any longer",
        ),
    ];
    for (reason, sentence) in rows {
        assert_eq!(reason.to_string(), sentence);
    }
    for (idle, sentence) in [
        (Idle::UpToDate, "the version that is wanted runs"),
        (Idle::NoTag(tag("x")), "the registry shows no tag 'x'"),
        (
            Idle::NotLookedAt("x".to_owned()),
            "the registry has not yet told all there is to know of 'x'",
        ),
        (
            Idle::PlatformsUnknown,
            "it is not known yet on which platforms our pods run",
        ),
    ] {
        assert_eq!(idle.to_string(), sentence);
    }
}
