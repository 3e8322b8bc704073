//! How many removals are too many at once.

/// So many, and fewer, are never too many.
const FEW: usize = 2;

/// More than two releases, and at least a third of ours.
pub(in super::super) fn too_many(removals: usize, ours: usize) -> bool {
    removals > FEW && removals * 3 >= ours
}

#[cfg(test)]
mod tests {
    use super::too_many;

    #[test]
    fn more_than_two_and_at_least_a_third() {
        for (removals, ours, expected) in [
            (2, 2, false),
            (2, 6, false),
            (3, 3, true),
            (3, 9, true),
            (3, 10, false),
            (25, 50, true),
        ] {
            assert_eq!(too_many(removals, ours), expected, "{removals} of {ours}");
        }
    }
}
