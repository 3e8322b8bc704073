//! Which modules are to run: asks the enabled scripts, one after another, and compares with what runs.
//!
//! A script that fails decides nothing: its module stays as it is until the script answers.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::Operator;
use super::effect::{Job, Notice};
use super::event::Done;
use super::jobs::Purpose;
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
    /// Counts the rounds, so that a script's late answer to an earlier one is told apart.
    round: u64,
}

#[derive(Debug, Default)]
enum Stage {
    /// Something that verdicts depend on changed.
    #[default]
    Stale,
    /// These modules have still to be looked at; a script of the first may be running.
    Asking {
        left: VecDeque<ModuleName>,
        asked: bool,
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

    /// Modules whose scripts failed.
    pub(super) fn undecided(&self) -> BTreeSet<ModuleName> {
        match &self.stage {
            Stage::Known { undecided } | Stage::Asking { undecided, .. } => undecided.clone(),
            Stage::Stale => BTreeSet::new(),
        }
    }
}

impl Operator {
    /// Something that verdicts depend on changed; `touched` are modules whose own values changed with it.
    pub(super) fn reassess(&mut self, cause: Reason, touched: BTreeSet<ModuleName>) {
        self.assessment.stage = Stage::Stale;
        self.assessment.retry = None;
        self.assessment.failures = 0;
        self.assessment.cause = Some(cause);
        if self.converge.assesses_by_itself() {
            self.assessment.touched.clear();
            return;
        }
        self.assessment.touched.extend(touched);
        self.begin_assessment();
    }

    pub(super) fn begin_assessment(&mut self) {
        self.assessment.round += 1;
        let left = self.modules_in_order().into();
        self.assessment.stage = Stage::Asking {
            left,
            asked: false,
            undecided: BTreeSet::new(),
        };
    }

    /// Goes through the modules as far as possible. True if something changed.
    pub(super) fn advance_assessment(&mut self) -> bool {
        if self.assessment.retry.is_some_and(|at| at <= self.now.tick) {
            self.assessment.retry = None;
            self.begin_assessment();
        }
        let mut progress = false;
        loop {
            let Stage::Asking { left, asked, .. } = &self.assessment.stage else {
                return progress;
            };
            if *asked {
                return progress;
            }
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
                if !self.jobs.hook_slot(&self.policy) {
                    return progress;
                }
                self.ask_script(name);
                return true;
            }
            self.decided(&name, Some(verdict));
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
        if let Stage::Asking { asked, .. } = &mut self.assessment.stage {
            *asked = true;
        }
        let job = Job::RunEnabledScript {
            module: module.clone(),
            values: Arc::new(values),
            config_values,
        };
        self.start_job(
            job,
            Purpose::Script {
                module,
                round: self.assessment.round,
            },
        );
    }

    /// The modules before this one that were found enabled in this round.
    fn enabled_before(&self, module: &ModuleName) -> Vec<ModuleName> {
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

    pub(super) fn script_finished(&mut self, module: &ModuleName, round: u64, result: Result<Done, Failure>) {
        let Stage::Asking { asked, .. } = &mut self.assessment.stage else {
            return;
        };
        if round != self.assessment.round {
            return;
        }
        *asked = false;
        match result {
            Ok(Done::ScriptAnswered(answer)) => {
                self.tell(Notice::ScriptAnswered {
                    module: module.clone(),
                    usage: answer.usage,
                });
                let verdict = self
                    .opinions(module)
                    .verdict()
                    .after_script(answer.enabled, answer.reason);
                self.decided(module, Some(verdict));
            }
            Ok(_) => self.script_failed(
                module,
                Failure::defect("a script job ended with another kind's outcome"),
            ),
            Err(failure) => self.script_failed(module, failure),
        }
    }

    fn script_failed(&mut self, module: &ModuleName, failure: Failure) {
        let retry_in = Backoff::delay(self.assessment.failures, self.jitter.draw());
        self.assessment.retry = Some(self.now.tick + retry_in);
        self.tell(Notice::ScriptFailed {
            module: module.clone(),
            failure,
            retry_in,
        });
        self.decided(module, None);
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
                let before = unit.verdict.as_ref().map(|verdict| verdict.enabled);
                let told = (before != Some(verdict.enabled)).then(|| Notice::ModuleSwitched {
                    module: module.clone(),
                    enabled: verdict.enabled,
                    reason: verdict.source.to_string(),
                });
                let worth_telling = before.is_some() || verdict.enabled || verdict.source != Source::Default;
                unit.verdict = Some(verdict);
                if let Some(notice) = told.filter(|_| worth_telling) {
                    self.tell(notice);
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
        if self.wanted() != self.taken_up() {
            self.request_converge(cause.unwrap_or(Reason::ScriptAnswered), true);
        } else if !self.converge.restarts() {
            for module in touched {
                self.rerun(&module, super::task::RunReason::ConfigChanged);
            }
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
        let module = self.assessment.undecided().into_iter().next()?;
        Some((self.assessment.retry?, Waiting::EnabledScript(module)))
    }
}
