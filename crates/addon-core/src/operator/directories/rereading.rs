//! The second look at the directories, before the first release of a life is removed because nobody names its module: what
//! is copied at this moment looks like what is wanted.
//!
//! Must never cost anything where nothing is removed.

use crate::failure::{Class, Failure};
use crate::module::outline::{Outline, ValuesFile};
use crate::name::ModuleName;

/// The part that the readings of the directories have in common.
#[derive(Debug, Default)]
pub(in crate::operator) struct Rereading {
    /// As the operator took them over.
    first: Outline,
    /// As they were read last.
    latest: Outline,
    /// Two readings in a row were equal.
    confirmed: bool,
    /// Releases without a module wait for it.
    purge_waits: bool,
}

impl Rereading {
    pub(super) fn begin(&mut self, outline: Outline) {
        self.latest.clone_from(&outline);
        self.first = outline;
    }

    /// Takes in another reading, which fails if it is not what the one before was.
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

    /// Releases without a module wait for it.
    pub(in crate::operator) fn purge_waits(&self) -> bool {
        self.purge_waits
    }

    /// Releases without a module wait for it from now on.
    pub(in crate::operator) fn have_purge_wait(&mut self) {
        self.purge_waits = true;
    }

    /// The readings are over for which releases waited. True if some did.
    pub(in crate::operator) fn end_wait_of_purge(&mut self) -> bool {
        std::mem::take(&mut self.purge_waits)
    }

    /// Two readings in a row were equal.
    pub(in crate::operator) fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// All that was there at the start is there, as far as the last reading saw.
    fn is_whole(&self) -> bool {
        let lost = |(file, said): (&String, &Option<ValuesFile>)| {
            said.is_some() && !matches!(self.latest.values_files.get(file), Some(Some(_)))
        };
        self.confirmed && self.latest.complete && !self.first.values_files.iter().any(lost)
    }

    /// The files do not speak of the module's flag.
    pub(in crate::operator) fn confirms_silence(&self, module: &ModuleName) -> bool {
        self.is_whole() && self.latest.modules.get(module).is_none_or(Option::is_none)
    }

    /// There is no module of the release's name.
    pub(in crate::operator) fn confirms_absence(&self, release: &str) -> bool {
        self.is_whole() && self.latest.modules.keys().all(|name| name.as_str() != release)
    }
}

/// The first thing in which two readings differ, in words.
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
