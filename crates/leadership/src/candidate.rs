//! A candidate: does the moves of the election, and informs the other parts. Must never decide who leads.

use std::collections::BTreeSet;
use std::time::Duration;

use addon_core::failure::Failure;
use addon_core::operator::event::Event;
use addon_core::release::tenure;
use channel_core::leadership::lease::{Sighting, Timing, Written};
use channel_core::leadership::{Election, Move, Reign, ReplicaRole, Succession};
use channel_core::reference::ImageDigest;
use child::warrant::{Term, boot_time};
use clock::{Now, Tick};
use futures::StreamExt as _;
use jiff::Timestamp;
use kube_access::Cluster;
use kube_access::error::RequestError;
use parts::Parts;
use settings::Settings;
use settings::leadership::{Leadership, Name, address_in};
use telling::meters::table;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::handle::{self, LeaseHandle, Requests};
use crate::holder_watch::HolderWatch;
use crate::lease::{self, SharedLease};
use crate::process::PidNamespace;
use crate::standing::{self, Leader};
use crate::{Concerned, MARGIN, marks, watchdog};

/// Takes part in the election, if there is one. Called last at the start, because other replicas may wait for us from
/// then on.
pub fn start(
    settings: &Settings,
    cluster: &Cluster,
    concerned: Concerned,
    seed: u64,
    parts: &mut Parts,
) -> Option<LeaseHandle> {
    let follower = concerned.standing.subscribe();
    marks::start(settings, cluster, &follower, parts);
    let Leadership::Elected { lease, name, timing } = &settings.leadership else {
        concerned.tell(standing::ActingRole::Leads);
        return None;
    };
    let place = PidNamespace::here();
    let me = match name {
        Name::Pod(name) => name.clone(),
        Name::Process { pod } => place.name(pod.as_deref(), seed),
    };
    info!(lease, identity = me, "Taking part in the election of a leader");
    let (handle, requests) = handle::open();
    let candidate = Candidate {
        lease: lease::lease(cluster, lease),
        // Until the version is known, no version that the lease names counts as ours.
        election: Election::new(me.clone(), BTreeSet::new(), *timing),
        requests,
        me,
        timing: *timing,
        holder: HolderWatch::new(cluster.clone()),
        place,
        concerned,
        shutdown: parts.shutdown().clone(),
        deposed: parts.deposed().clone(),
        yielded: parts.yielded().clone(),
        stopping: parts.stopping().clone(),
        at_rest: parts.at_rest().clone(),
        trouble: None,
        told: ReplicaRole::Standby,
        is_behind: false,
    };
    candidate.tell();
    parts.spawn_graceful("the lease", candidate.run());
    Some(handle)
}

struct Candidate {
    lease: SharedLease,
    election: Election,
    requests: Requests,
    me: String,
    timing: Timing,
    holder: HolderWatch,
    place: PidNamespace,
    concerned: Concerned,
    shutdown: CancellationToken,
    deposed: CancellationToken,
    yielded: CancellationToken,
    stopping: CancellationToken,
    at_rest: CancellationToken,
    /// The last logged reason why the lease cannot be used.
    trouble: Option<String>,
    /// The role of this replica that the loop was last told.
    told: ReplicaRole,
    /// Whether the loop knows that another replica leads.
    is_behind: bool,
}

impl Candidate {
    async fn run(mut self) {
        let stopping = self.stopping.clone();
        let mut news = std::pin::pin!(self.lease.news());
        loop {
            self.follow();
            match self.election.poll(now()) {
                Move::StepDown => {
                    self.follow();
                    return;
                }
                Move::Wait(until) => tokio::select! {
                    biased;
                    () = stopping.cancelled() => break,
                    Some(found) = news.next() => {
                        let found = self.judged(found);
                        self.election.heard(now().tick, found);
                    }
                    said = self.requests.heard() => said.pass_on(&mut self.election, now().tick),
                    () = self.holder.sign(), if self.told == ReplicaRole::Standby => {
                        self.election.suspect(now().tick);
                    }
                    () = sleep_until(instant(until)) => {}
                },
                Move::Ask(about, limit) => {
                    let holder = tokio::select! {
                        biased;
                        () = stopping.cancelled() => break,
                        holder = self.holder.ask(&about.record.holder, limit) => holder,
                    };
                    self.election.asked(now().tick, &about, holder);
                }
                Move::Look(limit) => {
                    let found = tokio::select! {
                        biased;
                        () = stopping.cancelled() => break,
                        found = self.lease.read(limit) => found,
                    };
                    let found = self.heeded(found);
                    let now = now().tick;
                    match found {
                        Some(found) => {
                            let found = found.map(|found| self.judged(found));
                            self.election.looked(now, found);
                        }
                        None => self.election.look_failed(now),
                    }
                }
                Move::Write(writing, limit) => {
                    let sent = now().tick;
                    let written = self.lease.write(&writing, limit).await;
                    let written = self.heeded(written).unwrap_or(Written::Unknown);
                    self.election.wrote(sent, now().tick, writing, written);
                }
            }
        }
        self.release().await;
    }

    fn judged(&self, found: Sighting) -> Sighting {
        Sighting {
            holder: self.place.judge(&found.record.holder),
            ..found
        }
    }

    /// Reports changes of the election to the other parts of the operator.
    fn follow(&mut self) {
        let standing = self.election.standing(now().tick);
        if let Some(reign) = self.election.reign() {
            self.act_until(reign);
        }
        if standing != self.told {
            self.told = standing;
            match standing {
                ReplicaRole::Standby => {}
                ReplicaRole::Leads => {
                    if let Err(error) = watchdog::start(self.concerned.warrant.clone(), self.concerned.spools.clone()) {
                        // Without the thread nothing would end this process before another replica may lead.
                        self.step_down();
                        error!(%error, "cannot start the thread that watches over the lease");
                        return;
                    }
                    // If the loop has ended, there is nothing to lead.
                    let _ = self.concerned.doors.post(Event::Elected);
                    info!("Leadership is acquired");
                }
                ReplicaRole::Yields => self.hand_over(),
                ReplicaRole::Deposed => self.step_down(),
            }
        }
        self.holder.follow(self.election.leader());
        if standing == ReplicaRole::Standby && self.election.leader().is_some() && !self.is_behind {
            self.is_behind = true;
            let _ = self.concerned.doors.post(Event::LedByAnother);
        }
        self.tell();
    }

    fn tell(&self) {
        self.requests.show(&self.election, &self.me, self.is_told_to_lead());
        let leads = if self.is_told_to_lead() { 1.0 } else { 0.0 };
        self.concerned.meters.set(&table::cluster::LEADER, [], leads);
        self.concerned.tell(match self.told {
            ReplicaRole::Leads | ReplicaRole::Yields => standing::ActingRole::Leads,
            ReplicaRole::Standby | ReplicaRole::Deposed => match self.election.leader() {
                Some(name) => standing::ActingRole::Standby(Leader {
                    name: name.to_owned(),
                    address: address_in(name),
                }),
                None => standing::ActingRole::Seeks {
                    trouble: self.trouble.clone(),
                },
            },
        });
    }

    fn is_told_to_lead(&self) -> bool {
        match self.told {
            ReplicaRole::Leads | ReplicaRole::Yields => true,
            ReplicaRole::Standby | ReplicaRole::Deposed => false,
        }
    }

    /// Publishes the time until which this leader may act. Everything that begins or ends with the leadership reads it.
    fn act_until(&self, reign: Reign) {
        let warrant = &self.concerned.warrant;
        let overlap = match reign.succession {
            Succession::Clear => Duration::ZERO,
            Succession::Contested => self.timing.lease + watchdog::MARGIN,
        };
        warrant.name(Term {
            holder: tenure::Holder {
                identity: self.me.clone(),
                transitions: reign.transitions,
            },
            clear: boot_time() + overlap,
        });
        let end = reign.expiry.since(Tick::ZERO);
        warrant.extend(reign.deadline.since(Tick::ZERO), end.saturating_sub(watchdog::MARGIN));
    }

    /// Starts to yield: our work ends. The lease is kept until no work runs any more, and is then released.
    fn hand_over(&self) {
        if self.stopping.is_cancelled() {
            return;
        }
        // The cancellation comes before its log record.
        self.yielded.cancel();
        self.shutdown.cancel();
        let entitled = self.election.entitled().map(ImageDigest::as_str);
        info!(
            entitled,
            "The lease names another version as the next leader, ending our work to hand the lease over"
        );
    }

    fn step_down(&self) {
        self.concerned.warrant.revoke();
        if self.stopping.is_cancelled() {
            return;
        }
        // The event comes before its log record.
        let _ = self.concerned.doors.post(Event::Deposed);
        self.deposed.cancel();
        self.shutdown.cancel();
        let (leader, error) = (self.election.leader(), self.trouble.as_deref());
        let hint = (leader.is_none() && error.is_none()).then_some(
            "another process holds the lease under our own name: is it ADDON_OPERATOR_POD of more than one pod?",
        );
        warn!(leader, error, hint, "Restarting because the leadership was handed over");
    }

    /// The result of a request. A failure that repeats is logged once.
    fn heeded<T>(&mut self, outcome: Result<T, RequestError>) -> Option<T> {
        let error = match outcome {
            Ok(outcome) => {
                if self.trouble.take().is_some() {
                    info!("The lease can be read and written again");
                }
                return Some(outcome);
            }
            Err(error) => error,
        };
        let is_unreachable = error.is_unreachable();
        let Failure { report, hints, .. } = Failure::from(error);
        let is_news = self.trouble.as_ref() != Some(&report);
        // The watch of the ConfigMap already logs a server that does not answer, so only a leader logs it here.
        if is_news && (!is_unreachable || self.is_told_to_lead()) {
            let hint = (!hints.is_empty()).then(|| hints.join("; "));
            warn!(
                error = report,
                hint, "The lease cannot be read or written, trying again"
            );
        }
        self.trouble = Some(report);
        None
    }

    /// Releases the lease if none of our work runs any more, so that the next leader need not wait.
    async fn release(&mut self) {
        if !self.at_rest.is_cancelled() {
            return;
        }
        self.concerned.warrant.lay_down();
        let mut is_overtaken = false;
        while let Some(writing) = self.election.release(now()) {
            match self.lease.write(&writing, MARGIN).await {
                Ok(Written::Through(_)) => {
                    info!("Leadership is released");
                    return;
                }
                // The lease may still be ours: the part that names the entitled version writes it too.
                Ok(Written::Conflict | Written::Unknown) => is_overtaken = true,
                Err(error) => return cannot_release(error),
            }
            match self.lease.read(MARGIN).await {
                Ok(found) => self.election.looked(now().tick, found),
                Err(error) => return cannot_release(error),
            }
        }
        if is_overtaken {
            // Another replica wrote the lease, or a write of our own whose outcome was unknown succeeded.
            info!("The lease has changed since it was last read, so it is not released");
        }
    }
}

fn cannot_release(error: RequestError) {
    let error = Failure::from(error).report;
    warn!(error, "Leadership cannot be released, the lease will expire");
}

/// The tick and the wall clock. Like a lease, the tick goes on while the machine sleeps.
fn now() -> Now {
    let micros = u64::try_from(boot_time().as_micros()).unwrap_or(u64::MAX);
    Now {
        tick: Tick::from_micros(micros),
        wall: Timestamp::now(),
    }
}

/// The instant of a tick, if the machine does not sleep meanwhile.
fn instant(tick: Tick) -> Instant {
    Instant::now() + tick.since(now().tick)
}
