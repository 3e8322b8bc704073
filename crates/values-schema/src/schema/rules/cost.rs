//! The cost limit of a check.
//!
//! The CEL engine has no limit of its own, so the values that pass through it are counted. Must never be refilled during
//! a check.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cel::common::types::{CelList, CelMap, CelString};
use cel::common::value::Val;

/// The number of steps that are left for one check.
#[derive(Debug, Clone)]
pub(super) struct Budget(Arc<AtomicU64>);

impl Budget {
    pub(super) fn new(steps: u64) -> Self {
        Self(Arc::new(AtomicU64::new(steps)))
    }

    /// Takes steps. False if too few are left; then none are left.
    pub(super) fn take(&self, steps: u64) -> bool {
        let left = self.0.load(Ordering::Relaxed);
        self.0.store(left.saturating_sub(steps), Ordering::Relaxed);
        left >= steps && left > 0
    }

    pub(super) fn is_spent(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// The number of parts of a value, at all depths.
pub(super) fn size(value: &dyn Val) -> u64 {
    if let Some(text) = value.downcast_ref::<CelString<'_>>() {
        return 1 + text.inner().len() as u64 / 16;
    }
    if let Some(list) = value.downcast_ref::<CelList<'_>>() {
        return 1 + list.inner().iter().map(|item| size(item.as_ref())).sum::<u64>();
    }
    if let Some(map) = value.downcast_ref::<CelMap<'_>>() {
        return 1 + map.inner().values().map(|value| 1 + size(value.as_ref())).sum::<u64>();
    }
    1
}
