//! Changes of an array or an object in place if it is not shared, with an update of its size.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::{Res, Size, Text, Val, fault, import};

/// The change of a container's size.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Growth {
    pub(crate) added: Size,
    pub(crate) removed: u64,
}

impl Growth {
    /// The change if one value replaces another.
    pub(crate) fn swap<'a>(old: Size, new: &Val<'a>) -> Res<'a, Self> {
        Ok(Self {
            added: new.size()?,
            removed: old.weight,
        })
    }
}

impl Size {
    fn grow(&mut self, growth: Growth) {
        self.hold(growth.added);
        self.weight = self.weight.saturating_sub(growth.removed).max(1);
    }
}

/// Gives the items of an array to `change`. An array of the input, or a shared one, is copied first. Returns the number
/// of copied items, too.
pub(crate) fn change_array<'a, T>(
    value: &mut Val<'a>,
    change: impl FnOnce(&mut Vec<Val<'a>>) -> Res<'a, (T, Growth)>,
) -> Res<'a, (T, usize)> {
    let mut copied = 0;
    if let Val::RawArr(items) = *value {
        *value = Val::array(items.iter().map(import).collect())?;
        copied = items.len() + value.size()?.steps(16);
    }
    let Val::Arr(array) = value else {
        return Err(fault("expected an array"));
    };
    if Rc::strong_count(array) > 1 {
        copied = array.items.len();
    }
    let array = Rc::make_mut(array);
    let (result, growth) = change(&mut array.items)?;
    array.size.grow(growth);
    if array.size.check().is_err() {
        array.size = Size { weight: 1, depth: 0 };
        for item in &array.items {
            array.size.hold(item.size()?);
        }
        array.size.check()?;
    }
    Ok((result, copied))
}

/// Gives the entries of an object to `change`. An object of the input, or a shared one, is copied first.
pub(crate) fn change_object<'a, T>(
    value: &mut Val<'a>,
    change: impl FnOnce(&mut BTreeMap<Text<'a>, Val<'a>>) -> Res<'a, (T, Growth)>,
) -> Res<'a, (T, usize)> {
    let mut copied = 0;
    if let Val::RawObj(map) = *value {
        *value = Val::object(map.iter().map(|(key, item)| (Text::Raw(key), import(item))).collect())?;
        copied = map.len() + value.size()?.steps(16);
    }
    let Val::Obj(object) = value else {
        return Err(fault("expected an object"));
    };
    if Rc::strong_count(object) > 1 {
        copied = object.entries.len();
    }
    let object = Rc::make_mut(object);
    let (result, growth) = change(&mut object.entries)?;
    object.size.grow(growth);
    if object.size.check().is_err() {
        object.size = Size { weight: 1, depth: 0 };
        for (key, item) in &object.entries {
            object.size.hold(Size::text(key));
            object.size.hold(item.size()?);
        }
        object.size.check()?;
    }
    Ok((result, copied))
}
