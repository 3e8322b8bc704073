//! The status of a leader's pod tells other replicas that the leader has ended.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use jiff::{SignedDuration, Timestamp};
use testbed::wait::wait_until;

use super::stage::{PATIENCE, Replica, Stage};
use super::takeover::{LEADS, pair};

/// The duration of the lease, so long that no test passes merely because the lease ran out.
const LEASE: &str = "2m";

/// Writes the status of a replica's pod, as its kubelet would.
fn tell(stage: &Stage, pod: &str, replica: &Replica, state: &str) {
    let address = replica.address.ip();
    let container =
        format!(r#"{{"name":"{pod}","image":"i","imageID":"","ready":false,"restartCount":0,"state":{{"{state}"}}}}"#)
            .replace(r#"{"running"}"#, r#"{"running":{}}"#)
            .replace(r#"{"terminated"}"#, r#"{"terminated":{"exitCode":137}}"#);
    let status = format!(
        r#"{{"status":{{"phase":"Running","podIP":"{address}","podIPs":[{{"ip":"{address}"}}],"containerStatuses":[{container}]}}}}"#
    );
    stage.kubectl(&format!(
        "patch pod {pod} --subresource=status --type=merge --patch={status}"
    ));
}

fn leads(stage: &Stage, replica: &Replica) {
    let look = || match stage.lease("holderIdentity") {
        holder if holder == replica.identity => Ok(Some(())),
        other => Err(other),
    };
    wait_until(PATIENCE, "another holder of the lease", look).unwrap();
}

/// The leader ends, its kubelet reports this, and `rest` happens to the pod. The other replica has to lead before the
/// lease runs out.
fn is_replaced_early(prefix: &str, rest: impl FnOnce(&Stage)) {
    let stage = Stage::with_lease(prefix, LEASE);
    stage.kubectl("run a --image=example.com/none");
    let (mut leader, standby) = pair(&stage);
    tell(&stage, "a", &leader, "running");
    let end = stage.end_of_lease();
    leader.signal(libc::SIGKILL);
    leader.wait_for_end();
    tell(&stage, "a", &leader, "terminated");
    rest(&stage);
    leads(&stage, &standby);
    assert!(Timestamp::now() < end, "it was waited for until {end}");
    standby.wait_until_ready();
    standby.stop();
}

#[test]
fn a_leader_whose_container_has_ended_is_replaced_long_before_its_lease_runs_out() {
    is_replaced_early("ended", |_| {});
}

#[test]
fn a_leader_whose_pod_is_gone_after_it_had_ended_is_replaced_long_before_its_lease_runs_out() {
    // In the order of a kubelet: it first reports the end of the container, then the pod is deleted.
    is_replaced_early("gone", |stage| {
        stage.kubectl("delete pod a --grace-period=0 --force");
    });
}

#[test]
fn a_leader_whose_pod_was_deleted_by_force_keeps_its_lease_until_that_runs_out() {
    let stage = Stage::with_lease("force", "20s");
    stage.kubectl("run a --image=example.com/none");
    let (mut leader, standby) = pair(&stage);
    tell(&stage, "a", &leader, "running");
    // The leader is frozen: nothing shows whether its process still runs.
    leader.signal(libc::SIGSTOP);
    let renewed: Timestamp = stage.lease("renewTime").parse().unwrap();
    stage.kubectl("delete pod a --grace-period=0 --force");
    standby.wait_for(LEADS, 1);
    let taken: Timestamp = stage.lease("acquireTime").parse().unwrap();
    assert!(
        taken.duration_since(renewed) >= SignedDuration::from_secs(20),
        "{renewed} {taken}"
    );
    leader.signal(libc::SIGCONT);
    leader.wait_for_end();
    standby.wait_until_ready();
    standby.stop();
}
