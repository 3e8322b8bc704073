//! Enabled scripts that take their time: left behind by the round that asks them, and heard when they answer.
//!
//! Must never start a second one of a script that still runs.

use std::time::Duration;

use super::super::Operator;
use super::super::effect::{JobId, Notice};
use super::super::event::ScriptAnswer;
use super::Stage;
use crate::name::ModuleName;
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
    /// Nobody waits for it any more, and people know.
    pub(super) is_late: bool,
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

impl Operator {
    pub(super) fn hear_script(&self, module: &ModuleName) -> Heard {
        if let Some(answer) = self.assessment.answers.get(module) {
            return Heard::Answer(answer.clone());
        }
        match self.assessment.running.get(module) {
            None => Heard::NotAsked,
            // In strict order all wait to its end.
            Some(asked) if self.policy.strict_order || self.now.tick < asked.since + PATIENCE => Heard::NothingYet,
            Some(_) => Heard::NothingForLong,
        }
    }

    /// Goes on without the script, which is heard when it answers.
    pub(super) fn leave_behind(&mut self, module: &ModuleName) {
        let asked = self.assessment.running.get_mut(module);
        if let Some(asked) = asked.filter(|asked| !asked.is_late) {
            asked.is_late = true;
            // Scripts that hang must not keep hooks from running, however many there are of them.
            self.jobs.vacate(asked.job);
            self.tell(Notice::ScriptLate {
                module: module.clone(),
                waited: PATIENCE,
            });
        }
        self.decided(module, None);
    }

    /// A script ended that was left behind. Those behind it were asked without its answer, too.
    pub(super) fn ask_again_at_once(&mut self, module: &ModuleName) {
        if self.assessment.undecided().contains(module) {
            self.assessment.retry = Some(self.now.tick);
        }
    }

    /// When all have waited long enough for the script whose turn it is.
    pub(super) fn patience_ends(&self) -> Option<(Tick, &ModuleName)> {
        let Stage::Asking { left, .. } = &self.assessment.stage else {
            return None;
        };
        let module = left.front().filter(|_| !self.policy.strict_order)?;
        let asked = self.assessment.running.get(module)?;
        Some((asked.since + PATIENCE, module))
    }
}
