//! Arrays: sorting, groups, searching, shape.

use std::cmp::Ordering;

use jaq_core::Exn;

use super::{Cv, Out, Outs, Row, binary, budget, crossing, one, paid, unary, values};
use crate::number::Num;
use crate::value::trace::occurrences;
use crate::value::wording as say;
use crate::value::{List, MAX_WEIGHT, Res, Val, compare, fault};

pub(super) fn rows() -> Vec<Row> {
    vec![
        ("reverse", values(0), |cv| {
            unary(cv, |input| {
                Val::array(items("reverse", input)?.into_iter().rev().collect())
            })
        }),
        ("flatten", values(0), |cv| unary(cv, |input| flatten(input, None))),
        ("flatten", values(1), |cv| {
            binary(cv, |input, depth| flatten(input, Some(depth)))
        }),
        ("min", values(0), |cv| most(cv, "min", Ordering::Greater)),
        ("max", values(0), |cv| most(cv, "max", Ordering::Less)),
        ("!min_by", values(1), |cv| {
            by(
                cv,
                |values, keys| Ok(extreme(values, Some(keys), Ordering::Greater)),
                "min_by",
            )
        }),
        ("!max_by", values(1), |cv| {
            by(
                cv,
                |values, keys| Ok(extreme(values, Some(keys), Ordering::Less)),
                "max_by",
            )
        }),
        ("sort", values(0), |cv| {
            sorted(cv, "sort", |pairs| {
                Val::array(pairs.into_iter().map(|pair| pair.1).collect())
            })
        }),
        ("unique", values(0), |cv| sorted(cv, "unique", unique)),
        ("!sort_by", values(1), |cv| {
            by(cv, |values, keys| first_of(sort(values, keys)), "sort_by")
        }),
        ("!group_by", values(1), |cv| {
            by(cv, |values, keys| groups(sort(values, keys)), "group_by")
        }),
        ("!unique_by", values(1), |cv| {
            by(cv, |values, keys| unique(sort(values, keys)), "unique_by")
        }),
    ]
}

/// Natives for shape and searching.
pub(super) fn searches() -> Vec<Row> {
    vec![
        ("transpose", values(0), |cv| unary(cv, |input| transpose(input))),
        ("bsearch", values(1), |cv| {
            binary(cv, |input, wanted| bsearch(input, wanted))
        }),
        ("indices", values(1), |cv| {
            crossing(cv, |input, wanted| {
                found("indices", input, wanted, |starts| Val::array(starts.collect()))
            })
        }),
        ("index", values(1), |cv| {
            crossing(cv, |input, wanted| {
                found("index", input, wanted, |starts| Ok(starts.next().unwrap_or(Val::Null)))
            })
        }),
        ("rindex", values(1), |cv| {
            crossing(cv, |input, wanted| {
                found("rindex", input, wanted, |starts| Ok(starts.last().unwrap_or(Val::Null)))
            })
        }),
    ]
}

/// The items of an array.
fn items<'a>(name: &str, value: &Val<'a>) -> Res<'a, Vec<Val<'a>>> {
    value
        .as_list()
        .map(|list| list.iter().collect())
        .ok_or_else(|| say::plain(name, value))
}

fn flatten<'a>(input: &Val<'a>, depth: Option<&Val<'a>>) -> Res<'a> {
    let children = input.children().ok_or_else(|| say::plain("flatten", input))?;
    let depth = match depth {
        None => -1.0,
        Some(depth) => {
            let number = depth.as_num().ok_or_else(|| say::plain("flatten", depth))?.float();
            if number < 0.0 {
                return Err(fault(format!("flatten depth should not be negative: {depth}")));
            }
            number
        }
    };
    let mut flat = Vec::new();
    // The last child is pushed first, so that the first child is on top.
    let mut open: Vec<(Val<'a>, f64)> = children.into_iter().rev().map(|child| (child, depth)).collect();
    while let Some((value, depth)) = open.pop() {
        match value.as_list() {
            Some(list) if depth != 0.0 => {
                let inner: Vec<Val<'a>> = list.iter().collect();
                open.extend(inner.into_iter().rev().map(|child| (child, depth - 1.0)));
            }
            _ => flat.push(value),
        }
        if (flat.len() + open.len()) as u64 > MAX_WEIGHT {
            return Err(fault("flatten: too many items"));
        }
    }
    Val::array(flat)
}

/// The first of the smallest values, or the last of the largest ones.
fn extreme<'a>(values: Vec<Val<'a>>, keys: Option<Vec<Val<'a>>>, worse: Ordering) -> Val<'a> {
    let keys = keys.unwrap_or_else(|| values.clone());
    let mut best = 0;
    for (index, key) in keys.iter().enumerate().skip(1) {
        let order = compare(&keys[best], key);
        if (order == Ordering::Greater) == (worse == Ordering::Greater) {
            best = index;
        }
    }
    values.into_iter().nth(best).unwrap_or(Val::Null)
}

/// A key and its value.
type Keyed<'a> = (Val<'a>, Val<'a>);

fn sort<'a>(values: Vec<Val<'a>>, keys: Vec<Val<'a>>) -> Vec<Keyed<'a>> {
    let mut pairs: Vec<Keyed<'a>> = keys.into_iter().zip(values).collect();
    // Sorting must not panic although a NaN is less than itself, so that there is no total order.
    pairs.sort_by(|left, right| match compare(&left.0, &right.0) {
        Ordering::Less if compare(&right.0, &left.0).is_lt() => Ordering::Equal,
        order => order,
    });
    pairs
}

fn first_of(pairs: Vec<Keyed<'_>>) -> Res<'_> {
    Val::array(pairs.into_iter().map(|pair| pair.1).collect())
}

fn unique(pairs: Vec<Keyed<'_>>) -> Res<'_> {
    let mut kept: Vec<Keyed<'_>> = Vec::new();
    for pair in pairs {
        if kept.last().is_none_or(|last| compare(&last.0, &pair.0).is_ne()) {
            kept.push(pair);
        }
    }
    first_of(kept)
}

fn groups(pairs: Vec<Keyed<'_>>) -> Res<'_> {
    let mut groups: Vec<(Val<'_>, Vec<Val<'_>>)> = Vec::new();
    for (key, value) in pairs {
        match groups.last_mut() {
            Some((last, members)) if compare(last, &key).is_eq() => members.push(value),
            _ => groups.push((key, vec![value])),
        }
    }
    Val::array(
        groups
            .into_iter()
            .map(|(_, members)| Val::array(members))
            .collect::<Res<'_, _>>()?,
    )
}

/// Counts the steps of sorting, because the size of the result alone would count too few.
fn effort<'a>(cv: &Cv<'a>, value: &Val<'a>) -> Out<'a, ()> {
    let weight = usize::try_from(value.size()?.weight).unwrap_or(usize::MAX);
    let length = value.as_list().map_or(0, List::len);
    let levels = usize::BITS - length.leading_zeros();
    budget(cv).work((weight / 8).saturating_mul(levels as usize))
}

fn most<'a>(cv: Cv<'a>, name: &str, worse: Ordering) -> Outs<'a> {
    if let Err(stop) = effort(&cv, &cv.1) {
        return one(Err(stop));
    }
    unary(cv, |input| Ok(extreme(items(name, input)?, None, worse)))
}

fn sorted<'a>(cv: Cv<'a>, name: &str, finish: fn(Vec<Keyed<'a>>) -> Res<'a>) -> Outs<'a> {
    if let Err(stop) = effort(&cv, &cv.1) {
        return one(Err(stop));
    }
    unary(cv, |input| {
        let values = items(name, input)?;
        finish(sort(values.clone(), values))
    })
}

/// Applies a function to an array and one key for each of its items.
fn by<'a>(
    mut cv: Cv<'a>,
    function: impl FnOnce(Vec<Val<'a>>, Vec<Val<'a>>) -> Res<'a>,
    name: &'static str,
) -> Outs<'a> {
    let keys = cv.0.pop_var().plain();
    if let Err(stop) = effort(&cv, &keys) {
        return one(Err(stop));
    }
    let input = cv.1.clone().plain();
    let (Some(values), Some(list)) = (input.as_list(), keys.as_list()) else {
        return one(Err(Exn::from(say::with(name, &input, &keys))));
    };
    let result = function(values.iter().collect(), list.iter().collect());
    one(paid(budget(&cv), result))
}

fn transpose<'a>(input: &Val<'a>) -> Res<'a> {
    let columns = items("transpose", input)?;
    let mut height = 0;
    for column in &columns {
        height = height.max(column.as_list().ok_or_else(|| say::plain("transpose", input))?.len());
    }
    if (height as u64).saturating_mul(columns.len() as u64) > MAX_WEIGHT {
        return Err(fault("transpose: too many items"));
    }
    let row = |index: usize| {
        let cell = |column: &Val<'a>| column.as_list().and_then(|list| list.get(index)).unwrap_or(Val::Null);
        Val::array(columns.iter().map(cell).collect())
    };
    Val::array((0..height).map(row).collect::<Res<'a, _>>()?)
}

fn bsearch<'a>(input: &Val<'a>, wanted: &Val<'a>) -> Res<'a> {
    let Some(list) = input.as_list() else {
        return Err(say::with("bsearch", input, wanted));
    };
    let items: Vec<Val<'a>> = list.iter().collect();
    let place = items.partition_point(|item| compare(item, wanted).is_lt());
    let hit = items.get(place).is_some_and(|item| compare(item, wanted).is_eq());
    let place = Num::count(place);
    Ok(Val::Num(if hit {
        place
    } else {
        place.negate().subtract(&Num::Int(1))
    }))
}

/// The places of a value in an array, or of a text in a string, counted in characters.
fn found<'a>(
    name: &str,
    input: &Val<'a>,
    wanted: &Val<'a>,
    pick: impl FnOnce(&mut dyn Iterator<Item = Val<'a>>) -> Res<'a>,
) -> Res<'a> {
    if matches!(input, Val::Null) {
        return Ok(Val::Null);
    }
    if let Some(list) = input.as_list() {
        let items: Vec<Val<'a>> = list.iter().collect();
        let wanted: Vec<Val<'a>> = wanted
            .as_list()
            .map_or_else(|| vec![wanted.clone()], |list| list.iter().collect());
        return pick(&mut occurrences(&items, &wanted).map(Val::count));
    }
    let (Some(text), Some(part)) = (input.as_str(), wanted.as_str()) else {
        return Err(say::with(name, input, wanted));
    };
    let (text, part): (Vec<char>, Vec<char>) = (text.chars().collect(), part.chars().collect());
    let starts = if part.is_empty() {
        0
    } else {
        (text.len() + 1).saturating_sub(part.len())
    };
    pick(
        &mut (0..starts)
            .filter(|start| text[*start..].starts_with(&part))
            .map(Val::count),
    )
}
