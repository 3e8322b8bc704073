use proptest::prelude::*;
use serde_json::json;

use super::*;

fn owner(name: &str) -> Owner {
    if name == GLOBAL_KEY {
        Owner::Global
    } else {
        Owner::Module(ModuleName::parse(name).unwrap())
    }
}

fn patch(text: &str) -> Patch {
    Patch::parse(text, PatchFile::Values).unwrap()
}

fn operations(text: &str) -> Operations {
    patch(text).accept(&owner("one")).unwrap().operations
}

fn one(section: &Value) -> Value {
    json!({ "one": section })
}

#[test]
fn a_file_is_a_stream_of_lists_and_single_operations() {
    let stream = r#"[{"op":"add","path":"/one/a","value":1.0}] {"op":"remove","path":"/one/b"}
        [] [{"op":"test","path":"/one/c","value":null},{"op":"add","path":"/one/d"}]"#;
    let expected = json!([
        {"op": "add", "path": "/one/a", "value": 1},
        {"op": "remove", "path": "/one/b"},
        {"op": "test", "path": "/one/c", "value": null},
        {"op": "add", "path": "/one/d", "value": null},
    ]);
    assert_eq!(serde_json::to_value(operations(stream)).unwrap(), expected);
    assert!(patch(" \n ").is_empty());
}

#[test]
fn what_is_no_patch_is_refused_with_its_file() {
    for text in [
        "size: 1",
        r#"[{"op": "add", "path": "/one/a", "#,
        "5",
        "null",
        r#"["add"]"#,
        r#"{"op": 5}"#,
    ] {
        let error = Patch::parse(text, PatchFile::Config).unwrap_err();
        assert_eq!(error.to_string(), "got bad json patch for config values", "{text}");
    }
}

#[test]
fn what_is_no_operation_is_told_without_its_value() {
    let error = Patch::parse(r#"["add", "s3cr3t"]"#, PatchFile::Values).unwrap_err();
    assert_eq!(error.source.to_string(), "a value of type string is no operation");
}

/// Many small operations could otherwise nest values so deep that reading them overflows the stack.
#[test]
fn values_are_nested_only_as_deep_as_they_can_be_read() {
    let add = |keys: usize, maps: usize| {
        let value = (0..maps).fold(json!(1), |inner, _| json!({ "a": inner }));
        let path = format!("/one{}", "/a".repeat(keys - 1));
        patch(&json!({"op": "add", "path": path, "value": value}).to_string()).accept(&owner("one"))
    };
    assert!(add(yaml::MAX_DEPTH - 100, 100).is_ok());
    let error = add(yaml::MAX_DEPTH - 100, 101).unwrap_err();
    assert!(
        error.to_string().ends_with("would nest values deeper than 400 levels"),
        "{error}"
    );
}

#[test]
fn an_owner_may_patch_only_what_is_its_own() {
    let rows = [
        (
            "one",
            "add",
            "/global/a",
            "unacceptable patch operation for path 'global' (only 'one' accepted)",
        ),
        (
            "one",
            "add",
            "/two/a",
            "unacceptable patch operation for path 'two' (only 'one' accepted)",
        ),
        (
            "one",
            "add",
            "/oneEnabled",
            "unacceptable patch operation for path 'oneEnabled' (only 'one' accepted)",
        ),
        (
            "foo-bar",
            "add",
            "/foo-bar/a",
            "unacceptable patch operation for path 'foo-bar' (only 'fooBar' accepted)",
        ),
        ("one", "add", "", "patch path '' leads to no key of the values"),
        (
            "one",
            "add",
            "one/a",
            "patch path 'one/a' leads to no key of the values",
        ),
        ("one", "replace", "/one/a", "unsupported patch operation 'replace'"),
        (
            "one",
            "move",
            "/one/a",
            "patch operation 'move' is none of add, remove and test",
        ),
        (
            "one",
            "copy",
            "/one/a",
            "patch operation 'copy' is none of add, remove and test",
        ),
        (
            "one",
            "",
            "/one/a",
            "patch operation '' is none of add, remove and test",
        ),
        (
            "global",
            "add",
            "/one/a",
            "unacceptable patch operation for path 'one' (only 'global' and '*Enabled' are permitted)",
        ),
        (
            "global",
            "add",
            "/oneEnabled/deep",
            "unacceptable patch operation for path 'oneEnabled' (only 'global' and '*Enabled' are permitted)",
        ),
        (
            "global",
            "add",
            "/One-Enabled",
            "patch path '/One-Enabled' is no flag of a module",
        ),
        (
            "global",
            "test",
            "/oneEnabled",
            "patch operation 'test' is none of add, remove and test",
        ),
        (
            "global",
            "add",
            "/oneEnabled",
            "apply enabled patch operation 'add' for /oneEnabled: unsupported module enabled value: should be true or false, not of type string",
        ),
    ];
    for (name, op, path, message) in rows {
        let text = json!({"op": op, "path": path, "value": "true"}).to_string();
        assert_eq!(
            patch(&text).accept(&owner(name)).unwrap_err().to_string(),
            message,
            "{name} {text}"
        );
    }
}

#[test]
fn flags_and_values_of_a_global_patch_are_told_apart() {
    let text = r#"[{"op":"add","path":"/global/a","value":"x"},{"op":"add","path":"/fooBarEnabled","value":true},
        {"op":"add","path":"/oneEnabled","value":false},{"op":"remove","path":"/twoEnabled"}]"#;
    let accepted = patch(text).accept(&Owner::Global).unwrap();
    assert_eq!(accepted.operations.iter().count(), 1);
    let flags: Vec<_> = accepted
        .flags
        .iter()
        .map(|flag| (flag.module.as_str(), flag.opinion))
        .collect();
    assert_eq!(flags, [("foo-bar", Some(true)), ("one", Some(false)), ("two", None)]);
}

#[test]
fn operations_apply_as_the_original_applies_them() {
    let section = json!({"size": 1, "list": ["a", "b"], "map": {"x": 1}, "null": null, "a/b": 1, "a~b": 2});
    let rows = [
        (r#"{"op":"add","path":"/one/size","value":2}"#, "/size", Some(json!(2))),
        (
            r#"{"op":"add","path":"/one/map/y","value":{"z":[1]}}"#,
            "/map/y/z/0",
            Some(json!(1)),
        ),
        (
            r#"{"op":"add","path":"/one/list/0","value":"z"}"#,
            "/list",
            Some(json!(["z", "a", "b"])),
        ),
        (
            r#"{"op":"add","path":"/one/list/2","value":"z"}"#,
            "/list",
            Some(json!(["a", "b", "z"])),
        ),
        (
            r#"{"op":"add","path":"/one/list/-","value":"z"}"#,
            "/list",
            Some(json!(["a", "b", "z"])),
        ),
        (
            r#"{"op":"add","path":"/one/list/-1","value":"z"}"#,
            "/list",
            Some(json!(["a", "b", "z"])),
        ),
        (
            r#"{"op":"add","path":"/one/list/-3","value":"z"}"#,
            "/list",
            Some(json!(["z", "a", "b"])),
        ),
        (r#"{"op":"remove","path":"/one/list/-1"}"#, "/list", Some(json!(["a"]))),
        (r#"{"op":"remove","path":"/one/a~1b"}"#, "/a~1b", None),
        (r#"{"op":"remove","path":"/one/a~0b"}"#, "/a~0b", None),
        (r#"{"op":"add","path":"/one/~01","value":5}"#, "/~01", Some(json!(5))),
        (
            r#"{"op":"test","path":"/one/list","value":["a","b"]}"#,
            "/size",
            Some(json!(1)),
        ),
        (
            r#"{"op":"test","path":"/one/size","value":1.0}"#,
            "/size",
            Some(json!(1)),
        ),
        (
            r#"{"op":"test","path":"/one/nowhere","value":null}"#,
            "/size",
            Some(json!(1)),
        ),
    ];
    for (text, at, expected) in rows {
        let patched = operations(text).apply_strict(&one(&section)).unwrap();
        assert_eq!(patched["one"].pointer(at), expected.as_ref(), "{text}");
    }
}

#[test]
fn operations_that_do_not_fit_say_where() {
    let section = json!({"size": 1, "list": ["a"]});
    let rows = [
        (
            r#"{"op":"remove","path":"/one/nowhere"}"#,
            "nothing to remove at '/one/nowhere'",
        ),
        (
            r#"{"op":"remove","path":"/one/list/1"}"#,
            "nothing to remove at '/one/list/1'",
        ),
        (
            r#"{"op":"remove","path":"/one/list/-"}"#,
            "nothing to remove at '/one/list/-'",
        ),
        (
            r#"{"op":"add","path":"/one/nowhere/deep","value":1}"#,
            "nothing at the parent of '/one/nowhere/deep'",
        ),
        (
            r#"{"op":"add","path":"/one/size/deep","value":1}"#,
            "nothing at the parent of '/one/size/deep'",
        ),
        (
            r#"{"op":"add","path":"/one/list/7","value":1}"#,
            "'/one/list/7' is no place in a list of 1",
        ),
        (
            r#"{"op":"add","path":"/one/list/-3","value":1}"#,
            "'/one/list/-3' is no place in a list of 1",
        ),
        (
            r#"{"op":"add","path":"/one/list/x","value":1}"#,
            "'/one/list/x' is no place in a list of 1",
        ),
        (
            r#"{"op":"test","path":"/one/size","value":7}"#,
            "test of '/one/size' failed",
        ),
    ];
    for (text, message) in rows {
        let document = one(&section);
        assert_eq!(
            operations(text).apply_strict(&document).unwrap_err().to_string(),
            message,
            "{text}"
        );
        assert_eq!(document, one(&section));
    }
}

#[test]
fn stored_operations_forgive_what_is_gone() {
    let gone = operations(r#"[{"op":"remove","path":"/one/a/b"},{"op":"test","path":"/one/c","value":1}]"#);
    assert_eq!(gone.apply_stored(&one(&json!({}))), Ok(one(&json!({}))));
    let orphan = operations(r#"{"op":"add","path":"/one/a/b","value":1}"#);
    assert!(orphan.apply_stored(&one(&json!({}))).is_err());
}

#[test]
fn appends_are_compacted_to_the_last_one() {
    let steps = [
        r#"{"op":"add","path":"/one/list/0","value":"z"}"#,
        r#"{"op":"add","path":"/one/list/-","value":"b"}"#,
        r#"[{"op":"add","path":"/one/list/-","value":"d"},{"op":"add","path":"/one/list/-","value":"e"}]"#,
        r#"{"op":"remove","path":"/one/list/0"}"#,
    ];
    let expected = [
        (
            json!([{"op": "add", "path": "/one/list/0", "value": "z"}]),
            json!(["z", "a"]),
        ),
        (
            json!([{"op": "add", "path": "/one/list/-", "value": "b"}, {"op": "add", "path": "/one/list/0", "value": "z"}]),
            json!(["z", "a", "b"]),
        ),
        (
            json!([{"op": "add", "path": "/one/list/-", "value": "e"}, {"op": "add", "path": "/one/list/0", "value": "z"}]),
            json!(["z", "a", "e"]),
        ),
        (
            json!([{"op": "add", "path": "/one/list/-", "value": "e"}, {"op": "remove", "path": "/one/list/0"}]),
            json!(["e"]),
        ),
    ];
    let mut stored = Operations::default();
    for (step, (compacted, list)) in steps.iter().zip(expected) {
        stored = stored.compacted_with(&operations(step));
        assert_eq!(serde_json::to_value(&stored).unwrap(), compacted, "{step}");
        let applied = stored.apply_stored(&one(&json!({"list": ["a"]}))).unwrap();
        assert_eq!(applied["one"]["list"], list, "{step}");
    }
}

#[test]
fn a_test_is_kept_and_takes_no_operation_away() {
    let stored = operations(r#"{"op":"add","path":"/one/size","value":2}"#)
        .compacted_with(&operations(r#"{"op":"test","path":"/one/size","value":2}"#));
    let ops: Vec<_> = stored.iter().map(Operation::is_test).collect();
    assert_eq!(ops, [true, false]);
    let below = operations(r#"{"op":"add","path":"/one/a/b","value":1}"#)
        .compacted_with(&operations(r#"{"op":"test","path":"/one/a","value":{"b":1}}"#));
    assert_eq!(below.iter().count(), 2);
}

#[test]
fn removing_the_section_removes_all_that_was_remembered() {
    let stored = operations(r#"[{"op":"add","path":"/one/a","value":{}},{"op":"add","path":"/one/a/b","value":1}]"#)
        .compacted_with(&operations(r#"{"op":"remove","path":"/one"}"#));
    assert_eq!(
        serde_json::to_value(stored).unwrap(),
        json!([{"op": "remove", "path": "/one"}])
    );
}

#[test]
fn a_name_that_begins_alike_is_not_below() {
    let stored = operations(r#"{"op":"add","path":"/one/ab","value":1}"#)
        .compacted_with(&operations(r#"{"op":"remove","path":"/one/a"}"#));
    assert_eq!(stored.iter().count(), 2);
}

/// Paths of maps only, because an index of a list means another item after each operation.
fn operation() -> impl Strategy<Value = Operation> {
    let path = prop::collection::vec("[a-c]", 1..4)
        .prop_map(|keys| Pointer::parse(&format!("/one/{}", keys.join("/"))).unwrap());
    let value = prop_oneof![
        Just(json!({})),
        Just(json!({"a": {}, "b": 1})),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ];
    (path, value, 0..4).prop_map(|(path, value, kind)| match kind {
        0 => Operation::Remove { path },
        _ => Operation::Add { path, value },
    })
}

fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![any::<bool>().prop_map(Value::from), Just(json!({}))];
    let map = leaf.prop_recursive(3, 20, 3, |inner| {
        prop::collection::btree_map("[a-c]", inner, 0..3).prop_map(|map| json!(map))
    });
    prop::collection::btree_map("[a-c]", map, 0..3).prop_map(|map| json!({ "one": map }))
}

/// Applies the operations that can be applied, one by one, as if several hooks had made them.
fn one_by_one(document: &Value, operations: &[Operation]) -> (Value, Vec<Operations>) {
    let mut patched = document.clone();
    let mut applied = Vec::new();
    for operation in operations {
        let single = Operations::from_iter([operation.clone()]);
        if let Ok(after) = single.apply_strict(&patched) {
            patched = after;
            applied.push(single);
        }
    }
    (patched, applied)
}

proptest! {
    #[test]
    fn compacted_patches_equal_patches_one_by_one(
        document in document(),
        list in prop::collection::vec(operation(), 0..12),
    ) {
        let (patched, applied) = one_by_one(&document, &list);
        let compacted = applied.iter().fold(Operations::default(), |stored, later| stored.compacted_with(later));
        prop_assert_eq!(compacted.apply_stored(&document), Ok(patched));
        prop_assert_eq!(compacted.compacted_with(&Operations::default()), compacted.clone());
        prop_assert_eq!(compacted.compacted_with(&compacted), compacted);
    }

    #[test]
    fn no_patch_file_is_too_much(text in "[\\[\\]{}\":,/a-z0-9 ]{0,60}") {
        let _ = Patch::parse(&text, PatchFile::Values).map(|patch| patch.accept(&Owner::Global));
    }
}
