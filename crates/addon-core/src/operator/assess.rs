//! Which modules are to run: asks the enabled scripts, one after another, and compares with what runs.
//!
//! A script that fails decides nothing: its module stays as it is until the script answers. One that takes its time is
//! waited for, but not by the other modules: they go on without it, and its answer counts when it comes.

mod late;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use self::late::{Asked, Given, Heard};
use super::Operator;
use super::effect::{Job, Notice};
use super::event::ScriptAnswer;
use super::query::Waiting;
use super::task::Reason;
use crate::failure::Failure;
use crate::module::enabling::{Opinions, Source, Verdict};
use crate::name::{ModuleName, Owner};
use crate::time::{Backoff, Tick};

/// How the assessment stands.
#[derive(Debug, Default)]
pub(super) struct Assessment {
    stage: Stage,
    /// What changed since the last one; the first converge's reason never applies.
    cause: Option<Reason>,
    /// Modules to run when it is over, because their sections changed.
    touched: BTreeSet<ModuleName>,
    failures: u32,
    retry: Option<Tick>,
    /// Counts the changes of what verdicts depend on: an answer to what was is none to what is.
    inputs: u64,
    /// Scripts that run.
    running: BTreeMap<ModuleName, Asked>,
    /// What scripts answered for which nobody waited any more.
    answers: BTreeMap<ModuleName, Given>,
    /// Why scripts failed that have not answered since, and how often in a row.
    failed: BTreeMap<ModuleName, (u32, Failure)>,
}

#[derive(Debug, Default)]
enum Stage {
    /// Something that verdicts depend on changed.
    #[default]
    Stale,
    /// These modules have still to be looked at; a script of the first may be running.
    Asking {
        left: VecDeque<ModuleName>,
        undecided: BTreeSet<ModuleName>,
    },
    /// Every module has a verdict, except these, whose scripts failed.
    Known { undecided: BTreeSet<ModuleName> },
}

impl Assessment {
    /// A round is under way.
    pub(super) fn is_asking(&self) -> bool {
        matches!(self.stage, Stage::Asking { .. })
    }

    /// The next converge asks again.
    pub(super) fn forget(&mut self) {
        self.stage = Stage::Stale;
        self.retry = None;
    }

    /// There are verdicts, and nothing has changed since.
    pub(super) fn is_known(&self) -> bool {
        matches!(self.stage, Stage::Known { .. })
    }

    /// Modules whose scripts failed or have yet to answer.
    pub(super) fn undecided(&self) -> impl Iterator<Item = &ModuleName> {
        let undecided = match &self.stage {
            Stage::Known { undecided } | Stage::Asking { undecided, .. } => Some(undecided),
            Stage::Stale => None,
        };
        undecided.into_iter().flatten()
    }

    /// The module's script failed, or has yet to answer.
    pub(super) fn is_undecided(&self, module: &ModuleName) -> bool {
        match &self.stage {
            Stage::Known { undecided } | Stage::Asking { undecided, .. } => undecided.contains(module),
            Stage::Stale => false,
        }
    }

    /// When scripts that failed are asked again. A round goes to its end first, lest one that fails keeps a slow one from
    /// ever being heard.
    fn next_round(&self) -> Option<Tick> {
        self.retry.filter(|_| !self.is_asking())
    }

    /// Why the module's script failed the last time, how often in a row, and when it is asked again.
    pub(super) fn script_failure(&self, module: &ModuleName) -> Option<(u32, &Failure, Option<Tick>)> {
        let (failures, failure) = self.failed.get(module)?;
        Some((*failures, failure, self.retry))
    }

    /// Since when the module's script has been running.
    pub(super) fn script_runs_since(&self, module: &ModuleName) -> Option<Tick> {
        self.running.get(module).map(|asked| asked.since)
    }
}

impl Operator {
    /// Something that verdicts depend on changed; `touched` are modules whose own values changed with it.
    pub(super) fn reassess(&mut self, cause: Reason, touched: BTreeSet<ModuleName>) {
        self.assessment.stage = Stage::Stale;
        self.assessment.retry = None;
        self.assessment.failures = 0;
        self.assessment.inputs += 1;
        self.assessment.answers.clear();
        self.assessment.cause = Some(cause);
        if self.converge.assesses_by_itself() {
            self.assessment.touched.clear();
            return;
        }
        self.assessment.touched.extend(touched);
        self.begin_assessment();
    }

    /// The values of these modules changed, and no verdict can depend on that: they run, unless a converge runs them anyway.
    pub(super) fn run_touched(&mut self, touched: BTreeSet<ModuleName>) {
        if self.converge.assesses_by_itself() {
            return;
        }
        if self.assessment.is_known() && self.wanted() == self.taken_up() {
            for module in touched {
                self.rerun(&module, super::task::RunReason::ConfigChanged);
            }
            return;
        }
        self.assessment.touched.extend(touched);
        if !self.assessment.is_asking() {
            self.assessment.cause = Some(Reason::ConfigChanged);
            self.begin_assessment();
        }
    }

    pub(super) fn begin_assessment(&mut self) {
        let left = self.modules_in_order().into();
        self.assessment.stage = Stage::Asking {
            left,
            undecided: BTreeSet::new(),
        };
    }

    /// Goes through the modules as far as possible. True if something changed.
    pub(super) fn advance_assessment(&mut self) -> bool {
        if self.assessment.next_round().is_some_and(|at| at <= self.cx.now.tick) {
            self.assessment.retry = None;
            self.begin_assessment();
        }
        let mut progress = self.lose_patience();
        loop {
            let Stage::Asking { left, .. } = &self.assessment.stage else {
                return progress;
            };
            let Some(name) = left.front().cloned() else {
                self.assessment_over();
                return true;
            };
            let verdict = self.opinions(&name).verdict();
            let has_script = self
                .modules
                .get(&name)
                .is_some_and(|unit| unit.found.has_enabled_script);
            if verdict.enabled && has_script {
                match self.hear_script(&name) {
                    Heard::Answer(answer) => {
                        let verdict = verdict.after_script(answer.enabled, answer.reason);
                        self.decided(&name, Some(verdict));
                    }
                    Heard::NothingYet => return progress,
                    Heard::NothingForLong => self.decided(&name, None),
                    Heard::NotAsked if !self.jobs.hook_slot(&self.cx.policy) => return progress,
                    Heard::NotAsked => {
                        self.ask_script(name);
                        return true;
                    }
                }
            } else {
                self.decided(&name, Some(verdict));
            }
            progress = true;
        }
    }

    /// What the ordinary sources say about a module.
    pub(super) fn opinions(&self, name: &ModuleName) -> Opinions {
        let Some(unit) = self.modules.get(name) else {
            return Opinions::default();
        };
        Opinions {
            fixed: unit.found.enabled,
            dynamic: unit.dynamic,
            config: self.config.flag(name),
        }
    }

    fn ask_script(&mut self, module: ModuleName) {
        let owner = Owner::Module(module.clone());
        let enabled: Vec<_> = self.enabled_before(&module);
        let mut values = self.values.hook_values(&owner).to_value();
        if let Some(global) = values.get_mut("global").and_then(serde_json::Value::as_object_mut) {
            global.insert(
                "enabledModules".to_owned(),
                enabled.iter().map(ModuleName::as_str).collect(),
            );
        }
        let config_values = self.values.config_values(&owner);
        let job = |ticket| Job::RunEnabledScript {
            module: module.clone(),
            values: Arc::new(values),
            config_values,
            ticket,
        };
        self.assessment.answers.remove(&module);
        let asked = Asked {
            beside: enabled,
            job: self.jobs.begin(&mut self.cx, module.clone(), job),
            since: self.cx.now.tick,
            inputs: self.assessment.inputs,
            is_late: false,
        };
        self.assessment.running.insert(module, asked);
    }

    /// The modules before this one that were found enabled in this round.
    pub(super) fn enabled_before(&self, module: &ModuleName) -> Vec<ModuleName> {
        let enabled = |name: &ModuleName| {
            self.modules
                .get(name)
                .and_then(|unit| unit.verdict.as_ref())
                .is_some_and(|verdict| verdict.enabled)
        };
        self.modules_in_order()
            .into_iter()
            .take_while(|name| name != module)
            .filter(enabled)
            .collect()
    }

    pub(super) fn script_finished(&mut self, module: &ModuleName, result: Result<ScriptAnswer, Failure>) {
        let Some(asked) = self.assessment.running.remove(module) else {
            return;
        };
        let is_awaited = match &self.assessment.stage {
            Stage::Asking { left, .. } => left.front() == Some(module),
            Stage::Stale | Stage::Known { .. } => false,
        };
        if asked.inputs != self.assessment.inputs {
            // Whoever waits for it asks anew.
            if !is_awaited {
                self.ask_again_at_once(module);
            }
            return;
        }
        let failure = match result {
            Ok(answer) => {
                self.cx.tell(Notice::ScriptAnswered {
                    module: module.clone(),
                    usage: answer.usage,
                });
                let beside = asked.beside;
                if !is_awaited {
                    self.assessment.answers.insert(module.clone(), Given { answer, beside });
                    return self.ask_again_at_once(module);
                }
                // Others have answered since: whoever waits for it asks anew.
                if beside != self.enabled_before(module) {
                    return;
                }
                let verdict = self.opinions(module).verdict();
                return self.decided(module, Some(verdict.after_script(answer.enabled, answer.reason)));
            }
            Err(failure) => failure,
        };
        self.script_failed(module, failure);
        if is_awaited {
            self.decided(module, None);
        }
    }

    fn script_failed(&mut self, module: &ModuleName, failure: Failure) {
        let retry_in = Backoff::delay(self.assessment.failures, self.cx.draw());
        self.assessment.retry = Some(self.cx.now.tick + retry_in);
        let failures = self.assessment.failed.get(module).map_or(0, |(failures, _)| *failures);
        let failed = (failures + 1, failure.clone());
        self.assessment.failed.insert(module.clone(), failed);
        self.cx.tell(Notice::ScriptFailed {
            module: module.clone(),
            failure,
            retry_in,
        });
    }

    /// The module at the front of the round has its verdict, or its script failed and it keeps the one it had.
    fn decided(&mut self, module: &ModuleName, verdict: Option<Verdict>) {
        let Stage::Asking { left, undecided, .. } = &mut self.assessment.stage else {
            return;
        };
        left.pop_front();
        let Some(unit) = self.modules.get_mut(module) else {
            return;
        };
        match verdict {
            None => {
                undecided.insert(module.clone());
            }
            Some(verdict) => {
                self.assessment.failed.remove(module);
                let before = unit.verdict.as_ref().map(|verdict| verdict.enabled);
                let told = (before != Some(verdict.enabled)).then(|| Notice::ModuleSwitched {
                    module: module.clone(),
                    enabled: verdict.enabled,
                    reason: verdict.source.to_string(),
                });
                let worth_telling = before.is_some() || verdict.enabled || verdict.source != Source::Default;
                unit.verdict = Some(verdict);
                if let Some(notice) = told.filter(|_| worth_telling) {
                    self.cx.tell(notice);
                }
            }
        }
    }

    /// Every module was looked at: does what runs have to change?
    fn assessment_over(&mut self) {
        let Stage::Asking { undecided, .. } = std::mem::take(&mut self.assessment.stage) else {
            return;
        };
        if undecided.is_empty() {
            self.assessment.failures = 0;
            self.assessment.retry = None;
        } else {
            self.assessment.failures += 1;
        }
        self.assessment.stage = Stage::Known { undecided };
        let cause = self.assessment.cause.take();
        let touched = std::mem::take(&mut self.assessment.touched);
        if self.converge.assesses_by_itself() {
            return;
        }
        if self.wanted() == self.taken_up() {
            for module in touched {
                self.rerun(&module, super::task::RunReason::ConfigChanged);
            }
        } else {
            self.request_converge(cause.unwrap_or(Reason::ScriptAnswered), true);
        }
    }

    /// The modules that are to run by their verdicts. One that was never decided stays as it is.
    pub(super) fn wanted(&self) -> BTreeSet<ModuleName> {
        let wanted = self
            .modules
            .values()
            .filter(|unit| unit.verdict.as_ref().is_some_and(|v| v.enabled));
        wanted.map(|unit| unit.found.name.clone()).collect()
    }

    /// The modules that the last converge took up.
    pub(super) fn taken_up(&self) -> BTreeSet<ModuleName> {
        self.modules
            .values()
            .filter(|unit| unit.enabled)
            .map(|unit| unit.found.name.clone())
            .collect()
    }

    pub(super) fn assessment_timeout(&self) -> Option<(Tick, Waiting)> {
        let failed = |module: &&ModuleName| self.assessment.failed.contains_key(*module);
        let mut undecided = self.assessment.undecided();
        let retried = undecided.find(failed).or_else(|| self.assessment.undecided().next());
        let retry = retried.and_then(|module| Some((self.assessment.next_round()?, module)));
        let (at, module) = retry.into_iter().chain(self.patience_ends()).min()?;
        Some((at, Waiting::EnabledScript(module.clone())))
    }
}
