//! Whole worlds: replicas with a real election and a real machine each, a Deployment and a ReplicaSet that make pods, and
//! one lease. Requests or their answers get lost, sights are old, pods are killed before and after each action, stand
//! still or cannot reach the API server, and people change their minds. A seed determines a world; `TRIAL_WORLDS` is the
//! number of worlds.

mod cluster;
mod pod;

use std::collections::BTreeMap;
use std::time::Duration;

use clock::Jitter;

use crate::channel::Channel;
use crate::choice::Activity;
use crate::leadership::ReplicaRole;
use crate::policy::Policy;
use crate::reference::Tag;
use crate::settings::Settings;
use crate::trial::replica::PodKind;
use cluster::Cluster;
use pod::Pod;

/// The behaviour of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Good,
    Crashes,
    Hangs,
    NeverReady,
    BreaksModule,
    NeverConverges,
    /// The image cannot be pulled until the trouble is over.
    NotPulled,
    /// The pod gets no node until the trouble is over.
    Unscheduled,
}

impl Kind {
    const ALL: [Self; 8] = [
        Self::Good,
        Self::Crashes,
        Self::Hangs,
        Self::NeverReady,
        Self::BreaksModule,
        Self::NeverConverges,
        Self::NotPulled,
        Self::Unscheduled,
    ];

    fn may_pass(self) -> bool {
        match self {
            Self::Good | Self::NotPulled | Self::Unscheduled => true,
            Self::Crashes | Self::Hangs | Self::NeverReady | Self::BreaksModule | Self::NeverConverges => false,
        }
    }
}

/// Whether faults happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    None,
    Some,
}

/// The whole world.
#[derive(Debug)]
pub(super) struct World {
    /// The time of the world in seconds.
    now: u64,
    dice: Jitter,
    /// The time until which faults happen, in seconds of the world.
    trouble: u64,
    cluster: Cluster,
    pods: Vec<Pod>,
    /// The behaviour of each version.
    kinds: BTreeMap<u8, Kind>,
    /// The version that people want, and whether they have approved its digest.
    channel: u8,
    approved: Option<u8>,
    /// The time from which on people want version 3, in seconds of the world.
    switch: Option<u64>,
    /// The value of the annotation by which a person last resumed the channel.
    resumed: Option<String>,
    /// The time until which nobody can reach the API server, in seconds of the world.
    away: u64,
    /// The time since which no replica leads, and the longest time without a leader.
    leaderless: u64,
    longest_leaderless: u64,
    /// The first broken promise.
    breach: Option<String>,
    log: Vec<String>,
}

impl World {
    /// A world in which version 2 behaves like this and version 3 is good.
    pub(super) fn new(seed: u64, kind: Kind, trouble: Trouble) -> Self {
        let mut dice = Jitter::new(seed);
        let replicas = 1 + usize::try_from(dice.draw() % 3).unwrap();
        let is_pinned = !dice.draw().is_multiple_of(3);
        let is_approved = dice.draw().is_multiple_of(3);
        let switches = dice.draw().is_multiple_of(2);
        let mut world = Self {
            now: 0,
            trouble: match trouble {
                Trouble::None => 0,
                Trouble::Some => 60 + dice.draw() % 300,
            },
            cluster: Cluster::new(replicas, is_pinned),
            pods: Vec::new(),
            kinds: [(1, Kind::Good), (2, kind), (3, Kind::Good)].into(),
            channel: 2,
            approved: is_approved.then_some(2),
            switch: None,
            resumed: None,
            away: 0,
            leaderless: 0,
            longest_leaderless: 0,
            breach: None,
            log: Vec::new(),
            dice,
        };
        world.switch = switches.then(|| 30 + world.roll(400));
        world
    }

    /// Plays the world until nothing changes any more.
    pub(super) fn run(mut self) -> Result<Self, String> {
        let end = self.trouble + 4_000;
        let mut rests = 0;
        while self.now < end {
            self.now += 1;
            self.disturb();
            self.keep_pods();
            for number in 0..self.pods.len() {
                self.live(number);
            }
            self.pods.retain(|pod| !pod.is_gone);
            self.look_who_leads();
            if let Some(breach) = self.breach.take() {
                return Err(self.told(&breach));
            }
            rests = if self.is_at_rest() { rests + 1 } else { 0 };
            if rests > 20 {
                return self.judged();
            }
        }
        Err(self.told("it does not come to rest"))
    }

    fn told(&self, breach: &str) -> String {
        let stages = self.pods.iter().map(|pod| format!("{}: {}", pod.name, pod.stage()));
        let log = self.log.join("\n");
        format!(
            "{log}\nat {}: {breach}\n{}\n{:?}",
            self.now,
            stages.collect::<Vec<_>>().join("\n"),
            self.cluster
        )
    }

    fn note(&mut self, text: &str) {
        self.log.push(format!("{:5} {text}", self.now));
    }

    fn roll(&mut self, below: u64) -> u64 {
        self.dice.draw() % below
    }

    /// True once in so many times, and never after the trouble is over.
    fn misfortune(&mut self, once_in: u64) -> bool {
        self.now < self.trouble && self.roll(once_in) == 0
    }

    fn disturb(&mut self) {
        if self.switch.is_some_and(|switch| switch <= self.now) {
            (self.switch, self.channel) = (None, 3);
            self.note("people want 3");
        }
        if self.misfortune(400) {
            self.cluster.edit();
            self.note("people edit the Deployment");
        }
        self.take_a_hand();
        if self.misfortune(400) {
            let is_approved = self.approved.take().is_some();
            self.approved = (!is_approved).then_some(2);
            self.note("people approve, or do not any more");
        }
        if self.misfortune(400) {
            self.away = self.now + 5 + self.roll(90);
            self.note(&format!("the API server is away until {}", self.away));
        }
        if self.misfortune(400) {
            self.note("all are drained");
            for number in 0..self.pods.len() {
                self.end_gently(number);
            }
        }
        for number in 0..self.pods.len() {
            match if self.misfortune(150) { self.roll(5) } else { 9 } {
                0 => self.kill(number),
                1 => self.end_gently(number),
                2 => self.crash(number),
                3 => self.pods[number].stands_still = self.now + self.roll(60),
                4 => self.pods[number].is_cut_off = self.now + self.roll(90),
                _ => {}
            }
        }
    }

    /// People and other programs change the image. After the trouble people resume.
    fn take_a_hand(&mut self) {
        if self.misfortune(300) {
            let tried: Vec<u8> = self.cluster.tried.iter().copied().collect();
            let version = tried[usize::try_from(self.roll(tried.len() as u64)).unwrap()];
            let image = match self.roll(3) {
                0 => super::image(version),
                1 => format!("host/operator:{version}"),
                _ => super::OLD.to_owned(),
            };
            self.note(&format!("others put {image} into the Deployment"));
            self.cluster.put_image(&image);
        }
        let is_stopped = self.cluster.remembered.stopped.is_some() || self.cluster.is_foreign();
        if self.now > self.trouble + 60 && is_stopped && self.now.is_multiple_of(60) {
            self.note("people tell us to go on");
            self.resumed = Some(self.now.to_string());
        }
    }

    /// Checks that no two replicas lead at the same time, even if one of them stands still.
    fn look_who_leads(&mut self) {
        let leads = |pod: &&Pod| {
            let tick = pod.clock(self.now).tick;
            let standing = pod.process.as_ref().map(|process| process.election.standing(tick));
            match standing {
                Some(ReplicaRole::Leads | ReplicaRole::Yields) => true,
                Some(ReplicaRole::Standby | ReplicaRole::Deposed) | None => false,
            }
        };
        let leaders: Vec<&str> = self.pods.iter().filter(leads).map(|pod| pod.name.as_str()).collect();
        let (is_led, has_begun) = (!leaders.is_empty(), self.now > 30);
        if leaders.len() > 1 {
            let text = format!("two lead: {leaders:?}");
            self.breach.get_or_insert(text);
        }
        self.leaderless = if is_led || !has_begun { 0 } else { self.leaderless + 1 };
        self.longest_leaderless = self.longest_leaderless.max(self.leaderless);
    }

    fn is_at_rest(&self) -> bool {
        let lease = self.cluster.lease.as_ref();
        self.now > self.trouble
            && self.switch.is_none()
            && self.cluster.trial.is_none()
            && self.cluster.set.is_none()
            && lease.is_some_and(|lease| lease.entitled.is_none() && !lease.holder.is_empty())
            && self.is_rolled_out()
            && (self.runs() == Some(self.channel)
                || self
                    .cluster
                    .remembered
                    .failed
                    .contains_key(&super::digest(self.channel)))
    }

    /// The version that all pods of the Deployment run.
    fn runs(&self) -> Option<u8> {
        let mut versions = self.pods.iter().map(|pod| pod.version);
        let first = versions.next()?;
        versions.all(|version| version == first).then_some(first)
    }

    /// Checks that the right version runs in the end.
    fn judged(self) -> Result<Self, String> {
        let runs = self.runs();
        let has_failed = self
            .cluster
            .remembered
            .failed
            .contains_key(&super::digest(self.channel));
        let is_right = runs == Some(self.channel) && self.kinds[&self.channel].may_pass()
            || has_failed && runs.is_some_and(|version| self.cluster.tried.contains(&version));
        if is_right {
            Ok(self)
        } else {
            Err(self.told(&format!("{runs:?} runs, and {} is wanted", self.channel)))
        }
    }

    fn settings(&self) -> Settings {
        Settings {
            channel: Some(Channel::Tag(Tag::parse(&self.channel.to_string()).unwrap())),
            approved: self.approved.map(super::digest).into_iter().collect(),
            policy: Policy {
                trial_limit: Duration::from_mins(3),
                ..Policy::default()
            },
        }
    }

    fn activity(&mut self) -> Activity {
        if self.misfortune(5) {
            Activity::Busy
        } else {
            Activity::Quiet
        }
    }

    fn is_cut_off(&self, number: usize) -> bool {
        self.now < self.away || self.now < self.pods[number].is_cut_off
    }
}

fn worlds() -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "how much is tested is a setting of the test, not of the program"
    )]
    let told = std::env::var("TRIAL_WORLDS").ok();
    told.map_or(2_000, |told| told.parse().expect("TRIAL_WORLDS should be a number"))
}

fn kind(seed: u64) -> Kind {
    Kind::ALL[usize::try_from(seed % 8).unwrap()]
}

/// Plays a world to its end without a broken promise. Returns whether version 2 runs at the end.
fn is_promoted(seed: u64) -> bool {
    let world = World::new(seed, kind(seed), Trouble::Some).run();
    let world = world.unwrap_or_else(|breach| panic!("{breach}\nseed {seed}, {:?}", kind(seed)));
    world.runs() != Some(1)
}

#[test]
fn every_world_comes_to_rest_with_the_right_version_and_no_promise_broken() {
    const THREADS: u64 = 2;
    let promoted: usize = std::thread::scope(|scope| {
        let seeds = |thread: u64| (0..worlds()).skip(usize::try_from(thread).unwrap()).step_by(2);
        let count = |thread| scope.spawn(move || seeds(thread).filter(|seed| is_promoted(*seed)).count());
        let counts: Vec<_> = (0..THREADS).map(count).collect();
        counts.into_iter().map(|count| count.join().unwrap()).sum()
    });
    assert!(promoted > 0, "the worlds are too dark");
}

#[test]
fn without_trouble_each_version_gets_what_it_deserves() {
    for seed in 0..48 {
        let kind = kind(seed);
        let mut world = World::new(seed, kind, Trouble::None);
        world.switch = None;
        let world = world
            .run()
            .unwrap_or_else(|breach| panic!("{breach}\nseed {seed}, {kind:?}"));
        let wanted = if kind.may_pass() { 2 } else { 1 };
        assert_eq!(world.runs(), Some(wanted), "seed {seed}, {kind:?}\n{}", world.told(""));
        assert_eq!(world.cluster.trials, 1, "seed {seed}, {kind:?}\n{}", world.told(""));
        assert!(world.pods.iter().all(|pod| pod.place == PodKind::Deployment));
        let bound = if kind == Kind::Hangs { 60 } else { 15 };
        let longest = world.longest_leaderless;
        assert!(
            longest <= bound,
            "nobody leads for {longest} s, seed {seed}, {kind:?}\n{}",
            world.told("")
        );
    }
}
