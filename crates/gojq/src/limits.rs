//! The limits of one run of a filter.

use crate::value::MAX_WEIGHT;

/// The limits of one run of a filter on one input.
///
/// The limits of a single value are fixed: at most 400 levels of arrays and objects, and at most two million parts (a
/// part is a node or 16 bytes of text).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Work in steps: about one for each output of a generator, and four for each call of a recursive definition.
    pub steps: u64,
    /// Memory in cells of at most 32 bytes. All allocated cells count, even if they were freed.
    pub cells: u64,
    /// Stack in bytes from the call that applies the filter. A run may use a fixed amount more before it notices.
    pub stack: usize,
    /// The size of all outputs together, in parts as above.
    pub output: u64,
}

/// About a second of work, 192 MB of allocations, and a stack that fits into a thread with two megabytes.
impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 2_000_000,
            cells: 6_000_000,
            stack: 1200 * 1024,
            output: MAX_WEIGHT / 4,
        }
    }
}
