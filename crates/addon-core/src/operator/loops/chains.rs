//! The lineages of runs and converges, while these wait and while they run: the hooks whose deeds caused them.
//!
//! Must never keep the lineage of a request after a change by others has asked for the same work.

use std::collections::BTreeSet;

use clock::Tick;
use names::{HookId, ModuleName};

use super::{AFTERMATH, DOUBT, Lineage, Loops, Origin, Request, key};
use crate::hook::config::WatchEvent;
use crate::operator::event::ObjectChange;
use crate::operator::task::Lane;

/// Lineages.
impl Loops {
    /// The origin of a change.
    pub(in crate::operator) fn origin(change: &ObjectChange, release: Lineage, now: Tick) -> Origin {
        Origin {
            told: now,
            version: change.version,
            object: key(&change.name),
            gone: change.event == WatchEvent::Deleted,
            release,
        }
    }

    /// The lineage of changes in the objects of a module's release.
    pub(in crate::operator) fn of_release(&self, module: &ModuleName, now: Tick) -> Lineage {
        let run = self.running.get(module);
        let run = run.filter(|(_, ended)| ended.is_none_or(|ended| now - ended <= AFTERMATH));
        run.map(|(lineage, _)| lineage.clone()).unwrap_or_default()
    }

    /// The lineage of a run for these changes.
    pub(in crate::operator) fn of_changes(&self, origins: &[Origin]) -> Lineage {
        let mut origins = origins.iter().map(|origin| self.of_change(origin));
        let Some(first) = origins.next() else {
            return Lineage::FOREIGN;
        };
        origins.fold(first, |all, one| all.and(&one))
    }

    pub(super) fn of_change(&self, origin: &Origin) -> Lineage {
        if let Some(written) = self.writes.get(&origin.version) {
            return written.clone();
        }
        let mut deletions = self.deletions.iter();
        let deleted = deletions.find(|(object, _)| origin.gone && *object == origin.object);
        deleted.map_or_else(|| origin.release.clone(), |(_, lineage)| lineage.clone())
    }

    /// The time until which the operator may still learn that a running hook made one of these changes; `None` if there
    /// is nothing more to learn.
    pub(in crate::operator) fn doubt(&self, origins: &[Origin], now: Tick) -> Option<Tick> {
        let unknown = origins
            .iter()
            .filter(|origin| self.of_change(origin) == Lineage::FOREIGN);
        let until = unknown.map(|origin| origin.told + DOUBT);
        until.max().filter(|until| *until > now && !self.under_way.is_empty())
    }

    /// Notes that another program or a person caused the next run of the module.
    pub(in crate::operator) fn run_is_foreign(&mut self, module: &ModuleName) {
        self.asked.remove(module);
        self.drop_runs(module);
    }

    fn drop_runs(&mut self, module: &ModuleName) {
        self.drop_requests(|request| matches!(request, Request::Run(name, ..) if name == module));
    }

    /// Notes that a run of the module with this lineage was queued. `is_new`: no other run waits.
    pub(in crate::operator) fn run_asked(&mut self, module: &ModuleName, lineage: &Lineage, is_new: bool) {
        let waiting = self.asked.remove(module).unwrap_or_default();
        let lineage = if is_new { lineage.clone() } else { waiting.and(lineage) };
        self.asked.insert(module.clone(), lineage);
    }

    /// Notes that a run of the module begins. It sees all changes until now, so that no other run need follow for these
    /// changes.
    pub(in crate::operator) fn run_begins(&mut self, module: &ModuleName) {
        let lineage = self.asked.remove(module).unwrap_or_default();
        self.running.insert(module.clone(), (lineage, None));
        self.changers.remove(&Lane::Module(module.clone()));
        self.drop_runs(module);
    }

    /// Notes that helm has ended its work for the module.
    pub(in crate::operator) fn released(&mut self, module: &ModuleName, now: Tick) {
        if let Some((_, ended)) = self.running.get_mut(module) {
            *ended = Some(now);
        }
    }

    /// Notes that another program or a person caused the next converge.
    pub(in crate::operator) fn converge_is_foreign(&mut self) {
        self.converges.0 = Lineage::FOREIGN;
        self.drop_requests(|request| matches!(request, Request::Converge(..)));
    }

    /// Notes that a converge with this lineage was asked for. `is_new`: no other converge waits.
    pub(in crate::operator) fn converge_asked(&mut self, lineage: Lineage, is_new: bool) {
        let waiting = std::mem::take(&mut self.converges.0);
        self.converges.0 = if is_new { lineage } else { waiting.and(&lineage) };
    }

    /// Notes that a converge begins.
    pub(in crate::operator) fn converge_begins(&mut self) {
        self.converges.1 = std::mem::take(&mut self.converges.0);
        self.changers.remove(&Lane::Global);
    }

    /// The lineage of the running converge.
    pub(in crate::operator) fn of_converge(&self) -> Lineage {
        self.converges.1.clone()
    }

    /// The lineage of the run or converge at the head of a lane.
    pub(in crate::operator) fn of_head(&self, lane: &Lane) -> Lineage {
        match lane {
            Lane::Global => self.of_converge(),
            Lane::Module(module) => self
                .running
                .get(module)
                .map(|(lineage, _)| lineage.clone())
                .unwrap_or_default(),
            Lane::Release(_) | Lane::Named(_) | Lane::Aside(_) => Lineage::FOREIGN,
        }
    }

    /// Removes the record of the hooks that changed values during the head of a lane, be it a run or a converge. Returns
    /// these hooks and the lineage of the work that follows.
    pub(in crate::operator) fn take_changers(&mut self, lane: &Lane) -> (BTreeSet<HookId>, Lineage) {
        let changers = self.changers.remove(lane).unwrap_or_default();
        let lineage = changers.iter().fold(Lineage::FOREIGN, |all, hook| all.with(hook));
        let before = self.of_head(lane);
        let lineage = if changers.is_empty() {
            lineage
        } else {
            changers.iter().fold(before, |all, hook| all.with(hook))
        };
        (changers, lineage)
    }
}
