//! Operators: sums, products, comparisons.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use jaq_core::Exn;

use super::{Cv, Out, Outs, Row, budget, one, paid, unary, values};
use crate::budget::{Budget, weighing};
use crate::number::{Num, whole};
use crate::value::wording as say;
use crate::value::{Dict, Growth, MAX_WEIGHT, Res, Size, Text, Val, change_array, change_object, compare, fault};

pub(super) fn rows() -> Vec<Row> {
    vec![
        ("!add", values(2), |cv| operator(cv, add)),
        ("!subtract", values(2), |cv| {
            operator(cv, |budget, left, right| paid(budget, subtract(budget, &left, &right)))
        }),
        ("!multiply", values(2), |cv| {
            operator(cv, |budget, left, right| paid(budget, multiply(&left, &right)))
        }),
        ("!divide", values(2), |cv| {
            operator(cv, |budget, left, right| paid(budget, divide(&left, &right)))
        }),
        ("!modulo", values(2), |cv| {
            operator(cv, |_, left, right| Ok(modulo(&left, &right)?))
        }),
        ("!equal", values(2), |cv| relation(cv, Ordering::is_eq)),
        ("!differs", values(2), |cv| relation(cv, Ordering::is_ne)),
        ("!less", values(2), |cv| relation(cv, Ordering::is_lt)),
        ("!at_most", values(2), |cv| relation(cv, Ordering::is_le)),
        ("!greater", values(2), |cv| relation(cv, Ordering::is_gt)),
        ("!at_least", values(2), |cv| relation(cv, Ordering::is_ge)),
        ("!plus", values(0), |cv| {
            unary(cv, |input| {
                if input.as_num().is_some() {
                    Ok(input.clone())
                } else {
                    Err(say::unary("plus", input))
                }
            })
        }),
        ("add", values(0), total),
    ]
}

/// Drops the input first. A value that only the left operand holds can then be changed in place.
fn operator<'a>(cv: Cv<'a>, function: impl FnOnce(&Budget<'_>, Val<'a>, Val<'a>) -> Out<'a>) -> Outs<'a> {
    let (mut context, input) = cv;
    drop(input);
    let budget = context.data().budget;
    let (left, right) = (context.pop_var().plain(), context.pop_var().plain());
    one(budget.work(1).and_then(|()| function(budget, left, right)))
}

fn relation(cv: Cv<'_>, holds: fn(Ordering) -> bool) -> Outs<'_> {
    operator(cv, |budget, left, right| {
        // A comparison takes at most as many steps as the smaller value has parts.
        if left.kind() == right.kind() {
            budget.work(left.size()?.steps(8).min(right.size()?.steps(8)))?;
        }
        Ok(Val::Bool(holds(compare(&left, &right))))
    })
}

/// `left + right`. The left value is changed in place if it is not shared.
pub(super) fn add<'a>(budget: &Budget<'_>, mut left: Val<'a>, right: Val<'a>) -> Out<'a> {
    match (&left, &right) {
        (Val::Null, _) => return Ok(right),
        (_, Val::Null) => return Ok(left),
        (Val::Num(left), Val::Num(right)) => return Ok(Val::Num(left.add(right))),
        (Val::Str(left), Val::Str(right)) => {
            let size = Size::text(left).weight + Size::text(right).weight;
            budget.memory(usize::try_from(size).unwrap_or(usize::MAX))?;
            return Ok(Val::string(format!("{}{}", &**left, &**right))?);
        }
        _ => {}
    }
    if let (Some(first), Some(second)) = (left.as_list(), right.as_list()) {
        if first.len() == 0 {
            return Ok(right);
        }
        let more: Vec<Val<'a>> = second.iter().collect();
        budget.memory(more.len())?;
        for item in &more {
            budget.work(weighing(item)?)?;
        }
        let ((), copied) = change_array(&mut left, |items| {
            let mut added = Size::default();
            for item in &more {
                let size = item.size()?;
                added.weight = added.weight.saturating_add(size.weight);
                added.depth = added.depth.max(size.depth);
            }
            items.extend(more);
            Ok(((), Growth { added, removed: 0 }))
        })?;
        budget.memory(copied)?;
        return Ok(left);
    }
    match right.as_dict() {
        Some(more) if left.as_dict().is_some() => {
            budget.memory(more.len() * 3)?;
            let ((), copied) = change_object(&mut left, |entries| merge(entries, more))?;
            budget.memory(copied * 3)?;
            Ok(left)
        }
        _ => Err(Exn::from(say::binary("add", &left, &right))),
    }
}

fn merge<'a>(entries: &mut BTreeMap<Text<'a>, Val<'a>>, more: Dict<'_, 'a>) -> Res<'a, ((), Growth)> {
    let mut growth = Growth::default();
    for (key, value) in more.iter() {
        let size = value.size()?;
        growth.added.weight = growth
            .added
            .weight
            .saturating_add(size.weight + Size::text(&key).weight);
        growth.added.depth = growth.added.depth.max(size.depth);
        if let Some(old) = entries.insert(key, value) {
            growth.removed += old.size()?.weight;
        }
    }
    Ok(((), growth))
}

/// The sum of all children.
fn total(cv: Cv<'_>) -> Outs<'_> {
    let budget = budget(&cv);
    let input = cv.1.plain();
    let Some(children) = input.children() else {
        return one(Err(Exn::from(say::plain("add", &input))));
    };
    drop(input);
    let text = children.iter().all(|child| matches!(child, Val::Str(_) | Val::Null));
    if text && children.iter().any(|child| !matches!(child, Val::Null)) {
        let parts: Vec<&str> = children.iter().filter_map(Val::as_str).collect();
        let length: usize = parts.iter().map(|part| part.len()).sum();
        return one(budget
            .memory(children.len() + length / 24)
            .and_then(|()| Ok(Val::string(parts.concat())?)));
    }
    let mut sum = Val::Null;
    for child in children {
        sum = match budget.work(1).and_then(|()| add(budget, sum, child)) {
            Ok(sum) => sum,
            Err(error) => return one(Err(error)),
        };
    }
    one(Ok(sum))
}

fn subtract<'a>(budget: &Budget<'_>, left: &Val<'a>, right: &Val<'a>) -> Res<'a> {
    if let (Val::Num(left), Val::Num(right)) = (left, right) {
        return Ok(Val::Num(left.subtract(right)));
    }
    let (Some(list), Some(without)) = (left.as_list(), right.as_list()) else {
        return Err(say::binary("subtract", left, right));
    };
    let without: Vec<Val<'a>> = without.iter().collect();
    let mut kept = Vec::new();
    for item in list.iter() {
        let paid: Out<'_, ()> = budget.work(1 + without.len() / 8);
        if paid.is_err() {
            // The error need not be returned here: the budget stays spent, so the next step ends the run.
            break;
        }
        if !without.iter().any(|other| compare(&item, other).is_eq()) {
            kept.push(item);
        }
    }
    Val::array(kept)
}

fn multiply<'a>(left: &Val<'a>, right: &Val<'a>) -> Res<'a> {
    match (left, right) {
        (Val::Num(left), Val::Num(right)) => Ok(Val::Num(left.multiply(right))),
        (Val::Str(text), Val::Num(times)) | (Val::Num(times), Val::Str(text)) => repeat(text, times),
        _ => match (left.as_dict(), right.as_dict()) {
            (Some(left), Some(right)) => deep_merge(left, right),
            _ => Err(say::binary("multiply", left, right)),
        },
    }
}

/// `None` if the text is repeated less than zero times, or too often.
fn repeat<'a>(text: &str, times: &Num) -> Res<'a> {
    const MOST: usize = 0x1000_0000;
    let count = times.float();
    #[expect(clippy::cast_precision_loss, reason = "a bound far below 53 bits")]
    let most = (MOST / text.len().max(1)) as f64;
    if count.is_nan() || count < 0.0 || (!text.is_empty() && count > most) {
        return Ok(Val::Null);
    }
    let count = if text.is_empty() {
        0
    } else {
        usize::try_from(whole(count)).unwrap_or(0)
    };
    // Checks the limit before the text is built, which could be far larger than any value may be.
    if text.len().saturating_mul(count) as u64 / 16 > MAX_WEIGHT {
        return Err(fault("a string that is repeated too often"));
    }
    Val::string(text.repeat(count))
}

fn deep_merge<'a>(left: Dict<'_, 'a>, right: Dict<'_, 'a>) -> Res<'a> {
    let mut entries: BTreeMap<Text<'a>, Val<'a>> = left.iter().collect();
    for (key, value) in right.iter() {
        let merged = match entries.get(&key).map(|old| (old.as_dict(), value.as_dict())) {
            Some((Some(old), Some(new))) => deep_merge(old, new)?,
            _ => value,
        };
        entries.insert(key, merged);
    }
    Val::object(entries)
}

fn divide<'a>(left: &Val<'a>, right: &Val<'a>) -> Res<'a> {
    match (left, right) {
        (Val::Num(one), Val::Num(other)) => one
            .divide(other)
            .map(Val::Num)
            .ok_or_else(|| say::zero("divide", left, right)),
        (Val::Str(text), Val::Str(separator)) => super::strings::split(text, separator),
        _ => Err(say::binary("divide", left, right)),
    }
}

fn modulo<'a>(left: &Val<'a>, right: &Val<'a>) -> Res<'a> {
    match (left, right) {
        (Val::Num(one), Val::Num(other)) => one
            .modulo(other)
            .map(Val::Num)
            .ok_or_else(|| say::zero("modulo", left, right)),
        _ => Err(say::binary("modulo", left, right)),
    }
}
