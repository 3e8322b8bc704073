//! The state of this process, for the judge of a version. The report is cheap and must never contain a value.

use std::collections::{BTreeMap, BTreeSet};

use channel_core::choice::Activity;
use channel_core::trial::record::{Ailment, Failures};
use health_core::why::is_registry_away;
use names::{HookId, ModuleName, Owner};

use super::converge::Phase;
use super::health::Health;
use super::policy::Mode;
use super::survey::Survey;
use super::task::{Entry, Lane, Slot, Task};
use crate::hook::config::Stage;

/// The state of the operator at one moment, in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulse {
    /// The first converge of this process is over.
    pub converged: bool,
    /// The subjects (`module NAME`, `hook NAME` for a global hook) that fail now, each with its failures.
    pub failing: BTreeMap<String, Failures>,
    /// The subjects that fail now, and whose last failures were no faults.
    pub hindered: BTreeSet<String>,
    /// The modules whose objects are not healthy.
    pub unhealthy: BTreeMap<String, Ailment>,
    /// The revision of each release.
    pub revisions: BTreeMap<String, u32>,
    /// Whether helm or the queues are busy now, or objects of modules are on their way, so that the start of a trial would
    /// disturb them, or could not tell later whose fault their state is.
    pub activity: Activity,
    /// The keys of sections that hooks saved on trial and that were neither put back nor forgotten. As long as such
    /// keys exist, the record of that trial is needed.
    pub noted: Vec<String>,
}

/// The subjects that fail, by those at fault.
#[derive(Default)]
struct Failing {
    at_fault: BTreeMap<String, Failures>,
    hindered: BTreeSet<String>,
}

impl Failing {
    /// Notes these failures in a row of a subject, and how many of them were faults.
    fn note(&mut self, subject: String, failures: u32, faults: u32) {
        if faults > 0 {
            self.blame(subject, Failures::InARow(faults));
        } else if failures > 0 {
            self.hindered.insert(subject);
        }
    }

    fn blame(&mut self, subject: String, failures: Failures) {
        let known = self.at_fault.entry(subject).or_insert(failures);
        *known = failures.max(*known);
    }
}

impl Survey<'_> {
    /// The pulse of the operator at this moment.
    pub(super) fn pulse(&self) -> Pulse {
        let Failing { at_fault, mut hindered } = self.failures();
        hindered.retain(|subject| !at_fault.contains_key(subject));
        Pulse {
            converged: self.has_converged(),
            failing: at_fault,
            hindered,
            unhealthy: self.ailments(),
            revisions: self.of.healths.revisions(),
            activity: self.activity(),
            noted: self.of.probation.noted().cloned().collect(),
        }
    }

    fn has_converged(&self) -> bool {
        match self.of.cx.policy.mode {
            Mode::Addons => self.of.converge.is_first_over(),
            Mode::Hooks => self.of.startup.has_begun(),
        }
    }

    /// The activity is quiet if the first converge is over, no helm runs, no task is due and no module is on its way.
    pub(super) fn activity(&self) -> Activity {
        let of_main = |lane: &Lane| match lane {
            Lane::Global | Lane::Module(_) | Lane::Release(_) | Lane::Aside(_) => true,
            Lane::Named(_) => false,
        };
        // A task that failed and waits for its retry does not count: it may fail for ever.
        let is_due = |head: &Entry| head.failures == 0;
        let mut heads = self.of.lanes.heads();
        let queued = heads.any(|(lane, head)| of_main(lane) && is_due(head));
        let helm_runs = self.of.jobs.holders(Slot::Helm).next().is_some();
        let (now, healths) = (self.of.cx.now.tick, &self.of.healths);
        let mut enabled = self.of.modules.iter().filter(|unit| unit.is_enabled());
        let is_on_its_way = enabled.any(|unit| healths.is_on_its_way(unit.name(), now));
        if self.has_converged() && !queued && !helm_runs && !is_on_its_way {
            Activity::Quiet
        } else {
            Activity::Busy
        }
    }

    /// All modules and global hooks that fail now.
    fn failures(&self) -> Failing {
        let mut failing = Failing::default();
        for (_, tasks) in self.of.lanes.all() {
            for entry in tasks.iter().filter(|entry| entry.failures > 0) {
                if let Some(subject) = self.subject(entry) {
                    failing.note(subject, entry.failures, entry.faults);
                }
            }
        }
        for unit in self.of.modules.iter() {
            let name = unit.name();
            if unit.is_concerned() {
                failing.note(of_module(name), unit.failures(), unit.faults());
            }
            if let Some((times, _, _)) = self.of.verdicts.script_failure(name) {
                failing.note(of_module(name), times, times);
            }
            if unit.is_enabled() && unit.turn().is_own_fault() {
                failing.blame(of_module(name), Failures::ForGood);
            }
        }
        failing
    }

    /// The modules that are not healthy now, or that are not judged yet.
    fn ailments(&self) -> BTreeMap<String, Ailment> {
        let (now, healths) = (self.of.cx.now.tick, &self.of.healths);
        let units = self.of.modules.iter().filter(|unit| unit.is_enabled());
        let ailing = units.filter_map(|unit| {
            let name = unit.name();
            let (has_failed, sentence) = match healths.of(name, now) {
                Health::Unknown => return None,
                Health::Healthy => (false, healths.relapse(name, now)?),
                Health::RollingOut => (false, healths.sentence(name).unwrap_or_default()),
                Health::Unhealthy => (true, healths.sentence(name).unwrap_or_default()),
            };
            let ailment = Ailment {
                has_failed,
                revision: healths.revision(name),
                is_hindered: is_registry_away(sentence),
                sentence: sentence.to_owned(),
            };
            Some((name.to_string(), ailment))
        });
        ailing.collect()
    }

    /// The module or the global hook whose failures these are.
    fn subject(&self, entry: &Entry) -> Option<String> {
        match &entry.task {
            Task::Hook(task) => Some(of_hook(&task.hook)),
            Task::EnableKubernetes(hook) | Task::EnableSchedules(hook) => Some(of_hook(hook)),
            Task::ModuleRun { module, .. } | Task::ModuleDelete { module, .. } => Some(of_module(module)),
            Task::Converge(_) => self.hook_of_converge().as_ref().map(of_hook),
            // A purge belongs to no module, so a trial cannot compare its failures.
            Task::Purge { .. } | Task::AwaitFirstRuns => None,
        }
    }

    /// The hook before or after all modules that the running converge is at.
    fn hook_of_converge(&self) -> Option<HookId> {
        let (stage, next) = match self.of.converge.phase()? {
            Phase::BeforeAll(next) => (Stage::BeforeAll, *next),
            Phase::AfterAll { next, .. } => (Stage::AfterAll, *next),
            Phase::Settling | Phase::Enabling | Phase::Crds(_) | Phase::Conversions { .. } | Phase::Modules(_) => {
                return None;
            }
        };
        self.of.bindings.global_hooks(stage).into_iter().nth(next)
    }
}

fn of_module(name: &ModuleName) -> String {
    format!("module {name}")
}

fn of_hook(hook: &HookId) -> String {
    match &hook.owner {
        Owner::Global => format!("hook {}", hook.name),
        Owner::Module(name) => of_module(name),
    }
}
