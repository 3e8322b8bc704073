//! The texts of errors. A filter can catch and read them, so they equal those of the original.

use std::collections::BTreeMap;

use jaq_core::Error;

use super::{Res, Text, Val, fault, preview};

/// A value with its type, shortened.
pub(crate) fn typed(value: &Val<'_>) -> String {
    match value.bare() {
        Val::Null => "null".to_owned(),
        value => format!("{} ({})", value.kind(), preview(value)),
    }
}

/// The error for a value that should be an object.
pub(crate) fn object<'a>(value: &Val<'a>) -> Error<Val<'a>> {
    fault(format!("expected an object but got: {}", typed(value)))
}

/// The error for a value that should be an array.
pub(crate) fn array<'a>(value: &Val<'a>) -> Error<Val<'a>> {
    fault(format!("expected an array but got: {}", typed(value)))
}

/// The error for a key that is no string.
pub(crate) fn key<'a>(value: &Val<'a>) -> Error<Val<'a>> {
    fault(format!("expected a string for object key but got: {}", typed(value)))
}

/// The error for `name` on a value of the wrong type.
pub(crate) fn plain<'a>(name: &str, value: &Val<'a>) -> Error<Val<'a>> {
    fault(format!("{name} cannot be applied to: {}", typed(value)))
}

/// The error for `name(arg)` on a value of the wrong type.
pub(crate) fn with<'a>(name: &str, value: &Val<'a>, arg: &Val<'a>) -> Error<Val<'a>> {
    fault(format!(
        "{name}({}) cannot be applied to: {}",
        preview(arg),
        typed(value)
    ))
}

/// The error for `name(arg; more)` on a value of the wrong type.
pub(crate) fn with_two<'a>(name: &str, value: &Val<'a>, arg: &Val<'a>, more: &Val<'a>) -> Error<Val<'a>> {
    fault(format!(
        "{name}({}; {}) cannot be applied to: {}",
        preview(arg),
        preview(more),
        typed(value)
    ))
}

/// The error for `name` on a value, with the reason.
pub(crate) fn because<'a>(name: &str, value: &Val<'a>, why: &str) -> Error<Val<'a>> {
    fault(format!("{name} cannot be applied to {}: {why}", preview(value)))
}

/// The error for an operator with one operand of the wrong type.
pub(crate) fn unary<'a>(name: &str, value: &Val<'a>) -> Error<Val<'a>> {
    fault(format!("cannot {name}: {}", typed(value)))
}

/// The error for an operator whose operands do not fit together.
pub(crate) fn binary<'a>(name: &str, left: &Val<'a>, right: &Val<'a>) -> Error<Val<'a>> {
    fault(format!("cannot {name}: {} and {}", typed(left), typed(right)))
}

/// The error for a division by zero.
pub(crate) fn zero<'a>(name: &str, left: &Val<'a>, right: &Val<'a>) -> Error<Val<'a>> {
    fault(format!("cannot {name} {} by: {}", typed(left), typed(right)))
}

/// The key of a slice.
pub(crate) fn slice_key<'a>(start: Val<'a>, end: Val<'a>) -> Res<'a> {
    let entries = [("start", start), ("end", end)].map(|(key, value)| (Text::Raw(key), value.plain()));
    Val::object(BTreeMap::from(entries))
}
