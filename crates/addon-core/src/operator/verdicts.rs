//! Which modules are to run: asks the enabled scripts, one after another, and compares with what runs.
//!
//! A script that fails decides nothing: its module stays as it is until the script answers. One that takes its time is
//! waited for, but not by the other modules: they go on without it, and its answer counts when it comes.

mod late;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use self::late::{Asked, Given, Heard};
use super::config::Config;
use super::cx::Cx;
use super::effect::{Job, Notice};
use super::event::ScriptAnswer;
use super::jobs::Jobs;
use super::modules::Modules;
use super::query::Waiting;
use super::task::Reason;
use crate::failure::Failure;
use crate::module::enabling::{Extenders, Opinions, Source, Verdict};
use crate::name::{ModuleName, Owner};
use crate::time::{Backoff, Tick};
use crate::values::Store;

/// The verdicts, and the round that finds them.
#[derive(Debug)]
pub(super) struct Verdicts {
    /// The sources that count.
    extenders: Extenders,
    /// What global hooks said about modules' flags.
    dynamic: BTreeMap<ModuleName, bool>,
    /// The last verdict on each module.
    given: BTreeMap<ModuleName, Verdict>,
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

/// What verdicts depend on beside the words of hooks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inputs<'a> {
    pub(super) modules: &'a Modules,
    pub(super) config: &'a Config,
    /// The values that scripts see.
    pub(super) values: &'a Store,
}

/// How far a round has come.
#[derive(Debug)]
#[must_use]
pub(super) enum Round {
    /// There is none, or it waits for a script. `moved` if it got further, or a script was started.
    Waits { moved: bool },
    /// Every module was looked at.
    Over {
        /// What changed since the last one; nothing if scripts were only asked again.
        cause: Option<Reason>,
        /// Modules to run, because their sections changed.
        touched: BTreeSet<ModuleName>,
    },
}

/// What is known.
impl Verdicts {
    /// There is none yet; these sources count.
    pub(super) fn new(extenders: Extenders) -> Self {
        Self {
            extenders,
            dynamic: BTreeMap::new(),
            given: BTreeMap::new(),
            stage: Stage::default(),
            cause: None,
            touched: BTreeSet::new(),
            failures: 0,
            retry: None,
            inputs: 0,
            running: BTreeMap::new(),
            answers: BTreeMap::new(),
            failed: BTreeMap::new(),
        }
    }

    /// The last verdict on a module.
    pub(super) fn on(&self, module: &ModuleName) -> Option<&Verdict> {
        self.given.get(module)
    }

    /// The modules that are to run by their verdicts. One that was never decided stays as it is.
    pub(super) fn wanted(&self) -> BTreeSet<ModuleName> {
        let wanted = self.given.iter().filter(|(_, verdict)| verdict.enabled);
        wanted.map(|(name, _)| name.clone()).collect()
    }

    /// What the ordinary sources say about a module.
    pub(super) fn opinions(&self, modules: &Modules, config: &Config, name: &ModuleName) -> Opinions<'_> {
        let Some(unit) = modules.get(name) else {
            return Opinions::none(&self.extenders);
        };
        Opinions {
            extenders: &self.extenders,
            fixed: unit.found().enabled,
            dynamic: self.dynamic.get(name).copied(),
            config: config.flag(name),
        }
    }

    /// A round is under way.
    pub(super) fn is_asking(&self) -> bool {
        matches!(self.stage, Stage::Asking { .. })
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

/// What changes.
impl Verdicts {
    /// A hook said this about a module's flag. True if it had said something else before.
    pub(super) fn hear_hook(&mut self, module: &ModuleName, opinion: Option<bool>) -> bool {
        let before = match opinion {
            Some(opinion) => self.dynamic.insert(module.clone(), opinion),
            None => self.dynamic.remove(module),
        };
        before != opinion
    }

    /// The next converge asks again.
    pub(super) fn forget(&mut self) {
        self.stage = Stage::Stale;
        self.retry = None;
    }

    /// Something that verdicts depend on changed.
    pub(super) fn grow_stale(&mut self, cause: Reason) {
        self.forget();
        self.failures = 0;
        self.inputs += 1;
        self.answers.clear();
        self.cause = Some(cause);
    }

    /// A converge asks by itself, and runs all modules afterwards.
    pub(super) fn leave_to_converge(&mut self) {
        self.touched.clear();
    }

    /// These modules run when the round is over, as their own values changed.
    pub(super) fn touch(&mut self, modules: BTreeSet<ModuleName>) {
        self.touched.extend(modules);
    }

    /// Has the round look at these modules for the sake of their sections alone, unless one is under way.
    pub(super) fn begin_for_sections(&mut self, modules: &Modules) {
        if !self.is_asking() {
            self.cause = Some(Reason::ConfigChanged);
            self.begin(modules);
        }
    }

    /// Begins a round.
    pub(super) fn begin(&mut self, modules: &Modules) {
        self.stage = Stage::Asking {
            left: modules.in_order().into(),
            undecided: BTreeSet::new(),
        };
    }
}

/// The round, and the scripts.
impl Verdicts {
    /// Goes through the modules as far as possible.
    pub(super) fn advance(&mut self, cx: &mut Cx, jobs: &mut Jobs, inputs: Inputs<'_>) -> Round {
        if self.next_round().is_some_and(|at| at <= cx.now.tick) {
            self.retry = None;
            self.begin(inputs.modules);
        }
        let mut moved = self.lose_patience(cx, jobs);
        loop {
            let Stage::Asking { left, .. } = &self.stage else {
                return Round::Waits { moved };
            };
            let Some(name) = left.front().cloned() else {
                return self.end_round();
            };
            let opinions = self.opinions(inputs.modules, inputs.config, &name);
            let (verdict, asks) = (opinions.verdict(), opinions.ask_script());
            let unit = inputs.modules.get(&name);
            let has_script = unit.is_some_and(|unit| unit.found().has_enabled_script);
            if asks && has_script {
                match self.hear_script(cx, inputs.modules, &name) {
                    Heard::Answer(answer) => {
                        let verdict = verdict.after_script(answer.enabled, answer.reason);
                        self.decided(cx, &name, Some(verdict));
                    }
                    Heard::NothingYet => return Round::Waits { moved },
                    Heard::NothingForLong => self.decided(cx, &name, None),
                    Heard::NotAsked if !jobs.hook_slot(&cx.policy) => return Round::Waits { moved },
                    Heard::NotAsked => {
                        self.ask_script(cx, jobs, inputs, name);
                        return Round::Waits { moved: true };
                    }
                }
            } else {
                self.decided(cx, &name, Some(verdict));
            }
            moved = true;
        }
    }

    fn ask_script(&mut self, cx: &mut Cx, jobs: &mut Jobs, inputs: Inputs<'_>, module: ModuleName) {
        let owner = Owner::Module(module.clone());
        let enabled: Vec<_> = self.enabled_before(inputs.modules, &module);
        let mut values = inputs.values.hook_values(&owner).to_value();
        if let Some(global) = values.get_mut("global").and_then(serde_json::Value::as_object_mut) {
            global.insert(
                "enabledModules".to_owned(),
                enabled.iter().map(ModuleName::as_str).collect(),
            );
        }
        let config_values = inputs.values.config_values(&owner);
        let job = |ticket| Job::RunEnabledScript {
            module: module.clone(),
            values: Arc::new(values),
            config_values,
            ticket,
        };
        self.answers.remove(&module);
        let asked = Asked {
            beside: enabled,
            job: jobs.begin(cx, module.clone(), job),
            since: cx.now.tick,
            inputs: self.inputs,
            is_late: false,
        };
        self.running.insert(module, asked);
    }

    /// The modules before this one that were found enabled in this round.
    fn enabled_before(&self, modules: &Modules, module: &ModuleName) -> Vec<ModuleName> {
        let enabled = |name: &ModuleName| self.on(name).is_some_and(|verdict| verdict.enabled);
        let order = modules.in_order().into_iter();
        order.take_while(|name| name != module).filter(enabled).collect()
    }

    /// A script ended.
    pub(super) fn script_finished(
        &mut self,
        cx: &mut Cx,
        inputs: Inputs<'_>,
        module: &ModuleName,
        result: Result<ScriptAnswer, Failure>,
    ) {
        let Some(asked) = self.running.remove(module) else {
            return;
        };
        let is_awaited = match &self.stage {
            Stage::Asking { left, .. } => left.front() == Some(module),
            Stage::Stale | Stage::Known { .. } => false,
        };
        if asked.inputs != self.inputs {
            // Whoever waits for it asks anew.
            if !is_awaited {
                self.ask_again_at_once(cx, module);
            }
            return;
        }
        match result {
            Ok(answer) => {
                cx.tell(Notice::ScriptAnswered {
                    module: module.clone(),
                    usage: answer.usage,
                });
                let beside = asked.beside;
                if !is_awaited {
                    self.answers.insert(module.clone(), Given { answer, beside });
                    return self.ask_again_at_once(cx, module);
                }
                // Others have answered since: whoever waits for it asks anew.
                if beside == self.enabled_before(inputs.modules, module) {
                    let verdict = self.opinions(inputs.modules, inputs.config, module).verdict();
                    self.decided(cx, module, Some(verdict.after_script(answer.enabled, answer.reason)));
                }
            }
            Err(failure) => {
                self.script_failed(cx, module, failure);
                if is_awaited {
                    self.decided(cx, module, None);
                }
            }
        }
    }

    fn script_failed(&mut self, cx: &mut Cx, module: &ModuleName, failure: Failure) {
        let retry_in = Backoff::delay(self.failures, cx.draw());
        self.retry = Some(cx.now.tick + retry_in);
        let failures = self.failed.get(module).map_or(0, |(failures, _)| *failures);
        self.failed.insert(module.clone(), (failures + 1, failure.clone()));
        cx.tell(Notice::ScriptFailed {
            module: module.clone(),
            failure,
            retry_in,
        });
    }

    /// The module at the front of the round has its verdict, or its script failed and it keeps the one it had.
    fn decided(&mut self, cx: &mut Cx, module: &ModuleName, verdict: Option<Verdict>) {
        let Stage::Asking { left, undecided, .. } = &mut self.stage else {
            return;
        };
        left.pop_front();
        let Some(verdict) = verdict else {
            undecided.insert(module.clone());
            return;
        };
        self.failed.remove(module);
        let before = self.given.get(module).map(|verdict| verdict.enabled);
        let worth_telling = before.is_some() || verdict.enabled || verdict.source != Source::Default;
        if worth_telling && before != Some(verdict.enabled) {
            cx.tell(Notice::ModuleSwitched {
                module: module.clone(),
                enabled: verdict.enabled,
                reason: verdict.source.to_string(),
            });
        }
        self.given.insert(module.clone(), verdict);
    }

    /// Every module was looked at.
    fn end_round(&mut self) -> Round {
        if let Stage::Asking { undecided, .. } = std::mem::take(&mut self.stage) {
            if undecided.is_empty() {
                self.failures = 0;
                self.retry = None;
            } else {
                self.failures += 1;
            }
            self.stage = Stage::Known { undecided };
        }
        Round::Over {
            cause: self.cause.take(),
            touched: std::mem::take(&mut self.touched),
        }
    }

    /// When a script is asked again, or has had its time.
    pub(super) fn timeout(&self, cx: &Cx) -> Option<(Tick, Waiting)> {
        let failed = |module: &&ModuleName| self.failed.contains_key(*module);
        let mut undecided = self.undecided();
        let retried = undecided.find(failed).or_else(|| self.undecided().next());
        let retry = retried.and_then(|module| Some((self.next_round()?, module)));
        let (at, module) = retry.into_iter().chain(self.patience_ends(cx)).min()?;
        Some((at, Waiting::EnabledScript(module.clone())))
    }
}
