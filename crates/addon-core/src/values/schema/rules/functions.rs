//! Functions whose meaning differs between the original and our engine.

use cel::common::types::{CelBool, CelDouble, CelMap, CelString};
use cel::common::value::CowVal;
use cel::{ExecutionError, FunctionContext};

use super::program::LIBRARY;

/// Values without fields, whose missing field is no error: the types that a document can hold.
const WITHOUT_FIELDS: [&str; 4] = ["bool", "double", "null_type", "string"];

/// `has`: a plain value has nothing.
pub(super) fn has<'context, 'call>(
    call: &mut FunctionContext<'context, 'call>,
) -> Result<CowVal<'context, 'call>, ExecutionError> {
    let (Some(field), Some(value)) = (call.args.pop(), call.args.pop()) else {
        return Err(ExecutionError::MissingArgumentOrTarget);
    };
    let value = value.as_ref();
    let key = field.as_ref().downcast_ref::<CelString<'_>>();
    let found = match (value.downcast_ref::<CelMap<'_>>(), key) {
        (Some(_), Some(key)) => value.as_indexer().is_some_and(|map| map.get(key).is_ok()),
        _ if is_plain(value.get_type().name()) => false,
        _ => {
            let kinds = [value, field.as_ref()].map(|value| value.get_type().name().to_owned());
            return Err(ExecutionError::no_such_overload("has", kinds.into()));
        }
    };
    Ok(CowVal::owned(CelBool::from(found)))
}

/// `string`: floats as the original writes them.
pub(super) fn text<'context, 'call>(
    call: &mut FunctionContext<'context, 'call>,
) -> Result<CowVal<'context, 'call>, ExecutionError> {
    if let [number] = call.args.as_slice()
        && let Some(number) = number.as_ref().downcast_ref::<CelDouble>()
    {
        return Ok(CowVal::owned(CelString::from(float(*number.inner()))));
    }
    let args = std::mem::take(&mut call.args);
    if let Some(string) = LIBRARY.find_overload("string", &args) {
        return string(args);
    }
    let kinds = args.iter().map(|value| value.get_type().name().to_owned()).collect();
    Err(ExecutionError::no_such_overload("string", kinds))
}

/// A field of a plain value, or an item of it, was asked for: it is not there, and that is all.
pub(super) fn is_absence(error: &ExecutionError) -> bool {
    match error {
        ExecutionError::NoSuchKey(_) => true,
        ExecutionError::NoSuchOverload(overload) => {
            let of = overload.argument_types().first();
            matches!(overload.function(), "_._" | "_[_]") && of.is_some_and(|kind| is_plain(kind))
        }
        _ => false,
    }
}

fn is_plain(kind: &str) -> bool {
    WITHOUT_FIELDS.contains(&kind)
}

/// The shortest digits, with an exponent if it is below -4 or above 5.
fn float(number: f64) -> String {
    let scientific = format!("{number:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        // Not a number, or infinite.
        return match number {
            _ if number.is_nan() => "NaN".to_owned(),
            _ if number > 0.0 => "+Inf".to_owned(),
            _ => "-Inf".to_owned(),
        };
    };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => number.to_string(),
    }
}
