//! The lineage of a run: the hooks whose deeds caused the run, without a change by others in between.
//!
//! Must never name a hook for a run that another writer caused as well: that run follows from a change by others.

use std::collections::BTreeSet;
use std::sync::Arc;

use names::HookId;

/// The number of hooks in a lineage from which on no hook is added. Chains of so many hooks are no loops.
const LONGEST: usize = 32;

/// The hooks from whose deeds a run follows. Without a hook, the run follows from a change by others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::operator) struct Lineage(Option<Arc<BTreeSet<HookId>>>);

impl Lineage {
    /// The lineage of a change by others.
    pub(in crate::operator) const FOREIGN: Self = Self(None);

    /// Whether the run follows from a deed of this hook.
    pub(in crate::operator) fn has(&self, hook: &HookId) -> bool {
        self.0.as_ref().is_some_and(|hooks| hooks.contains(hook))
    }

    /// The lineage of the deeds of a hook that ran with this lineage.
    pub(in crate::operator) fn with(&self, hook: &HookId) -> Self {
        match &self.0 {
            Some(hooks) if hooks.contains(hook) || hooks.len() >= LONGEST => self.clone(),
            hooks => {
                let known = hooks.iter().flat_map(|hooks| hooks.iter());
                Self(Some(Arc::new(known.chain([hook]).cloned().collect())))
            }
        }
    }

    /// The lineage of a run for both reasons. If one of the reasons is a change by others, the run follows from a
    /// change by others.
    pub(in crate::operator) fn and(self, other: &Self) -> Self {
        match (self.0, &other.0) {
            (Some(one), Some(other)) if one == *other => Self(Some(one)),
            (Some(one), Some(other)) => Self(Some(Arc::new(one.union(other).cloned().collect()))),
            (None, _) | (_, None) => Self::FOREIGN,
        }
    }
}

#[cfg(test)]
mod tests {
    use names::{HookName, Owner};

    use super::*;

    fn hook(name: &str) -> HookId {
        HookId {
            owner: Owner::Global,
            name: HookName::parse(name).unwrap(),
        }
    }

    #[test]
    fn a_change_by_others_makes_a_run_foreign() {
        let (a, b) = (hook("a.sh"), hook("b.sh"));
        let of_a = Lineage::FOREIGN.with(&a);
        let of_both = of_a.with(&b);
        assert!(of_both.has(&a) && of_both.has(&b) && !of_a.has(&b));
        assert_eq!(of_a.clone().and(&Lineage::FOREIGN), Lineage::FOREIGN);
        assert_eq!(Lineage::FOREIGN.and(&of_a), Lineage::FOREIGN);
        assert_eq!(of_a.and(&Lineage::FOREIGN.with(&b)), of_both);
    }

    #[test]
    fn a_lineage_does_not_grow_without_end() {
        let mut lineage = Lineage::FOREIGN;
        for place in 0..100 {
            lineage = lineage.with(&hook(&format!("{place}.sh")));
        }
        assert!(lineage.has(&hook("31.sh")) && !lineage.has(&hook("32.sh")));
    }
}
