//! Functions that work differently in the original and in our CEL engine.

use cel::common::types::{CelBool, CelDouble, CelMap, CelString};
use cel::common::value::CowVal;
use cel::{ExecutionError, FunctionContext};

use super::program::LIBRARY;

/// The types without fields that a document can have. Reading a field of a value of these types gives "absent" and no error.
const WITHOUT_FIELDS: [&str; 4] = ["bool", "double", "null_type", "string"];

/// The function `has`: a scalar has no fields.
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

/// The function `string`: writes floats as the original does.
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

/// Whether the error only says that a scalar has no such field or item.
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

/// The shortest digits of a float, in the form with an exponent if the exponent is below -4 or above 5.
fn float(number: f64) -> String {
    let scientific = format!("{number:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        // The number is infinite or not a number.
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
