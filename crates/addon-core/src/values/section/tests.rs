use proptest::prelude::*;
use serde_json::json;

use super::*;

fn parse(data: &[(&str, &str)]) -> ConfigDocument {
    ConfigDocument::parse(
        &data
            .iter()
            .map(|(key, text)| ((*key).to_owned(), (*text).to_owned()))
            .collect(),
    )
}

fn section<'doc>(document: &'doc ConfigDocument, module: &str) -> &'doc Section {
    &document.sections[module]
}

#[test]
fn sound_keys_are_read_in_their_dialects() {
    let document = parse(&[
        ("global", "zone: yes"),
        ("fooBar", "zone: yes\noctal: 0o17"),
        ("list", "[1, null]"),
        ("one", "{}"),
        ("oneEnabled", "true"),
        ("oneMaintenance", ""),
        ("otherEnabled", "false"),
        ("otherMaintenance", "NoResourceReconciliation"),
    ]);
    assert_eq!(document.problems, []);
    assert_eq!(document.global, Entry::Good(json!({"zone": true})));
    assert_eq!(
        section(&document, "foo-bar").values,
        Entry::Good(json!({"zone": "yes", "octal": 15}))
    );
    assert_eq!(section(&document, "list").values, Entry::Good(json!([1, null])));
    let one = section(&document, "one");
    assert_eq!(
        (&one.values, &one.enabled),
        (&Entry::Good(json!({})), &Entry::Good(true))
    );
    assert_eq!(one.maintenance, Entry::Good(Maintenance::Managed));
    let other = section(&document, "other");
    assert_eq!((&other.values, &other.enabled), (&Entry::Absent, &Entry::Good(false)));
    assert_eq!(other.maintenance, Entry::Good(Maintenance::NoResourceReconciliation));
}

#[test]
fn a_module_that_is_only_mentioned_has_an_empty_layer() {
    let document = parse(&[
        ("global", ""),
        ("oneEnabled", "true"),
        ("twoMaintenance", ""),
        ("three", "a: ["),
    ]);
    assert_eq!(document.global, Entry::Good(json!({})));
    assert_eq!(section(&document, "one").layer(), Entry::Good(json!({})));
    assert_eq!(section(&document, "two").layer(), Entry::Good(json!({})));
    assert_eq!(section(&document, "three").layer(), Entry::Bad);
    assert_eq!(Section::default().layer(), Entry::Absent);
}

#[test]
fn a_broken_key_concerns_its_owner_only() {
    let document = parse(&[
        ("global", "a: 1"),
        ("badYaml", "a: 1\nb: [1"),
        ("badYamlEnabled", "true"),
        ("scalar", "5"),
        ("empty", ""),
        ("duplicate", "a: 1\na: 2"),
        ("flagEnabled", "yes"),
        ("flag", "a: 1"),
        ("stateMaintenance", "Off"),
        ("foo-bar", "a: 1"),
        ("Enabled", "true"),
    ]);
    let found: Vec<_> = document
        .problems
        .iter()
        .map(|problem| {
            (
                problem.key.as_str(),
                problem.owner.as_ref().map(ToString::to_string),
                problem.message.as_str(),
            )
        })
        .collect();
    let module = |name: &str| Some(format!("module '{name}'"));
    assert_eq!(found.len(), 8);
    assert_eq!(found[0], ("Enabled", None, "bad module name '': should be camelCased"));
    assert_eq!((found[1].0, &found[1].1), ("badYaml", &module("bad-yaml")));
    assert!(
        found[1].2.starts_with("bad yaml at key 'badYaml': line "),
        "{}",
        found[1].2
    );
    assert_eq!(
        found[2].2,
        "bad yaml at key 'duplicate': line 2, column 1: mapping key \"a\" already defined at line 1",
    );
    assert_eq!(
        found[3].2,
        "bad value at key 'empty': module config should be array or map"
    );
    assert_eq!(
        found[4],
        (
            "flagEnabled",
            module("flag"),
            "module enabled key 'flagEnabled' should have a boolean value, got 'yes'"
        ),
    );
    assert_eq!(
        found[5],
        ("foo-bar", None, "bad module name 'foo-bar': should be camelCased")
    );
    assert_eq!(
        found[6].2,
        "bad value at key 'scalar': module config should be array or map"
    );
    assert!(
        found[7]
            .2
            .starts_with("module maintenanceState key 'stateMaintenance' can only take ")
    );

    assert_eq!(document.global, Entry::Good(json!({"a": 1})));
    assert_eq!(section(&document, "bad-yaml").values, Entry::Bad);
    assert_eq!(section(&document, "bad-yaml").enabled, Entry::Good(true));
    assert_eq!(section(&document, "flag").values, Entry::Good(json!({"a": 1})));
    assert_eq!(section(&document, "flag").enabled, Entry::Bad);
    let owner = Owner::Module(ModuleName::parse("flag").unwrap());
    assert_eq!(document.problems_of(&owner).count(), 1);
}

#[test]
fn a_broken_global_section_is_told_with_its_place() {
    let message = |text| match parse(&[("global", text)]) {
        ConfigDocument {
            global: Entry::Bad,
            problems,
            ..
        } => problems[0].message.clone(),
        document => panic!("{document:?}"),
    };
    assert!(message("a: b: c").starts_with("ConfigMap: bad yaml at key 'global': line 1, column "));
    assert_eq!(message("5"), "global config should be map");
    assert_eq!(message("[1]"), "global config should be map");
}

#[test]
fn settings_of_the_channel_are_no_sections() {
    let digest = format!("sha256:{}", "a".repeat(64));
    let document = parse(&[
        ("releaseChannel", "1.4.x\n"),
        ("releasePolicy", "mode: manual"),
        ("releaseApproved", &digest),
    ]);
    assert_eq!((document.problems.len(), document.sections.len()), (0, 0));
    let settings = document.channel.settings();
    assert_eq!(settings.channel.unwrap().to_string(), "1.4.x");
    assert_eq!(settings.policy.mode.word(), "manual");
    assert_eq!(settings.approved.len(), 1);
    let nothing = ConfigDocument::default().channel;
    assert_eq!(document.channel.changes(&nothing).len(), 3);
    assert_eq!(document.channel.changes(&document.channel), [""; 0]);
}

#[test]
fn a_broken_setting_of_the_channel_concerns_no_other_key() {
    let document = parse(&[
        ("releaseChannel", ">=1.4<2"),
        ("releasePolicy", "mode: never"),
        ("releaseApproved", "latest"),
        ("releaseChannelEnabled", "true"),
        ("one", "a: 1"),
    ]);
    let told: Vec<String> = document.problems.iter().map(ToString::to_string).collect();
    assert!(
        told[0].starts_with("key 'releaseApproved': 'latest' should be a digest: sha256:"),
        "{told:?}"
    );
    assert!(
        told[1].starts_with("key 'releaseChannel': '>=1.4<2' is neither a tag nor a range"),
        "{told:?}"
    );
    assert_eq!(
        told[2],
        "key 'releaseChannelEnabled': 'release-channel' is no name for a module: the key 'releaseChannel' of the \
         ConfigMap is a setting of the operator"
    );
    assert_eq!(
        told[3],
        "key 'releasePolicy': 'mode' is \"never\": write auto, patch or manual"
    );
    assert_eq!(document.channel.channel, Entry::Bad);
    assert_eq!(document.channel.settings(), channel_core::settings::Settings::default());
    assert_eq!(document.sections.len(), 1);
}

#[test]
fn a_section_is_written_plainly() {
    assert_eq!(
        to_text(&json!({"size": 1.0, "config": {"a": [1, "yes"]}})),
        "config:\n  a:\n  - 1\n  - \"yes\"\nsize: 1\n"
    );
    assert_eq!(to_text(&json!({})), "{}\n");
}

fn section_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e30_f64..1e30).prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
        ".{0,12}".prop_map(Value::from),
        "[-+.0-9eExXob_:~yYnN<=|>&*!%@`'\"#{}\\[\\], \n]{0,10}".prop_map(Value::from),
        prop::sample::select(vec![
            "yes",
            "No",
            "on",
            "null",
            "~",
            "0777",
            "1_0",
            "2001-01-01",
            "<<",
            "1e3",
            "---"
        ])
        .prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(".{0,6}|yes|1|null|<<", inner, 0..4).prop_map(|map| json!(map)),
        ]
    });
    prop::collection::btree_map("[a-zA-Z0-9 _.-]{0,6}", value, 0..4).prop_map(|map| json!(map))
}

proptest! {
    #[test]
    fn a_section_that_we_write_is_read_back_unchanged(mut value in section_value()) {
        helm_yaml::number::settle(&mut value);
        let text = to_text(&value);
        prop_assert_eq!(yaml::from_str_v3(&text), Ok(value.clone()), "{}", text);
        prop_assert_eq!(yaml::from_str_v2_strict(&text), Ok(value), "{}", text);
    }
}
