//! The end of a leader, and the first actions of the next one.

use std::time::{Duration, Instant};

use fs_err as fs;
use jiff::Timestamp;
use testbed::audit::AuditError;
use testbed::plane::User;
use testbed::proxy::{Fault, On, What};
use testbed::report::tell;
use testbed::wait::wait_until;

use super::stage::{LABEL, PATIENCE, Replica, Stage};

pub(super) const WAITS: &str = "HA mode is enabled and waiting for acquiring the lock.";
pub(super) const HANDED_OVER: &str = "Restarting because the leadership was handed over";
pub(super) const LEADS: &str = "Leadership is acquired";
/// The ends of metric names about the snapshots of module hooks.
const EYES: &str = r#"objects{binding="seen",hook="hooks/watch.sh",kind="ServiceAccount",module="eyes","#;
const SHY: &str = r#"objects{binding="seen",hook="hooks/watch.sh",kind="LimitRange",module="shy","#;

/// A leader that has converged, and a standby that acts as another user.
pub(super) fn pair(stage: &Stage) -> (Replica, Replica) {
    let leader = stage.start("a", stage.namespace().kubeconfig(User::Operator));
    leader.wait_until_ready();
    let standby = stage.start("b", stage.namespace().kubeconfig(User::Admin));
    standby.wait_for_answer("/readyz", 200, WAITS);
    (leader, standby)
}

#[test]
fn a_standby_answers_and_has_done_nothing_else_until_its_leader_is_killed() {
    let stage = Stage::build("killed");
    let beginning = stage.namespace().plane().audit().mark().unwrap();
    let (leader, standby) = pair(&stage);
    assert_eq!(stage.lease("holderIdentity"), leader.identity);
    assert_eq!(stage.lease("leaseDurationSeconds"), "18");
    assert_eq!(stage.lease("leaseTransitions"), "0");

    // The standby is prepared as far as possible: it has loaded the hooks' configurations and filled their snapshots.
    standby.wait_for("Loaded config", 1);
    let snapshots = [
        r#"objects{binding="crowd",hook="note.sh",kind="ConfigMap",module="","#,
        EYES,
        SHY,
    ];
    for snapshot in snapshots {
        standby.wait_for_answer("/metrics", 200, &format!("addon_operator_kube_snapshot_{snapshot}"));
    }
    assert_eq!(standby.get("/healthz").unwrap().0, 200);
    let metrics = standby.get("/metrics").unwrap().1;
    assert!(metrics.contains("addon_operator_leader 0\n"), "{metrics}");
    assert!(leader.get("/metrics").unwrap().1.contains("addon_operator_leader 1\n"));
    let told = standby.refused("queue list");
    assert!(
        told.contains("this replica is a standby") && told.contains(&leader.identity),
        "{told}"
    );
    let writes = stage.requests(beginning, User::Admin).mutating();
    assert!(writes.is_empty(), "{writes}");
    let by_standby = |note: &String| note.starts_with("b ");
    let hooks: Vec<String> = stage.notes("hooks").into_iter().filter(by_standby).collect();
    assert_eq!(hooks, ["b config"]);
    assert_eq!(stage.notes("helm").iter().filter(|note| by_standby(note)).count(), 0);
    assert_eq!(stage.notes("eyes"), ["a config", "a runs", "b config"]);
    let of_shy = || -> Vec<String> { stage.notes("shy").into_iter().filter(by_standby).collect() };
    assert_eq!(of_shy(), ["b config"], "who leads has to ask its script");
    assert!(stage.notes("off").is_empty());

    let killed = Instant::now();
    leader.kill();
    standby.wait_for(LEADS, 1);
    tell(&format!(
        "leader killed: the standby leads after {:?}",
        killed.elapsed()
    ));
    standby.wait_until_ready();
    tell(&format!(
        "leader killed: everything is looked after again after {:?}",
        killed.elapsed()
    ));
    assert_eq!(stage.lease("holderIdentity"), standby.identity);
    assert_eq!(stage.lease("leaseTransitions"), "1");
    assert_eq!(stage.history(), "deployed", "what had not changed was left alone");
    assert_eq!(
        stage.notes("hooks").iter().filter(|note| *note == "b config").count(),
        1
    );
    // The new leader used its preparation: its hooks were configured only once, and their objects were listed only
    // once.
    assert_eq!(stage.notes("eyes"), ["a config", "a runs", "b config", "b runs"]);
    assert_eq!(of_shy(), ["b config"]);
    let metrics = standby.get("/metrics").unwrap().1;
    assert!(metrics.contains(EYES), "{metrics}");
    assert!(!metrics.contains(SHY), "{metrics}");
    standby.stop();
    assert_eq!(stage.lease("holderIdentity"), "", "it was released");
    let look = || Ok::<_, AuditError>(Some(stage.looks(beginning, User::Admin)).filter(|looks| !looks.is_empty()));
    let looks = wait_until(PATIENCE, "the end of the watch", look).unwrap();
    assert_eq!(looks.len(), 1, "{looks}");
}

#[test]
fn a_leader_that_stops_hands_over_at_once() {
    let stage = Stage::build("stopped");
    let (leader, standby) = pair(&stage);
    let stopped = leader.stop();
    standby.wait_for(LEADS, 1);
    let took = stopped.elapsed();
    tell(&format!("leader stopped: the standby leads after {took:?}"));
    assert!(took < Duration::from_secs(5), "that is no handing over: {took:?}");
    standby.wait_until_ready();
    assert_eq!(stage.history(), "deployed");
    standby.stop();
}

#[test]
fn a_service_finds_the_leader_by_its_label() {
    let stage = Stage::build("marked");
    // Pods without a process. They still carry the label from an earlier leader.
    for pod in ["a", "b"] {
        let labels = format!("--labels={LABEL}=true");
        stage.kubectl(&format!("run {pod} --image=example.com/none {labels}"));
    }
    let marked = |expected: &str| {
        let look = || match stage.marked() {
            found if found.trim() == expected => Ok(Some(())),
            found => Err(found),
        };
        wait_until(PATIENCE, &format!("the label on '{expected}'"), look).unwrap();
    };
    let leader = stage.start_marked("a", stage.namespace().kubeconfig(User::Operator));
    marked("pod/a");
    leader.wait_until_ready();
    // A pod that a person labels is no leader, and its operator removes the label at its start.
    stage.kubectl(&format!("label pod b {LABEL}=true"));
    let standby = stage.start_marked("b", stage.namespace().kubeconfig(User::Admin));
    marked("pod/a");
    leader.kill();
    marked("pod/b");
    standby.wait_for(LEADS, 1);
    standby.stop();
    marked("");
}

#[test]
fn hooks_alone_share_a_lease_if_that_is_asked_for() {
    let stage = Stage::build("hooks");
    let kubeconfig = || stage.namespace().kubeconfig(User::Operator);
    let leader = stage.start_hooks("a", kubeconfig());
    leader.wait_for("Hook executed successfully", 2);
    let standby = stage.start_hooks("b", kubeconfig());
    standby.wait_for_answer("/metrics", 200, "shell_operator_leader 0\n");
    standby.wait_for("Loaded config", 1);
    assert_eq!(stage.lease_of("shell-operator", "holderIdentity"), leader.identity);
    assert!(!stage.notes("hooks").contains(&"b runs".to_owned()));
    leader.stop();
    standby.wait_for("Hook executed successfully", 2);
    standby.stop();
}

#[test]
fn a_leader_that_is_cut_off_ends_its_helm_before_another_leads() {
    let stage = Stage::build("cut");
    let (proxy, kubeconfig) = stage.proxy();
    // The delay makes the cut happen in the middle of helm's work.
    let slow = What::Delay(Duration::from_millis(100));
    proxy.impose(vec![Fault {
        on: On::Others,
        what: slow,
    }]);
    let leader = stage.start("a", kubeconfig);
    let look = || Ok::<_, String>((stage.history() == "pending-install").then_some(()));
    wait_until(PATIENCE, "a helm in the middle of its work", look).unwrap();
    proxy.impose(vec![Fault {
        on: On::Everything,
        what: What::BlackHole,
    }]);
    let cut = Instant::now();
    let standby = stage.start("b", stage.namespace().kubeconfig(User::Admin));
    standby.wait_for("Loaded config", 1);

    let helm: u32 = stage.notes("helm")[0].strip_prefix("a ").unwrap().parse().unwrap();
    let ended = || Ok::<_, String>((!runs(helm)).then_some(()));
    wait_until(PATIENCE, "the end of the helm of who was cut off", ended).unwrap();
    let left = stage.end_of_lease().duration_since(Timestamp::now());
    tell(&format!(
        "leader cut off: its helm ended after {:?}, {left:#} before its lease",
        cut.elapsed()
    ));
    assert!(left.is_positive(), "the lease has run out by {left:#}");
    leader.wait_for(HANDED_OVER, 1);

    standby.wait_for(LEADS, 1);
    tell(&format!("leader cut off: the standby leads after {:?}", cut.elapsed()));
    // The new leader first leaves the release alone, because the previous leader's helm may still be at work.
    stage.wait_for_history("superseded deployed");
    assert_eq!(stage.notes("helm").len(), 2);
    assert!(stage.notes("overlaps").is_empty(), "{:?}", stage.notes("overlaps"));

    // The old leader becomes a standby in the same process.
    proxy.heal();
    leader.wait_for_answer("/readyz", 200, WAITS);
    assert_eq!(leader.said().matches(HANDED_OVER).count(), 1);
    leader.stop();
    standby.stop();
    assert_eq!(stage.notes("helm").len(), 2);
}

/// Whether a process exists and is not just waiting to be reaped.
pub(super) fn runs(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| state != 'Z')
}

#[test]
fn a_watch_that_is_refused_is_told_once_and_in_words() {
    let stage = Stage::build("unwatched");
    let (proxy, kubeconfig) = stage.proxy();
    proxy.impose(vec![Fault {
        on: On::Watches,
        what: What::Status(403, None),
    }]);
    let leader = stage.start("a", kubeconfig);
    leader.wait_for(LEADS, 1);
    leader.wait_for("cannot watch leases.coordination.k8s.io", 1);
    let (_, hits) = proxy.seen();
    let look = || Ok::<_, String>((proxy.seen().1 > hits + 6).then_some(()));
    wait_until(PATIENCE, "watches that are refused again and again", look).unwrap();
    let said = leader.said();
    let told = said.matches("cannot watch leases.coordination.k8s.io").count();
    assert_eq!(told, 1, "{said}");
    assert!(
        said.contains("allow the verb 'watch' on 'leases.coordination.k8s.io'"),
        "{said}"
    );
    assert!(
        !said.contains("kube_runtime") && !said.contains("kube-runtime"),
        "{said}"
    );
    leader.stop();
}
