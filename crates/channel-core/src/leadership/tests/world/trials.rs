//! Trials in the world: a record that replicas see late and now and then not at all, and the actions of leader and
//! judges. The trial is simplified: random draws decide whether a version passes.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Duration;

use super::{Skew, World, digest};
use crate::leadership::{Election, ReplicaRole};
use crate::reference::ImageDigest;

/// The Deployment's first version.
const FIRST: u8 = 1;
/// The last of the numbers of versions on trial, which come one after the other.
const LAST: u8 = 90;

/// The state of trials that is independent of replicas.
#[derive(Debug)]
pub(crate) struct Trials {
    /// The Deployment's version.
    deployed: u8,
    /// The version that was last on trial.
    tried: u8,
    record: Option<Record>,
    /// Whether there is a pod of the trial. It is the last replica.
    has_pod: bool,
    /// Whether no further trial begins.
    is_over: bool,
    /// Whether no replica works on the trial.
    is_at_rest: bool,
    /// The record, as each replica saw it last.
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

/// Counts of events.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) begun: u32,
    pub(crate) passed: u32,
    pub(crate) failed: u32,
    /// Steps of a version as leader before there was a verdict: the old version had yielded to it.
    pub(crate) led: u32,
}

fn names(version: u8) -> BTreeSet<ImageDigest> {
    BTreeSet::from([digest(version, 1), digest(version, 2)])
}

impl World {
    /// A world with a Deployment whose replicas have these clocks, and with the clock of a trial's pod, which does not
    /// exist yet.
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

    /// Ends the running trial, and begins no other.
    pub(crate) fn without_more_trials(mut self) -> Self {
        if let Some(trials) = &mut self.trials {
            trials.is_over = true;
        }
        self
    }

    /// From now on no replica works on trials, as if no judge were left.
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

    /// Whether nothing of any trial is left.
    pub(crate) fn is_without_trial(&self) -> bool {
        let trials = self.trials.as_ref().unwrap();
        trials.record.is_none() && !trials.has_pod && self.entitled().is_none()
    }

    /// All replicas that lead.
    pub(crate) fn leaders(&self) -> Vec<usize> {
        (0..self.replicas.len()).filter(|number| self.leads(*number)).collect()
    }

    pub(crate) fn is_deployed(&self, number: usize) -> bool {
        let trials = self.trials.as_ref().unwrap();
        self.replicas[number].versions == names(trials.deployed)
    }

    /// Starts the next life of a replica with this version.
    pub(crate) fn replace(&mut self, number: usize, version: u8) {
        self.leave(number);
        self.become_of(number, version);
    }

    /// Ends a replica for ever.
    fn retire(&mut self, number: usize) {
        self.leave(number);
        self.kill(number);
    }

    /// Ends a replica for ever, once it has no request under way.
    pub(crate) fn retire_at_rest(&mut self, number: usize) {
        while self.replicas[number].waits_for_answer {
            self.run_for(Duration::from_millis(50));
        }
        self.retire(number);
    }

    fn become_of(&mut self, number: usize, version: u8) {
        let replica = &mut self.replicas[number];
        let former = std::mem::replace(&mut replica.versions, names(version));
        // Writes of earlier lives may still be under way.
        for life in 0..replica.life {
            let former = former.clone();
            self.orders.former.entry((number, life)).or_insert(former);
        }
        let name = replica.election.me.clone();
        replica.election = Election::new(name, replica.versions.clone(), super::Timing::ORIGINAL);
    }

    /// Gives a new life of the Deployment the Deployment's version. It begins without knowing it.
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
            // The pods of two trials never have the same name.
            format!("trial.{}", replica.life)
        } else {
            replica.election.me.clone()
        };
        replica.election = Election::new(name, BTreeSet::new(), super::Timing::ORIGINAL);
    }

    /// The actions of a replica in trials. Breaks if the replica is replaced.
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
            // The rollout replaces this replica.
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

    /// The entitled version, as this replica knows it.
    fn entitled_to(&self, number: usize) -> Option<ImageDigest> {
        self.replicas[number].election.entitled().cloned()
    }

    fn between(&mut self, number: usize) {
        if !self.may_lead(number) {
            return;
        }
        if self.entitled_to(number).is_some() {
            // The entitlement is left over from a trial, or a person ordered it.
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

    /// Writes a verdict, if the stored record is the one that was seen.
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

    /// Ends all faults, and the running trial.
    pub(crate) fn settled(self) -> Self {
        let mut world = self.faultless().without_orders().without_more_trials();
        world.run_for(Duration::from_mins(20));
        world
    }
}
