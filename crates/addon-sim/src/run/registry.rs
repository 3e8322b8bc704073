//! The repairs of registries: they answer, and a module that cannot run with its version gets a better one.

use super::Run;
use crate::action::Action;
use crate::checks::Violation;
use crate::flat::Flat;
use crate::sources::{FilesSpec, Quality};

/// A time in which three failures in a row happen, in microseconds.
const PATIENCE: u64 = 30 * 60 * 1_000_000;

impl Run<'_> {
    /// Has the registry answer. A module gets a good version, unless a former one may return.
    pub(super) fn mend_registry(&mut self) -> Result<(), Violation> {
        if self.world.shelves.is_empty() {
            return Ok(());
        }
        self.act(&Action::RegistryAnswers(true))?;
        let mut poor = Vec::new();
        for (name, shelf) in self.world.shelves.clone() {
            let newest = shelf.versions.len().checked_sub(1);
            let is_good = newest.is_some_and(|newest| shelf.quality(newest) == Quality::Good);
            let is_kept = shelf.record.good.is_some_and(|good| shelf.copies.contains(&good));
            let waits = newest.is_none() && self.world.dice("poor").chance(50);
            if !(is_good || waits || is_kept && self.world.dice("poor").chance(50)) {
                poor.push(name);
            }
        }
        poor.into_iter().try_for_each(|name| self.improve(name))
    }

    /// Waits until files that fail can have been given up. If a module with bad files fails even then, a person makes a
    /// better version.
    pub(super) fn give_up_bad_files(&mut self) -> Result<(), Violation> {
        if self.world.shelves.is_empty() {
            return Ok(());
        }
        let until = self.clock + PATIENCE;
        while self.next_at().is_some_and(|next| next <= until) {
            self.step()?;
        }
        self.move_clock(until);
        let fails = |name: &String| self.seen.modules.get(name).is_some_and(|module| module.failures > 0);
        let is_bad = |name: &String| {
            let shelf = &self.world.shelves[name];
            let running = shelf.record.running.or(shelf.offered());
            running.is_some_and(|running| shelf.quality(running) != Quality::Good)
        };
        let names = self.world.shelves.keys().filter(|name| fails(name) && is_bad(name));
        let names: Vec<String> = names.cloned().collect();
        names.into_iter().try_for_each(|name| self.improve(name))
    }

    fn improve(&mut self, module: String) -> Result<(), Violation> {
        let files = FilesSpec {
            values: Flat::new(),
            quality: Quality::Good,
        };
        self.act(&Action::Publish { module, files })
    }
}
