//! The way of damage: another program or a person damages a release, or its objects do not do their work, and a run of
//! its module restores it.

use names::ModuleName;

use crate::operator::Operator;
use crate::operator::chores::Chore;
use crate::operator::effect::Notice;
use crate::operator::event::{Drift, ReleaseSight};
use crate::operator::modules::Unit;
use crate::operator::task::RunReason;

impl Operator {
    /// Starts the watch of releases once a release of ours exists. After a restart the watch begins before the first
    /// runs, so that these runs need not read their releases one by one.
    pub(super) fn watch_releases(&mut self) {
        let is_one_ours = self.removal.has_ours() || self.modules.iter().any(Unit::is_released);
        if self.cx.policy.watches_releases && is_one_ours {
            self.run_chore(Chore::WatchReleases);
        }
    }

    /// Runs the modules that leave a revision because its objects do not do their work. A run that is under way or to
    /// come does it, too.
    pub(super) fn leave_unhealthy(&mut self) {
        if self.healths.to_leave().next().is_none() {
            return;
        }
        let survey = self.survey();
        let due = self.healths.to_leave().filter(|name| survey.is_left_alone(name));
        let due: Vec<(ModuleName, bool)> = due
            .map(|name| (name.clone(), survey.unhealthy_to_leave(name).is_some()))
            .collect();
        for (name, leaves) in due {
            self.healths.leaves(&name);
            if leaves {
                self.rerun(&name, RunReason::Unhealthy);
            }
        }
    }

    /// Takes the state of a release.
    pub(super) fn release_seen(&mut self, ReleaseSight { release, drift }: ReleaseSight) {
        let Ok(name) = ModuleName::parse(&release) else { return };
        if drift == Some(Drift::Status(None)) {
            self.healths.forget(&name);
        }
        if self.modules.contains(&name) {
            self.drifts.hear(name, drift, self.cx.now.tick);
        }
    }

    /// Runs the modules whose releases have been damaged for long enough.
    pub(super) fn restore_releases(&mut self) {
        let survey = self.survey();
        let due = self.drifts.due(self.cx.now.tick).into_iter();
        let due: Vec<ModuleName> = due.filter(|name| survey.is_left_alone(name)).collect();
        for name in due {
            let Some((drift, times)) = self.drifts.begin_repair(&name) else {
                continue;
            };
            let reason = match drift {
                Drift::Absent(_) => RunReason::ObjectAbsent,
                Drift::Altered { .. } => RunReason::ObjectAltered,
                Drift::Status(_) => RunReason::UnexpectedStatus,
            };
            self.cx.tell(Notice::ReleaseDrifted {
                module: name.clone(),
                drift,
                times,
            });
            self.rerun(&name, reason);
        }
    }
}
