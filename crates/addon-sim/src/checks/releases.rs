//! N1 and N2: objects that people maintain are not touched. K1: of two modules that render one object, the second gets an
//! error that names the first. X1: damage is repaired once it has lasted, and with pauses, each twice as long. V9: helm
//! gets no values that break its schema.

use std::collections::BTreeMap;

use addon_core::failure::Failure;
use addon_core::operator::effect::{Effect, Job, Notice};
use addon_core::operator::event::{Drift, Event, Finished};
use addon_core::values::section::Maintenance;

use super::{SimStep, Violation, ensure};
use crate::setup::key_of;
use crate::world::document;

const SECOND: u64 = 1_000_000;
/// The time for which damage lasts before it is repaired, in microseconds.
const SETTLES: u64 = SECOND;
/// The first pause between two repairs, and the longest one. Each further pause is twice as long as the one before.
const PAUSES: (u64, u64) = (5 * SECOND, 300 * SECOND);
/// If no damage comes for this long, the pauses start at the shortest again.
const CALM: u64 = 600 * SECOND;

/// The reported damage of releases, and their repairs.
#[derive(Debug, Default)]
pub(super) struct Releases {
    /// By release, its damage, and the time at which the damage began, in microseconds of the world.
    sights: BTreeMap<String, (Drift, u64)>,
    /// The repairs of each release.
    repairs: BTreeMap<String, Repairs>,
}

#[derive(Debug, Default)]
struct Repairs {
    /// The number of repairs in a row.
    done: u32,
    /// The end of the last repair, in microseconds of the world.
    last: u64,
    /// Whether a repair is under way.
    told: bool,
    /// The time before which no repair begins, in microseconds of the world.
    due: u64,
}

impl Repairs {
    fn postpone(&mut self, now: u64) {
        let (first, longest) = PAUSES;
        let pause = match self.done {
            0 => 0,
            done => (first << (done - 1).min(6)).min(longest),
        };
        self.due = (now + SETTLES).max(self.last + pause);
        self.told = false;
    }

    /// Notes that the release is damaged again.
    fn damaged(&mut self, now: u64) {
        if now - self.last > CALM {
            self.done = 0;
        }
        self.postpone(now);
    }

    /// Notes that a run of the module succeeded.
    fn ran(&mut self, now: u64) {
        if self.told {
            self.done += 1;
            self.last = now;
        }
        self.postpone(now);
    }
}

impl Releases {
    pub(super) fn sighted(&mut self, clock: u64, release: &str, drift: Option<&Drift>) {
        let Some(drift) = drift else {
            self.sights.remove(release);
            return;
        };
        if !self.sights.contains_key(release) {
            self.repairs.entry(release.to_owned()).or_default().damaged(clock);
        }
        let known = self.sights.entry(release.to_owned());
        known.or_insert((drift.clone(), clock)).0 = drift.clone();
    }

    pub(super) fn effect(&mut self, step: &SimStep<'_>, effect: &Effect) -> Result<(), Violation> {
        match effect {
            Effect::StartJob(job @ Job::SyncRelease { .. }) => sync(step, job),
            Effect::Tell(Notice::ReleaseDrifted { module, drift, times }) => {
                self.repair(step, module.as_str(), drift, *times)
            }
            Effect::Tell(Notice::ModuleReady { module, .. }) => {
                if let Some(repairs) = self.repairs.get_mut(module.as_str()) {
                    repairs.ran(step.clock);
                }
                Ok(())
            }
            Effect::Tell(Notice::ModuleDeleted { module }) => {
                self.repairs.remove(module.as_str());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn repair(&mut self, step: &SimStep<'_>, module: &str, drift: &Drift, times: u32) -> Result<(), Violation> {
        let sight = self.sights.get(module);
        let lasts = sight.is_some_and(|(seen, since)| seen == drift && since + SETTLES <= step.clock);
        ensure(lasts, "X1", || {
            format!(
                "{module} is repaired at {}, for {drift:?}, but seen is {sight:?}",
                step.clock
            )
        })?;
        ensure(!step.life.told.in_maintenance(module), "X2", || {
            format!("{module} is repaired for {drift:?}, and is in people's hands")
        })?;
        let repairs = self.repairs.entry(module.to_owned()).or_default();
        let wanted = repairs.done + 1;
        ensure(times == wanted && repairs.due <= step.clock, "X1", || {
            format!(
                "repair {times} of {module} comes at {}, but should be the {wanted}th: {repairs:?}",
                step.clock
            )
        })?;
        repairs.told = true;
        Ok(())
    }
}

/// Checks what the end of a job reports about releases.
pub(super) fn check(step: &SimStep<'_>) -> Result<(), Violation> {
    let meddled = &step.world.ledger.meddled;
    ensure(meddled.is_empty(), "N1", || {
        format!("we wrote to {meddled:?}, which is in people's hands and is to stay there")
    })?;
    let lost = &step.world.ledger.lost;
    ensure(lost.is_empty(), "H1", || {
        format!("{lost:?} lost what holds others, although nobody asked for that")
    })?;
    let retried = &step.world.ledger.retried;
    ensure(retried.is_empty(), "H2", || {
        format!("{retried:?} got an upgrade again that was taken back, although its inputs are the same")
    })?;
    match (step.event, step.ended) {
        (Event::JobFinished(Finished::ReleaseSynced(_, Err(failure))), Some(Job::SyncRelease { module, .. })) => {
            quarrel_is_told(step, module.as_str(), failure)
        }
        _ => Ok(()),
    }
}

/// K1: the second of two modules that render one object fails with an error that names the first.
fn quarrel_is_told(step: &SimStep<'_>, module: &str, failure: &Failure) -> Result<(), Violation> {
    if !failure.report.contains("which belongs to module") {
        return Ok(());
    }
    let report = step.after.modules.get(module);
    let error = report.and_then(|module| module.error.as_ref());
    // A removal that ends in the same step forgets the error, and so does a new life that begins in it.
    let renewed =
        |effect: &Effect| matches!(effect, Effect::Tell(Notice::ModuleRenewed { module: of }) if of.as_str() == module);
    let gone = report.is_none_or(|module| module.state == "Disabled") || step.effects.iter().any(renewed);
    let told = |effect| match effect {
        &Effect::Tell(Notice::ModuleFailed {
            module: ref of,
            failure: ref told,
            ..
        }) if of.as_str() == module => Some(told),
        _ => None,
    };
    let told: Vec<&Failure> = step.effects.iter().filter_map(told).collect();
    // A run that a converge begins in the same step may fail for another reason.
    let last = told.last().map(|failure| &failure.report);
    ensure(told.contains(&failure) && (gone || error == last), "K1", || {
        format!("{failure}, but of {module} is known {error:?}")
    })
}

/// N1, V9: a release job is given the maintenance that the `ConfigMap` says, and values that helm can use.
fn sync(step: &SimStep<'_>, job: &Job) -> Result<(), Violation> {
    let Job::SyncRelease {
        module,
        values,
        asked: _,
        unhealthy: _,
        vetting,
        maintenance,
        config: _,
        ticket: _,
    } = job
    else {
        return Ok(());
    };
    let name = module.as_str();
    let (given, said) = (
        *maintenance == Maintenance::NoResourceReconciliation,
        step.life.told.in_maintenance(name),
    );
    ensure(given == said, "N2", || {
        format!("{name} is released as if in people's hands: {given}, but the ConfigMap says {said}")
    })?;
    let spec = step.life.told.knows(name).filter(|spec| spec.chart);
    let needed = spec.and_then(|spec| spec.schema.as_ref()?.for_helm.as_ref());
    let values = document(values);
    // The job itself may have to check the values first.
    let needed = needed.filter(|_| vetting.is_none());
    let lacking = needed.filter(|key| values[key_of(name)].get(key.as_str()).is_none());
    ensure(lacking.is_none(), "V9", || {
        format!("{name} is released without {lacking:?}, which helm needs: {values}")
    })
}
