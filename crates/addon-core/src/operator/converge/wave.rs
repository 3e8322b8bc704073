//! The modules that a converge has still to get through: removals one after another, then groups of runs.

use std::collections::VecDeque;

use crate::name::ModuleName;

/// The middle of a converge.
#[derive(Debug, Default)]
pub(in crate::operator) struct Wave {
    /// To be removed one after another, the last module first; then the one whose removal is under way.
    removals: VecDeque<ModuleName>,
    removing: Option<ModuleName>,
    /// Groups to run, the next one first.
    groups: VecDeque<Vec<ModuleName>>,
}

impl Wave {
    pub(in crate::operator) fn new(removals: VecDeque<ModuleName>, groups: VecDeque<Vec<ModuleName>>) -> Self {
        Self {
            removals,
            removing: None,
            groups,
        }
    }

    /// The removals that have not been taken up, the next one first.
    pub(in crate::operator) fn removals(&self) -> &VecDeque<ModuleName> {
        &self.removals
    }

    /// The module whose removal is under way.
    pub(in crate::operator) fn removing(&self) -> Option<&ModuleName> {
        self.removing.as_ref()
    }

    /// The removal under way is over, or nobody waits for it any longer.
    pub(in crate::operator) fn end_removal(&mut self) {
        self.removing = None;
    }

    /// The next module to be removed, which leaves the list.
    pub(in crate::operator) fn next_removal(&mut self) -> Option<ModuleName> {
        self.removals.pop_front()
    }

    /// The removal of this module is under way.
    pub(in crate::operator) fn removal_begins(&mut self, module: ModuleName) {
        self.removing = Some(module);
    }

    /// The group whose turn it is.
    pub(in crate::operator) fn group(&self) -> Option<&Vec<ModuleName>> {
        self.groups.front()
    }

    /// The turn of that group is over.
    pub(in crate::operator) fn end_group(&mut self) {
        self.groups.pop_front();
    }

    /// All groups leave the list. Returns the modules of those whose turn had not come.
    pub(in crate::operator) fn give_up_groups(&mut self) -> Vec<ModuleName> {
        self.groups.drain(..).skip(1).flatten().collect()
    }
}
