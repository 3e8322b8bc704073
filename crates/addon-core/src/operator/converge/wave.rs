//! The modules that a converge has still to remove, one after another, and to run, group by group.

use std::collections::VecDeque;

use crate::name::ModuleName;

/// The removals and runs that a converge has still to do.
#[derive(Debug, Default)]
pub(in crate::operator) struct Wave {
    /// The modules to remove, one after another: the last module comes first.
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

    /// The modules whose removal has not begun, the next one first.
    pub(in crate::operator) fn removals(&self) -> &VecDeque<ModuleName> {
        &self.removals
    }

    /// The module that is being removed.
    pub(in crate::operator) fn removing(&self) -> Option<&ModuleName> {
        self.removing.as_ref()
    }

    /// Notes that the removal has ended, or that the converge does not wait for it any longer.
    pub(in crate::operator) fn end_removal(&mut self) {
        self.removing = None;
    }

    /// Takes the next module to remove out of the list.
    pub(in crate::operator) fn next_removal(&mut self) -> Option<ModuleName> {
        self.removals.pop_front()
    }

    /// Notes that the removal of this module has begun.
    pub(in crate::operator) fn removal_begins(&mut self, module: ModuleName) {
        self.removing = Some(module);
    }

    /// The group that is running now.
    pub(in crate::operator) fn group(&self) -> Option<&Vec<ModuleName>> {
        self.groups.front()
    }

    /// Drops the group that is running now.
    pub(in crate::operator) fn end_group(&mut self) {
        self.groups.pop_front();
    }

    /// Drops all groups. Returns the modules of the groups that had not begun.
    pub(in crate::operator) fn give_up_groups(&mut self) -> Vec<ModuleName> {
        self.groups.drain(..).skip(1).flatten().collect()
    }
}
