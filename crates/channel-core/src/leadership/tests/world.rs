//! Several replicas and one lease: requests take time, get lost or lose their answers, clocks run at different rates, and
//! replicas stand still, die, leave and come again. They may be of several versions (see `entitled`), and a version may
//! be on trial (see `trials`).

mod entitled;
mod trials;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clock::{Jitter, Now, Tick};

use crate::leadership::lease::{Aim, Holder, Record, Sighting, Timing, Writing, Written};
use crate::leadership::{Election, Move, ReplicaRole};
use crate::reference::ImageDigest;
use entitled::Orders;
use jiff::Timestamp;
use trials::Trials;

pub(super) use entitled::digest;

const SECOND: u64 = 1_000_000;

/// The rate of a replica's clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Skew(f64);

impl Skew {
    pub(super) const NONE: Self = Self(1.0);

    pub(super) fn faster_by(factor: f64) -> Self {
        Self(factor)
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a test lasts less than 2^52 microseconds"
    )]
    fn scale(self, micros: u64) -> u64 {
        (micros as f64 * self.0) as u64
    }

    fn tick(self, time: u64) -> Tick {
        Tick::from_micros(self.scale(time))
    }

    fn time(self, tick: Tick) -> u64 {
        Self(1.0 / self.0).scale(tick.as_micros()) + 2
    }
}

/// One life of a replica: its number and the number of the life.
type Life = (usize, u64);

#[derive(Debug)]
struct Replica {
    election: Election,
    versions: BTreeSet<ImageDigest>,
    skew: Skew,
    /// The number of the replica's life. Events for earlier lives are dropped.
    life: u64,
    /// Whether the replica has not ended for good.
    is_there: bool,
    waits_for_answer: bool,
    /// The true time at which it and everything that it started are sure to have ended.
    leads_until: u64,
    /// Whether the replica was told to yield and is ending its work.
    is_yielding: bool,
}

#[derive(Debug, Clone)]
enum Request {
    Look,
    Ask(Sighting),
    Write(Writing),
    Release(Writing),
}

#[derive(Debug, Clone)]
enum Happening {
    Poll,
    /// The work of a leader that yields has ended.
    WorkEnded,
    Arrives(Request, Tick),
    Found(Option<Sighting>),
    Heard(Sighting),
    Judged(Sighting, Holder),
    Written(Tick, Writing, Written),
    Failed(Request, Tick),
}

/// The whole world, in true time.
#[derive(Debug)]
pub(super) struct World {
    now: u64,
    dice: Jitter,
    faultless: bool,
    farewell: Duration,
    replicas: Vec<Replica>,
    lease: Option<Record>,
    version: u64,
    /// The time at which that version was written.
    written: u64,
    /// How often the lease was released.
    releases: u64,
    agenda: BTreeMap<(u64, u64), (usize, u64, Happening)>,
    entered: u64,
    overlap: Option<String>,
    /// The life that holds each version of the lease.
    holders: BTreeMap<u64, Life>,
    /// The lives whose end other replicas can see.
    ended: BTreeSet<Life>,
    /// Whether replicas also die by themselves.
    with_deaths: bool,
    /// Whether a replica has the same name in its next life.
    in_pods: bool,
    orders: Orders,
    trials: Option<Trials>,
}

impl World {
    pub(super) fn new(seed: u64, skews: &[Skew]) -> Self {
        let mut world = Self {
            now: 0,
            dice: Jitter::new(seed),
            faultless: false,
            farewell: Duration::ZERO,
            replicas: Vec::new(),
            lease: None,
            version: 0,
            written: 0,
            releases: 0,
            agenda: BTreeMap::new(),
            entered: 0,
            overlap: None,
            holders: BTreeMap::new(),
            ended: BTreeSet::new(),
            with_deaths: false,
            in_pods: false,
            orders: Orders::default(),
            trials: None,
        };
        for (number, skew) in skews.iter().enumerate() {
            world.replicas.push(Replica {
                election: Election::new(format!("r{number}"), BTreeSet::new(), Timing::ORIGINAL),
                versions: BTreeSet::new(),
                skew: *skew,
                life: 0,
                is_there: true,
                waits_for_answer: false,
                leads_until: 0,
                is_yielding: false,
            });
            let start = world.roll(20 * SECOND);
            world.enter(start, number, Happening::Poll);
        }
        world
    }

    pub(super) fn faultless(mut self) -> Self {
        self.faultless = true;
        self
    }

    /// Sets the time that a replica needs to end its work.
    pub(super) fn ends_after(&mut self, farewell: Duration) {
        self.farewell = farewell;
    }

    pub(super) fn overlap(&self) -> Option<&str> {
        self.overlap.as_deref()
    }

    pub(super) fn leader(&self) -> Option<usize> {
        (0..self.replicas.len()).find(|number| self.leads(*number))
    }

    fn leads(&self, number: usize) -> bool {
        let replica = &self.replicas[number];
        match replica.election.standing(replica.skew.tick(self.now)) {
            ReplicaRole::Leads | ReplicaRole::Yields => true,
            ReplicaRole::Standby | ReplicaRole::Deposed => false,
        }
    }

    /// Kills a replica for ever. Other replicas cannot see its end.
    pub(super) fn kill(&mut self, number: usize) {
        let replica = &mut self.replicas[number];
        replica.life += 1;
        replica.is_there = false;
    }

    pub(super) fn with_deaths(&mut self) {
        self.with_deaths = true;
    }

    /// Ends a replica with its work for ever. Other replicas can see its end if they ask.
    pub(super) fn end(&mut self, number: usize) {
        let replica = &mut self.replicas[number];
        self.ended.insert((number, replica.life));
        replica.leads_until = self.now;
        self.kill(number);
    }

    pub(super) fn run_for(&mut self, time: Duration) {
        let end = self.now + u64::try_from(time.as_micros()).unwrap();
        while let Some(entry) = self.agenda.first_entry() {
            if entry.key().0 > end {
                break;
            }
            let ((time, _), (number, life, happening)) = entry.remove_entry();
            self.now = time;
            match happening {
                // A request arrives even if its sender is dead.
                Happening::Arrives(request, sent) => self.arrives((number, life), request, sent),
                happening if self.replicas[number].life == life && self.replicas[number].is_there => {
                    self.happens(number, happening);
                }
                _ => {}
            }
        }
        self.now = end;
    }

    fn roll(&mut self, below: u64) -> u64 {
        self.dice.draw() % below
    }

    /// True once in so many times; never without faults.
    fn misfortune(&mut self, once_in: u64) -> bool {
        self.roll(once_in) == 0 && !self.faultless
    }

    fn enter(&mut self, time: u64, number: usize, happening: Happening) {
        self.enter_for(time, number, self.replicas[number].life, happening);
    }

    fn enter_for(&mut self, time: u64, number: usize, life: u64, happening: Happening) {
        self.entered += 1;
        self.agenda.insert((time, self.entered), (number, life, happening));
    }

    fn clock(&self, number: usize) -> Now {
        let wall = Timestamp::from_microsecond(i64::try_from(self.now).unwrap()).unwrap();
        Now {
            tick: self.replicas[number].skew.tick(self.now),
            wall,
        }
    }

    fn happens(&mut self, number: usize, happening: Happening) {
        let now = self.clock(number).tick;
        let replica = &mut self.replicas[number];
        match happening {
            // The end of the work waits for the answer to a write.
            Happening::WorkEnded if replica.waits_for_answer => {
                return self.enter(self.now + SECOND / 10, number, Happening::WorkEnded);
            }
            Happening::WorkEnded => return self.leave(number),
            Happening::Poll if replica.waits_for_answer => return,
            Happening::Poll | Happening::Arrives(..) => {}
            Happening::Heard(sighting) => replica.election.heard(now, sighting),
            Happening::Found(found) => {
                replica.waits_for_answer = false;
                replica.election.looked(now, found);
            }
            Happening::Judged(about, holder) => {
                replica.waits_for_answer = false;
                replica.election.asked(now, &about, holder);
            }
            Happening::Written(sent, writing, written) => {
                replica.waits_for_answer = false;
                let is_through = matches!(written, Written::Through(_));
                replica.election.wrote(sent, now, writing, written);
                if is_through {
                    self.look_who_leads(number, sent);
                }
            }
            Happening::Failed(request, sent) => {
                replica.waits_for_answer = false;
                match request {
                    Request::Look => replica.election.look_failed(now),
                    Request::Write(writing) => replica.election.wrote(sent, now, writing, Written::Unknown),
                    Request::Ask(about) => replica.election.asked(now, &about, Holder::Unknown),
                    Request::Release(_) => {}
                }
            }
        }
        self.go_on(number);
    }

    fn look_who_leads(&mut self, number: usize, sent: Tick) {
        if !self.leads(number) {
            return;
        }
        let replica = &self.replicas[number];
        let until = replica.skew.time(sent + Timing::ORIGINAL.deadline + self.farewell);
        for (other, replica) in self.replicas.iter().enumerate() {
            if other != number && replica.leads_until > self.now {
                let text = format!(
                    "at {} r{number} leads, and r{other} until {}",
                    self.now, replica.leads_until
                );
                self.overlap.get_or_insert(text);
            }
        }
        self.replicas[number].leads_until = until;
    }

    fn go_on(&mut self, number: usize) {
        if self.replicas[number].waits_for_answer {
            return;
        }
        let now = self.clock(number);
        if self.leads(number) && self.misfortune(200) {
            return self.leave(number);
        }
        if self.misfortune(400) {
            return self.begin_anew(number);
        }
        if self.with_deaths && self.misfortune(100) {
            self.end(number);
            return self.begin_anew(number);
        }
        if self.take_part(number).is_break() {
            return;
        }
        self.order_at_random(number);
        let next = self.replicas[number].election.poll(now);
        self.yield_if_told(number);
        match next {
            Move::Look(limit) => self.send(number, Request::Look, limit),
            Move::Ask(about, limit) => self.send(number, Request::Ask(about), limit),
            Move::Write(writing, limit) => self.send(number, Request::Write(writing), limit),
            Move::Wait(tick) => {
                let lag = if self.misfortune(20) {
                    self.roll(60 * SECOND)
                } else {
                    self.roll(SECOND / 10)
                };
                let due = self.replicas[number].skew.time(tick).max(self.now);
                self.enter(due + lag, number, Happening::Poll);
            }
            Move::StepDown => self.begin_anew(number),
        }
    }

    /// Ends a replica cleanly, and starts its next life.
    fn leave(&mut self, number: usize) {
        let now = self.clock(number);
        let release = self.replicas[number].election.release(now);
        self.replicas[number].leads_until = self.now;
        if let Some(writing) = release {
            self.send(number, Request::Release(writing), Duration::from_secs(5));
        }
        self.begin_anew(number);
    }

    fn begin_anew(&mut self, number: usize) {
        let replica = &mut self.replicas[number];
        replica.life += 1;
        let name = if self.in_pods {
            format!("r{number}")
        } else {
            format!("r{number}.{}", replica.life)
        };
        replica.election = Election::new(name, replica.versions.clone(), Timing::ORIGINAL);
        (replica.waits_for_answer, replica.is_yielding, replica.is_there) = (false, false, true);
        self.choose_version(number);
        let pause = self.roll(10 * SECOND);
        self.enter(self.now + pause, number, Happening::Poll);
    }

    fn send(&mut self, number: usize, request: Request, limit: Duration) {
        self.replicas[number].waits_for_answer = true;
        let sent = self.clock(number).tick;
        let patience = u64::try_from(limit.as_micros()).unwrap();
        self.enter(self.now + patience, number, Happening::Failed(request.clone(), sent));
        if !self.misfortune(8) {
            // The answer may come long after its timeout.
            let way = if self.misfortune(10) {
                self.roll(60 * SECOND)
            } else {
                self.roll(SECOND / 5)
            };
            self.enter(self.now + way, number, Happening::Arrives(request, sent));
        }
    }

    fn arrives(&mut self, (number, life): Life, request: Request, sent: Tick) {
        let answer = match request {
            Request::Look => Happening::Found(self.sighting()),
            Request::Ask(about) => {
                let holder = about
                    .version
                    .parse()
                    .ok()
                    .and_then(|version: u64| self.holders.get(&version));
                let has_ended = holder.is_some_and(|life| self.ended.contains(life));
                let holder = if has_ended { Holder::Gone } else { Holder::Unknown };
                Happening::Judged(about, holder)
            }
            Request::Release(writing) => {
                self.write((number, life), &writing);
                return;
            }
            Request::Write(writing) => {
                let written = self.write((number, life), &writing);
                Happening::Written(sent, writing, written)
            }
        };
        let way = if self.misfortune(8) {
            return;
        } else if self.misfortune(10) {
            self.roll(20 * SECOND)
        } else {
            self.roll(SECOND / 5)
        };
        // A replica that has given up meanwhile does not get the answer.
        let awaited = self.agenda.iter().find_map(|(key, (who, whose, happening))| {
            let is_it =
                *who == number && *whose == life && matches!(happening, Happening::Failed(_, at) if *at == sent);
            is_it.then_some(*key)
        });
        if let Some(key) = awaited
            && key.0 > self.now + way
        {
            self.agenda.remove(&key);
            self.enter_for(self.now + way, number, life, answer);
        }
    }

    fn write(&mut self, writer: Life, writing: &Writing) -> Written {
        let there = self.lease.as_ref().map(|_| self.version.to_string());
        if there != writing.over {
            return Written::Conflict;
        }
        self.judge(writer, &writing.record);
        let is_left = writing.aim == Aim::Leave && !writing.record.holder.is_empty();
        let holder = if is_left {
            self.holders.get(&self.version).copied()
        } else {
            Some(writer)
        };
        self.put(writing.record.clone(), holder);
        Written::Through(self.version.to_string())
    }

    /// Stores the record. All replicas get a report of it sooner or later.
    fn put(&mut self, record: Record, holder: Option<Life>) {
        (self.version, self.written) = (self.version + 1, self.now);
        self.holders.extend(holder.map(|life| (self.version, life)));
        self.releases += u64::from(record.holder.is_empty());
        self.lease = Some(record);
        for number in 0..self.replicas.len() {
            let Some(sighting) = self.sighting() else { continue };
            let way = if self.misfortune(4) {
                self.roll(90 * SECOND)
            } else {
                self.roll(SECOND / 5)
            };
            self.enter(self.now + way, number, Happening::Heard(sighting));
        }
    }

    fn sighting(&self) -> Option<Sighting> {
        Some(Sighting {
            version: self.version.to_string(),
            record: self.lease.clone()?,
            holder: Holder::Unknown,
        })
    }
}
