//! Natives that read values and can be used as a path: steps, iteration, recursion, `path` and `getpath`.

use jaq_core::Exn;
use std::rc::Rc;

use super::{Cv, Out, Outs, Row, budget, filters, meeting, one, paid, values};
use crate::budget::{Budget, breadth};
use crate::value::trace::{self, Traced};
use crate::value::wording as say;
use crate::value::{Val, compare, fault, preview};

pub(super) fn rows() -> Vec<Row> {
    vec![
        ("!index", values(2), |mut cv| {
            let (base, key) = (cv.0.pop_var(), cv.0.pop_var());
            if let Err(stop) = lookup(budget(&cv), &base, &key) {
                return one(Err(stop));
            }
            one(trace::step(&base, &key).map_err(Exn::from))
        }),
        ("!slice", values(3), slice),
        ("!slot", values(1), slot),
        ("!each", values(0), each),
        ("recurse", values(0), recurse),
        ("path", filters(1), path),
        ("getpath", values(1), |mut cv| {
            let path = cv.0.pop_var();
            let work = budget(&cv).work(1 + breadth(&path) * 8);
            one(work.and_then(|()| getpath(&cv.1, &path)))
        }),
    ]
}

/// Counts the steps of an index. An array as index is searched for at all places of the value. An index into a text
/// counts characters.
fn lookup<'a>(budget: &Budget<'_>, base: &Val<'a>, key: &Val<'a>) -> Out<'a, ()> {
    if key.as_list().is_some() {
        return meeting(budget, base, key);
    }
    budget.work(1 + base.as_str().map_or(0, |_| breadth(base)))
}

fn slice(mut cv: Cv<'_>) -> Outs<'_> {
    let (base, end, start) = (cv.0.pop_var(), cv.0.pop_var().plain(), cv.0.pop_var().plain());
    if let Err(stop) = lookup(budget(&cv), &base, &start) {
        return one(Err(stop));
    }
    let sliced = match &base {
        Val::Traced(traced) => trace::slice(&traced.value, &start, &end)
            .and_then(|value| traced.child(say::slice_key(start.clone(), end.clone())?, value)),
        plain => trace::slice(plain, &start, &end),
    };
    one(paid(budget(&cv), sliced))
}

/// An index into an array that is destructured: only an array or null is allowed.
fn slot(mut cv: Cv<'_>) -> Outs<'_> {
    let index = cv.0.pop_var();
    match cv.1.kind() {
        "array" | "null" => one(Ok(index)),
        _ => one(Err(Exn::from(say::array(&cv.1)))),
    }
}

/// The children of a value, traced if the value is traced; `None` if it has none.
fn children<'a>(value: &Val<'a>) -> Option<Box<dyn Iterator<Item = Out<'a>> + 'a>> {
    let traced = match value {
        Val::Traced(traced) => Some(Rc::clone(traced)),
        _ => None,
    };
    let bare = value.bare().clone();
    if let Some(list) = bare.as_list() {
        let length = list.len();
        return Some(Box::new((0..length).map(move |index| {
            let item = bare.as_list().and_then(|list| list.get(index)).unwrap_or(Val::Null);
            match &traced {
                Some(traced) => Ok(traced.child(Val::count(index), item)?),
                None => Ok(item),
            }
        })));
    }
    let entries: Vec<_> = bare.as_dict()?.iter().collect();
    Some(Box::new(entries.into_iter().map(move |(key, item)| match &traced {
        Some(traced) => Ok(traced.child(Val::Str(key), item)?),
        None => Ok(item),
    })))
}

fn each((context, input): Cv<'_>) -> Outs<'_> {
    let budget = context.data().budget;
    match children(&input) {
        Some(items) => Box::new(items.map(|item| budget.work(1).and(item))),
        None => one(Err(Exn::from(fault(format!(
            "cannot iterate over: {}",
            say::typed(&input)
        ))))),
    }
}

/// A value and all values in it, at any depth. A value comes before its children.
fn recurse(cv: Cv<'_>) -> Outs<'_> {
    let budget = budget(&cv);
    let mut open: Vec<Box<dyn Iterator<Item = Out<'_>> + '_>> = vec![Box::new(std::iter::once(Ok(cv.1)))];
    Box::new(std::iter::from_fn(move || {
        while let Some(top) = open.last_mut() {
            let Some(item) = top.next() else {
                open.pop();
                continue;
            };
            let item = budget.work(1).and(item);
            match &item {
                Ok(value) => open.extend(children(value)),
                Err(_) => open.clear(),
            }
            return Some(item);
        }
        None
    }))
}

/// The paths that a filter gives for a value, one after another. An output without a path is an error.
pub(super) fn paths<'a>(
    (filter, context): (jaq_core::compile::TermId, jaq_core::Ctx<'a, super::Engine>),
    input: Val<'a>,
) -> impl Iterator<Item = Out<'a, Vec<Val<'a>>>> + use<'a> {
    let budget = context.data().budget;
    let search = budget.search();
    let root = input.bare().clone();
    filter.run((context, Traced::root(search, input))).map(move |output| {
        budget.work(1)?;
        match output? {
            Val::Traced(traced) if traced.search == search => Ok(traced.path()),
            // A scalar has no identity: if it equals the input, it counts as the input.
            other if root.children().is_none() && compare(&root, &other).is_eq() => Ok(Vec::new()),
            other => Err(Exn::from(fault(format!(
                "invalid path against: {}",
                say::typed(&other)
            )))),
        }
    })
}

fn path(mut cv: Cv<'_>) -> Outs<'_> {
    let budget = budget(&cv);
    let filter = cv.0.pop_fun();
    Box::new(paths(filter, cv.1).map(|path| paid(budget, Val::array(path?))))
}

/// The value at a path, traced if the start is traced.
pub(super) fn getpath<'a>(value: &Val<'a>, path: &Val<'a>) -> Out<'a> {
    let Some(keys) = path.as_list() else {
        return Err(Exn::from(say::with("getpath", value, path)));
    };
    let mut found = value.clone();
    for key in keys.iter() {
        if !matches!(found.kind(), "null" | "array" | "object") {
            return Err(Exn::from(say::with("getpath", value, path)));
        }
        found = trace::step(&found, &key).map_err(|why| {
            let name = format!("getpath({})", preview(path));
            say::because(&name, value, &why.to_string())
        })?;
    }
    Ok(found)
}
