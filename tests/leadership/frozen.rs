//! A leader that is frozen in the middle of its work for longer than its lease lasts, and then goes on.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::path::Path;

use fs_err as fs;
use testbed::plane::User;
use testbed::process;
use testbed::proxy::{Side, Trap};
use testbed::wait::wait_until;

use super::stage::{PATIENCE, Stage};
use super::takeover::{LEADS, runs};

/// The exit code of a process that ended itself because its lease had run out.
const OVERDUE: i32 = 75;

/// The process id of the first helm in the notes.
fn helm_of(notes: &Path) -> u32 {
    let text = fs::read_to_string(notes).unwrap();
    let first = text.lines().next().unwrap();
    first.strip_prefix("a ").unwrap().parse().unwrap()
}

#[test]
fn a_leader_that_thaws_after_its_lease_has_run_out_writes_nothing_more() {
    let stage = Stage::with_lease("frozen", "14s");
    let (proxy, kubeconfig) = stage.proxy();
    let mut leader = stage.start("a", kubeconfig);
    let (frozen, notes) = (leader.process(), stage.path("notes/helm"));
    // Helm's first write creates its pending revision; the trap is at the second.
    proxy.trap(Trap {
        agent: "Helm/",
        nth: 2,
        side: Side::Before,
        deed: Box::new(move || {
            for process in [helm_of(&notes), frozen] {
                process::signal(process, libc::SIGSTOP);
            }
        }),
    });
    let look = || Ok::<_, String>(proxy.sprung());
    wait_until(PATIENCE, "a helm in the middle of its work", look).unwrap();
    let helm = helm_of(&stage.path("notes/helm"));

    let standby = stage.start("b", stage.namespace().kubeconfig(User::Admin));
    standby.wait_for(LEADS, 1);
    // The new leader has read that the previous one's helm may still be at work, and waits until that helm's time is
    // over.
    standby.wait_for("which led before us and may still have a helm at work on it", 1);
    assert_eq!(stage.history(), "pending-install");
    stage.wait_for_history("superseded deployed");
    assert!(runs(helm), "the frozen leader's helm still exists");

    let thawed = stage.namespace().plane().audit().mark().unwrap();
    leader.signal(libc::SIGCONT);
    assert_eq!(leader.wait_for_end(), Some(OVERDUE), "{}", leader.said());
    assert!(!runs(helm), "the helm ended with its operator");
    assert!(leader.said().contains("the lease has run out"), "{}", leader.said());
    let written = stage.requests(thawed, User::Operator).mutating();
    assert!(written.is_empty(), "{written}");
    assert_eq!(stage.history(), "superseded deployed");
    standby.stop();
}
