use helm_yaml::yaml;
use names::ModuleName;
use proptest::prelude::*;
use serde_json::json;

use super::patch::FlagOp;
use super::patch::Patch;
use super::*;

fn module(name: &str) -> Owner {
    Owner::Module(ModuleName::parse(name).unwrap())
}

fn patch(value: &Value) -> Patch {
    Patch::parse(&value.to_string(), PatchFile::Values).unwrap()
}

fn add(path: &str, value: impl Into<Value>) -> Patch {
    patch(&json!({"op": "add", "path": path, "value": value.into()}))
}

/// The error with the whole chain of its sources.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

fn store_with(owner: &Owner, files: Value) -> Store {
    let mut store = Store::new();
    store.set_static(owner, files).unwrap();
    store
}

fn commit(store: &mut Store, owner: &Owner, values: &Patch, config: &Patch) -> Change {
    let proposal = store.propose(owner, values, config).unwrap();
    store.commit(proposal).unwrap()
}

#[test]
fn hooks_see_effective_values_and_separately_what_the_config_map_says() {
    let layered = module("layered");
    let mut store = store_with(&Owner::Global, json!({"zone": "common", "color": "common"}));
    store
        .set_config(&Owner::Global, Some(json!({"zone": "configmap", "extra": 1.0})))
        .unwrap();
    store
        .set_static(
            &layered,
            json!({"fromModule": "module", "nested": {"a": "common", "b": "module"}}),
        )
        .unwrap();
    store
        .set_config(&layered, Some(json!({"nested": {"c": "configmap"}})))
        .unwrap();

    let global = json!({"zone": "configmap", "color": "common", "extra": 1});
    let expected = json!({
        "global": global,
        "layered": {"fromModule": "module", "nested": {"a": "common", "b": "module", "c": "configmap"}},
    });
    let values = store.hook_values(&layered);
    assert_eq!(values.to_value(), expected);
    assert_eq!(serde_json::to_value(&values).unwrap(), expected);
    assert_eq!(
        store.hook_values(&Owner::Global).to_value(),
        json!({ "global": global })
    );
    assert_eq!(
        store.config_values(&layered).to_value(),
        json!({"global": {"zone": "configmap", "extra": 1}, "layered": {"nested": {"c": "configmap"}}}),
    );
}

#[test]
fn defaults_are_the_values_without_the_config_map_and_without_hooks() {
    let owner = module("shop");
    let mut store = store_with(&owner, json!({"size": "small", "count": 1}));
    store.set_config(&owner, Some(json!({"size": "large"}))).unwrap();
    commit(&mut store, &owner, &add("/shop/count", 2), &Patch::default());
    assert_eq!(*store.effective(&owner), json!({"size": "large", "count": 2}));
    assert_eq!(store.defaults(&owner), json!({"size": "small", "count": 1}));
    assert_eq!(store.defaults(&module("other")), json!({}));
}

#[test]
fn an_owner_that_nobody_mentions_has_empty_values_and_no_config() {
    let store = Store::new();
    assert_eq!(
        store.hook_values(&module("foo-bar")).to_value(),
        json!({"global": {}, "fooBar": {}})
    );
    assert_eq!(
        store.config_values(&module("foo-bar")).to_value(),
        json!({"global": null, "fooBar": null})
    );
}

#[test]
fn a_section_that_vanishes_takes_its_values_along() {
    let one = module("one");
    let mut store = store_with(&one, json!({"size": "static"}));
    assert_eq!(store.set_config(&one, Some(json!({"size": "configmap"}))), Ok(true));
    assert_eq!(store.set_config(&one, None), Ok(true));
    assert_eq!(store.config_values(&one).to_value()["one"], Value::Null);
    assert_eq!(*store.effective(&one), json!({"size": "static"}));

    assert_eq!(store.set_config(&one, Some(json!({}))), Ok(false));
    let version = store.version(&one);
    assert_eq!(store.set_config(&one, None), Ok(false));
    assert_eq!(
        store.config_values(&one).to_value()["one"],
        json!({}),
        "there was nothing to take along"
    );
    assert_eq!(store.version(&one), version);

    store.forget_empty_config(&one);
    assert_eq!(store.config_values(&one).to_value()["one"], Value::Null);
    store.set_config(&one, Some(json!({"size": 1}))).unwrap();
    store.forget_empty_config(&one);
    assert_eq!(store.config_values(&one).to_value()["one"], json!({"size": 1}));
}

#[test]
fn a_patch_in_memory_stays_on_top_of_the_config_map() {
    let one = module("one");
    let mut store = Store::new();
    store.set_config(&one, Some(json!({"size": 1, "other": 1}))).unwrap();
    let change = commit(&mut store, &one, &add("/one/size", 2), &Patch::default());
    assert!(change.values_changed && change.config_section.is_none());
    assert_eq!(store.set_config(&one, Some(json!({"size": 3, "other": 3}))), Ok(true));
    assert_eq!(*store.effective(&one), json!({"size": 2, "other": 3}));
    assert!(store.forget_patches(&one));
    assert_eq!(*store.effective(&one), json!({"size": 3, "other": 3}));
}

#[test]
fn a_config_patch_creates_a_section_that_is_missing() {
    let one = module("one");
    let mut store = store_with(&one, json!({"static": 1}));
    let change = commit(&mut store, &one, &Patch::default(), &add("/one/password", "secret"));
    assert_eq!(change.config_section.as_deref(), Some(&json!({"password": "secret"})));
    assert_eq!(
        store.config_values(&one).to_value(),
        json!({"global": null, "one": {"password": "secret"}})
    );
    assert_eq!(*store.effective(&one), json!({"static": 1, "password": "secret"}));
}

#[test]
fn a_values_patch_applies_upon_the_config_patch_of_the_same_run() {
    let one = module("one");
    let mut store = Store::new();
    let change = commit(&mut store, &one, &add("/one/a/deep", 1), &add("/one/a", json!({})));
    assert!(change.values_changed);
    assert_eq!(*store.effective(&one), json!({"a": {"deep": 1}}));
    assert_eq!(change.config_section.as_deref(), Some(&json!({"a": {}})));
}

#[test]
fn a_patch_that_changes_nothing_is_forgotten() {
    let one = module("one");
    let mut store = store_with(&one, json!({"size": 1}));
    store.set_config(&one, Some(json!({"config": 1}))).unwrap();
    let before = store.clone();
    let change = commit(&mut store, &one, &add("/one/size", 1.0), &add("/one/config", 1));
    assert_eq!(
        change,
        Change {
            values_changed: false,
            config_section: None,
            flags: Vec::new()
        }
    );
    assert_eq!(store, before);
}

#[test]
fn flags_and_values_of_one_patch_are_committed_together_or_not_at_all() {
    let mut store = Store::new();
    let both = patch(&json!([
        {"op": "add", "path": "/global/a", "value": 1},
        {"op": "add", "path": "/oneEnabled", "value": true},
    ]));
    let change = commit(&mut store, &Owner::Global, &both, &Patch::default());
    assert!(change.values_changed);
    assert_eq!(
        change.flags,
        [FlagOp {
            module: ModuleName::parse("one").unwrap(),
            opinion: Some(true)
        }]
    );

    let broken = patch(&json!([
        {"op": "add", "path": "/global/b", "value": 1},
        {"op": "add", "path": "/oneEnabled", "value": "yes"},
    ]));
    let before = store.clone();
    assert!(store.propose(&Owner::Global, &broken, &Patch::default()).is_err());
    assert_eq!(store, before);
}

#[test]
fn refusals_read_like_those_of_the_original() {
    let one = module("one");
    let store = store_with(&one, json!({"size": 1, "list": ["a"]}));
    let none = Patch::default();
    let rows = [
        (
            add("/global/a", 1),
            none.clone(),
            "merge module 'one' values failed: unacceptable patch operation for path 'global' (only 'one' accepted)",
        ),
        (
            patch(&json!({"op": "replace", "path": "/one/size", "value": 5})),
            none.clone(),
            "merge module 'one' values failed: unsupported patch operation 'replace'",
        ),
        (
            patch(&json!({"op": "remove", "path": "/one/nowhere"})),
            none.clone(),
            "merge module 'one' values failed: nothing to remove at '/one/nowhere'",
        ),
        (
            none.clone(),
            add("/one/nowhere/deep", 1),
            "merge module 'one' values failed: nothing at the parent of '/one/nowhere/deep'",
        ),
        (
            add("/one", 5),
            none,
            "merge module 'one' values failed: 'one' should be a map or a list, not of type number",
        ),
    ];
    for (values, config, message) in rows {
        assert_eq!(chain(&store.propose(&one, &values, &config).unwrap_err()), message);
    }
    let error = store
        .propose(&Owner::Global, &add("/one/a", 1), &Patch::default())
        .unwrap_err();
    assert_eq!(
        chain(&error),
        "merge global values failed: unacceptable patch operation for path 'one' (only 'global' and '*Enabled' are permitted)",
    );
}

#[test]
fn the_global_section_is_a_map() {
    let mut store = Store::new();
    let error = store.set_config(&Owner::Global, Some(json!([]))).unwrap_err();
    assert_eq!(
        chain(&error),
        "apply global section of ConfigMap failed: 'global' should be a map, not of type array"
    );
    assert_eq!(store.set_config(&module("one"), Some(json!([1]))), Ok(true));
    assert_eq!(*store.effective(&module("one")), json!([1]));
}

#[test]
fn a_section_can_be_removed_as_a_whole() {
    let one = module("one");
    let mut store = store_with(&one, json!({"size": 1}));
    store.set_config(&one, Some(json!({"size": 2}))).unwrap();
    let remove = patch(&json!({"op": "remove", "path": "/one"}));
    let change = commit(&mut store, &one, &Patch::default(), &remove);
    assert_eq!(change.config_section.as_deref(), Some(&json!({})));
    assert_eq!(*store.effective(&one), json!({"size": 1}));
    commit(&mut store, &one, &remove, &Patch::default());
    assert_eq!(*store.effective(&one), json!({}));
}

#[test]
fn a_layer_under_which_patches_would_not_apply_is_refused() {
    let one = module("one");
    let mut store = store_with(&one, json!({"map": {}}));
    commit(&mut store, &one, &add("/one/map/x", 1), &Patch::default());
    let before = store.clone();
    let error = store.set_config(&one, Some(json!({"map": 5}))).unwrap_err();
    assert_eq!(
        chain(&error),
        "apply module 'one' section of ConfigMap failed: nothing at the parent of '/one/map/x'"
    );
    assert_eq!(store, before);
    let scalar = store.set_static(&one, json!("text")).unwrap_err();
    assert_eq!(
        chain(&scalar),
        "apply module 'one' values of files failed: 'one' should be a map or a list, not of type string"
    );
    assert_eq!(store, before);
}

#[test]
fn a_proposal_on_an_old_version_is_stale() {
    let one = module("one");
    let mut store = Store::new();
    let early = store.propose(&one, &add("/one/a", 1), &Patch::default()).unwrap();
    let late = store.propose(&one, &add("/one/b", 1), &Patch::default()).unwrap();
    // A change of another owner does not outdate the proposal.
    store.set_static(&Owner::Global, json!({"a": 1})).unwrap();
    assert!(early.is_current(&store));
    store.commit(early).unwrap();
    assert!(!late.is_current(&store));
    let late: Proposal = serde_json::from_value(serde_json::to_value(late).unwrap()).unwrap();
    let stale = store.commit(late.clone()).unwrap_err();
    assert_eq!(
        stale.to_string(),
        "values of module 'one' changed since the patch was worked out"
    );
    assert_eq!(*stale.0, late);
    assert_eq!(*store.effective(&one), json!({"a": 1}));
}

#[test]
fn effective_values_are_shared_and_not_copied() {
    let mut store = store_with(&Owner::Global, json!({"a": 1}));
    let before = store.effective(&Owner::Global);
    store.set_config(&Owner::Global, Some(json!({"a": 1}))).unwrap();
    assert!(Arc::ptr_eq(&before, &store.effective(&Owner::Global)));
}

#[test]
fn scalars_of_files_and_of_the_config_map_reach_a_hook_in_their_dialects() {
    let files = "scalars:\n  million: 1000000\n  small: 12\n  float: 1.5\n  whole: 2.0\n  negative: -3\n  bare: yes\n  \
                 quoted: \"on\"\n  octal: 010\n  text: \"1e3\"\n  date: 2020-01-01\n  multi: |\n    one\n    two\n";
    let data = BTreeMap::from([(
        "scalars".to_owned(),
        "fromConfigMap: {bare: yes, quoted: \"on\", octal: 0o17, text: \"007\", big: 12345678901234}".to_owned(),
    )]);
    let scalars = module("scalars");
    let mut store = Store::new();
    let mut document = yaml::from_str_v2(files).unwrap();
    store.set_static(&scalars, document["scalars"].take()).unwrap();
    let config = section::ConfigDocument::parse(&data);
    store
        .set_config(&scalars, config.sections["scalars"].layer().good().cloned())
        .unwrap();

    let from_config_map = r#"{"bare":"yes","big":12345678901234,"octal":15,"quoted":"on","text":"007"}"#;
    assert_eq!(
        serde_json::to_string(&store.hook_values(&scalars)).unwrap(),
        format!(
            r#"{{"global":{{}},"scalars":{{"bare":true,"date":"2020-01-01","float":1.5,"fromConfigMap":{from_config_map},"million":1000000,"multi":"one\ntwo\n","negative":-3,"octal":8,"quoted":"on","small":12,"text":"1e3","whole":2}}}}"#,
        ),
    );
    assert_eq!(
        serde_json::to_string(&store.config_values(&scalars)).unwrap(),
        format!(r#"{{"global":null,"scalars":{{"fromConfigMap":{from_config_map}}}}}"#),
    );
}

#[test]
fn an_empty_values_file_holds_no_values() {
    let one = module("one");
    let mut store = Store::new();
    assert_eq!(store.set_static(&one, yaml::from_str_v2("").unwrap()), Ok(false));
    assert_eq!(*store.effective(&one), json!({}));
}

#[test]
fn a_test_that_holds_is_remembered_and_one_that_fails_refuses_the_patch() {
    let one = module("one");
    let mut store = store_with(&one, json!({"size": 1}));
    let tested = |size: i32, tested: Value| {
        patch(&json!([
            {"op": "test", "path": "/one/size", "value": size},
            {"op": "add", "path": "/one/tested", "value": tested},
        ]))
    };
    commit(&mut store, &one, &tested(1, json!(true)), &Patch::default());
    assert!(store.propose(&one, &tested(7, json!(2)), &Patch::default()).is_err());
    assert_eq!(*store.effective(&one), json!({"size": 1, "tested": true}));
    let remembered = json!([
        {"op": "test", "path": "/one/size", "value": 1},
        {"op": "add", "path": "/one/tested", "value": true},
    ]);
    assert_eq!(serde_json::to_value(store.patches(&one)).unwrap(), remembered);
    // A test is checked only when the hook runs: a later change of the ConfigMap does not make it fail.
    assert_eq!(store.set_config(&one, Some(json!({"size": 9}))), Ok(true));
    assert_eq!(*store.effective(&one), json!({"size": 9, "tested": true}));
}

mod any_store {
    use super::*;

    fn section() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<i8>().prop_map(Value::from),
            Just(Value::Null),
            Just(json!([1, 2]))
        ];
        let value = leaf.prop_recursive(2, 12, 3, |inner| {
            prop::collection::btree_map("[a-c]", inner, 0..3).prop_map(|map| json!(map))
        });
        prop::collection::btree_map("[a-c]", value, 0..3).prop_map(|map| json!(map))
    }

    fn any_patch() -> impl Strategy<Value = Patch> {
        let op = prop::sample::select(vec!["add", "add", "add", "remove", "test", "replace"]);
        let root = prop::sample::select(vec!["one", "one", "one", "one", "global", "oneEnabled"]);
        let path = prop::collection::vec("[a-c]|0|-", 0..3);
        let operation = (op, root, path, section()).prop_map(|(op, root, path, value)| {
            let path = std::iter::once(root.to_owned())
                .chain(path)
                .fold(String::new(), |text, key| text + "/" + &key);
            json!({"op": op, "path": path, "value": value})
        });
        prop::collection::vec(operation, 0..4).prop_map(|operations| patch(&json!(operations)))
    }

    #[derive(Debug, Clone)]
    enum Step {
        Static(Value),
        Config(Option<Value>),
        Patches(Box<(Patch, Patch)>),
        Forget,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            1 => section().prop_map(Step::Static),
            2 => prop::option::of(section()).prop_map(Step::Config),
            6 => (any_patch(), any_patch()).prop_map(|patches| Step::Patches(Box::new(patches))),
            1 => Just(Step::Forget),
        ]
    }

    proptest! {
        #[test]
        fn what_is_rejected_changes_nothing_and_what_is_accepted_adds_up(
            steps in prop::collection::vec(step(), 1..12),
        ) {
            let one = module("one");
            let mut store = store_with(&one, json!({"a": {}}));
            for step in steps {
                let before = store.clone();
                let told = match step {
                    Step::Static(files) => store.set_static(&one, files),
                    Step::Config(section) => store.set_config(&one, section),
                    Step::Forget => Ok(store.forget_patches(&one)),
                    Step::Patches(patches) => {
                        let proposal = store.propose(&one, &patches.0, &patches.1);
                        prop_assert_eq!(&store, &before, "a proposal touches nothing");
                        proposal.map(|proposal| {
                            let promised = (proposal.values_changed(), proposal.config_section().cloned());
                            let change = store.commit(proposal).unwrap();
                            assert_eq!((change.values_changed, change.config_section), promised);
                            change.values_changed
                        })
                    }
                };
                match told {
                    Err(_) => prop_assert_eq!(&store, &before),
                    Ok(changed) => {
                        prop_assert_eq!(changed, store.effective(&one) != before.effective(&one));
                        let grown = store.version(&one) > before.version(&one);
                        prop_assert_eq!(grown, store != before);
                    }
                }
                let layers = store.layers(&one);
                let sum = layers.sum("one", layers.config.as_deref(), &layers.patches);
                prop_assert_eq!(sum.as_ref(), Ok(&*layers.effective));
            }
        }
    }
}
