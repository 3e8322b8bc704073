//! The operations of the engine itself on values: constants, constant indexes, truth, and building objects.
//!
//! All other operations are our natives, called by name. The other methods here fail with an error that says so.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Range, Rem, Sub};
use std::rc::Rc;

use jaq_core::box_iter::BoxIter;
use jaq_core::path::Opt;
use jaq_core::{Error, Exn, ValR, ValT, ValX};

use super::trace;
use super::wording as say;
use super::{Text, Val, change_object, compare, fault, to_json};
use crate::number::Num;
use crate::value::{Growth, Size};

fn unreachable_here<'a>(what: &str) -> Error<Val<'a>> {
    fault(format!("{what} is not how we do it"))
}

impl fmt::Display for Val<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_str() {
            Some(text) => f.write_str(text),
            None => f.write_str(&to_json(self)),
        }
    }
}

impl From<bool> for Val<'_> {
    fn from(bool: bool) -> Self {
        Self::Bool(bool)
    }
}

impl From<isize> for Val<'_> {
    fn from(int: isize) -> Self {
        i64::try_from(int).map_or(Self::Null, Self::int)
    }
}

impl From<String> for Val<'_> {
    fn from(text: String) -> Self {
        Self::Str(Text::Own(Rc::from(text)))
    }
}

impl From<Range<Option<Self>>> for Val<'_> {
    fn from(range: Range<Option<Self>>) -> Self {
        say::slice_key(range.start.unwrap_or(Self::Null), range.end.unwrap_or(Self::Null)).unwrap_or(Self::Null)
    }
}

impl FromIterator<Self> for Val<'_> {
    fn from_iter<I: IntoIterator<Item = Self>>(items: I) -> Self {
        Self::array(items.into_iter().map(Self::plain).collect()).unwrap_or(Self::Null)
    }
}

impl PartialEq for Val<'_> {
    fn eq(&self, other: &Self) -> bool {
        compare(self, other) == Ordering::Equal
    }
}

impl PartialOrd for Val<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(compare(self, other))
    }
}

/// The engine builds objects entry by entry. All other sums are natives.
impl Add for Val<'_> {
    type Output = ValR<Self>;

    fn add(mut self, other: Self) -> ValR<Self> {
        let Val::Obj(more) = other else {
            return Err(unreachable_here("this sum"));
        };
        let more = Rc::unwrap_or_clone(more).entries;
        change_object(&mut self, |entries| {
            let mut growth = Growth::default();
            for (key, value) in more {
                growth.added.weight += Size::text(&key).weight + value.size()?.weight;
                growth.added.depth = growth.added.depth.max(value.size()?.depth);
                entries.insert(key, value);
            }
            Ok(((), growth))
        })?;
        Ok(self)
    }
}

impl Sub for Val<'_> {
    type Output = ValR<Self>;

    fn sub(self, _other: Self) -> ValR<Self> {
        Err(unreachable_here("this difference"))
    }
}

impl Mul for Val<'_> {
    type Output = ValR<Self>;

    fn mul(self, _other: Self) -> ValR<Self> {
        Err(unreachable_here("this product"))
    }
}

impl Div for Val<'_> {
    type Output = ValR<Self>;

    fn div(self, _other: Self) -> ValR<Self> {
        Err(unreachable_here("this quotient"))
    }
}

impl Rem for Val<'_> {
    type Output = ValR<Self>;

    fn rem(self, _other: Self) -> ValR<Self> {
        Err(unreachable_here("this remainder"))
    }
}

impl Neg for Val<'_> {
    type Output = ValR<Self>;

    fn neg(self) -> ValR<Self> {
        match self.as_num() {
            Some(num) => Ok(Self::Num(num.negate())),
            None => Err(say::unary("negate", &self)),
        }
    }
}

impl ValT for Val<'_> {
    fn from_num(text: &str) -> ValR<Self> {
        Num::parse(text)
            .map(Self::Num)
            .ok_or_else(|| fault(format!("{text} is no number")))
    }

    fn from_map<I: IntoIterator<Item = (Self, Self)>>(entries: I) -> ValR<Self> {
        let mut object = BTreeMap::new();
        for (key, value) in entries {
            match key.plain() {
                Self::Str(key) => object.insert(key, value.plain()),
                other => return Err(say::key(&other)),
            };
        }
        Self::object(object)
    }

    // The returned iterator outlives the input, so it cannot give parts of it. The engine calls these two only for `..`,
    // for `[]` and for natives of its own, and `lower` makes none of these.
    fn key_values(self) -> BoxIter<'static, ValR<(Self, Self), Self>> {
        unreachable!("entries are listed by a native of ours")
    }

    fn values(self) -> Box<dyn Iterator<Item = ValR<Self>>> {
        unreachable!("children are listed by a native of ours")
    }

    fn index(self, index: &Self) -> ValR<Self> {
        trace::step(&self, index)
    }

    fn range(self, _range: Range<Option<&Self>>) -> ValR<Self> {
        Err(unreachable_here("this slice"))
    }

    fn map_values<'b, I: Iterator<Item = ValX<'b, Self>>>(self, _opt: Opt, _f: impl Fn(Self) -> I) -> ValX<'b, Self> {
        Err(Exn::from(unreachable_here("this update")))
    }

    fn map_index<'b, I: Iterator<Item = ValX<'b, Self>>>(
        self,
        _index: &Self,
        _opt: Opt,
        _f: impl Fn(Self) -> I,
    ) -> ValX<'b, Self> {
        Err(Exn::from(unreachable_here("this update")))
    }

    fn map_range<'b, I: Iterator<Item = ValX<'b, Self>>>(
        self,
        _range: Range<Option<&Self>>,
        _opt: Opt,
        _f: impl Fn(Self) -> I,
    ) -> ValX<'b, Self> {
        Err(Exn::from(unreachable_here("this update")))
    }

    fn as_bool(&self) -> bool {
        self.truth()
    }

    fn into_string(self) -> Self {
        match self.plain() {
            text @ Self::Str(_) => text,
            other => Self::from(to_json(&other)),
        }
    }
}
