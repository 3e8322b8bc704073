//! Natives that change values at paths: `=`, `|=`, `setpath` and `delpaths`.

use jaq_core::{Bind, Exn};

use super::{Cv, Out, Outs, Row, budget, filters, one, search, values};
use crate::budget::{Budget, weighing};
use crate::number::Num;
use crate::value::wording as say;
use crate::value::{Growth, Res, Size, Text, Val, change_array, change_object, fault};
use crate::value::{MAX_DEPTH, MAX_WEIGHT, preview, trace};

/// The index up to which an array is extended.
const MAX_INDEX: i64 = 0x800_0000;

pub(super) fn rows() -> Vec<Row> {
    vec![
        ("!assign", [Bind::Var(()), Bind::Fun(())].into(), assign),
        ("!modify", filters(2), modify),
        ("setpath", values(2), |mut cv| {
            let budget = budget(&cv);
            let (path, new) = (cv.0.pop_var().plain(), cv.0.pop_var().plain());
            one(setpath(budget, cv.1.plain(), &path, &new))
        }),
        ("delpaths", values(1), |mut cv| {
            let budget = budget(&cv);
            let paths = cv.0.pop_var().plain();
            one(delpaths(budget, cv.1.plain(), &paths))
        }),
    ]
}

/// `paths = value`: sets all paths to one value.
fn assign(mut cv: Cv<'_>) -> Outs<'_> {
    let budget = budget(&cv);
    let filter = cv.0.pop_fun();
    let new = cv.0.pop_var().plain();
    let mut value = cv.1.plain();
    let mut paths = search::paths(filter, value.clone());
    let mut next = paths.next();
    // The search shares the value. It is dropped before the last path, so that a single path changes the value in place.
    let mut paths = Some(paths);
    while let Some(path) = next {
        next = paths.as_mut().and_then(Iterator::next);
        if next.is_none() {
            paths = None;
        }
        let path = match path.and_then(|path| Ok(Val::array(path)?)) {
            Ok(path) => path,
            Err(error) => return one(Err(error)),
        };
        value = match setpath(budget, value, &path, &new) {
            Ok(value) => value,
            Err(error) => return one(Err(error)),
        };
    }
    one(Ok(value))
}

/// `paths |= change`: replaces each value by the first output of the change. If there is none, the value is deleted.
fn modify(mut cv: Cv<'_>) -> Outs<'_> {
    let budget = budget(&cv);
    let (change, context) = cv.0.pop_fun();
    let filter = cv.0.pop_fun();
    let mut value = cv.1.plain();
    let mut paths = search::paths(filter, value.clone());
    let mut step = || {
        let mut gone = Vec::new();
        for path in paths.by_ref() {
            let path = Val::array(path?)?;
            let old = search::getpath(&value, &path)?;
            let new = change.run((context.clone(), old)).next();
            match new {
                Some(new) => value = setpath(budget, std::mem::replace(&mut value, Val::Null), &path, &new?.plain())?,
                None => gone.push(path),
            }
        }
        if gone.is_empty() {
            return Ok(std::mem::replace(&mut value, Val::Null));
        }
        let gone = Val::array(gone)?;
        delpaths(budget, std::mem::replace(&mut value, Val::Null), &gone)
    };
    one(step())
}

fn setpath<'a>(budget: &Budget<'_>, mut value: Val<'a>, path: &Val<'a>, new: &Val<'a>) -> Out<'a> {
    let Some(list) = path.as_list() else {
        return Err(Exn::from(say::with("setpath", &value, path)));
    };
    let keys: Vec<Val<'a>> = list.iter().collect();
    let mut copied = 0;
    let shown = |value: &Val<'a>, why: &jaq_core::Error<Val<'a>>| {
        let (path, new, value) = [path, new, value].map(preview).into();
        fault(format!("setpath({path}; {new}) cannot be applied to {value}: {why}"))
    };
    let result = put(&mut value, &keys, new, &mut copied);
    budget.memory(copied + keys.len())?;
    budget.work(weighing(new)?)?;
    match result {
        Ok(()) => Ok(value),
        Err(why) => Err(Exn::from(shown(&value, &why))),
    }
}

/// Marks all places first, and removes them only then, because the indexes of an array must not change in between.
fn delpaths<'a>(budget: &Budget<'_>, mut value: Val<'a>, paths: &Val<'a>) -> Out<'a> {
    let Some(list) = paths.as_list() else {
        return Err(Exn::from(say::with("delpaths", &value, paths)));
    };
    if list.len() == 0 {
        return Ok(value);
    }
    let mut copied = 0;
    for path in list.iter() {
        let Some(keys) = path.as_list() else {
            return Err(Exn::from(say::because(
                "delpaths",
                &value,
                &say::array(&path).to_string(),
            )));
        };
        let keys: Vec<Val<'a>> = keys.iter().collect();
        if let Err(why) = put(&mut value, &keys, &Val::Hole, &mut copied) {
            return Err(Exn::from(say::because("delpaths", &value, &why.to_string())));
        }
        budget.memory(std::mem::take(&mut copied))?;
    }
    let mut walked = 0;
    let cleaned = without_holes(&value, &mut walked)?;
    budget.memory(walked)?;
    Ok(cleaned.unwrap_or(value))
}

/// Puts a value at a path. The value may be a hole, which only replaces existing values.
fn put<'a>(value: &mut Val<'a>, keys: &[Val<'a>], new: &Val<'a>, copied: &mut usize) -> Res<'a, ()> {
    let Some((key, rest)) = keys.split_first() else {
        *value = new.clone();
        return Ok(());
    };
    if rest.len() >= MAX_DEPTH as usize {
        return Err(fault(format!("a path of {} steps", keys.len())));
    }
    if value.is_hole() {
        return Ok(());
    }
    match key.bare() {
        Val::Str(key) => put_key(value, key, rest, new, copied),
        Val::Num(index) => put_index(value, index, rest, new, copied),
        Val::Obj(_) | Val::RawObj(_) => put_slice(value, key, rest, new, copied),
        other if value.as_list().is_some() => Err(fault(format!(
            "expected a number for indexing an array but got: {}",
            say::typed(other)
        ))),
        other => Err(say::key(other)),
    }
}

fn put_key<'a>(
    value: &mut Val<'a>,
    key: &Text<'a>,
    rest: &[Val<'a>],
    new: &Val<'a>,
    copied: &mut usize,
) -> Res<'a, ()> {
    match value.as_dict() {
        Some(dict) if new.is_hole() && dict.get(key).is_none() => return Ok(()),
        Some(_) => {}
        // Null becomes an object even if a path is deleted, as in the original.
        None if matches!(value, Val::Null) => {
            *value = Val::object(std::collections::BTreeMap::new())?;
            if new.is_hole() {
                return Ok(());
            }
        }
        None => return Err(say::object(value)),
    }
    let mut below = 0;
    let ((), here) = change_object(value, |entries| {
        let mut child = entries.remove(key).unwrap_or(Val::Null);
        let old = child.size()?;
        let result = put(&mut child, rest, new, &mut below);
        let mut growth = Growth::swap(old, &child)?;
        growth.added.weight += Size::text(key).weight;
        entries.insert(key.clone(), child);
        result.map(|()| ((), growth))
    })?;
    *copied += here + below;
    Ok(())
}

fn put_index<'a>(value: &mut Val<'a>, index: &Num, rest: &[Val<'a>], new: &Val<'a>, copied: &mut usize) -> Res<'a, ()> {
    let length = match value.as_list() {
        Some(list) => list.len(),
        None if matches!(value, Val::Null) => 0,
        None => return Err(say::array(value)),
    };
    if matches!(value, Val::Null) {
        *value = Val::array(Vec::new())?;
    }
    let index = index.int();
    let place = match trace::position(index, length) {
        Some(place) => place,
        None if new.is_hole() => return Ok(()),
        None if index < 0 => return Err(fault(format!("array index should not be negative: {index}"))),
        None if index >= MAX_INDEX => return Err(fault(format!("array index too large: {index}"))),
        None => usize::try_from(index).unwrap_or(usize::MAX),
    };
    if place as u64 >= MAX_WEIGHT {
        return Err(fault(format!("array index too large: {index}")));
    }
    let mut below = 0;
    let ((), here) = change_array(value, |items| {
        let extended = (place + 1).saturating_sub(items.len());
        items.resize(items.len().max(place + 1), Val::Null);
        let mut child = std::mem::replace(&mut items[place], Val::Null);
        let old = child.size()?;
        let result = put(&mut child, rest, new, &mut below);
        let mut growth = Growth::swap(old, &child)?;
        growth.added.weight += extended as u64;
        below += extended;
        items[place] = child;
        result.map(|()| ((), growth))
    })?;
    *copied += here + below;
    Ok(())
}

fn put_slice<'a>(
    value: &mut Val<'a>,
    key: &Val<'a>,
    rest: &[Val<'a>],
    new: &Val<'a>,
    copied: &mut usize,
) -> Res<'a, ()> {
    let length = match value.as_list() {
        Some(list) => list.len(),
        None if matches!(value, Val::Null) => 0,
        None => return Err(say::array(value)),
    };
    let (start, end) = trace::bounds(key)?;
    let numbers_only = |bound: Val<'a>| if bound.as_num().is_some() { bound } else { Val::Null };
    let (from, upto) = trace::span(&numbers_only(start), &numbers_only(end), length, "an array")?;
    if matches!(value, Val::Null) {
        *value = Val::array(Vec::new())?;
    }
    if from == upto && new.is_hole() {
        return Ok(());
    }
    let items: Vec<Val<'a>> = value.as_list().map(|list| list.iter().collect()).unwrap_or_default();
    let mut part = Val::array(items[from..upto].to_vec())?;
    put(&mut part, rest, new, copied)?;
    let middle: Vec<Val<'a>> = match part.as_list() {
        Some(list) => list.iter().collect(),
        None if part.is_hole() => vec![Val::Hole; upto - from],
        None => return Err(say::array(&part)),
    };
    *copied += items.len() + middle.len();
    let mut changed = items[..from].to_vec();
    changed.extend(middle);
    changed.extend_from_slice(&items[upto..]);
    *value = Val::array(changed)?;
    Ok(())
}

/// The value without the marked places; `None` if no place was marked.
fn without_holes<'a>(value: &Val<'a>, walked: &mut usize) -> Res<'a, Option<Val<'a>>> {
    match value {
        Val::Hole => Ok(Some(Val::Null)),
        Val::Arr(array) => {
            *walked += array.items.len();
            let mut changed = None;
            for (index, item) in array.items.iter().enumerate() {
                let clean = without_holes(item, walked)?;
                if changed.is_none() && clean.is_some() {
                    changed = Some(array.items[..index].to_vec());
                }
                if let Some(items) = &mut changed
                    && !item.is_hole()
                {
                    items.push(clean.unwrap_or_else(|| item.clone()));
                }
            }
            changed.map(Val::array).transpose()
        }
        Val::Obj(object) => {
            *walked += object.entries.len();
            let mut changed = None;
            for (key, item) in &object.entries {
                if let Some(clean) = without_holes(item, walked)? {
                    let entries = changed.get_or_insert_with(|| object.entries.clone());
                    if item.is_hole() {
                        entries.remove(key);
                    } else {
                        entries.insert(key.clone(), clean);
                    }
                }
            }
            changed.map(Val::object).transpose()
        }
        _ => Ok(None),
    }
}
