//! The modules that a converge has still to remove, one after another, and to run, group by group.

use std::collections::VecDeque;

use names::ModuleName;

/// The removals and runs that a converge has still to do.
#[derive(Debug, Clone, Default)]
pub(in crate::operator) struct Wave {
    /// The modules to remove, one after another: the last module comes first.
    removals: VecDeque<ModuleName>,
    removing: Option<ModuleName>,
    /// Groups to run, the next one first.
    groups: VecDeque<Vec<ModuleName>>,
    /// The modules of the first group whose turn had not come at the last look. A module that has left this list never
    /// gets into it again.
    waiting: Vec<ModuleName>,
    /// The place, in the first group, of a module that was not over at the last look. The next look begins at this
    /// place.
    awaited: usize,
}

impl Wave {
    pub(in crate::operator) fn new(removals: VecDeque<ModuleName>, groups: VecDeque<Vec<ModuleName>>) -> Self {
        let waiting = groups.front().cloned().unwrap_or_default();
        Self {
            removals,
            removing: None,
            groups,
            waiting,
            awaited: 0,
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

    /// The modules of the running group whose turn has not come, in their order.
    pub(in crate::operator) fn waiting_mut(&mut self) -> &mut Vec<ModuleName> {
        &mut self.waiting
    }

    /// Whether all modules of the running group are over. Looks first at the module that was not over at the last call.
    pub(in crate::operator) fn is_group_over(&mut self, is_over: impl Fn(&ModuleName) -> bool) -> bool {
        let group = self.group().map(Vec::as_slice).unwrap_or_default();
        let (before, after) = group.split_at(self.awaited.min(group.len()));
        let awaited = after.iter().chain(before).position(|name| !is_over(name));
        let awaited = awaited.map(|steps| (self.awaited + steps) % group.len().max(1));
        self.awaited = awaited.unwrap_or_default();
        awaited.is_none()
    }

    /// Drops the group that is running now.
    pub(in crate::operator) fn end_group(&mut self) {
        self.groups.pop_front();
        self.waiting = self.groups.front().cloned().unwrap_or_default();
        self.awaited = 0;
    }

    /// Drops all groups. Returns the modules of the groups that had not begun.
    pub(in crate::operator) fn give_up_groups(&mut self) -> Vec<ModuleName> {
        self.groups.drain(..).skip(1).flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names<const N: usize>(texts: [&str; N]) -> Vec<ModuleName> {
        texts.map(|text| ModuleName::parse(text).unwrap()).into()
    }

    #[test]
    fn a_group_is_over_when_all_of_it_is_wherever_the_search_begins() {
        let mut wave = Wave::new(VecDeque::new(), [names(["a", "b", "c"]), names(["d"])].into());
        let mut over_but = |running: &[&str]| wave.is_group_over(|name| !running.contains(&name.as_str()));
        assert!(!over_but(&["a", "c"]));
        assert!(!over_but(&["c"]));
        assert!(
            !over_but(&["a"]),
            "it runs again, and comes before the one that was looked at"
        );
        assert!(!over_but(&["b"]));
        assert!(over_but(&[]));
        assert!(!over_but(&["b"]));
    }

    #[test]
    fn the_next_group_waits_as_a_whole() {
        let mut wave = Wave::new(VecDeque::new(), [names(["a", "b"]), names(["c"])].into());
        wave.waiting_mut().clear();
        wave.end_group();
        assert_eq!(*wave.waiting_mut(), names(["c"]));
        assert!(!wave.is_group_over(|_| false));
        wave.end_group();
        assert!(wave.group().is_none());
        assert!(wave.is_group_over(|_| false), "nothing is left");
    }
}
