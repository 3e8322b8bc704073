//! Takes part in trials of versions: carries out the core's decisions about them, one request each, and informs the
//! other parts. Every replica of both versions does this.
//!
//! Must never judge, and never delay other parts: the operator works on while this part waits.

mod actions;
mod discovery;
mod observation;
mod records;
mod reports;
mod status;

use std::time::Duration;

use addon_core::operator::pulse::Pulse;
use addon_core::operator::query::PulseQuery;
use channel_core::choice::{Activity, Running};
use channel_core::following::Installed;
use channel_core::footing::STATE_FORMAT;
use channel_core::reference::Reference;
use channel_core::trial::Trials;
use channel_core::trial::action::Move;
use channel_core::trial::replica::{Lead, Me, PodKind, Wanted, Wish};
use channel_core::trial::sight::LeaseSight;
use channel_core::version::Version;
use child::warrant::Warrant;
use clock::Tick;
use inquiry::office::BadFile;
use kube_access::Cluster;
use leadership::handle::LeaseHandle;
use leadership::standing::ActingRole;
use parts::Parts;
use parts::clock::Clock;
use settings::{Environment, Settings};
use telling::notices::announcements::channel::ChannelAnnouncer;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use self::records::Shelf;
use self::reports::Reporter;
use crate::Outside;
use crate::follower::{self, Followed, Heard, Recalled};
use crate::installation::Installation;
use crate::installation::watching::{Asking, Observer, Seen};

/// How often the state is read without an event; the second value applies while a trial runs or may begin.
const BEAT: Duration = Duration::from_secs(10);
const BEAT_ON_TRIAL: Duration = Duration::from_secs(1);
/// The longest duration of one request to the API server.
const PATIENCE: Duration = Duration::from_secs(10);
/// During a trial, observations that are older than this are renewed.
const LOOK: Duration = Duration::from_secs(4);
/// The timeout for an answer of the main loop.
const LOOP_PATIENCE: Duration = Duration::from_secs(5);

/// The channels by which the follower of the registry learns about the cluster.
#[derive(Debug)]
struct Telling {
    installed: watch::Sender<Option<Installed>>,
    recalled: watch::Sender<Recalled>,
    /// Cancelled when another version is to lead.
    yielded: CancellationToken,
}

/// Both ends of the channels between trials and the follower of the registry.
fn ways(yielded: CancellationToken) -> (Telling, Heard) {
    let ((installed, heard_installed), (recalled, heard_recalled)) =
        (watch::channel(None), watch::channel(Recalled::default()));
    let telling = Telling {
        installed,
        recalled,
        yielded,
    };
    let heard = Heard {
        installed: heard_installed,
        recalled: heard_recalled,
    };
    (telling, heard)
}

/// Starts to follow the registry and to take part in trials, if the settings ask for it and the operator's own pod is
/// known.
pub fn start(
    settings: &Settings,
    environment: &Environment,
    cluster: &Cluster,
    handle: Option<LeaseHandle>,
    outside: &Outside,
    seed: u64,
    parts: &mut Parts,
) -> Result<(), BadFile> {
    let (telling, heard) = ways(parts.yielded().clone());
    let Some(pod) = follower::start(settings, environment, cluster, outside, heard, seed, parts)? else {
        return Ok(());
    };
    let Some(handle) = handle else {
        let why = "no version can be tried where no leader is elected: ADDON_OPERATOR_HA is not true";
        outside.be_off(why);
        return Ok(());
    };
    // Judges do not lead, so their writes are not bound to a leader's warrant. Each write takes effect only on the
    // state that it names.
    let cluster = cluster.under(&Warrant::default()).within(PATIENCE);
    let outside = outside.clone();
    parts.spawn("trials of versions", async move {
        let Some((installation, me)) = discovery::find(&cluster, &pod, &outside).await else {
            drop(telling);
            return std::future::pending().await;
        };
        handle.name_versions(me.digests.clone());
        outside.deployment.get_or_init(|| installation.deployment.clone());
        let observer = Observer::new(&cluster, &installation);
        let trying = Trying::new(&cluster, installation, me, &observer, handle, outside, telling);
        tokio::join!(observer.run(), trying.run());
    });
    Ok(())
}

struct Trying {
    cluster: Cluster,
    installation: Installation,
    me: Me,
    handle: LeaseHandle,
    lease: watch::Receiver<LeaseSight>,
    seen: watch::Receiver<Seen>,
    asking: Asking,
    outside: Outside,
    announcer: ChannelAnnouncer,
    series: status::Series,
    followed: watch::Receiver<Followed>,
    standing: watch::Receiver<ActingRole>,
    telling: Telling,
    trials: Trials,
    shelf: Shelf,
    reporter: Reporter,
    pulse: Option<Pulse>,
    clock: Clock,
    /// The time at which the API server last answered completely.
    heard: Tick,
    lead: Lead,
    /// Whether this replica leads and has not read the memory of the choice since it began to lead.
    is_to_recall: bool,
    /// The last failure that was logged.
    told: Option<String>,
}

impl Trying {
    fn new(
        cluster: &Cluster,
        installation: Installation,
        me: Me,
        observer: &Observer,
        handle: LeaseHandle,
        outside: Outside,
        telling: Telling,
    ) -> Self {
        Self {
            cluster: cluster.clone(),
            installation,
            lease: handle.lease(),
            handle,
            seen: observer.sights(),
            asking: observer.asking(),
            followed: outside.followed.subscribe(),
            standing: outside.standing.subscribe(),
            announcer: outside.announcer().begun(),
            series: status::Series::default(),
            outside,
            telling,
            trials: Trials::new(me.clone()),
            shelf: Shelf::default(),
            reporter: Reporter::default(),
            me,
            pulse: None,
            clock: Clock::start(),
            heard: Tick::ZERO,
            lead: Lead::Follows,
            is_to_recall: false,
            told: None,
        }
    }

    async fn run(mut self) {
        loop {
            self.look().await;
            let due = self.act().await;
            tokio::select! {
                Ok(()) = self.seen.changed() => {}
                Ok(()) = self.lease.changed() => {}
                Ok(()) = self.standing.changed() => {}
                Ok(()) = self.followed.changed() => {}
                () = sleep_until(due) => {}
            }
        }
    }

    /// Updates everything that a decision depends on.
    async fn look(&mut self) {
        let lead = match &*self.standing.borrow_and_update() {
            // A leader that is to hand the lease over begins nothing more.
            ActingRole::Leads if !self.telling.yielded.is_cancelled() => Lead::Leads,
            ActingRole::Leads | ActingRole::Seeks { .. } | ActingRole::Standby(_) => Lead::Follows,
        };
        self.is_to_recall = match (self.lead, lead) {
            (_, Lead::Follows) => false,
            (Lead::Follows, Lead::Leads) => true,
            (Lead::Leads, Lead::Leads) => self.is_to_recall,
        };
        self.lead = lead;
        self.pulse = match timeout(LOOP_PATIENCE, listeners::ask(&self.outside.doors, PulseQuery)).await {
            Ok(Ok(pulse)) => Some(pulse),
            Ok(Err(_)) | Err(_) => None,
        };
        let is_old = self.seen.borrow().heard.is_none_or(|heard| heard.elapsed() >= LOOK);
        if self.is_watchful() && is_old {
            self.asking.look_again();
        }
        if self.is_to_recall || self.shelf.is_due(self.is_watchful()) {
            let was_read = self.shelf.read(&self.cluster).await;
            if self.is_to_recall && was_read {
                self.recall();
            }
        }
        self.tell_installed();
        self.tell_operator();
        let trial = self.shelf.trial().filter(|trial| trial.verdict.is_none());
        let trial =
            trial.filter(|trial| self.me.place == PodKind::Trial && !self.me.digests.is_disjoint(&trial.to_digests));
        self.reporter
            .report(trial.is_some(), &self.me, self.pulse.as_ref(), &self.cluster)
            .await;
    }

    /// Decides and acts until there is nothing to do. Returns the time of the next decision.
    async fn act(&mut self) -> Instant {
        let beat = if self.is_watchful() { BEAT_ON_TRIAL } else { BEAT };
        let beat = Instant::now() + beat;
        let now = self.clock.now();
        let sight = self.sight();
        self.trials.see(sight);
        let wish = self.wish();
        self.trials.wish(wish, now);
        let due = match self.trials.next(now) {
            Move::Do(action) => {
                let outcome = self.carry_out(&action).await;
                self.trials.did(action, outcome, self.clock.now());
                self.shelf.doubt();
                self.tell_trouble();
                // The next decision follows at once, from new observations.
                Instant::now()
            }
            Move::Wait(until) => self.clock.instant(until).min(beat),
            Move::Rest => beat,
        };
        for news in self.trials.news() {
            reports::tell(&news);
            self.announcer.hear(&news.into());
        }
        self.show();
        due
    }

    /// Whether a trial runs or may begin, so that the state is read more often.
    fn is_watchful(&self) -> bool {
        let has_set = self.seen.borrow().trial.there().is_some();
        has_set || self.shelf.trial().is_some() || self.lease.borrow().entitled.is_some() || self.wanted().is_some()
    }

    fn wanted(&self) -> Option<Wanted> {
        match &*self.followed.borrow() {
            Followed::On(known) if self.is_current(known) => known.wanted.clone(),
            Followed::On(_) | Followed::Off { .. } | Followed::Unknown => None,
        }
    }

    /// Whether the follower has taken over the memory of the earlier leader.
    fn is_current(&self, known: &follower::Known) -> bool {
        !self.is_to_recall && known.recalled == self.telling.recalled.borrow().number
    }

    /// Passes the memory of the earlier leader to the follower, when this replica begins to lead.
    fn recall(&mut self) {
        if let Some(remembered) = self.shelf.remembered() {
            let memory = remembered.choice.clone();
            self.telling.recalled.send_modify(|recalled| {
                recalled.number += 1;
                recalled.memory = memory;
            });
            self.is_to_recall = false;
        }
    }

    fn wish(&self) -> Wish {
        let (settings, choice) = match &*self.followed.borrow() {
            Followed::On(known) => {
                let choice = self.is_current(known) && self.lead == Lead::Leads;
                (known.settings.clone(), choice.then(|| known.memory.clone()))
            }
            Followed::Off { .. } | Followed::Unknown => (None, None),
        };
        let failing = self
            .pulse
            .iter()
            .flat_map(|pulse| pulse.failing.keys().chain(&pulse.hindered).cloned());
        let unwell = self.pulse.iter().flat_map(|pulse| pulse.unhealthy.keys().cloned());
        let revisions = self.pulse.as_ref().map(|pulse| pulse.revisions.clone());
        let seen = self.seen.borrow();
        Wish {
            wanted: self.wanted(),
            settings,
            resumed: seen
                .deployment
                .there()
                .and_then(|deployment| deployment.resumed.clone()),
            lead: self.lead,
            activity: self.pulse.as_ref().map_or(Activity::Busy, |pulse| pulse.activity),
            failing: failing.collect(),
            unwell: unwell.collect(),
            revisions: revisions.unwrap_or_default(),
            choice,
        }
    }

    /// Sends the operator's installation to the follower of the registry, once the memory of trials is read.
    fn tell_installed(&self) {
        let seen = self.seen.borrow();
        let known = seen
            .deployment
            .there()
            .zip(seen.replicas.as_ref())
            .zip(self.shelf.remembered());
        let installed = known.map(|((deployment, replicas), remembered)| {
            let reference = deployment.reference.as_ref();
            let digests = replicas.iter().flat_map(|replica| replica.digests.iter().cloned());
            let own = matches!(self.me.place, PodKind::Deployment).then_some(&self.me.digests);
            let installed = Installed {
                repository: reference.map(|reference| reference.repository.clone()),
                running: Running {
                    digests: digests.chain(own.into_iter().flatten().cloned()).collect(),
                    tag: reference.and_then(Reference::followed_tag),
                    version: Version::parse_full(env!("CARGO_PKG_VERSION")),
                    state_format: STATE_FORMAT.to_owned(),
                },
                chart: deployment.chart.clone(),
                platforms: replicas.iter().filter_map(|replica| replica.platform.clone()).collect(),
                ..Installed::default()
            };
            installed.after(remembered)
        });
        self.telling.installed.send_if_modified(|told| {
            let differs = *told != installed;
            *told = installed;
            differs
        });
    }

    fn tell_trouble(&mut self) {
        let trouble = self.trials.trouble().map(str::to_owned);
        if trouble != self.told {
            if let Some(error) = &trouble {
                warn!(error, "A step of a trial failed, trying again");
            } else {
                info!("The trial goes on");
            }
            self.told = trouble;
        }
    }
}
