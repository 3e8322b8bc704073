//! The ways of a standby: it prepares answers and monitors, and drops those that are not wanted any more.

use names::{HookId, HookName, ModuleName};

use crate::failure::Failure;
use crate::hook::config::HookConfig;
use crate::operator::Operator;
use crate::operator::modules::Turn;

impl Operator {
    /// Makes the preparations that are possible now, and drops those that are not wanted any more.
    pub(super) fn warm_up(&mut self) {
        self.cool_down();
        self.warmth.ask(&mut self.cx, &mut self.jobs, &self.modules);
        let due = self.warmth.due(&self.cx, &self.bindings).into_iter();
        let is_wanted = |hook: &HookId| hook.owner.module().is_none_or(|module| self.is_expected(module));
        let due = due.filter(is_wanted).collect();
        let (monitors, bindings) = (&mut self.monitors, &self.bindings);
        self.warmth.watch(&mut self.cx, &mut self.jobs, bindings, monitors, due);
    }

    /// Whether the module runs, or would run by the facts that are known now.
    fn is_expected(&self, name: &ModuleName) -> bool {
        let Some(unit) = self.modules.get(name) else {
            return false;
        };
        if self.standing.is_standby() {
            return self.warmth.expects(&self.cx.policy.extenders, unit);
        }
        match unit.turn() {
            Turn::Out => !self.converge.first_took_up(),
            Turn::Held(_) => !self.converge.is_first_over(),
            Turn::Waiting | Turn::Running | Turn::Passed | Turn::Failed | Turn::Late => true,
        }
    }

    /// Drops the preparations for modules that do not run after all.
    pub(super) fn cool_down(&mut self) {
        let names = self.warmth.modules();
        let off: Vec<ModuleName> = names.filter(|name| !self.is_expected(name)).cloned().collect();
        for name in off {
            self.cool(&name);
        }
    }

    fn cool_unless_expected(&mut self, name: &ModuleName) {
        if !self.is_expected(name) {
            self.cool(name);
        }
    }

    /// Takes the answer of a module's hooks to a standby.
    pub(super) fn module_answered(&mut self, name: &ModuleName, result: Result<Vec<(HookName, HookConfig)>, Failure>) {
        self.warmth.module_answered(name, result, self.standing.is_standby());
        self.cool_unless_expected(name);
    }

    /// Takes the answer of the global hooks to a standby.
    pub(super) fn global_hooks_answered(&mut self) {
        let hooks = self.bindings.iter().map(|(hook, config)| (hook.clone(), config));
        self.warmth.expect_watches(hooks);
    }

    /// Takes the end of a preparing start of monitors.
    pub(super) fn warmed(&mut self, hook: HookId, result: &Result<(), Failure>) {
        let module = hook.owner.module().cloned();
        self.warmth.warmed(&mut self.cx, &mut self.monitors, hook, result);
        if let Some(module) = module {
            self.cool_unless_expected(&module);
        }
    }
}
