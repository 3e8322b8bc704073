use names::ModuleName;
use serde_json::json;
use values_schema::schema::Files;

use super::super::patch::Patch;
use super::*;

fn one() -> Owner {
    Owner::Module(ModuleName::parse("one").unwrap())
}

/// A store with both schemas of an owner.
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

fn vet_section(store: &Store, owner: &Owner, section: &Value) -> Result<(), Rejected> {
    Vetted::at_once(|vetted| {
        let mut asking = Asking::new(vetted);
        let outcome = store.vet_section(owner, section, &mut asking);
        asking.decided(outcome)
    })
}

fn vet_for_helm(store: &Store) -> Result<(), NotForHelm> {
    store
        .vetting_for_helm(&one())
        .map_or(Ok(()), |vetting| vetting.for_helm())
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
    assert_eq!(vet_section(&store, &one(), &json!({"b": 1})), Ok(()));
    assert_eq!(
        vet_section(&store, &one(), &json!({})),
        Ok(()),
        "a flag alone is no section"
    );
    let refused = vet_section(&store, &one(), &json!({"c": 1})).unwrap_err();
    assert_eq!(
        reason(&refused),
        "2 errors occurred:\n\t* one.c in body is a forbidden property\n\t* one.b in body is required"
    );
    store.set_static(&one(), json!({"b": 1})).unwrap();
    assert!(
        vet_section(&store, &one(), &json!({"a": 2})).is_err(),
        "values of files are no part of it"
    );
    assert_eq!(
        vet_section(&store, &Owner::Global, &json!({"x": 1})),
        Ok(()),
        "nothing is known of these"
    );
}

#[test]
fn more_is_asked_before_helm() {
    let mut store = store(&one(), CONFIG, VALUES);
    assert_eq!(
        vet_for_helm(&store).unwrap_err().to_string(),
        "check helm values: 1 error occurred:\n\t* one.late in body is required"
    );
    let patch = store
        .propose(&one(), &add("/one/late", &json!("l")), &Patch::default())
        .unwrap();
    store.commit(patch).unwrap();
    assert_eq!(vet_for_helm(&store), Ok(()));
}

const RULES: &str = "properties: {a: {type: integer}, b: {}}\n\
                     x-deckhouse-validations: [{expression: 'self.a > 0', message: a is too small}]\n";

#[test]
fn what_takes_long_is_left_to_others_and_asked_together() {
    let store = store(&one(), RULES, "x-extend: {schema: config-values.yaml}");
    let patches = (add("/one/b", &json!(1)), add("/one/a", &json!(5)));
    let propose = |vetted: &Vetted| store.propose_vetted(&one(), &patches.0, &patches.1, vetted);
    let unvetted = propose(&Vetted::default()).unwrap_err();
    assert_eq!(unvetted.owners(), [&one()].into());
    let vetted = unvetted.vet();
    let proposal = propose(&vetted).expect("answered").expect("good");
    assert_eq!(proposal, store.propose(&one(), &patches.0, &patches.1).unwrap());
}

#[test]
fn an_answer_counts_for_what_was_asked_and_for_nothing_else() {
    let mut store = store(&one(), RULES, "x-extend: {schema: config-values.yaml}");
    let none = Patch::default();
    let (good, bad) = (add("/one/a", &json!(5)), add("/one/a", &json!(-5)));
    let vetted = store.propose_vetted(&one(), &good, &none, &Vetted::default());
    let vetted = vetted.unwrap_err().vet();
    assert!(store.propose_vetted(&one(), &bad, &none, &vetted).is_err());
    let refused = store.propose_vetted(&one(), &bad, &none, &Vetted::default());
    let refused = refused.unwrap_err().vet();
    assert!(store.propose_vetted(&one(), &bad, &none, &refused).unwrap().is_err());
    store.set_static(&one(), json!({"b": 1})).unwrap();
    assert!(
        store.propose_vetted(&one(), &good, &none, &vetted).is_err(),
        "values below the patch have changed"
    );
}

#[test]
fn nothing_counts_that_nobody_could_look_at() {
    let store = store(&one(), RULES, "x-extend: {schema: config-values.yaml}");
    let (patch, none) = (add("/one/a", &json!(5)), Patch::default());
    let unvetted = store
        .propose_vetted(&one(), &none, &patch, &Vetted::default())
        .unwrap_err();
    let refused = store.propose_vetted(&one(), &none, &patch, &unvetted.refuse("no time"));
    assert!(reason(&refused.unwrap().unwrap_err()).ends_with("* no time"));
}

#[test]
fn schemas_without_rules_are_looked_at_here_and_now() {
    let store = store(
        &one(),
        "properties: {a: {type: integer}}",
        "x-extend: {schema: config-values.yaml}",
    );
    let bad = add("/one/a", &json!("x"));
    let proposed = store.propose_vetted(&one(), &Patch::default(), &bad, &Vetted::default());
    assert!(proposed.unwrap().is_err());
    assert!(!store.vetting_for_helm(&one()).unwrap().takes_long());
    let mut nested = store.clone();
    let mut files = Files::default();
    files.insert(
        "v",
        "properties: {a: {x-deckhouse-validations: [{expression: 'true', message: m}]}}",
    );
    nested
        .set_schemas(&one(), Schemas::load(&files, None, Some("v")).unwrap())
        .unwrap();
    assert!(nested.vetting_for_helm(&one()).unwrap().takes_long());
}
