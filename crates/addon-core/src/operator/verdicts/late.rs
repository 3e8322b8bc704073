//! Enabled scripts that take long: the round goes on without them, and their answers count when they come.
//!
//! Must never start a script a second time while it runs.

use std::time::Duration;

use clock::Tick;
use names::ModuleName;

use super::Verdicts;
use crate::operator::cx::Cx;
use crate::operator::effect::{JobId, Notice};
use crate::operator::event::ScriptAnswer;
use crate::operator::jobs::Jobs;
use crate::operator::modules::Modules;

/// The time for which all modules wait for one script.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running script.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) job: JobId,
    pub(super) since: Tick,
    /// The count of changes of the inputs (`Verdicts::inputs`) when the script was started.
    pub(super) inputs: u64,
    /// The enabled modules before the script's own module, as the script was given them at its start.
    pub(super) beside: Vec<ModuleName>,
    /// Whether the round has gone on without the script's answer, and a notice has said so.
    pub(super) is_late: bool,
}

/// The answer of an enabled script that took too long for its round.
#[derive(Debug, Clone)]
pub(super) struct Given {
    pub(super) answer: ScriptAnswer,
    /// The enabled modules before the script's own module at the script's start. The answer counts only if exactly
    /// these modules are enabled again.
    pub(super) beside: Vec<ModuleName>,
}

/// The state of the script whose turn it is in the round.
pub(super) enum Heard {
    /// The script's late answer has come.
    Answer(ScriptAnswer),
    /// The script is running.
    NothingYet,
    /// The script has run for too long, so the round goes on without it.
    NothingForLong,
    /// The script has to be started.
    NotAsked,
}

impl Verdicts {
    pub(super) fn hear_script(&self, cx: &Cx, modules: &Modules, module: &ModuleName) -> Heard {
        let given = self.answers.get(module);
        if let Some(given) = given.filter(|given| given.beside == self.enabled_before(modules, module)) {
            return Heard::Answer(given.answer.clone());
        }
        match self.running.get(module) {
            None => Heard::NotAsked,
            // In strict order all modules wait until the script ends.
            Some(asked) if cx.policy.strict_order || cx.now.tick < asked.since + PATIENCE => Heard::NothingYet,
            Some(_) => Heard::NothingForLong,
        }
    }

    /// Marks the scripts that have run for too long as late, and frees their slots: scripts that hang must not keep hooks
    /// from running. True if a script became late.
    pub(super) fn lose_patience(&mut self, cx: &mut Cx, jobs: &mut Jobs) -> bool {
        if cx.policy.strict_order {
            return false;
        }
        let now = cx.now.tick;
        let running = self.running.iter_mut();
        let slow = running.filter(|(_, asked)| !asked.is_late && asked.since + PATIENCE <= now);
        let mut late = Vec::new();
        for (module, asked) in slow {
            asked.is_late = true;
            jobs.vacate(asked.job);
            late.push(module.clone());
        }
        let some = !late.is_empty();
        for module in late {
            let waited = PATIENCE;
            cx.tell(Notice::ScriptLate { module, waited });
        }
        some
    }

    /// Begins another round at once after a late script ended, because the scripts behind it were asked without its answer.
    pub(super) fn ask_again_at_once(&mut self, cx: &Cx, module: &ModuleName) {
        if self.is_undecided(module) {
            self.retry = Some(cx.now.tick);
        }
    }

    /// The time at which the next script becomes late.
    pub(super) fn patience_ends(&self, cx: &Cx) -> Option<(Tick, &ModuleName)> {
        let running = self.running.iter();
        let timely = running.filter(|(_, asked)| !asked.is_late && !cx.policy.strict_order);
        timely.map(|(module, asked)| (asked.since + PATIENCE, module)).min()
    }
}
