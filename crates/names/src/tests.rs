use proptest::prelude::*;

use super::*;

#[test]
fn module_names_are_judged_by_the_way_back_from_their_values_key() {
    let rows = [
        ("foo", Ok("foo")),
        ("foo-bar", Ok("fooBar")),
        ("foo-bar-baz", Ok("fooBarBaz")),
        ("a1-b", Ok("a1B")),
        ("m2-n3", Ok("m2N3")),
        ("2fa", Ok("2fa")),
        ("prometheus-operator2", Ok("prometheusOperator2")),
        ("module-1", Err("module1")),
        ("mod-1a", Err("mod1a")),
        ("v1-2-3", Err("v123")),
        ("a-b-c", Err("a-bc")),
        ("a.b", Err("a-b")),
        ("Bad_Name", Err("bad-name")),
        ("fooBar", Err("foo-bar")),
        ("foo--bar", Err("foo-bar")),
        ("-foo", Err("foo")),
        ("foo-", Err("foo")),
    ];
    for (name, expected) in rows {
        match (ModuleName::parse(name), expected) {
            (Ok(parsed), Ok(key)) => {
                assert_eq!(parsed.values_key(), key, "{name}");
                assert_eq!(ModuleName::from_values_key(key), Ok(parsed), "{name}");
            }
            (Err(error), Err(proposal)) => assert_eq!(
                error.to_string(),
                format!(
                    "'{name}' name should be in kebab-case and be restorable from camelCase: consider renaming to '{proposal}'"
                ),
            ),
            (parsed, _) => panic!("{name}: {parsed:?}"),
        }
    }
}

#[test]
fn names_that_nothing_else_could_hold_are_refused() {
    assert_eq!(ModuleName::parse(""), Err(NameError::Empty { what: "module" }));
    assert_eq!(ModuleName::parse("global"), Err(NameError::Reserved));
    for (name, key) in [
        ("release-channel", "releaseChannel"),
        ("release-policy", "releasePolicy"),
        ("release-approved", "releaseApproved"),
    ] {
        let told =
            format!("'{name}' is no name for a module: the key '{key}' of the ConfigMap is a setting of the operator");
        assert_eq!(ModuleName::parse(name).unwrap_err().to_string(), told);
        assert_eq!(ModuleName::from_values_key(key).unwrap_err().to_string(), told);
    }
    assert!(ModuleName::parse("release-channels").is_ok());
    assert!(matches!(ModuleName::parse("a/b"), Err(NameError::Character { .. })));
    assert!(matches!(ModuleName::parse("модуль"), Err(NameError::Character { .. })));
    assert!(matches!(
        QueueName::parse("a\nb"),
        Err(NameError::Control { what: "queue", .. })
    ));
    assert_eq!(HookName::parse(""), Err(NameError::Empty { what: "hook" }));
}

#[test]
fn values_keys_must_be_camel_case() {
    for key in ["foo-bar", "FooBar", "foo_bar", "", "global", "fooBAR"] {
        let error = ModuleName::from_values_key(key).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("bad module name '{key}': should be camelCased")
        );
    }
}

#[test]
fn keys_of_a_module_share_their_stem() {
    let name = ModuleName::parse("foo-bar").unwrap();
    assert_eq!(name.enabled_key(), "fooBarEnabled");
    assert_eq!(name.maintenance_key(), "fooBarMaintenance");
    assert_eq!(Owner::Global.values_key(), "global");
    assert_eq!(Owner::from(name).values_key(), "fooBar");
}

#[test]
fn directories_give_order_and_name() {
    let rows = [
        ("010-early", Some((10, "early"))),
        ("9-nine", Some((9, "nine"))),
        ("plain", Some((1, "plain"))),
        ("000-zero", Some((0, "zero"))),
        ("2fa", Some((1, "2fa"))),
        ("10-20-x", Some((10, "20-x"))),
        ("2147483647-max", Some((2_147_483_647, "max"))),
        ("2147483648-over", Some((1, "over"))),
        ("99999999999999999999-over", Some((1, "over"))),
        ("010-", None),
        ("010", Some((1, "010"))),
    ];
    for (dir, expected) in rows {
        let found = parse_module_dir(dir, 1).ok();
        assert_eq!(
            found.as_ref().map(|(order, name)| (*order, name.as_str())),
            expected,
            "{dir}"
        );
    }
}

#[test]
fn names_are_checked_when_they_are_read_back() {
    assert!(serde_json::from_str::<ModuleName>("\"foo-bar\"").is_ok());
    assert!(serde_json::from_str::<ModuleName>("\"module-1\"").is_err());
    assert!(serde_json::from_str::<BindingName>("\"\"").is_err());
    let id: HookId = serde_json::from_str(r#"{"owner":{"module":"one"},"name":"hooks/a.sh"}"#).unwrap();
    assert_eq!(id.to_string(), "hook 'hooks/a.sh' of module 'one'");
}

proptest! {
    #[test]
    fn no_two_names_share_a_values_key(one in "[a-z0-9.-]{1,12}", other in "[a-z0-9.-]{1,12}") {
        if let (Ok(one), Ok(other)) = (ModuleName::parse(&one), ModuleName::parse(&other)) {
            prop_assert_eq!(one == other, one.values_key() == other.values_key());
        }
    }

    #[test]
    fn a_proposal_is_a_good_name_or_says_so_again(text in "[A-Za-z0-9._-]{1,12}") {
        if let Err(NameError::NotRestorable { proposal, .. }) = ModuleName::parse(&text) {
            prop_assert_ne!(&proposal, &text);
        }
    }
}
