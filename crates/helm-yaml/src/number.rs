//! Numbers in the values of modules: a whole number is an integer, however it was written.
//!
//! The original keeps every number as a float and prints whole ones without a point. Keeping them as integers gives hooks
//! and charts the same text and loses no digit. Must never change the value of a number.

use serde_json::{Number, Value};

/// From this number on, floats cannot represent every whole number.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The JSON number of a float; `None` if JSON has no such number.
pub fn from_float(float: f64) -> Option<Number> {
    let negative_zero = float == 0.0 && float.is_sign_negative();
    if float.fract() == 0.0 && float.abs() <= EXACT && !negative_zero {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 53 bits")]
        return Some(Number::from(float as i64));
    }
    Number::from_f64(float)
}

/// Turns every whole float of a document into an integer.
pub fn settle(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(settled) = number.as_f64().and_then(from_float) {
                *number = settled;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(settle),
        Value::Object(map) => map.values_mut().for_each(settle),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whole_floats_become_integers_and_others_stay() {
        let mut value = json!({"a": [2.0, 2.5, -3.0, 1e21, 9_007_199_254_740_993_u64], "b": 1e6, "c": "2.0"});
        settle(&mut value);
        assert_eq!(
            value.to_string(),
            r#"{"a":[2,2.5,-3,1e+21,9007199254740993],"b":1000000,"c":"2.0"}"#
        );
        assert_eq!(from_float(-0.0).map(|zero| zero.to_string()), Some("-0.0".to_owned()));
        assert_eq!(from_float(f64::INFINITY), None);
    }
}
