//! How the ways look at several machines at once. Must never change one.

use crate::operator::Operator;
use crate::operator::certainty::Certainty;
use crate::operator::survey::Survey;

impl Operator {
    /// The whole, as it is seen at this moment.
    pub(super) fn survey(&self) -> Survey<'_> {
        Survey::of(self)
    }

    /// All that speaks for and against removals at this moment.
    pub(super) fn certainty(&self) -> Certainty<'_> {
        self.survey().certainty()
    }
}
