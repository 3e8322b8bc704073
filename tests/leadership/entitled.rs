//! A version that the lease entitles leads without waiting. A replica of another version waits for the duration of a
//! lease.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use channel_core::leadership::lease::{Holder, Sighting, Timing, Written};
use channel_core::leadership::{Election, Move, ReplicaRole};
use channel_core::reference::ImageDigest;
use child::warrant::boot_time;
use clock::{Now, Tick};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use jiff::{SignedDuration, Timestamp};
use kube_access::Cluster;
use kube_access::kubeconfig::Address;
use leadership::lease::SharedLease;
use telling::meters::Meters;
use testbed::plane::User;
use testbed::report::tell;
use testbed::wait::wait_until;
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

use super::stage::{PATIENCE, Replica, Stage};
use super::takeover::{HANDED_OVER, LEADS, WAITS, pair};

const LEASE: &str = "14s";
const TIMING: Timing = Timing {
    lease: Duration::from_secs(14),
    deadline: Duration::from_secs(9),
    retry: Duration::from_secs(3),
};
const YIELDS: &str = "The lease names another version as the next leader, ending our work to hand the lease over";
const RELEASED: &str = "Leadership is released";

/// The digest of a version that no operator here runs.
fn another_version() -> ImageDigest {
    ImageDigest::parse(&format!("sha256:{:064x}", 7)).unwrap()
}

/// The version that the lease entitles to lead.
fn entitled(stage: &Stage) -> String {
    stage.kubectl(
        r"get lease addon-operator-leader-election -o=jsonpath={.metadata.annotations.addon-operator/entitled}",
    )
}

fn time(stage: &Stage, field: &str) -> Timestamp {
    stage.lease(field).parse().unwrap()
}

/// Waits until the holder of the lease meets a condition, and returns the holder.
fn wait_for_holder(stage: &Stage, is_it: impl Fn(&str) -> bool) -> String {
    let look = || match stage.lease("holderIdentity") {
        holder if is_it(&holder) => Ok(Some(holder)),
        other => Err(other),
    };
    wait_until(PATIENCE, "another holder of the lease", look).unwrap()
}

#[test]
fn a_leader_of_another_version_ends_its_work_and_waits_for_a_whole_lease() {
    let stage = Stage::with_lease("yields", LEASE);
    let leader = stage.start("a", stage.namespace().kubeconfig(User::Operator));
    leader.wait_until_ready();
    let version = another_version();
    stage.kubectl(&format!(
        "annotate lease addon-operator-leader-election addon-operator/entitled={version}"
    ));
    leader.wait_for(YIELDS, 1);
    wait_for_holder(&stage, str::is_empty);
    let released = time(&stage, "renewTime");
    assert_eq!(entitled(&stage), version.as_str());
    // The same process leads again, with the same identity.
    assert_eq!(wait_for_holder(&stage, |holder| !holder.is_empty()), leader.identity);
    let waited = time(&stage, "acquireTime").duration_since(released);
    assert!(waited >= SignedDuration::from_secs(14), "it has waited for {waited:#}");
    leader.wait_for(LEADS, 2);
    leader.wait_until_ready();

    // No replica of the entitled version appears, so another one leads on and keeps the annotation.
    let acquired = stage.lease("acquireTime");
    let beginning = time(&stage, "renewTime");
    let renewed = || {
        let lasted = time(&stage, "renewTime").duration_since(beginning);
        Ok::<_, String>((lasted >= SignedDuration::from_secs(14)).then_some(()))
    };
    wait_until(PATIENCE, "renewals of the lease", renewed).unwrap();
    assert_eq!(stage.lease("acquireTime"), acquired);
    assert_eq!(entitled(&stage), version.as_str());
    let said = leader.said();
    assert_eq!(
        (said.matches(YIELDS).count(), said.matches(HANDED_OVER).count()),
        (1, 0),
        "{said}"
    );
    assert_eq!(stage.history(), "deployed");
    leader.stop();
    assert_eq!(
        (stage.lease("holderIdentity"), entitled(&stage)),
        (String::new(), version.to_string())
    );
}

/// A replica of another version that elects itself and does nothing as leader.
struct Candidate {
    election: Election,
    lease: SharedLease,
    news: BoxStream<'static, Sighting>,
    /// The time at which the lease was released, as its last holder has written it.
    released: Option<Timestamp>,
    acquired: Option<Timestamp>,
}

impl Candidate {
    async fn new(stage: &Stage) -> Self {
        let address = Address {
            kube_config: vec![stage.namespace().kubeconfig(User::Admin)],
            ..Address::default()
        };
        let meters = Arc::new(Meters::new("addon_operator_"));
        let cluster = Cluster::connect(&address, stage.namespace().name(), None, meters);
        let cluster = cluster.await.unwrap();
        let lease = leadership::lease::lease(&cluster, "addon-operator-leader-election");
        let versions = BTreeSet::from([another_version()]);
        Self {
            election: Election::new("candidate".to_owned(), versions, TIMING),
            news: lease.news().boxed(),
            lease,
            released: None,
            acquired: None,
        }
    }

    /// Takes part in the election until a condition is met.
    async fn run_until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let run = async {
            while !is_so(self) {
                self.step().await;
            }
        };
        timeout(PATIENCE, run).await.expect(what);
    }

    fn leads(&self) -> bool {
        self.election.standing(now().tick) == ReplicaRole::Leads
    }

    async fn step(&mut self) {
        match self.election.poll(now()) {
            Move::Look(limit) => match self.lease.read(limit).await {
                Ok(found) => {
                    if let Some(found) = &found {
                        self.note(found);
                    }
                    self.election.looked(now().tick, found);
                }
                Err(_) => self.election.look_failed(now().tick),
            },
            Move::Ask(about, _) => self.election.asked(now().tick, &about, Holder::Unknown),
            Move::Write(writing, limit) => {
                let sent = now().tick;
                let written = self.lease.write(&writing, limit).await.unwrap_or(Written::Unknown);
                self.acquired = Some(writing.record.acquired);
                self.election.wrote(sent, now().tick, writing, written);
            }
            Move::Wait(until) => tokio::select! {
                Some(found) = self.news.next() => {
                    self.note(&found);
                    self.election.heard(now().tick, found);
                }
                () = sleep(until.since(now().tick)) => {}
            },
            Move::StepDown => unreachable!("nobody took the lease from it"),
        }
    }

    fn note(&mut self, found: &Sighting) {
        if found.record.holder.is_empty() {
            self.released = Some(found.record.renewed);
        }
    }
}

fn now() -> Now {
    Now {
        tick: Tick::from_micros(u64::try_from(boot_time().as_micros()).unwrap()),
        wall: Timestamp::now(),
    }
}

#[test]
fn an_entitlement_moves_the_lease_between_versions_without_a_wait() {
    let stage = Stage::with_lease("moves", LEASE);
    let (leader, standby) = pair(&stage);
    let runtime = Runtime::new().unwrap();
    let mut candidate = runtime.block_on(Candidate::new(&stage));
    runtime.block_on(candidate.run_until("a look at the lease", |candidate| candidate.election.leader().is_some()));
    // A judge of a trial does the same: it does not lead, and names the version that should.
    candidate.election.entitle(now().tick, Some(another_version()));
    runtime.block_on(candidate.run_until("the lease", Candidate::leads));
    let waited = candidate.acquired.unwrap().duration_since(candidate.released.unwrap());
    tell(&format!(
        "entitled: the other version leads {waited:#} after the release"
    ));
    assert!(
        waited < SignedDuration::from_secs(5),
        "the lease was not handed over but ran out: {waited:#}"
    );
    assert_eq!(stage.lease("holderIdentity"), "candidate");
    leader.wait_for(RELEASED, 1);
    assert_eq!(standby.said().matches(LEADS).count(), 0, "{}", standby.said());

    // The candidate renews the lease, and the others wait, including the previous leader.
    let renewed = candidate.acquired.unwrap() + TIMING.lease;
    runtime.block_on(candidate.run_until("a lease that is renewed", |_| Timestamp::now() > renewed));
    assert!(candidate.leads());
    leader.wait_for_answer("/metrics", 200, "addon_operator_leader 0\n");
    leader.wait_for_answer("/readyz?self", 200, WAITS);
    assert_eq!(entitled(&stage), another_version().as_str());

    // The candidate disappears without releasing the lease. One of the others leads, although its version is not the
    // entitled one.
    let last = time(&stage, "renewTime");
    drop(candidate);
    let next = wait_for_holder(&stage, |holder| holder != "candidate");
    let waited = time(&stage, "acquireTime").duration_since(last);
    assert!(
        waited >= SignedDuration::from_secs(14),
        "{next} has waited for {waited:#}"
    );
    let replicas: [Replica; 2] = [leader, standby];
    let of_it = replicas.iter().find(|replica| replica.identity == next).unwrap();
    of_it.wait_until_ready();
    assert_eq!(
        entitled(&stage),
        another_version().as_str(),
        "the next leader keeps the entitled version"
    );
    assert_eq!(stage.history(), "deployed");
    for replica in replicas {
        replica.stop();
    }
}
