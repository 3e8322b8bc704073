//! The types that the evaluator gets from this crate: our values, and the data that natives can reach.

use jaq_core::data::HasLut;
use jaq_core::{DataT, Lut};

use crate::budget::Budget;
use crate::value::Val;

/// The kinds of data that the evaluator runs on.
pub(crate) struct Engine;

impl DataT for Engine {
    type V<'a> = Val<'a>;
    type Data<'a> = Data<'a>;
}

/// The data that every native can reach.
#[derive(Clone, Copy)]
pub(crate) struct Data<'a> {
    pub(crate) lut: &'a Lut<Engine>,
    pub(crate) budget: &'a Budget<'a>,
}

impl<'a> HasLut<'a, Engine> for Data<'a> {
    fn lut(&self) -> &'a Lut<Engine> {
        self.lut
    }
}
