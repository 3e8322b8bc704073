//! The second reading of the directories. In each life it comes before the first removal that has no other reason than
//! that no source names the module. It is needed because a directory that is still being copied looks the same as a
//! finished one.
//!
//! Must never happen where nothing is removed.

use names::ModuleName;

use crate::failure::{Class, Failure};
use crate::module::outline::{Outline, ValuesFile};

/// The readings of the directories, and whether two of them agree.
#[derive(Debug, Clone, Default)]
pub(in crate::operator) struct Rereading {
    /// The reading at the start, which the operator took over.
    first: Outline,
    /// The last reading.
    latest: Outline,
    /// Whether two readings in a row were equal.
    confirmed: bool,
    /// Whether releases without a module wait for the second reading.
    purge_waits: bool,
}

impl Rereading {
    pub(super) fn begin(&mut self, outline: Outline) {
        self.latest.clone_from(&outline);
        self.first = outline;
    }

    /// Notes another reading. An error if it differs from the reading before.
    pub(in crate::operator) fn hear(&mut self, outline: Outline) -> Result<(), Failure> {
        let before = std::mem::replace(&mut self.latest, outline);
        self.confirmed = before == self.latest;
        if self.confirmed {
            return Ok(());
        }
        let report = format!(
            "the modules directories changed since they were read last: {}",
            difference(&before, &self.latest)
        );
        Err(Failure::new(Class::Unavailable, report)
            .hint("start the operator again once they are as they should be, so that it takes them over"))
    }

    /// Notes the flag of a module whose directory alone was read again.
    pub(in crate::operator) fn module_read(&mut self, module: &ModuleName, flag: Option<bool>) {
        self.first.modules.insert(module.clone(), flag);
        self.latest.modules.insert(module.clone(), flag);
    }

    /// Whether the directories held the module when the operator took them over, or later.
    pub(in crate::operator) fn knew(&self, module: &ModuleName) -> bool {
        self.first.modules.contains_key(module)
    }

    /// Whether releases without a module wait for the second reading.
    pub(in crate::operator) fn purge_waits(&self) -> bool {
        self.purge_waits
    }

    /// Makes releases without a module wait for the second reading.
    pub(in crate::operator) fn have_purge_wait(&mut self) {
        self.purge_waits = true;
    }

    /// Ends the wait of releases without a module. True if releases waited.
    pub(in crate::operator) fn end_wait_of_purge(&mut self) -> bool {
        std::mem::take(&mut self.purge_waits)
    }

    /// Whether two readings in a row were equal.
    pub(in crate::operator) fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// Whether the last reading found every values file that was there at the start.
    fn is_whole(&self) -> bool {
        let lost = |(file, said): (&String, &Option<ValuesFile>)| {
            said.is_some() && !matches!(self.latest.values_files.get(file), Some(Some(_)))
        };
        self.confirmed && self.latest.complete && !self.first.values_files.iter().any(lost)
    }

    /// Whether the directories are still whole and their values files do not contain the module's flag.
    pub(in crate::operator) fn confirms_silence(&self, module: &ModuleName) -> bool {
        self.is_whole() && self.latest.modules.get(module).is_none_or(Option::is_none)
    }

    /// Whether the directories are still whole and hold no module of the release's name.
    pub(in crate::operator) fn confirms_absence(&self, release: &str) -> bool {
        self.is_whole() && self.latest.modules.keys().all(|name| name.as_str() != release)
    }
}

/// The first difference between two readings; a text for people.
fn difference(before: &Outline, after: &Outline) -> String {
    let names = before.modules.keys().chain(after.modules.keys());
    for name in names {
        match (before.modules.get(name), after.modules.get(name)) {
            (Some(_), None) => return format!("module '{name}' is gone"),
            (None, Some(_)) => return format!("module '{name}' has come"),
            (one, other) if one != other => return format!("the flag of module '{name}' is another"),
            _ => {}
        }
    }
    let changed = |(file, said): &(&String, &Option<ValuesFile>)| before.values_files.get(*file) != Some(said);
    match after.values_files.iter().find(changed) {
        Some((file, _)) => format!("{file} is another"),
        None => "not everything could be read".to_owned(),
    }
}
