//! The filters that are written in Rust, by name. All others are in `prelude.jq`.
//!
//! A name that begins with `!` is called only by terms that `lower` and the prelude make. Arguments come in the order of
//! the text. Every native counts its work. None may panic, for any input and arguments.

mod arithmetic;
mod control;
mod formats;
mod lists;
mod maths;
mod objects;
pub(crate) mod patterns;
mod search;
mod strings;
mod times;
mod update;

use std::collections::BTreeSet;

use jaq_core::box_iter::box_once;
use jaq_core::native::{self, Fun};
use jaq_core::{Bind, Exn, RunPtr, ValXs};

use crate::budget::{Budget, breadth, cells};
use crate::engine::Engine;
use crate::value::{Res, Val};

/// The context and the input of a native.
type Cv<'a> = jaq_core::Cv<'a, Engine>;

/// The outputs of a native: values, errors, and orders to stop.
type Outs<'a> = ValXs<'a, Val<'a>>;

/// One value, an error, or an order to stop.
type Out<'a, T = Val<'a>> = Result<T, Exn<'a, Val<'a>>>;

/// The name, the parameters and the function of a native.
type Row = (&'static str, Box<[Bind]>, RunPtr<Engine>);

fn rows() -> impl Iterator<Item = Row> {
    control::rows()
        .into_iter()
        .chain(control::surroundings())
        .chain(search::rows())
        .chain(update::rows())
        .chain(arithmetic::rows())
        .chain(lists::rows())
        .chain(lists::searches())
        .chain(objects::rows())
        .chain(strings::rows())
        .chain(strings::conversions())
        .chain(formats::rows())
        .chain(patterns::rows())
        .chain(maths::rows())
        .chain(times::rows())
}

/// All natives, for the engine.
pub(crate) fn all() -> impl Iterator<Item = Fun<Engine>> {
    rows().map(native::run::<Engine>)
}

/// The natives with several values as arguments.
pub(crate) fn of_many_values() -> BTreeSet<(&'static str, usize)> {
    let several = |row: &Row| row.1.len() > 1 && row.1.iter().all(|bind| matches!(bind, Bind::Var(())));
    rows()
        .filter(several)
        .map(|(name, params, _)| (name, params.len()))
        .collect()
}

/// The output of `builtins`: names with their number of parameters.
fn public_names() -> impl Iterator<Item = String> {
    rows()
        .filter(|row| !row.0.starts_with('!'))
        .map(|(name, params, _)| format!("{name}/{}", params.len()))
}

/// Parameters for this many values.
fn values(count: usize) -> Box<[Bind]> {
    native::v(count)
}

/// Parameters for this many filters.
fn filters(count: usize) -> Box<[Bind]> {
    vec![Bind::Fun(()); count].into()
}

fn budget<'a>(cv: &Cv<'a>) -> &'a Budget<'a> {
    cv.0.data().budget
}

fn one(out: Out<'_>) -> Outs<'_> {
    box_once(out)
}

/// Counts the cells of a new value, and the steps for computing its size.
fn paid<'a>(budget: &Budget<'_>, result: Res<'a>) -> Out<'a> {
    let value = result?;
    budget.memory(cells(&value))?;
    match &value {
        Val::Arr(_) | Val::Obj(_) => budget.work(value.size()?.steps(64))?,
        Val::Str(text) => budget.work(text.len() / 32)?,
        _ => {}
    }
    Ok(value)
}

/// A native that depends on the input.
fn unary<'a>(cv: Cv<'a>, function: impl FnOnce(&Val<'a>) -> Res<'a>) -> Outs<'a> {
    let budget = budget(&cv);
    let input = cv.1.plain();
    one(budget
        .work(1 + breadth(&input))
        .and_then(|()| paid(budget, function(&input))))
}

/// A native that depends on the input and one argument.
fn binary<'a>(mut cv: Cv<'a>, function: impl FnOnce(&Val<'a>, &Val<'a>) -> Res<'a>) -> Outs<'a> {
    let budget = budget(&cv);
    let arg = cv.0.pop_var().plain();
    let input = cv.1.plain();
    let work = budget.work(1 + breadth(&input) + breadth(&arg));
    one(work.and_then(|()| paid(budget, function(&input, &arg))))
}

/// A native that depends on the input and one argument, and may compare each part of the input with each part of the
/// argument.
fn crossing<'a>(cv: Cv<'a>, function: impl FnOnce(&Val<'a>, &Val<'a>) -> Res<'a>) -> Outs<'a> {
    let budget = budget(&cv);
    let (mut context, input) = cv;
    let (input, arg) = (input.plain(), context.pop_var().plain());
    one(meeting(budget, &input, &arg).and_then(|()| paid(budget, function(&input, &arg))))
}

/// Counts the steps of a comparison of each part of one value with each part of the other.
fn meeting<'a>(budget: &Budget<'_>, one: &Val<'a>, other: &Val<'a>) -> Out<'a, ()> {
    let pairs = one.size()?.weight.saturating_mul(other.size()?.weight);
    budget.work(usize::try_from(pairs / 64).unwrap_or(usize::MAX).saturating_add(1))
}
