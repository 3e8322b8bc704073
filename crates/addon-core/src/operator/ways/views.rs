//! Read-only views of several state machines, which the ways ask before they decide. Must never change a machine.

use crate::operator::Operator;
use crate::operator::certainty::Certainty;
use crate::operator::survey::Survey;

impl Operator {
    /// The survey of this moment.
    pub(super) fn survey(&self) -> Survey<'_> {
        Survey::of(self)
    }

    /// The view for decisions about removals at this moment.
    pub(super) fn certainty(&self) -> Certainty<'_> {
        self.survey().certainty()
    }
}
