//! The way of health: the lookout reports what the statuses of objects say, and modules that waited for it go on.

use crate::module::health::TIMEOUT;
use crate::operator::Operator;
use crate::operator::effect::{HealthNews, Notice};
use crate::operator::health::HealthSight;
use names::ModuleName;

impl Operator {
    /// Takes what the statuses of a release's objects say.
    pub(super) fn health_seen(&mut self, sight: HealthSight) {
        let HealthSight {
            release,
            revision,
            seen,
        } = sight;
        let Ok(name) = ModuleName::parse(&release) else { return };
        // The files of a module with a source may be read after the first report, which is not repeated.
        let unit = self.modules.get(&name);
        let timeout = unit.map_or(TIMEOUT, |unit| unit.found().health.timeout);
        self.healths.hear(name, revision, seen, timeout, self.cx.now.tick);
    }

    /// Tells which modules became unhealthy or healthy, and lets the modules go on that waited for this.
    pub(super) fn advance_health(&mut self) {
        let turns = self.healths.turns(self.cx.now.tick);
        if turns.is_empty() {
            return;
        }
        let awaiting: Vec<ModuleName> = self.supply.awaiting().cloned().collect();
        for name in awaiting {
            self.settle_files(&name);
        }
        let of_running = |news: &HealthNews| self.modules.is_enabled(&news.module);
        let news: Vec<_> = turns.into_iter().flatten().filter(of_running).collect();
        for news in news {
            self.cx.tell(Notice::HealthTurned(news));
        }
        self.release_held();
    }
}
