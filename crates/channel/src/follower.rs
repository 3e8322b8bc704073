//! Follows the registry: puts the core's questions to it, and passes the results to the other parts.
//!
//! Every replica has this part, but only the leader asks. Must never act on a choice of a version: other parts carry
//! out the choice.

mod metrics;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use addon_core::operator::query::ChannelQuery;
use channel_core::candidate::Signature;
use channel_core::choice::{Activity, Memory};
use channel_core::following::{Answer, Following, Installed, Move, Question, Status, Trouble};
use channel_core::reference::Repository;
use channel_core::settings::Settings;
use channel_core::trial::replica::Wanted;
use channel_core::view::ChannelState;
use futures::future::BoxFuture;
use inquiry::office::{BadFile, Files, Office};
use inquiry::{Inquiry, pod_credentials};
use kube_access::Cluster;
use leadership::standing::{ActingRole, Told};
use listeners::Loop;
use parts::Parts;
use parts::clock::Clock;
use report::Chain;
use settings::channel::{CHANNEL, Follow};
use settings::{Environment, Work};
use telling::meters::Meters;
use telling::notices::announcements::channel::ChannelAnnouncer;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::Outside;
use crate::bell::{Bell, Endpoint};
use metrics::Teller;

/// The interval of checks whether time, a person's edit or the running work has changed the choice.
const BEAT: Duration = Duration::from_secs(1);
/// The timeout for an answer of the main loop.
const PATIENCE: Duration = Duration::from_secs(5);
/// The shortest pause between two immediate checks of the registry, however many are asked for.
const REST: Duration = Duration::from_secs(2);

/// The state of following, for commands that show it and parts that act upon it.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Followed {
    /// The operator has not found out yet whether a channel is to be followed.
    #[default]
    Unknown,
    /// The registry is not followed.
    Off {
        /// The reason why the registry is not followed, as a sentence.
        why: String,
    },
    /// The registry is followed, by this replica or by the leader.
    On(Box<Known>),
}

/// All that a replica knows about the registry and the choice of the next version.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Known {
    /// The settings in the ConfigMap.
    pub settings: Option<Settings>,
    /// The operator's installation in the cluster.
    pub installed: Option<Installed>,
    /// The results of asking the registry, and the choice of the next version. A replica that does not lead keeps the
    /// results of its time as leader.
    pub status: Status,
    /// Whether the running version is signed; none if that is not known.
    pub signature: Option<Signature>,
    /// The number of finished rounds of questions, answered or not.
    pub rounds: u64,
    /// Whether work is running or waiting; none if that is not known.
    pub activity: Option<Activity>,
    /// The part of the state of the choice that has to survive a restart.
    pub memory: Memory,
    /// The number of the last memory of an earlier leader that the follower took over.
    pub recalled: u64,
    /// The version whose trial may begin.
    pub wanted: Option<Wanted>,
}

/// The memory of the choice of versions that the earlier leader has left. Each memory that is sent has a new number.
#[derive(Debug, Clone, Default)]
pub struct Recalled {
    /// The number that distinguishes this memory from earlier ones.
    pub number: u64,
    pub memory: Memory,
}

/// The channels by which the follower of the registry learns about the cluster. The follower stops when the senders of
/// these channels are dropped.
#[derive(Debug)]
pub(super) struct Heard {
    /// The operator's installation.
    pub(super) installed: watch::Receiver<Option<Installed>>,
    /// The memory of the choice of versions.
    pub(super) recalled: watch::Receiver<Recalled>,
}

/// The endpoint through which a webhook can ask for an immediate check of the registry.
pub fn endpoint(settings: &settings::Settings, bell: &Bell) -> Endpoint {
    let token = match &settings.work {
        Work::Modules(modules) => modules.channel.notify_token.clone(),
        Work::Hooks(_) => None,
    };
    let bell = bell.clone();
    Endpoint { bell, token }
}

/// Starts to follow the registry, unless a setting forbids it or the operator's own image is unknown. Returns the name
/// of the operator's pod if the follower was started.
pub(super) fn start(
    settings: &settings::Settings,
    environment: &Environment,
    cluster: &Cluster,
    outside: &Outside,
    heard: Heard,
    seed: u64,
    parts: &mut Parts,
) -> Result<Option<String>, BadFile> {
    let Work::Modules(modules) = &settings.work else {
        // Hooks without modules are installed by other charts, with other images.
        return Ok(None);
    };
    outside.state.send_replace(ChannelState::Unknown);
    let channel = &modules.channel;
    let files = Files::read(channel)?;
    let pod = match &channel.follow {
        Follow::As(pod) => pod.clone(),
        Follow::Refused => {
            outside.be_off(&format!("{CHANNEL} is false"));
            return Ok(None);
        }
        Follow::NoPod => {
            outside.be_off("the name of our pod is not known: ADDON_OPERATOR_POD does not name it");
            return Ok(None);
        }
    };
    let cluster = cluster.clone();
    let own = pod.clone();
    let read = Box::new(move || pod_credentials::of_pod(cluster.clone(), own.clone()));
    let office = match Office::new(channel, files, environment, read) {
        Ok(office) => office,
        Err(error) => {
            outside.be_off(&Chain(&error).to_string());
            return Ok(None);
        }
    };
    let ways = Ways {
        doors: outside.doors.clone(),
        standing: outside.standing.subscribe(),
        installed: heard.installed,
        recalled: heard.recalled,
        bell: outside.bell.clone(),
        followed: outside.followed.clone(),
        meters: Arc::clone(&outside.meters),
        announcer: outside.announcer(),
    };
    let follower = Follower::new(Memory::default(), seed, office, ways);
    parts.spawn("following the registry", follower.run());
    Ok(Some(pod))
}

/// The channels between the follower of the registry and the other parts.
#[derive(Debug)]
pub struct Ways {
    /// Asks the loop for the settings and the running work.
    pub doors: Loop,
    /// The role of this replica: whether it leads.
    pub standing: Told,
    /// The operator's installation.
    pub installed: watch::Receiver<Option<Installed>>,
    /// The memory of the choice of versions that the earlier leader left.
    pub recalled: watch::Receiver<Recalled>,
    /// Rung to make the follower ask the registry at once.
    pub bell: Bell,
    /// The sender of the state of following.
    pub followed: watch::Sender<Followed>,
    pub meters: Arc<Meters>,
    pub announcer: ChannelAnnouncer,
}

/// A question to the registry that is under way.
struct Asking {
    question: Question,
    answer: BoxFuture<'static, Result<Answer, Trouble>>,
}

/// The follower of the registry: the part that asks which versions there are. Each replica has one.
pub struct Follower {
    following: Following,
    office: Office,
    ways: Ways,
    clock: Clock,
    activity: Option<Activity>,
    settings: Option<Settings>,
    /// The repository of the image that this process runs, as first read.
    own: Option<Repository>,
    inquiry: Option<(Repository, Arc<Inquiry>)>,
    asking: Option<Asking>,
    rounds: u64,
    recalled: u64,
    /// The time of the last check that the bell caused.
    hastened: Option<Instant>,
    teller: Teller,
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower")
            .field("following", &self.following)
            .finish_non_exhaustive()
    }
}

impl Follower {
    /// Makes a follower of the registry. `memory` comes from earlier processes.
    pub fn new(memory: Memory, seed: u64, office: Office, ways: Ways) -> Self {
        Self {
            following: Following::new(memory, seed),
            teller: Teller::new(Arc::clone(&ways.meters)),
            office,
            ways,
            clock: Clock::start(),
            activity: None,
            settings: None,
            own: None,
            inquiry: None,
            asking: None,
            rounds: 0,
            recalled: 0,
            hastened: None,
        }
    }

    /// Follows the registry and never ends. It does nothing once the sender of `installed` is dropped.
    pub async fn run(mut self) {
        loop {
            if self.ways.installed.has_changed().is_err() {
                return std::future::pending().await;
            }
            self.look().await;
            let due = self.decide();
            let bell = self.ways.bell.clone();
            let has_rested = self.hastened.is_none_or(|last| last.elapsed() >= REST);
            tokio::select! {
                biased;
                answer = answered(&mut self.asking) => self.hear(answer),
                () = bell.rung(), if has_rested => {
                    self.hastened = Some(Instant::now());
                    self.following.hasten();
                    self.asking = None;
                }
                Ok(()) = self.ways.standing.changed() => {}
                _ = self.ways.installed.changed() => {}
                () = sleep_until(due.min(Instant::now() + BEAT)) => {}
            }
        }
    }

    /// Reads the settings and the running work from the loop. A loop that does not answer counts as busy.
    async fn look(&mut self) {
        match timeout(PATIENCE, self.ways.doors.ask(ChannelQuery)).await {
            Ok(Ok(report)) => {
                self.settings = report.settings;
                self.activity = Some(report.activity);
            }
            Ok(Err(_)) | Err(_) => self.activity = None,
        }
    }

    /// Decides what to do. Returns the latest time for the next decision.
    fn decide(&mut self) -> Instant {
        let leads = match &*self.ways.standing.borrow_and_update() {
            ActingRole::Leads => true,
            ActingRole::Seeks { .. } | ActingRole::Standby(_) => false,
        };
        let installed = self.ways.installed.borrow_and_update().clone();
        if self.own.is_none() {
            self.own = installed.as_ref().and_then(|installed| installed.repository.clone());
        }
        let recalled = self.ways.recalled.borrow_and_update().clone();
        if recalled.number != self.recalled {
            self.recalled = recalled.number;
            self.following.recall(recalled.memory);
        }
        self.following.lead(leads);
        self.following.set(self.settings.clone());
        self.following.find(installed.clone());
        let now = self.clock.now();
        let due = match self.following.next(now) {
            Move::Ask(question) => {
                self.ask(question, installed.as_ref());
                None
            }
            Move::Wait(until) => {
                self.asking = None;
                Some(until)
            }
            Move::Rest => {
                self.asking = None;
                None
            }
        };
        self.following.choose(self.activity.unwrap_or(Activity::Busy), now);
        self.tell(leads, installed);
        due.map_or_else(|| Instant::now() + BEAT, |due| self.clock.instant(due))
    }

    /// Asks a question, unless it is already being asked.
    fn ask(&mut self, question: Question, installed: Option<&Installed>) {
        if self.asking.as_ref().is_some_and(|asking| asking.question == question) {
            return;
        }
        let repository = installed.and_then(|installed| installed.repository.clone());
        let (Some(repository), Some(own)) = (repository, &self.own) else {
            return;
        };
        let known = self.inquiry.take().filter(|(asked, _)| *asked == repository);
        let inquiry = match known {
            Some((_, inquiry)) => Ok(inquiry),
            None => self.office.inquiry(&repository, own).map(Arc::new),
        };
        let asked = question.clone();
        let answer: BoxFuture<'static, _> = match inquiry {
            Ok(inquiry) => {
                self.inquiry = Some((repository, Arc::clone(&inquiry)));
                Box::pin(async move { inquiry.answer(&asked).await })
            }
            Err(trouble) => Box::pin(async move { Err(trouble) }),
        };
        self.asking = Some(Asking { question, answer });
    }

    fn hear(&mut self, answer: Result<Answer, Trouble>) {
        if let Some(Asking { question, answer: _ }) = self.asking.take() {
            self.following.hear(&question, answer, self.clock.now());
        }
    }

    fn tell(&mut self, leads: bool, installed: Option<Installed>) {
        for news in self.following.news() {
            self.rounds += self.teller.tell(&news);
            self.ways.announcer.hear(&news.into());
        }
        let installed = installed.map(|installed| Installed {
            running: self.following.running().unwrap_or_default(),
            ..installed
        });
        let known = Known {
            settings: self.settings.clone(),
            installed,
            status: self.following.status().clone(),
            signature: self.following.signature().cloned(),
            rounds: self.rounds,
            activity: self.activity,
            memory: self.following.memory().clone(),
            recalled: self.recalled,
            wanted: self.following.wanted(),
        };
        self.teller.measure(&known, leads);
        let followed = Followed::On(Box::new(known));
        self.ways.followed.send_if_modified(|told| {
            let differs = *told != followed;
            *told = followed;
            differs
        });
    }
}

/// Waits for the answer to the open question. Without an open question it waits for ever.
async fn answered(asking: &mut Option<Asking>) -> Result<Answer, Trouble> {
    match asking {
        Some(asking) => (&mut asking.answer).await,
        None => std::future::pending().await,
    }
}
