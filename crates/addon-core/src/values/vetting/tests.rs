use serde_json::json;

use super::super::patch::Patch;
use super::super::schema::Files;
use super::*;
use crate::name::ModuleName;

fn one() -> Owner {
    Owner::Module(ModuleName::parse("one").unwrap())
}

/// Both schemas, taken over for an owner.
fn store(owner: &Owner, config: &str, values: &str) -> Store {
    let mut files = Files::default();
    files.insert("config-values.yaml", config);
    files.insert("values.yaml", values);
    let schemas = Schemas::load(&files, Some("config-values.yaml"), Some("values.yaml")).unwrap();
    let mut store = Store::new();
    store.set_schemas(owner, schemas).unwrap();
    store
}

fn add(path: &str, value: &Value) -> Patch {
    Patch::parse(
        &json!([{"op": "add", "path": path, "value": value}]).to_string(),
        super::super::patch::PatchFile::Values,
    )
    .unwrap()
}

fn reason(rejected: &Rejected) -> String {
    rejected.reason.to_string()
}

const CONFIG: &str = "properties: {a: {type: integer, default: 1}, b: {type: integer}, nested: {properties: {c: {default: config}}}}\n\
                      x-deckhouse-validations: [{expression: 'self.a >= oldSelf.a', message: a must not shrink}]\n";
const VALUES: &str = "x-extend: {schema: config-values.yaml}\nx-required-for-helm: late\n\
                      properties: {d: {default: values}, a: {type: integer, default: 9}, late: {type: string}}\n\
                      x-deckhouse-validations: []\n";

#[test]
fn defaults_lie_between_the_layers() {
    let mut store = store(&one(), CONFIG, VALUES);
    assert_eq!(*store.effective(&one()), json!({"a": 1, "d": "values"}));
    store.set_static(&one(), json!({"nested": {}, "d": "files"})).unwrap();
    assert_eq!(
        *store.effective(&one()),
        json!({"a": 1, "d": "files", "nested": {"c": "config"}})
    );
    store
        .set_config(&one(), Some(json!({"a": 5, "nested": {"c": "section"}})))
        .unwrap();
    assert_eq!(
        *store.effective(&one()),
        json!({"a": 5, "d": "files", "nested": {"c": "section"}})
    );
    assert_eq!(
        store.config_section(&one()).as_deref(),
        Some(&json!({"a": 5, "nested": {"c": "section"}})),
        "no defaults here"
    );
}

#[test]
fn patches_that_break_a_schema_change_nothing() {
    let mut store = store(&one(), CONFIG, VALUES);
    store.set_config(&one(), Some(json!({"a": 5}))).unwrap();
    let before = store.clone();
    let none = Patch::default();
    let rows = [
        (
            store.propose(&one(), &add("/one/d2", &json!(1)), &none),
            "2 errors occurred:\n\t* cannot apply values patch for module values\n\t* one.d2 in body is a forbidden property",
        ),
        (
            store.propose(&one(), &none, &add("/one/b", &json!("x"))),
            "2 errors occurred:\n\t* cannot apply config values patch for module values\n\t* one.b in body must be of type integer: \"string\"",
        ),
        (
            store.propose(&one(), &none, &add("/one/a", &json!(4))),
            "2 errors occurred:\n\t* cannot apply config values patch for module values\n\t* a must not shrink",
        ),
    ];
    for (proposal, said) in rows {
        assert_eq!(reason(&proposal.unwrap_err()), said);
    }
    assert_eq!(store, before);
    let good = store
        .propose(&one(), &add("/one/late", &json!("l")), &add("/one/a", &json!(6)))
        .unwrap();
    store.commit(good).unwrap();
    assert_eq!(*store.effective(&one()), json!({"a": 6, "d": "values", "late": "l"}));
}

#[test]
fn global_patches_are_refused_in_other_words() {
    let store = store(
        &Owner::Global,
        "properties: {a: {type: string}}",
        "x-extend: {schema: c}",
    );
    let refused = store
        .propose(&Owner::Global, &add("/global/x", &json!(1)), &Patch::default())
        .unwrap_err();
    assert_eq!(
        reason(&refused),
        "cannot apply values patch for global values: 1 error occurred:\n\t* global.x in body is a forbidden property"
    );
}

#[test]
fn a_section_is_held_against_its_schema_with_defaults_below_it() {
    let mut store = store(
        &one(),
        "required: [a, b]\nproperties: {a: {default: 1}, b: {}}",
        "x-extend: {schema: c}",
    );
    assert_eq!(store.vet_section(&one(), &json!({"b": 1})), Ok(()));
    assert_eq!(
        store.vet_section(&one(), &json!({})),
        Ok(()),
        "a flag alone is no section"
    );
    let refused = store.vet_section(&one(), &json!({"c": 1})).unwrap_err();
    assert_eq!(
        reason(&refused),
        "2 errors occurred:\n\t* one.c in body is a forbidden property\n\t* one.b in body is required"
    );
    store.set_static(&one(), json!({"b": 1})).unwrap();
    assert!(
        store.vet_section(&one(), &json!({"a": 2})).is_err(),
        "values of files are no part of it"
    );
    assert_eq!(
        store.vet_section(&Owner::Global, &json!({"x": 1})),
        Ok(()),
        "nothing is known of these"
    );
}

#[test]
fn more_is_asked_before_helm() {
    let mut store = store(&one(), CONFIG, VALUES);
    assert_eq!(
        store.vet_for_helm(&one()).unwrap_err().to_string(),
        "check helm values: 1 error occurred:\n\t* one.late in body is required"
    );
    let patch = store
        .propose(&one(), &add("/one/late", &json!("l")), &Patch::default())
        .unwrap();
    store.commit(patch).unwrap();
    assert_eq!(store.vet_for_helm(&one()), Ok(()));
}
