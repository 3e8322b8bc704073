//! The values that filters work on.
//!
//! The input is borrowed, not copied: an array or an object of it is copied one level deep, and only when a filter
//! changes it. Every value knows its weight and its depth, and neither may exceed the limits here. So code that recurses
//! into a value, down to dropping it, has a bounded stack, and code that walks over it a bounded time, even if a value
//! contains the same part a million times.

mod change;
mod engine;
mod json;
mod order;
pub(crate) mod trace;
mod view;
pub(crate) mod wording;

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::rc::Rc;

use jaq_core::Error;
use serde_json::{Map, Value};

use crate::number::Num;
use trace::Traced;

pub(crate) use change::{Growth, change_array, change_object};
pub(crate) use json::{from_json, import, preview, to_json};
pub(crate) use order::compare;
pub(crate) use view::{Dict, List};

/// A value or an error. An error carries a value, too.
pub(crate) type Res<'a, T = Val<'a>> = Result<T, Error<Val<'a>>>;

/// The depth up to which arrays and objects may be nested.
pub(crate) const MAX_DEPTH: u32 = 400;

/// The weight up to which a value may grow: nodes, with one more for every 16 bytes of text.
pub(crate) const MAX_WEIGHT: u64 = 2_000_000;

/// One value.
#[derive(Debug, Clone)]
pub(crate) enum Val<'a> {
    Null,
    Bool(bool),
    Num(Num),
    Str(Text<'a>),
    Arr(Rc<Arr<'a>>),
    Obj(Rc<Obj<'a>>),
    /// An array of the input.
    RawArr(&'a [Value]),
    /// An object of the input.
    RawObj(&'a Map<String, Value>),
    /// A value with the path at which it was found. Used only while paths are searched for.
    Traced(Rc<Traced<'a>>),
    /// A state of `foreach` with all outputs of its update.
    Burst(Rc<Burst<'a>>),
    /// A deleted place. Used only while paths are deleted.
    Hole,
}

/// A text that belongs to the input or to the filter's run.
#[derive(Debug, Clone)]
pub(crate) enum Text<'a> {
    Raw(&'a str),
    Own(Rc<str>),
}

/// An array that was made by a filter.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arr<'a> {
    pub(crate) items: Vec<Val<'a>>,
    size: Size,
}

/// An object that was made by a filter.
#[derive(Debug, Clone, Default)]
pub(crate) struct Obj<'a> {
    pub(crate) entries: BTreeMap<Text<'a>, Val<'a>>,
    size: Size,
}

/// The state of `foreach`, see [`Val::Burst`].
#[derive(Debug)]
pub(crate) struct Burst<'a> {
    pub(crate) state: Val<'a>,
    pub(crate) outputs: Vec<Val<'a>>,
}

/// The weight and the depth of a value. After a removal they may be too large, never too small.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Size {
    pub(crate) weight: u64,
    pub(crate) depth: u32,
}

impl Size {
    fn hold(&mut self, part: Self) {
        self.weight = self.weight.saturating_add(part.weight);
        self.depth = self.depth.max(part.depth + 1);
    }

    fn check<'a>(self) -> Res<'a, ()> {
        if self.depth > MAX_DEPTH {
            return Err(fault(format!("a value is nested more than {MAX_DEPTH} levels deep")));
        }
        if self.weight > MAX_WEIGHT {
            return Err(fault(format!("a value has more than {MAX_WEIGHT} parts")));
        }
        Ok(())
    }

    /// The number of steps, if this many parts of the weight take one step.
    pub(crate) fn steps(self, parts: u64) -> usize {
        usize::try_from(self.weight / parts).unwrap_or(usize::MAX)
    }

    pub(crate) fn text(text: &str) -> Self {
        Self {
            weight: 1 + text.len() as u64 / 16,
            depth: 0,
        }
    }

    /// The size of a value of the input.
    pub(crate) fn raw<'a>(value: &Value) -> Res<'a, Self> {
        let mut size = Self { weight: 1, depth: 0 };
        match value {
            Value::String(text) => return Ok(Self::text(text)),
            Value::Array(items) => {
                for item in items {
                    size.hold(Self::raw(item)?);
                    size.check()?;
                }
            }
            Value::Object(map) => {
                for (key, item) in map {
                    size.hold(Self::text(key));
                    size.hold(Self::raw(item)?);
                    size.check()?;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        Ok(size)
    }
}

/// An error with a text.
pub(crate) fn fault<'a>(text: impl Into<String>) -> Error<Val<'a>> {
    Error::new(Val::from(text.into()))
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Raw(text) => text,
            Self::Own(text) => text,
        }
    }
}

impl Borrow<str> for Text<'_> {
    fn borrow(&self) -> &str {
        self
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Text<'_> {}

impl PartialOrd for Text<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}

impl<'a> Val<'a> {
    pub(crate) fn int(int: i64) -> Self {
        Self::Num(Num::Int(int))
    }

    pub(crate) fn count(count: usize) -> Self {
        Self::Num(Num::count(count))
    }

    pub(crate) fn float(float: f64) -> Self {
        Self::Num(Num::Float(float))
    }

    pub(crate) fn text(text: &str) -> Self {
        Self::Str(Text::Own(Rc::from(text)))
    }

    /// An array; an error if it exceeds a limit.
    pub(crate) fn array(items: Vec<Self>) -> Res<'a> {
        let mut size = Size { weight: 1, depth: 0 };
        for item in &items {
            size.hold(item.size()?);
        }
        size.check()?;
        Ok(Self::Arr(Rc::new(Arr { items, size })))
    }

    /// An object; an error if it exceeds a limit.
    pub(crate) fn object(entries: BTreeMap<Text<'a>, Self>) -> Res<'a> {
        let mut size = Size { weight: 1, depth: 0 };
        for (key, item) in &entries {
            size.hold(Size::text(key));
            size.hold(item.size()?);
        }
        size.check()?;
        Ok(Self::Obj(Rc::new(Obj { entries, size })))
    }

    /// A string; an error if it exceeds a limit.
    pub(crate) fn string(text: String) -> Res<'a> {
        Size::text(&text).check()?;
        Ok(Self::from(text))
    }

    pub(crate) fn size(&self) -> Res<'a, Size> {
        Ok(match self {
            Self::Null | Self::Bool(_) | Self::Num(_) | Self::Hole => Size { weight: 1, depth: 0 },
            Self::Str(text) => Size::text(text),
            Self::Arr(array) => array.size,
            Self::Obj(object) => object.size,
            Self::RawArr(items) => {
                let mut size = Size { weight: 1, depth: 0 };
                for item in *items {
                    size.hold(Size::raw(item)?);
                }
                size
            }
            Self::RawObj(map) => {
                let mut size = Size { weight: 1, depth: 0 };
                for (key, item) in *map {
                    size.hold(Size::text(key));
                    size.hold(Size::raw(item)?);
                }
                size
            }
            Self::Traced(traced) => traced.value.size()?,
            Self::Burst(burst) => burst.state.size()?,
        })
    }

    /// The value without its path.
    pub(crate) fn plain(self) -> Self {
        match self {
            Self::Traced(traced) => traced.value.clone(),
            Self::Burst(burst) => burst.state.clone().plain(),
            other => other,
        }
    }

    /// The borrowed value without its path.
    pub(crate) fn bare(&self) -> &Self {
        match self {
            Self::Traced(traced) => &traced.value,
            Self::Burst(burst) => burst.state.bare(),
            other => other,
        }
    }

    pub(crate) fn as_list(&self) -> Option<List<'_, 'a>> {
        match self.bare() {
            Self::Arr(array) => Some(List::Own(&array.items)),
            Self::RawArr(items) => Some(List::Raw(items)),
            _ => None,
        }
    }

    pub(crate) fn as_dict(&self) -> Option<Dict<'_, 'a>> {
        match self.bare() {
            Self::Obj(object) => Some(Dict::Own(&object.entries)),
            Self::RawObj(map) => Some(Dict::Raw(map)),
            _ => None,
        }
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self.bare() {
            Self::Str(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_num(&self) -> Option<&Num> {
        match self.bare() {
            Self::Num(num) => Some(num),
            _ => None,
        }
    }

    pub(crate) fn truth(&self) -> bool {
        !matches!(self.bare(), Self::Null | Self::Bool(false) | Self::Hole)
    }

    /// The name of the value's type, as `type` gives it.
    pub(crate) fn kind(&self) -> &'static str {
        match self.bare() {
            Self::Bool(_) => "boolean",
            Self::Num(_) => "number",
            Self::Str(_) => "string",
            Self::Arr(_) | Self::RawArr(_) => "array",
            Self::Obj(_) | Self::RawObj(_) => "object",
            Self::Null | Self::Hole | Self::Traced(_) | Self::Burst(_) => "null",
        }
    }

    /// Whether this is a deleted place, which is removed from its array or object.
    pub(crate) fn is_hole(&self) -> bool {
        matches!(self, Self::Hole)
    }

    /// The children of an array or an object; `None` for other values.
    pub(crate) fn children(&self) -> Option<Vec<Self>> {
        if let Some(list) = self.as_list() {
            return Some(list.iter().collect());
        }
        self.as_dict().map(|dict| dict.iter().map(|(_, value)| value).collect())
    }
}
