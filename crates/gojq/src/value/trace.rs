//! The paths of values.
//!
//! The original finds the paths of an expression by watching which values it passes on. Here the values carry their
//! paths: during a search the input is a traced value, a step into a traced value gives a traced one with a longer path,
//! and a computed value is not traced. A path belongs to one search; a value that another search traced has no path in
//! this one. Must never put a traced value into an array or an object.

use std::rc::Rc;

use super::wording as say;
use super::{MAX_DEPTH, Res, Val, compare, fault, import};
use crate::number::Num;

/// A value, its search, and its path.
#[derive(Debug)]
pub(crate) struct Traced<'a> {
    pub(crate) search: u64,
    pub(crate) path: Option<Rc<PathStep<'a>>>,
    pub(crate) value: Val<'a>,
}

/// The last step of a path, and the steps before it.
#[derive(Debug)]
pub(crate) struct PathStep<'a> {
    key: Val<'a>,
    before: Option<Rc<Self>>,
    length: u32,
}

impl<'a> Traced<'a> {
    /// The start of a search.
    pub(crate) fn root(search: u64, value: Val<'a>) -> Val<'a> {
        Val::Traced(Rc::new(Self {
            search,
            path: None,
            value: value.plain(),
        }))
    }

    /// The value one step further.
    pub(crate) fn child(&self, key: Val<'a>, value: Val<'a>) -> Res<'a> {
        let length = self.path.as_ref().map_or(0, |step| step.length) + 1;
        if length > MAX_DEPTH {
            return Err(fault(format!("a path of more than {MAX_DEPTH} steps")));
        }
        let step = PathStep {
            key,
            before: self.path.clone(),
            length,
        };
        Ok(Val::Traced(Rc::new(Self {
            search: self.search,
            path: Some(Rc::new(step)),
            value,
        })))
    }

    /// The path as an array.
    pub(crate) fn path(&self) -> Vec<Val<'a>> {
        let mut keys = Vec::new();
        let mut next = self.path.as_ref();
        while let Some(step) = next {
            keys.push(step.key.clone());
            next = step.before.as_ref();
        }
        keys.reverse();
        keys
    }
}

/// `value[key]`, traced if the value is traced.
pub(crate) fn step<'a>(value: &Val<'a>, key: &Val<'a>) -> Res<'a> {
    match value {
        Val::Traced(traced) => {
            let found = look(&traced.value, key)?;
            traced.child(key.clone().plain(), found)
        }
        plain => look(plain, key),
    }
}

/// `value[key]` of a value that is not traced.
pub(crate) fn look<'a>(value: &Val<'a>, key: &Val<'a>) -> Res<'a> {
    let (value, key) = (value.bare(), key.bare());
    if let Val::Str(key) = key {
        return match value {
            Val::Null => Ok(Val::Null),
            Val::RawObj(map) => Ok(map.get(&**key).map_or(Val::Null, import)),
            _ => match value.as_dict() {
                Some(dict) => Ok(dict.get(key).unwrap_or(Val::Null)),
                None => Err(say::object(value)),
            },
        };
    }
    if let Val::Num(num) = key {
        return at(value, num);
    }
    if let Some(wanted) = key.as_list() {
        return match value.as_list() {
            _ if matches!(value, Val::Null) => Ok(Val::Null),
            None => Err(say::array(value)),
            Some(list) => {
                let wanted: Vec<Val<'a>> = wanted.iter().collect();
                let items: Vec<Val<'a>> = list.iter().collect();
                Val::array(occurrences(&items, &wanted).map(Val::count).collect())
            }
        };
    }
    if key.as_dict().is_some() {
        if matches!(value, Val::Null) {
            return Ok(Val::Null);
        }
        let (start, end) = bounds(key)?;
        return slice(value, &start, &end);
    }
    Err(match value.kind() {
        "array" => fault(format!(
            "expected a number for indexing an array but got: {}",
            say::typed(key)
        )),
        "string" => fault(format!(
            "expected a number for indexing a string but got: {}",
            say::typed(key)
        )),
        _ => say::key(key),
    })
}

fn at<'a>(value: &Val<'a>, num: &Num) -> Res<'a> {
    if matches!(value, Val::Null) {
        return Ok(Val::Null);
    }
    if let Some(list) = value.as_list() {
        return Ok(position(num.int(), list.len())
            .and_then(|index| list.get(index))
            .unwrap_or(Val::Null));
    }
    let Some(text) = value.as_str() else {
        return Err(say::array(value));
    };
    let count = text.chars().count();
    let char = position(num.int(), count).and_then(|index| text.chars().nth(index));
    Ok(char.map_or(Val::Null, |char| Val::from(char.to_string())))
}

/// The place of an index, which may count from the end.
pub(crate) fn position(index: i64, length: usize) -> Option<usize> {
    let length = i64::try_from(length).ok()?;
    let index = if index < 0 { index.saturating_add(length) } else { index };
    usize::try_from(index).ok().filter(|_| index < length)
}

/// A bound, which may count from the end and may exceed the array.
fn clamp(bound: &Val<'_>, low: usize, length: usize) -> Option<usize> {
    let bound = bound.as_num()?.int();
    let top = i64::try_from(length).ok()?;
    let bound = if bound < 0 { bound.saturating_add(top) } else { bound };
    let bound = bound.clamp(i64::try_from(low).ok()?, top.max(i64::try_from(low).ok()?));
    usize::try_from(bound).ok()
}

/// The `start` and `end` of a key that is an object.
pub(crate) fn bounds<'a>(key: &Val<'a>) -> Res<'a, (Val<'a>, Val<'a>)> {
    let bounds = key
        .as_dict()
        .and_then(|dict| Some((dict.get("start")?, dict.get("end")?)));
    bounds.ok_or_else(|| {
        fault(format!(
            "expected \"start\" and \"end\" for slicing but got: {}",
            say::typed(key)
        ))
    })
}

/// The beginning and the end of a slice, for an array or a text of this length.
pub(crate) fn span<'a>(start: &Val<'a>, end: &Val<'a>, length: usize, of: &str) -> Res<'a, (usize, usize)> {
    let refuse = |bound: &Val<'a>| {
        fault(format!(
            "expected a number for indexing {of} but got: {}",
            say::typed(bound)
        ))
    };
    let from = match start.bare() {
        Val::Null => 0,
        start => clamp(start, 0, length).ok_or_else(|| refuse(start))?,
    };
    let upto = match end.bare() {
        Val::Null => length,
        end => clamp(end, from, length).ok_or_else(|| refuse(end))?,
    };
    Ok((from, upto.max(from)))
}

/// `value[start:end]` of a value that is not traced.
pub(crate) fn slice<'a>(value: &Val<'a>, start: &Val<'a>, end: &Val<'a>) -> Res<'a> {
    match value.bare() {
        Val::Null => Ok(Val::Null),
        Val::RawArr(items) => {
            let (from, upto) = span(start, end, items.len(), "an array")?;
            Ok(Val::RawArr(&items[from..upto]))
        }
        Val::Arr(array) => {
            let (from, upto) = span(start, end, array.items.len(), "an array")?;
            Val::array(array.items[from..upto].to_vec())
        }
        Val::Str(text) => {
            let (from, upto) = span(start, end, text.chars().count(), "a string")?;
            Val::string(text.chars().skip(from).take(upto - from).collect())
        }
        other => Err(say::array(other)),
    }
}

/// The places of a sequence of items in another one.
pub(crate) fn occurrences<'v>(items: &'v [Val<'_>], wanted: &'v [Val<'_>]) -> impl Iterator<Item = usize> + 'v {
    let starts = if wanted.is_empty() {
        0
    } else {
        (items.len() + 1).saturating_sub(wanted.len())
    };
    (0..starts).filter(move |start| {
        items[*start..*start + wanted.len()]
            .iter()
            .zip(wanted)
            .all(|(item, wanted)| compare(item, wanted).is_eq())
    })
}
