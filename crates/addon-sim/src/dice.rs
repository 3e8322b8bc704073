//! Random numbers from a seed alone. Must never ask the machine for randomness: a run depends on nothing but its seed.

/// A generator (splitmix64): equal seeds throw equal numbers.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// A generator from a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator for the `count`-th event of this name. It depends on nothing else, so that removing actions from a
    /// history leaves the random numbers of the others as they were.
    pub fn named(seed: u64, name: &str, count: u64) -> Self {
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut dice = Self(seed ^ hash.rotate_left(17) ^ count.wrapping_mul(0x2545_f491_4f6c_dd1d));
        dice.throw();
        dice
    }

    /// Any number.
    pub fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `low` up to, but not including, `high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.throw() % (high.saturating_sub(low)).max(1)
    }

    /// True this many times in a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.throw() % 100 < percent
    }

    /// An element of a list that is not empty.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        let index = usize::try_from(self.throw() % list.len() as u64).unwrap_or_default();
        &list[index]
    }

    /// A random number from `low` to `high`.
    pub fn count(&mut self, low: u64, high: u64) -> usize {
        usize::try_from(self.between(low, high + 1)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_and_counts_throw_equal_numbers() {
        assert_eq!(Dice::named(1, "hook/a", 3).throw(), Dice::named(1, "hook/a", 3).throw());
        assert_ne!(Dice::named(1, "hook/a", 3).throw(), Dice::named(1, "hook/a", 4).throw());
        assert_ne!(Dice::named(1, "hook/a", 3).throw(), Dice::named(1, "hook/b", 3).throw());
        assert_ne!(Dice::named(1, "hook/a", 3).throw(), Dice::named(2, "hook/a", 3).throw());
    }

    #[test]
    fn numbers_stay_between_their_bounds() {
        let mut dice = Dice::new(7);
        assert!(
            (0..1000)
                .map(|_| dice.between(3, 9))
                .all(|number| (3..9).contains(&number))
        );
    }
}
