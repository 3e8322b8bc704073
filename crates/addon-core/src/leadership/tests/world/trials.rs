//! Trials in the world: a record that all replicas see, late and now and then not at all, and what the leader and the
//! judges make of it. It is a simplified trial: random draws decide whether a version passes.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Duration;

use super::{Skew, World, digest};
use crate::artifact::reference::ImageDigest;
use crate::leadership::{Election, ReplicaRole};

/// The version that the Deployment names at first.
const FIRST: u8 = 1;
/// Versions on trial have these numbers, one after the other.
const LAST: u8 = 90;

/// Everything about trials that does not end with a replica.
#[derive(Debug)]
pub(crate) struct Trials {
    /// The version that the Deployment names.
    deployed: u8,
    /// The one that was on trial last.
    tried: u8,
    record: Option<Record>,
    /// Is there a pod of the trial? It is the last of the replicas.
    has_pod: bool,
    /// No trial begins any more.
    is_over: bool,
    /// Nobody does anything about the trial.
    is_at_rest: bool,
    /// The record, as each replica has seen it last.
    seen: Vec<Option<Record>>,
    tally: Tally,
}

/// The record of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Record {
    from: u8,
    to: u8,
    verdict: Option<Verdict>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Passed,
    Failed,
}

/// How often something has happened.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) begun: u32,
    pub(crate) passed: u32,
    pub(crate) failed: u32,
    /// Steps that a version has taken as leader before there was a verdict: the old one has yielded to it.
    pub(crate) led: u32,
}

fn names(version: u8) -> BTreeSet<ImageDigest> {
    BTreeSet::from([digest(version, 1), digest(version, 2)])
}

impl World {
    /// Replicas of a Deployment with these clocks, and the clock of a trial's pod, which does not exist yet.
    pub(crate) fn of_trials(seed: u64, deployment: &[Skew], pod: Skew) -> Self {
        let mut skews = vec![(pod, FIRST)];
        skews.splice(0..0, deployment.iter().map(|skew| (*skew, FIRST)));
        let mut world = Self::of_versions(seed, &skews);
        world.trials = Some(Trials {
            deployed: FIRST,
            tried: FIRST,
            record: None,
            has_pod: false,
            is_over: false,
            is_at_rest: false,
            seen: vec![None; skews.len()],
            tally: Tally::default(),
        });
        world.kill(skews.len() - 1);
        world
    }

    /// A trial that has begun is brought to its end, and no other begins.
    pub(crate) fn without_more_trials(mut self) -> Self {
        if let Some(trials) = &mut self.trials {
            trials.is_over = true;
        }
        self
    }

    /// From now on nobody does anything about trials, as if none who could were left.
    pub(crate) fn without_judges(mut self) -> Self {
        if let Some(trials) = &mut self.trials {
            trials.is_at_rest = true;
        }
        self
    }

    pub(crate) fn tally(&self) -> Tally {
        self.trials.as_ref().map(|trials| trials.tally).unwrap_or_default()
    }

    pub(crate) fn trials(&self) -> (&Trials, Option<&ImageDigest>) {
        (self.trials.as_ref().unwrap(), self.entitled())
    }

    /// Is there nothing left of any trial?
    pub(crate) fn is_without_trial(&self) -> bool {
        let trials = self.trials.as_ref().unwrap();
        trials.record.is_none() && !trials.has_pod && self.entitled().is_none()
    }

    /// All who lead.
    pub(crate) fn leaders(&self) -> Vec<usize> {
        (0..self.replicas.len()).filter(|number| self.leads(*number)).collect()
    }

    pub(crate) fn is_deployed(&self, number: usize) -> bool {
        let trials = self.trials.as_ref().unwrap();
        self.replicas[number].versions == names(trials.deployed)
    }

    /// The replica begins anew as one of this version.
    pub(crate) fn replace(&mut self, number: usize, version: u8) {
        self.leave(number);
        self.become_of(number, version);
    }

    /// It leaves, and does not come again.
    fn retire(&mut self, number: usize) {
        self.leave(number);
        self.kill(number);
    }

    /// The same, when no request of it is under way.
    pub(crate) fn retire_at_rest(&mut self, number: usize) {
        while self.replicas[number].waits_for_answer {
            self.run_for(Duration::from_millis(50));
        }
        self.retire(number);
    }

    fn become_of(&mut self, number: usize, version: u8) {
        let replica = &mut self.replicas[number];
        let former = std::mem::replace(&mut replica.versions, names(version));
        // Its writes may be under way still.
        for life in 0..replica.life {
            let former = former.clone();
            self.orders.former.entry((number, life)).or_insert(former);
        }
        let name = replica.election.me.clone();
        replica.election = Election::new(name, replica.versions.clone(), super::Timing::ORIGINAL);
    }

    /// A life of a replica of the Deployment is of the version that this names. All begin without knowing it.
    pub(super) fn choose_version(&mut self, number: usize) {
        let pod = self.replicas.len() - 1;
        let Some(trials) = &mut self.trials else { return };
        trials.seen[number] = None;
        let deployed = trials.deployed;
        if number != pod && !trials.is_at_rest {
            self.become_of(number, deployed);
        }
        let replica = &mut self.replicas[number];
        let name = if number == pod {
            // No two pods of trials have one name.
            format!("trial.{}", replica.life)
        } else {
            replica.election.me.clone()
        };
        replica.election = Election::new(name, BTreeSet::new(), super::Timing::ORIGINAL);
    }

    /// The part of a replica in trials. It ends there if it is replaced.
    pub(super) fn take_part(&mut self, number: usize) -> ControlFlow<()> {
        if self.trials.is_none() {
            return ControlFlow::Continue(());
        }
        let (pod, is_careless) = (self.replicas.len() - 1, self.misfortune(3));
        let now = self.clock(number).tick;
        let trials = self.trials.as_mut().unwrap();
        if !is_careless {
            let replica = &mut self.replicas[number];
            replica.election.name_versions(now, replica.versions.clone());
            trials.seen[number] = trials.record;
        }
        if trials.is_at_rest {
            return ControlFlow::Continue(());
        }
        if number == pod {
            let is_on_trial = trials.record.is_some_and(|record| record.verdict.is_none());
            let leads = self.replicas[number].election.standing(now) == ReplicaRole::Leads;
            trials.tally.led += u32::from(is_on_trial && leads);
            return ControlFlow::Continue(());
        }
        if !self.is_deployed(number) {
            // The rollout comes to it.
            if self.roll(3) == 0 {
                let version = self.trials.as_ref().unwrap().deployed;
                self.replace(number, version);
                return ControlFlow::Break(());
            }
        }
        match self.trials.as_ref().unwrap().seen[number] {
            None => self.between(number),
            Some(seen) => match seen.verdict {
                None => self.during(number, seen),
                Some(verdict) => self.after(number, seen, verdict),
            },
        }
        ControlFlow::Continue(())
    }

    fn may_lead(&self, number: usize) -> bool {
        let now = self.clock(number).tick;
        self.replicas[number].election.standing(now) == ReplicaRole::Leads
    }

    /// The version that is entitled, as this replica knows it.
    fn entitled_to(&self, number: usize) -> Option<ImageDigest> {
        self.replicas[number].election.entitled().cloned()
    }

    fn between(&mut self, number: usize) {
        if !self.may_lead(number) {
            return;
        }
        if self.entitled_to(number).is_some() {
            // Remains of a trial, or the word of a person.
            if self.roll(3) == 0 {
                self.order(number, None);
            }
            return;
        }
        let lot = self.roll(4);
        let trials = self.trials.as_mut().unwrap();
        let is_good = !trials.is_over && trials.tried < LAST && trials.record.is_none();
        if is_good && lot == 0 && self.replicas[number].versions == names(trials.deployed) {
            trials.tried += 1;
            trials.tally.begun += 1;
            trials.record = Some(Record {
                from: trials.deployed,
                to: trials.tried,
                verdict: None,
            });
        }
    }

    fn during(&mut self, number: usize, seen: Record) {
        let Record { from, to, verdict: _ } = seen;
        if self.replicas[number].versions != names(from) {
            return;
        }
        if self.roll(6) == 0 {
            return self.rule(seen);
        }
        let entitled = self.entitled_to(number);
        let is_charged = entitled.as_ref().is_some_and(|digest| names(to).contains(digest));
        let is_ours = entitled.as_ref().is_some_and(|digest| names(from).contains(digest));
        let has_pod = self.trials.as_ref().unwrap().has_pod;
        if is_charged {
            if !has_pod || (self.may_lead(number) && self.roll(3) == 0) {
                self.order(number, Some(digest(from, 1)));
            }
        } else if self.may_lead(number) {
            if !is_ours {
                self.order(number, Some(digest(from, 1)));
            } else if has_pod {
                self.order(number, Some(digest(to, 1)));
            } else {
                self.make_pod(seen);
            }
        }
    }

    /// A verdict counts over the record that was seen.
    fn rule(&mut self, seen: Record) {
        let lot = self.roll(2);
        let trials = self.trials.as_mut().unwrap();
        if trials.record != Some(seen) {
            return;
        }
        let verdict = if lot == 0 {
            trials.deployed = seen.to;
            trials.tally.passed += 1;
            Verdict::Passed
        } else {
            trials.tally.failed += 1;
            Verdict::Failed
        };
        trials.record = Some(Record {
            verdict: Some(verdict),
            ..seen
        });
    }

    fn after(&mut self, number: usize, seen: Record, verdict: Verdict) {
        let (rightful, other) = match verdict {
            Verdict::Passed => (seen.to, seen.from),
            Verdict::Failed => (seen.from, seen.to),
        };
        let entitled = self.entitled_to(number);
        if entitled.as_ref().is_some_and(|digest| names(other).contains(digest)) {
            return self.order(number, Some(digest(rightful, 1)));
        }
        let pod = self.replicas.len() - 1;
        if (0..pod).any(|number| !self.is_deployed(number)) {
            return;
        }
        let is_killed = self.misfortune(3);
        let leads = self.may_lead(number);
        let trials = self.trials.as_mut().unwrap();
        if trials.record != Some(seen) {
            return;
        }
        if trials.has_pod {
            trials.has_pod = false;
            if is_killed {
                self.begin_anew(pod);
                self.kill(pod);
            } else {
                self.retire(pod);
            }
        } else if leads && entitled.is_some() {
            self.order(number, None);
        } else if leads {
            trials.record = None;
        }
    }

    fn make_pod(&mut self, seen: Record) {
        let pod = self.replicas.len() - 1;
        let trials = self.trials.as_mut().unwrap();
        if trials.record == Some(seen) {
            trials.has_pod = true;
            self.become_of(pod, seen.to);
            self.begin_anew(pod);
        }
    }

    /// Everything works from now on, and what has begun is brought to its end.
    pub(crate) fn settled(self) -> Self {
        let mut world = self.faultless().without_orders().without_more_trials();
        world.run_for(Duration::from_mins(20));
        world
    }
}
