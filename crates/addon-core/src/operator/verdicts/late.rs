//! Enabled scripts that take their time: left behind by the round that asks them, and heard when they answer.
//!
//! Must never start a second one of a script that still runs.

use std::time::Duration;

use super::Verdicts;
use crate::name::ModuleName;
use crate::operator::cx::Cx;
use crate::operator::effect::{JobId, Notice};
use crate::operator::event::ScriptAnswer;
use crate::operator::jobs::Jobs;
use crate::operator::modules::Modules;
use crate::time::Tick;

/// So long all modules wait for one script.
const PATIENCE: Duration = Duration::from_secs(10);

/// A script that runs.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) job: JobId,
    pub(super) since: Tick,
    /// What it was asked about.
    pub(super) inputs: u64,
    /// The modules before its own that were enabled when it was asked, as it was told.
    pub(super) beside: Vec<ModuleName>,
    /// Nobody waits for it any more, and people know.
    pub(super) is_late: bool,
}

/// What a script answered for which nobody waited any more.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) answer: ScriptAnswer,
    /// See `Asked`: an answer beside others is none beside these.
    pub(super) beside: Vec<ModuleName>,
}

/// What is known of the script whose turn it is.
pub(super) enum Heard {
    /// It spoke when nobody waited for it any more.
    Answer(ScriptAnswer),
    /// It runs.
    NothingYet,
    /// It has run for so long that nobody waits for it.
    NothingForLong,
    /// It has to be started.
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
            // In strict order all wait to its end.
            Some(asked) if cx.policy.strict_order || cx.now.tick < asked.since + PATIENCE => Heard::NothingYet,
            Some(_) => Heard::NothingForLong,
        }
    }

    /// Scripts that hang must not keep hooks from running, however many there are of them, and whether or not somebody waits
    /// for them: they are heard when they answer. True if there are some.
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

    /// A script ended that was left behind. Those behind it were asked without its answer, too.
    pub(super) fn ask_again_at_once(&mut self, cx: &Cx, module: &ModuleName) {
        if self.is_undecided(module) {
            self.retry = Some(cx.now.tick);
        }
    }

    /// When a script has had its time.
    pub(super) fn patience_ends(&self, cx: &Cx) -> Option<(Tick, &ModuleName)> {
        let running = self.running.iter();
        let timely = running.filter(|(_, asked)| !asked.is_late && !cx.policy.strict_order);
        timely.map(|(module, asked)| (asked.since + PATIENCE, module)).min()
    }
}
