//! Edits of the ConfigMap that are refused, warned of or allowed, and the sections that they change.

use serde_json::json;
use values_schema::schema::{Files, Schemas};

use super::*;
use crate::operator::provenance::{MADE_WITH, digest};

fn edit(operation: &str, before: &Value, after: &Value) -> Edit {
    let mut files = Files::default();
    files.insert("c", "properties: {size: {type: integer}}");
    let one = ModuleName::parse("one").unwrap();
    let mut values = Store::new();
    let schemas = Schemas::load(&files, Some("c"), None).unwrap();
    values.set_schemas(&one.clone().into(), schemas).unwrap();
    let object = |data: &Value| match data {
        Value::Null => Value::Null,
        data => json!({"metadata": {"name": "config"}, "data": data}),
    };
    let request = json!({"operation": operation, "object": object(after), "oldObject": object(before)});
    Edit {
        review: Json::from(&json!({ "request": request })),
        config_map: "config".to_owned(),
        values,
        modules: BTreeSet::from([one]),
        known: Data::new(),
        spare: None,
        omissible: BTreeSet::new(),
        ours: 0,
        origin: (None, BTreeSet::new()),
    }
}

#[test]
fn a_bad_key_is_refused_with_its_module_and_its_field() {
    let data = json!({"one": "size: big", "oneEnabled": "yes"});
    for operation in ["CREATE", "UPDATE"] {
        let said = edit(operation, &json!({}), &data).judge();
        assert_eq!(
            (said.allowed, said.message.as_str()),
            (
                false,
                "key 'oneEnabled' of module 'one': module enabled key 'oneEnabled' should have a boolean value, got \
                 'yes'\nkey 'one' of module 'one': 1 error occurred:\n\t* one.size in body must be of type integer: \
                 \"string\""
            )
        );
    }
    let known = Edit {
        known: Data::from([("one".to_owned(), "size: big".to_owned())]),
        ..edit("CREATE", &Value::Null, &json!({"one": "size: big"}))
    };
    assert!(known.judge().allowed, "what we write ourselves has been judged before");
}

#[test]
fn the_changed_sections_are_named_with_their_defaults() {
    let sections = |before: &Value, after: &Value| {
        let mut edit = edit("UPDATE", before, after);
        let mut files = Files::default();
        files.insert(
            "c",
            "properties: {size: {type: integer, default: 3}, name: {type: string}}",
        );
        let schemas = Schemas::load(&files, Some("c"), None).unwrap();
        let one = ModuleName::parse("one").unwrap();
        edit.values.set_schemas(&one.into(), schemas).unwrap();
        let sections = edit.sections().into_iter();
        sections
            .map(|(owner, settings)| format!("{}: {settings}", owner.values_key()))
            .collect::<Vec<_>>()
    };
    let before = json!({"one": "name: a", "global": "x: 1"});
    assert_eq!(sections(&before, &before), [""; 0]);
    let rows = [
        (
            json!({"one": "name: b", "global": "x: 1"}),
            r#"one: {"name":"b","size":3}"#,
        ),
        (json!({"global": "x: 1"}), r#"one: {"size":3}"#),
        (json!({"one": "name: a", "global": "x: 2"}), r#"global: {"x":2}"#),
    ];
    for (after, expected) in rows {
        assert_eq!(sections(&before, &after), [expected], "{after}");
    }
    let unread = json!({"one": "name: [", "global": "x: 1", "oneEnabled": "true"});
    assert_eq!(sections(&before, &unread), [""; 0]);
}

#[test]
fn what_was_wrong_before_holds_up_no_other_edit() {
    let before = json!({"one": "size: big"});
    let said = edit("UPDATE", &before, &json!({"one": "size: big", "oneEnabled": "true"})).judge();
    assert!(said.allowed, "{said:?}");
    assert_eq!(
        said.warnings,
        [
            "still wrong: key 'one' of module 'one': 1 error occurred: * one.size in body must be of type integer: \"string\""
        ]
    );
    let worse = edit("UPDATE", &before, &json!({"one": "size: bigger"})).judge();
    assert!(!worse.allowed && worse.warnings.is_empty(), "{worse:?}");
    let mended = edit("UPDATE", &before, &json!({"one": "size: 5"})).judge();
    assert!(mended.allowed && mended.warnings.is_empty(), "{mended:?}");
    assert!(edit("UPDATE", &before, &json!({})).judge().allowed);
}

#[test]
fn what_says_nothing_or_takes_nothing_back_is_a_warning() {
    let said = edit("UPDATE", &json!({}), &json!({"two": "{}"})).judge();
    assert_eq!(
        said.warnings,
        ["key 'two': there is no module 'two', so it says nothing"]
    );
    assert!(said.allowed);
    let said = edit("DELETE", &json!({"one": "size: 5"}), &Value::Null).judge();
    assert_eq!((said.allowed, said.warnings), (true, vec![DELETED.to_owned()]));
    let many: BTreeMap<String, &str> = (10..30).map(|n| (format!("m{n}"), "{}")).collect();
    let said = edit("CREATE", &Value::Null, &json!(many)).judge();
    assert!(said.allowed && said.warnings.len() == MOST_WARNINGS + 1, "{said:?}");
    assert!(said.warnings[MOST_WARNINGS].starts_with("and 10 more keys"));
    assert_eq!(on_one_line(&"ä".repeat(300)).chars().count(), LONGEST_WARNING + 1);
}

#[test]
fn what_cannot_be_judged_is_allowed() {
    let other = Edit {
        config_map: "other".to_owned(),
        ..edit("CREATE", &Value::Null, &json!({"oneEnabled": "yes"}))
    };
    assert!(other.judge().allowed);
    for data in [json!([]), json!({"one": 5}), json!("text")] {
        assert!(edit("UPDATE", &json!({}), &data).judge().allowed, "{data}");
    }
    let empty = Edit {
        review: Json::from(&json!({})),
        ..edit("UPDATE", &json!({}), &json!({}))
    };
    assert!(empty.judge().allowed);
}

/// An edit of a ConfigMap that names four of six releases. `before` and `after` are its annotations before and after
/// the edit.
fn omitting(data: &Value, [before, after]: [Value; 2]) -> Edit {
    let object = |data: &Value, annotations: &Value| json!({"metadata": {"name": "config", "uid": "u", "annotations": annotations}, "data": data});
    let all = json!({"aEnabled": "true", "bEnabled": "true", "cEnabled": "true", "dEnabled": "true"});
    let request = json!({"operation": "UPDATE", "object": object(data, &after), "oldObject": object(&all, &before)});
    Edit {
        review: Json::from(&json!({ "request": request })),
        spare: None,
        omissible: ["a", "b", "c", "d"].map(|name| ModuleName::parse(name).unwrap()).into(),
        ours: 6,
        ..edit("UPDATE", &all, data)
    }
}

#[test]
fn an_edit_that_removes_many_by_what_it_leaves_out_is_refused_unless_it_counts_them() {
    let none = json!(null);
    let said = omitting(&json!({"aEnabled": "true"}), [none.clone(), none.clone()]).judge();
    assert_eq!(
        (said.allowed, said.message.as_str()),
        (
            false,
            "with this edit nothing switches on these 3 modules any more, and their releases would be removed: 'b', \
             'c', 'd'. To remove a module say so, as in 'bEnabled: \"false\"'; to keep it write 'bEnabled: \"true\"'. To \
             remove all 3, write this annotation in the same edit: 'addon-operator/confirm-removals: \"3\"'"
        )
    );
    let confirms = |text: &str| json!({CONFIRM_REMOVALS: text});
    let made = |data: &Value| json!({MADE_WITH: digest(&data_of(&json!({ "data": data })).unwrap())});
    let (one, two) = (
        json!({"aEnabled": "true"}),
        json!({"aEnabled": "true", "bEnabled": "true"}),
    );
    let rows = [
        // An explicit flag counts as a decision. A few omissions pass without a confirmation.
        (
            json!({"aEnabled": "false", "bEnabled": "false", "cEnabled": "false", "dEnabled": "false"}),
            none.clone(),
            none.clone(),
            true,
        ),
        (two.clone(), none.clone(), none.clone(), true),
        (json!({}), none.clone(), none.clone(), false),
        (none.clone(), none.clone(), none.clone(), false),
        // An edit with the right number confirms the omissions.
        (one.clone(), none.clone(), confirms("3"), true),
        (one.clone(), none.clone(), confirms("4"), false),
        (json!({}), none.clone(), confirms("4"), true),
        // A number confirms one edit only: here it was there before.
        (one.clone(), confirms("3"), confirms("3"), false),
        (one.clone(), confirms("3"), confirms("3, again"), true),
        // A ConfigMap that a program made removes nothing by omission.
        (one.clone(), none.clone(), made(&one), true),
        (one.clone(), none.clone(), made(&two), false),
    ];
    for (data, before, after, allowed) in rows {
        let said = omitting(&data, [before.clone(), after.clone()]).judge();
        assert_eq!(said.allowed, allowed, "{data} {before} {after}: {said:?}");
    }
    let known = |edited, unsaid: &[&str]| Edit {
        origin: (
            Some(Made {
                uid: "u".to_owned(),
                edited,
                unsaid: unsaid.iter().map(|key| (*key).to_owned()).collect(),
            }),
            BTreeSet::new(),
        ),
        ..omitting(&one, [none.clone(), made(&one)])
    };
    assert!(known(false, &[]).judge().allowed);
    assert!(
        !known(true, &[]).judge().allowed,
        "people have spoken in it since it was made"
    );
    assert!(
        known(true, &["bEnabled"]).judge().allowed,
        "nobody has ever said anything of one of them"
    );
    let again = omitting(&one, [confirms("3"), confirms("3")]).judge();
    assert!(again.message.contains("confirm-removals: \"3, again\""), "{again:?}");
    let warned = omitting(&two, [none.clone(), none]).judge();
    assert_eq!(
        warned.warnings[0],
        "nothing switches on module 'c' any more, so that its release is removed"
    );
}
