//! The round that finds the verdicts: module by module in their order, with the enabled scripts.
//!
//! Must never use the answer of a script for other inputs than those that it was started with.

use std::collections::BTreeSet;
use std::sync::Arc;

use clock::{Backoff, Tick};
use names::{ModuleName, Owner};

use super::late::{Asked, Given, Heard};
use super::{Stage, Verdicts};
use crate::failure::Failure;
use crate::module::enabling::{Source, Verdict};
use crate::operator::config::Config;
use crate::operator::cx::Cx;
use crate::operator::effect::{Job, Notice, Slowed};
use crate::operator::event::ScriptAnswer;
use crate::operator::jobs::Jobs;
use crate::operator::modules::Modules;
use crate::operator::query::Waiting;
use crate::operator::supply::Supply;
use crate::operator::task::{Reason, Slot};
use crate::values::Store;

/// The inputs of verdicts beside the flags of hooks.
#[derive(Debug, Clone, Copy)]
pub(in crate::operator) struct Inputs<'a> {
    pub(in crate::operator) modules: &'a Modules,
    pub(in crate::operator) config: &'a Config,
    pub(in crate::operator) supply: &'a Supply,
    /// The values that enabled scripts see.
    pub(in crate::operator) values: &'a Store,
}

/// The result of advancing a round.
#[derive(Debug)]
#[must_use]
pub(in crate::operator) enum Round {
    /// No round is under way, or the round waits for a script. `moved`: a module got its verdict, or a script was started.
    Waits { moved: bool },
    /// The round is over.
    Over {
        /// The change that caused the round; `None` if it only asked failed scripts again.
        cause: Option<Reason>,
        /// Modules to run because their sections of the ConfigMap changed.
        touched: BTreeSet<ModuleName>,
    },
}

/// The round, and the scripts.
impl Verdicts {
    /// Goes through the modules as far as possible.
    pub(in crate::operator) fn advance(&mut self, cx: &mut Cx, jobs: &mut Jobs, inputs: Inputs<'_>) -> Round {
        if self.next_round().is_some_and(|at| at <= cx.now.tick) {
            self.retry = None;
            self.begin(inputs.modules);
        }
        if self.is_known() && self.switching.take_over(cx.now.tick) {
            self.cause = Some(Reason::DynamicUpdate);
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
            let opinions = self.opinions(inputs.modules, inputs.config, inputs.supply, &name);
            let (verdict, asks, config) = (opinions.verdict(), opinions.ask_script(), opinions.config);
            let unit = inputs.modules.get(&name);
            // The script of a directory says nothing about files that have yet to come from a registry.
            let has_files = inputs.supply.lack(&name).is_none();
            let has_script = has_files && unit.is_some_and(|unit| unit.found().has_enabled_script);
            if asks && has_script {
                match self.hear_script(cx, inputs.modules, &name) {
                    Heard::Answer(answer) => {
                        let verdict = verdict.after_script(answer.enabled, answer.reason);
                        self.decided(cx, &name, Some(verdict), config);
                    }
                    Heard::NothingYet => return Round::Waits { moved },
                    Heard::NothingForLong => self.decided(cx, &name, None, None),
                    Heard::NotAsked if !jobs.has_room(Slot::Hook, &cx.policy) => return Round::Waits { moved },
                    Heard::NotAsked => {
                        self.ask_script(cx, jobs, inputs, name);
                        return Round::Waits { moved: true };
                    }
                }
            } else {
                self.decided(cx, &name, Some(verdict), config);
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
    pub(super) fn enabled_before(&self, modules: &Modules, module: &ModuleName) -> Vec<ModuleName> {
        let enabled = |name: &ModuleName| self.on(name).is_some_and(|verdict| verdict.enabled);
        let order = modules.in_order().into_iter();
        order.take_while(|name| name != module).filter(enabled).collect()
    }

    /// Takes the end of a script. Returns its failure, unless the script is asked again at once.
    pub(in crate::operator) fn script_finished(
        &mut self,
        cx: &mut Cx,
        inputs: Inputs<'_>,
        module: &ModuleName,
        result: Result<ScriptAnswer, Failure>,
    ) -> Option<Failure> {
        let asked = self.running.remove(module)?;
        let is_awaited = match &self.stage {
            Stage::Asking { left, .. } => left.front() == Some(module),
            Stage::Stale | Stage::Known { .. } => false,
        };
        if asked.inputs != self.inputs {
            // If the round is at this script, it starts the script again.
            if !is_awaited {
                self.ask_again_at_once(cx, module);
            }
            return None;
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
                    self.ask_again_at_once(cx, module);
                    return None;
                }
                // If an earlier module was switched meanwhile, the answer is outdated, and the script is asked again.
                if beside == self.enabled_before(inputs.modules, module) {
                    let opinions = self.opinions(inputs.modules, inputs.config, inputs.supply, module);
                    let (verdict, config) = (opinions.verdict(), opinions.config);
                    let verdict = verdict.after_script(answer.enabled, answer.reason);
                    self.decided(cx, module, Some(verdict), config);
                }
                None
            }
            Err(failure) => {
                self.script_failed(cx, module, failure.clone());
                if is_awaited {
                    self.decided(cx, module, None, None);
                }
                Some(failure)
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

    /// Takes the verdict of the module at the front of the round. `None`: the script failed, and the module keeps the
    /// verdict that it had. `config` is its flag in the ConfigMap.
    fn decided(&mut self, cx: &mut Cx, module: &ModuleName, verdict: Option<Verdict>, config: Option<bool>) {
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
        if self.keeps(cx, module, &verdict, config) {
            return;
        }
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

    /// Whether the module keeps its verdict, because programs have switched it too often.
    fn keeps(&mut self, cx: &mut Cx, module: &ModuleName, verdict: &Verdict, config: Option<bool>) -> bool {
        let Some(before) = self.given.get(module) else {
            return false;
        };
        if before.enabled == verdict.enabled {
            self.switching.agrees(module);
            return false;
        }
        let is_told = self.switching.kept(module, cx.now.tick).is_some();
        let kept = self.switching.keeps(module, (before, verdict), config, cx.now.tick);
        if let Some(kept) = kept.filter(|_| !is_told) {
            cx.tell(Notice::Slowed(Slowed::Switch {
                module: module.clone(),
                enabled: before.enabled,
                by: verdict.source.to_string(),
                times: kept.times,
                next_in: kept.until - cx.now.tick,
            }));
        }
        kept.is_some()
    }

    /// Ends the round when every module was looked at.
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

    /// The time at which a failed script is asked again, or a running one becomes late.
    pub(in crate::operator) fn timeout(&self, cx: &Cx) -> Option<(Tick, Waiting)> {
        let failed = |module: &&ModuleName| self.failed.contains_key(*module);
        let mut undecided = self.undecided();
        let retried = undecided.find(failed).or_else(|| self.undecided().next());
        let retry = retried.and_then(|module| Some((self.next_round()?, module)));
        let asked = retry.into_iter().chain(self.patience_ends(cx)).min();
        let asked = asked.map(|(at, module)| (at, Waiting::EnabledScript(module.clone())));
        let kept = self.switching.next().filter(|_| !self.is_asking());
        let kept = kept.map(|(at, module)| (at, Waiting::Switch(module.clone())));
        asked.into_iter().chain(kept).min_by_key(|(at, _)| *at)
    }
}
