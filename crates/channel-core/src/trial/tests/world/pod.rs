//! One pod: its container starts and ends, and its process takes part in the election and in trials.

use clock::Now;
use jiff::Timestamp;

use super::super::{at, digest, wanted, word};
use super::{Kind, World};
use crate::leadership::lease::{Holder, Sighting, Timing, Writing, Written};
use crate::leadership::{Election, Move, ReplicaRole};
use crate::reference::ImageDigest;
use crate::trial::action::{Action, Move as Deed, Outcome};
use crate::trial::record::{Failures, Report};
use crate::trial::replica::{Lead, Me, PodKind, Wish};
use crate::trial::sight::{PodState, Sight};
use crate::trial::stage::Stage;
use crate::trial::{FRESH, Trials};

/// One pod.
#[derive(Debug)]
pub(super) struct Pod {
    pub(super) name: String,
    pub(super) version: u8,
    pub(super) place: PodKind,
    pub(super) template: String,
    pub(super) state: State,
    pub(super) restarts: u32,
    /// Whether the container ended last because its lease had run out.
    pub(super) was_overdue: bool,
    pub(super) process: Option<Box<Process>>,
    /// The time at which the pod is sure to have ended, if it was told to end.
    pub(super) ends: Option<u64>,
    pub(super) is_gone: bool,
    /// The time until which the pod stands still, in seconds of the world.
    pub(super) stands_still: u64,
    pub(super) is_cut_off: u64,
    /// The number of seconds by which the clock of the pod's node differs from other clocks.
    clock: u64,
}

/// The state of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// There is no image or no node for the pod.
    Hindered(Kind),
    /// The pod's process begins at this second of the world.
    Starts(u64),
    /// The pod's process runs and never becomes ready.
    NotReady,
    Ready,
    /// The pod's container is restarted at this second of the world.
    Crashed(u64),
}

/// One life of the process in the pod.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) election: Election,
    trials: Trials,
    /// The time of the process's next action, in seconds of the world.
    due: u64,
    leads: Option<u64>,
    /// The time at which its work will have ended, if it was told to give up the lease.
    yields: Option<u64>,
    reports: u64,
    reported: u64,
    /// The last sight and its time; not kept when the trouble is over.
    seen: Option<Sight>,
    heard: u64,
}

impl Pod {
    pub(super) fn is_ready(&self) -> bool {
        self.state == State::Ready && self.ends.is_none()
    }

    pub(super) fn clock(&self, now: u64) -> Now {
        at(now + self.clock)
    }

    pub(super) fn stage(&self) -> String {
        let stage = self.process.as_ref().map(|process| process.trials.stage().to_string());
        format!("{:?}, {}", self.state, stage.unwrap_or_default())
    }

    pub(super) fn shown(&self) -> PodState {
        match self.state {
            State::Hindered(Kind::NotPulled) => PodState::NotPulled("no such image".to_owned()),
            State::Hindered(_) => PodState::Unscheduled("no machine".to_owned()),
            State::Starts(_) | State::NotReady => PodState::Starting,
            State::Ready => PodState::Ready,
            State::Crashed(_) => PodState::Crashed("exit code 1".to_owned()),
        }
    }
}

impl World {
    pub(super) fn make_pod(&mut self, place: PodKind, version: u8) {
        let word = match place {
            PodKind::Deployment => "pod",
            PodKind::Trial => "trial",
        };
        let name = format!("{word}-{}-v{version}", self.cluster.mint());
        self.note(&format!("{name} is made"));
        let (starts, clock) = (self.now + 1 + self.roll(8), self.roll(300));
        self.pods.push(Pod {
            name,
            version,
            place,
            template: self.cluster.deployment.template.clone(),
            state: match self.kinds[&version] {
                kind @ (Kind::NotPulled | Kind::Unscheduled) => State::Hindered(kind),
                Kind::Good
                | Kind::Crashes
                | Kind::Hangs
                | Kind::NeverReady
                | Kind::BreaksModule
                | Kind::NeverConverges => State::Starts(starts),
            },
            restarts: 0,
            was_overdue: false,
            process: None,
            ends: None,
            is_gone: false,
            stands_still: 0,
            is_cut_off: 0,
            clock,
        });
    }

    pub(super) fn kill(&mut self, number: usize) {
        self.note(&format!("{} is killed", self.pods[number].name));
        let pod = &mut self.pods[number];
        (pod.process, pod.is_gone) = (None, true);
    }

    pub(super) fn crash(&mut self, number: usize) {
        if self.pods[number].process.take().is_some() {
            self.restart(number, false);
            let name = self.pods[number].name.clone();
            self.note(&format!("{name} crashes"));
        }
    }

    /// Begins the wait for the next start of a container that has ended.
    fn restart(&mut self, number: usize, was_overdue: bool) {
        let again = self.now + 5 + self.roll(10);
        let pod = &mut self.pods[number];
        (pod.state, pod.restarts, pod.was_overdue) = (State::Crashed(again), pod.restarts + 1, was_overdue);
    }

    pub(super) fn end_gently(&mut self, number: usize) {
        let (end, name) = (self.now + 20, self.pods[number].name.clone());
        let ends = &mut self.pods[number].ends;
        if ends.is_none() {
            *ends = Some(end);
            self.note(&format!("{name} is to end"));
        }
    }

    /// Plays one second of a pod.
    pub(super) fn live(&mut self, number: usize) {
        let now = self.now;
        let pod = &mut self.pods[number];
        if pod.is_gone {
            return;
        }
        if pod.ends.is_some_and(|end| end <= now) {
            (pod.process, pod.is_gone) = (None, true);
            return;
        }
        match pod.state {
            State::Hindered(_) if now > self.trouble + 30 => pod.state = State::Starts(now + 1),
            State::Starts(then) | State::Crashed(then) if then <= now => self.start(number),
            State::Hindered(_) | State::Starts(_) | State::Crashed(_) | State::NotReady | State::Ready => {}
        }
        let pod = &mut self.pods[number];
        if now < pod.stands_still {
            return;
        }
        let Some(mut process) = pod.process.take_if(|process| process.due <= now) else {
            return;
        };
        process.due = now + self.pace();
        let process = self.act(number, process);
        if !self.pods[number].is_gone {
            self.pods[number].process = process;
        }
    }

    /// The time until a process looks again; longer where nothing changes.
    fn pace(&mut self) -> u64 {
        let longest = match (self.now > self.trouble, &self.cluster.trial) {
            (true, None) => 8,
            (true, Some(_)) => 4,
            (false, _) => 2,
        };
        1 + self.roll(longest)
    }

    fn start(&mut self, number: usize) {
        let kind = self.kinds[&self.pods[number].version];
        if kind == Kind::Crashes {
            self.restart(number, false);
            return;
        }
        let process = self.begin(number);
        let pod = &mut self.pods[number];
        pod.process = Some(process);
        pod.state = if kind == Kind::NeverReady {
            State::NotReady
        } else {
            State::Ready
        };
    }

    /// Begins a new life of the process.
    fn begin(&mut self, number: usize) -> Box<Process> {
        let due = self.now + self.roll(3);
        let Pod {
            name, version, place, ..
        } = &self.pods[number];
        let me = Me {
            pod: name.clone(),
            digest: digest(*version),
            digests: [digest(*version)].into(),
            place: *place,
        };
        Box::new(Process {
            election: Election::new(name.clone(), me.digests.clone(), Timing::USUAL),
            trials: Trials::new(me),
            due,
            leads: None,
            yields: None,
            reports: 0,
            reported: 0,
            seen: None,
            heard: 0,
        })
    }

    fn clock(&self, number: usize) -> Now {
        self.pods[number].clock(self.now)
    }

    fn act(&mut self, number: usize, mut process: Box<Process>) -> Option<Box<Process>> {
        self.elect(number, &mut process);
        let (now, tick) = (self.now, self.clock(number).tick);
        let is_ending = self.pods[number].ends.is_some();
        match process.election.standing(tick) {
            ReplicaRole::Leads => {
                let since = *process.leads.get_or_insert(now);
                if self.pods[number].place == PodKind::Trial {
                    self.cluster.longest_lead = self.cluster.longest_lead.max(now - since);
                }
            }
            ReplicaRole::Standby => process.leads = None,
            ReplicaRole::Deposed if is_ending => return None,
            ReplicaRole::Deposed if self.roll(2) == 0 => return Some(self.begin(number)),
            ReplicaRole::Deposed => {
                self.restart(number, true);
                return None;
            }
            ReplicaRole::Yields if process.yields.is_none() => process.yields = Some(now + self.roll(5)),
            ReplicaRole::Yields => {}
        }
        if is_ending && process.yields.is_none() {
            process.yields = Some(now + self.roll(5));
        }
        if process.yields.is_some_and(|end| end <= now) {
            self.release(number, &mut process);
            self.pods[number].is_gone = is_ending;
            return Some(self.begin(number));
        }
        let kind = self.kinds[&self.pods[number].version];
        if kind == Kind::Hangs && process.leads.is_some_and(|since| now >= since + 4) {
            self.pods[number].stands_still = u64::MAX;
            return Some(process);
        }
        self.report(number, &mut process);
        if !is_ending && process.yields.is_none() {
            self.take_part(number, &mut process);
        }
        Some(process)
    }

    fn sighting(&self) -> Option<Sighting> {
        Some(Sighting {
            version: self.cluster.lease_version.to_string(),
            record: self.cluster.lease.clone()?,
            holder: Holder::Unknown,
        })
    }

    fn elect(&mut self, number: usize, process: &mut Process) {
        let now = self.clock(number);
        for _ in 0..6 {
            match process.election.poll(now) {
                Move::Look(_) if self.is_cut_off(number) || self.misfortune(10) => {
                    process.election.look_failed(now.tick);
                }
                Move::Look(_) => process.election.looked(now.tick, self.sighting()),
                Move::Ask(about, _) => {
                    let lives = self
                        .pods
                        .iter()
                        .any(|pod| pod.name == about.record.holder && !pod.is_gone);
                    let holder = if lives { Holder::Unknown } else { Holder::Gone };
                    process.election.asked(now.tick, &about, holder);
                }
                Move::Write(writing, _) => {
                    let written = self.write(number, &writing);
                    process.election.wrote(now.tick, now.tick, writing, written);
                }
                Move::Wait(_) | Move::StepDown => return,
            }
        }
    }

    fn write(&mut self, number: usize, writing: &Writing) -> Written {
        if self.is_cut_off(number) || self.misfortune(10) {
            return Written::Unknown;
        }
        let there = self
            .cluster
            .lease
            .as_ref()
            .map(|_| self.cluster.lease_version.to_string());
        if there != writing.over {
            return Written::Conflict;
        }
        if self.cluster.lease.as_ref().map(|lease| &lease.holder) != Some(&writing.record.holder) {
            self.note(&format!("the lease is held by '{}'", writing.record.holder));
        }
        self.cluster.lease = Some(writing.record.clone());
        self.cluster.lease_version += 1;
        if self.misfortune(10) {
            return Written::Unknown;
        }
        Written::Through(self.cluster.lease_version.to_string())
    }

    fn release(&mut self, number: usize, process: &mut Process) {
        for _ in 0..3 {
            let Some(writing) = process.election.release(self.clock(number)) else {
                return;
            };
            if let Written::Through(_) = self.write(number, &writing) {
                return;
            }
            process.election.looked(self.clock(number).tick, self.sighting());
        }
    }

    /// The version on trial writes its report.
    fn report(&mut self, number: usize, process: &mut Process) {
        let pod = &self.pods[number];
        let is_on_trial = self
            .cluster
            .trial
            .as_ref()
            .is_some_and(|trial| trial.to.digest == digest(pod.version));
        if pod.place != PodKind::Trial || !is_on_trial || self.is_cut_off(number) || self.now < process.reported + 10 {
            return;
        }
        let kind = self.kinds[&pod.version];
        let led = process.leads.map_or(0, |since| self.now - since);
        let converged = led >= 15 && kind != Kind::NeverConverges;
        let begun = process.leads.unwrap_or_default();
        let failures = u32::try_from(led / 15).unwrap();
        let failing =
            (kind == Kind::BreaksModule && converged).then(|| ("module a".to_owned(), Failures::InARow(failures)));
        (process.reports, process.reported) = (process.reports + 1, self.now);
        self.cluster.report = Some(Report {
            of: digest(pod.version),
            pod: pod.name.clone(),
            number: process.reports,
            converged: converged.then(|| Timestamp::from_second(i64::try_from(begun).unwrap()).unwrap()),
            failing: failing.into_iter().collect(),
            hindered: std::collections::BTreeSet::new(),
            unhealthy: std::collections::BTreeMap::new(),
        });
    }

    fn take_part(&mut self, number: usize, process: &mut Process) {
        let now = self.clock(number);
        self.look(number, process);
        let (leads, place) = (process.leads.is_some(), self.pods[number].place);
        let wish = Wish {
            wanted: Some(wanted(self.channel)),
            settings: Some(self.settings()),
            resumed: self.resumed.clone(),
            lead: if leads { Lead::Leads } else { Lead::Follows },
            activity: self.activity(),
            ..Wish::nothing()
        };
        process.trials.wish(wish, now);
        let mut deeds = 0;
        for _ in 0..4 {
            let Deed::Do(action) = process.trials.next(now) else {
                break;
            };
            if self.misfortune(60) {
                return self.kill(number);
            }
            deeds += 1;
            let outcome = self.attempt(number, process, &action);
            let text = format!("{}: {} {outcome:?}", self.pods[number].name, word(&action));
            self.note(&text);
            if self.misfortune(60) {
                return self.kill(number);
            }
            process.trials.did(action, outcome, now);
        }
        let is_fresh = self.now < process.heard + FRESH.as_secs();
        let sees_trial = process.seen.as_ref().is_none_or(|seen| seen.trial.there().is_some());
        let is_there = self.cluster.trial.is_some() && !self.is_cut_off(number);
        if is_fresh
            && sees_trial
            && is_there
            && deeds == 0
            && place == PodKind::Deployment
            && is_nameless(process.trials.stage())
        {
            let text = format!(
                "{} waits without a name: {:?}",
                self.pods[number].name,
                process.trials.stage()
            );
            self.breach.get_or_insert(text);
        }
    }

    /// Takes a sight of the cluster as it is, or as it was a short time ago.
    fn look(&mut self, number: usize, process: &mut Process) {
        if self.is_cut_off(number) {
            return;
        }
        let age = if self.misfortune(3) { self.roll(3) } else { 9 };
        let mut sight = match (process.seen.take(), age) {
            (Some(seen), 0) => seen,
            // The records and the objects are read by different requests, so they may be of different times.
            (
                Some(Sight {
                    trial,
                    report,
                    remembered,
                    ..
                }),
                1,
            ) => Sight {
                trial,
                report,
                remembered,
                ..self.sight()
            },
            (
                Some(Sight {
                    deployment,
                    replicas,
                    set,
                    ..
                }),
                2,
            ) => Sight {
                deployment,
                replicas,
                set,
                ..self.sight()
            },
            (Some(_) | None, _) => self.sight(),
        };
        let name = &self.pods[number].name;
        let entitled: Option<&ImageDigest> = process.election.entitled();
        if let Some(lease) = &mut sight.lease {
            lease.holder = process.election.leader().map(str::to_owned);
            if process.leads.is_some() {
                lease.holder = Some(name.clone());
            }
            lease.entitled = entitled.cloned();
        }
        sight.heard = self.clock(number).tick;
        process.heard = self.now;
        process.seen = (self.now < self.trouble).then(|| sight.clone());
        process.trials.see(sight);
    }

    fn attempt(&mut self, number: usize, process: &mut Process, action: &Action) -> Outcome {
        let lost = || Outcome::Failed("asking the API server".to_owned());
        if let Action::Entitle(whom) = action {
            process.election.entitle(self.clock(number).tick, whom.clone());
            return Outcome::Done;
        }
        if self.is_cut_off(number) || self.misfortune(10) {
            return lost();
        }
        let outcome = self.carry_out(action);
        if self.misfortune(10) { lost() } else { outcome }
    }
}

/// Whether a stage does not name the trial that exists.
fn is_nameless(stage: &Stage) -> bool {
    match stage {
        Stage::Unknown(_) | Stage::Idle | Stage::Waits(..) | Stage::Pinning(_) | Stage::PinningAgain => true,
        Stage::Unheard
        | Stage::Stopped(_)
        | Stage::Held(_)
        | Stage::Begins(_)
        | Stage::Starts(..)
        | Stage::HandsOver(_)
        | Stage::Converges(_)
        | Stage::Fails(..)
        | Stage::Proves(..)
        | Stage::Doubts(_)
        | Stage::Unjudged(_)
        | Stage::Elsewhere(_)
        | Stage::Promotes(_)
        | Stage::RollsOut(..)
        | Stage::WindsUp(..) => false,
    }
}
