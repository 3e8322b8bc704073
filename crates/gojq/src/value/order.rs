//! The order of all values: null, false, true, numbers, strings, arrays, objects.

use std::cmp::Ordering;

use super::{Dict, List, Val};

/// Compares two values of any kind.
pub(crate) fn compare(left: &Val<'_>, right: &Val<'_>) -> Ordering {
    let (left, right) = (left.bare(), right.bare());
    if let (Some(left), Some(right)) = (left.as_num(), right.as_num()) {
        return left.order(right);
    }
    if let (Some(left), Some(right)) = (left.as_str(), right.as_str()) {
        return left.cmp(right);
    }
    if let (Some(left), Some(right)) = (left.as_list(), right.as_list()) {
        return lists(left, right);
    }
    if let (Some(left), Some(right)) = (left.as_dict(), right.as_dict()) {
        return dicts(left, right);
    }
    rank(left).cmp(&rank(right))
}

fn rank(value: &Val<'_>) -> u8 {
    match value {
        Val::Bool(false) => 1,
        Val::Bool(true) => 2,
        Val::Num(_) => 3,
        Val::Str(_) => 4,
        Val::Arr(_) | Val::RawArr(_) => 5,
        Val::Obj(_) | Val::RawObj(_) => 6,
        Val::Null | Val::Hole | Val::Traced(_) | Val::Burst(_) => 0,
    }
}

fn lists(left: List<'_, '_>, right: List<'_, '_>) -> Ordering {
    let unequal = left
        .iter()
        .zip(right.iter())
        .map(|(left, right)| compare(&left, &right))
        .find(|order| order.is_ne());
    unequal.unwrap_or_else(|| left.len().cmp(&right.len()))
}

/// Compares objects: first the sets of keys, then the values in the order of the keys.
fn dicts(left: Dict<'_, '_>, right: Dict<'_, '_>) -> Ordering {
    let keys = left.iter().map(|(key, _)| key).cmp(right.iter().map(|(key, _)| key));
    if keys.is_ne() {
        return keys;
    }
    let values = left
        .iter()
        .zip(right.iter())
        .map(|((_, left), (_, right))| compare(&left, &right));
    values
        .into_iter()
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}
