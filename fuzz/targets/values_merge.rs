//! Layers of values: merging obeys its laws for any documents, and is refused only where two maps meet too deep.

use addon_core::values::Store;
use addon_core::values::merge::{MAX_DEPTH, merge};
use helm_yaml::yaml;
use names::{ModuleName, Owner};
use serde_json::{Value, json};

/// YAML documents, the lowest layer first; only three are used.
pub(crate) fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(documents) = yaml::documents_v2(text) else {
        return;
    };
    let mut documents = documents.into_iter();
    let mut next = || documents.next().unwrap_or_else(|| json!({}));
    let (a, b, c) = (next(), next(), next());
    let ab = merge(a.clone(), &b);
    assert_eq!(ab.is_err(), meeting(&a, &b) > MAX_DEPTH, "{a} {b}");
    let Ok(ab) = ab else {
        let error = merge(a, &b).expect_err("it failed before");
        return assert!(error.path.split('.').count() > MAX_DEPTH, "{error}");
    };
    laid(&a, &b, &ab);
    assert_eq!(merge(json!({}), &a).as_ref(), Ok(&a));
    if a.is_object() {
        assert_eq!(merge(a.clone(), &json!({})).as_ref(), Ok(&a));
    }
    assert_eq!(merge(a.clone(), &a).unwrap_or_else(|_| a.clone()), a);
    assert_eq!(merge(ab.clone(), &b).unwrap_or_else(|_| ab.clone()), ab);
    if alike(&a, &b) && alike(&b, &c) && alike(&a, &c) {
        let left = merge(ab, &c);
        let right = merge(b.clone(), &c).and_then(|bc| merge(a.clone(), &bc));
        assert!(left == right || left.is_err() || right.is_err(), "{a} {b} {c}");
    }
    layered(&a, &b);
}

/// Each place has the upper document's value. Where the upper one has none, it has the lower one's.
fn laid(below: &Value, above: &Value, sum: &Value) {
    let (Value::Object(below), Value::Object(above), Value::Object(sum)) = (below, above, sum) else {
        return assert_eq!(above, sum);
    };
    for (key, above) in above {
        match below.get(key) {
            Some(below) => laid(below, above, &sum[key]),
            None => assert_eq!(*above, sum[key]),
        }
    }
    let silent = below.iter().filter(|(key, _)| !above.contains_key(*key));
    silent.for_each(|(key, below)| assert_eq!(*below, sum[key]));
    let known = |key: &String| below.contains_key(key) || above.contains_key(key);
    assert!(sum.keys().all(known), "a key that neither side has");
}

/// The depth of the deepest pair of maps that have to be merged.
fn meeting(one: &Value, other: &Value) -> usize {
    let (Value::Object(one), Value::Object(other)) = (one, other) else {
        return 0;
    };
    let below = one.iter().filter_map(|(key, value)| {
        let other = other.get(key)?;
        (value.is_object() && other.is_object()).then(|| 1 + meeting(value, other))
    });
    below.max().unwrap_or(0)
}

/// Whether at every common place both are maps or neither is.
fn alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => one
            .iter()
            .all(|(key, value)| other.get(key).is_none_or(|other| alike(value, other))),
        (one, other) => !one.is_object() && !other.is_object(),
    }
}

/// The same laws for the layers of a module: the files below, the section of the `ConfigMap` above.
fn layered(files: &Value, section: &Value) {
    let module = Owner::Module(ModuleName::parse("one").expect("a name"));
    let mut store = Store::new();
    if store.set_static(&module, files.clone()).is_err() {
        return assert!(store == Store::new(), "what was refused has left traces");
    }
    let below = store.effective(&module);
    let before = store.clone();
    match store.set_config(&module, Some(section.clone())) {
        Ok(changed) => assert_eq!(changed, store.effective(&module) != below),
        Err(_) => return assert!(store == before, "what was refused has left traces"),
    }
    store.set_config(&module, None).expect("a section can be taken away");
    if section.as_object().is_none_or(|map| !map.is_empty()) {
        assert_eq!(store.effective(&module), below, "it takes all of its values along");
    }
}
