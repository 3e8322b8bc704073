//! The second look at the directories, before the first release of a life is removed because nobody names its module: what
//! is copied at this moment looks like what is wanted.
//!
//! Must never cost anything where nothing is removed.

use super::super::Operator;
use super::super::jobs::Chore;
use crate::failure::{Class, Failure};
use crate::module::outline::{Outline, ValuesFile};
use crate::name::ModuleName;

/// The part that the readings of the directories have in common.
#[derive(Debug, Default)]
pub(in super::super) struct Rereading {
    /// As the operator took them over.
    first: Outline,
    /// As they were read last.
    latest: Outline,
    /// Two readings in a row were equal.
    confirmed: bool,
    /// Releases without a module wait for it.
    pub(super) purge_waits: bool,
}

impl Rereading {
    pub(in super::super) fn begin(&mut self, outline: Outline) {
        self.latest.clone_from(&outline);
        self.first = outline;
    }

    /// Takes in another reading, which fails if it is not what the one before was.
    pub(in super::super) fn hear(&mut self, outline: Outline) -> Result<(), Failure> {
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

    /// Two readings in a row were equal.
    pub(super) fn is_confirmed(&self) -> bool {
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
    pub(super) fn confirms_silence(&self, module: &ModuleName) -> bool {
        self.is_whole() && self.latest.modules.get(module).is_none_or(Option::is_none)
    }

    /// There is no module of the release's name.
    pub(super) fn confirms_absence(&self, release: &str) -> bool {
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

impl Operator {
    /// Reads the directories again if something is to be removed and it has not been done.
    pub(in super::super) fn confirm_directories(&mut self) {
        if self.rereading.confirmed {
            return;
        }
        let waits = self.rereading.purge_waits || self.modules.keys().any(|name| self.waits_for_rereading(name));
        if waits {
            self.run_chore(Chore::ReadDirectories);
        } else {
            self.startup.give_up(Chore::ReadDirectories);
        }
    }

    /// The directories were found the same twice.
    pub(in super::super) fn directories_confirmed(&mut self) {
        if std::mem::take(&mut self.rereading.purge_waits) {
            self.purge();
        }
    }
}
