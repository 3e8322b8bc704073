//! Merges one document of values over another.
//!
//! Maps are merged key by key. Everything else, `null` included, is replaced. Must never recurse without a limit.

use serde_json::Value;
use thiserror::Error;

/// The depth to which maps are merged. It is the limit of the original, which panics beyond it.
pub const MAX_DEPTH: usize = 32;

/// Two documents share a path of maps that is deeper than the limit.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("values are nested deeper than {MAX_DEPTH} levels at '{path}'")]
pub struct TooDeep {
    /// The keys that lead to the place, joined by dots.
    pub path: String,
}

/// Merges `over` over `base`.
pub fn merge(base: Value, over: &Value) -> Result<Value, TooDeep> {
    let mut merged = base;
    lay(&mut merged, over, &mut Vec::new())?;
    Ok(merged)
}

fn lay<'over>(base: &mut Value, over: &'over Value, path: &mut Vec<&'over str>) -> Result<(), TooDeep> {
    let (Value::Object(base), Value::Object(over)) = (&mut *base, over) else {
        *base = over.clone();
        return Ok(());
    };
    if path.len() > MAX_DEPTH {
        return Err(TooDeep { path: path.join(".") });
    }
    for (key, value) in over {
        match base.get_mut(key) {
            Some(below) => {
                path.push(key);
                lay(below, value, path)?;
                path.pop();
            }
            None => {
                base.insert(key.clone(), value.clone());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn maps_merge_and_the_rest_is_replaced() {
        let rows = [
            (
                json!({"a": {"x": 1, "y": 1}}),
                json!({"a": {"y": 2}}),
                json!({"a": {"x": 1, "y": 2}}),
            ),
            (json!({"a": [1, 2]}), json!({"a": [3]}), json!({"a": [3]})),
            (json!({"a": {"x": 1}}), json!({"a": null}), json!({"a": null})),
            (json!({"a": null}), json!({"a": {"x": 1}}), json!({"a": {"x": 1}})),
            (json!({"a": {"x": 1}}), json!({"a": {}}), json!({"a": {"x": 1}})),
            (json!({"a": 1}), json!({"a": {"x": 1}}), json!({"a": {"x": 1}})),
            (json!({"a": 1}), json!([1, null]), json!([1, null])),
        ];
        for (base, over, expected) in rows {
            assert_eq!(merge(base.clone(), &over), Ok(expected), "{base} {over}");
        }
    }

    fn nested(depth: usize) -> Value {
        (0..depth).fold(json!({"leaf": 1}), |inner, _| json!({ "a": inner }))
    }

    #[test]
    fn nesting_beyond_the_limit_is_an_error_with_its_path() {
        assert_eq!(merge(nested(MAX_DEPTH), &nested(MAX_DEPTH)), Ok(nested(MAX_DEPTH)));
        let error = merge(nested(MAX_DEPTH + 1), &nested(MAX_DEPTH + 1)).unwrap_err();
        assert!(error.path.starts_with("a.a.a"), "{error}");
        // Keys that only one of the two maps has are copied at any depth.
        assert_eq!(merge(json!({}), &nested(100)), Ok(nested(100)));
    }

    /// Documents in which a key always has the same type, as in sections of one module.
    fn document() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<i8>().prop_map(Value::from),
            "[a-c]{0,2}".prop_map(Value::from),
            Just(json!([1]))
        ];
        let leaves = prop::collection::btree_map("l[a-c]", leaf, 0..3);
        leaves.prop_map(|map| json!(map)).prop_recursive(3, 12, 3, |inner| {
            let maps = prop::collection::btree_map("m[a-c]", inner.clone(), 0..3);
            (inner, maps).prop_map(|(leaves, maps)| merge(leaves, &json!(maps)).unwrap())
        })
    }

    proptest! {
        #[test]
        fn merging_obeys_its_laws(a in document(), b in document(), c in document()) {
            prop_assert_eq!(merge(a.clone(), &json!({})).unwrap(), a.clone());
            prop_assert_eq!(merge(json!({}), &a).unwrap(), a.clone());
            let ab = merge(a.clone(), &b).unwrap();
            prop_assert_eq!(merge(ab.clone(), &b).unwrap(), ab.clone());
            let bc = merge(b.clone(), &c).unwrap();
            prop_assert_eq!(merge(ab, &c).unwrap(), merge(a, &bc).unwrap());
        }

        #[test]
        fn what_lies_above_wins(a in document(), b in document()) {
            let merged = merge(a, &b).unwrap();
            for (key, value) in b.as_object().unwrap() {
                if !value.is_object() {
                    prop_assert_eq!(&merged[key], value);
                }
            }
        }
    }
}
