//! Refusals by schemas: a section, a patch, a release; and the parts that they do not concern.

use values_schema::schema::Files;

use super::*;

fn values(world: &World, module: &str) -> Value {
    let query = ValuesQuery {
        module: Some(name(module)),
        with_global: false,
        secrets: Secrets::Shown,
    };
    world.operator.answer(&query).unwrap()
}

/// A module with a size in its section of the ConfigMap. Its chart requires a secret.
fn described() -> Module {
    let mut files = Files::default();
    files.insert("c", "properties: {size: {type: integer, default: 1, maximum: 9}}");
    files.insert(
        "v",
        "x-extend: {schema: c}\nx-required-for-helm: secret\nproperties: {secret: {type: string}}",
    );
    Module {
        schemas: Schemas::load(&files, Some("c"), Some("v")).unwrap(),
        ..module(10, "one")
    }
}

fn secret() -> Value {
    json!([{"op": "add", "path": "/one/secret", "value": "s"}])
}

fn world() -> World {
    World::new(vec![described(), module(20, "two")])
        .hook("one", "h.sh", "beforeHelm: 1")
        .patching("one/h.sh beforeHelm", &secret(), &json!([]))
}

fn rejections(world: &World) -> Vec<(&str, &str)> {
    let rejected = world.notices.iter().filter_map(|notice| match notice {
        Notice::ConfigRejected { key, message } => Some((key.as_str(), message.as_str())),
        _ => None,
    });
    rejected.collect()
}

#[test]
fn a_section_that_breaks_its_schema_leaves_its_module_on_the_last_good_one() {
    let mut world = world().start();
    world.edit(&[("one", Some("size: 5"))]);
    assert_eq!(values(&world, "one"), json!({"size": 5, "secret": "s"}));
    world.take_log();
    world.edit(&[("one", Some("size: 50")), ("two", Some("a: 1"))]);
    assert_eq!(world.take_log(), ["two sync"], "the others go on");
    assert_eq!(values(&world, "one"), json!({"size": 5, "secret": "s"}));
    let message = "apply module 'one' section of ConfigMap failed: 1 error occurred:\n\t* one.size in body should be less than or equal to 9";
    assert_eq!(rejections(&world), [("one", message)]);
    assert_eq!(
        world.last_good.as_ref().unwrap()["one"],
        "size: 5",
        "what is kept for the next life is good"
    );
    world.edit(&[("three", Some("a: 1"))]);
    assert_eq!(rejections(&world).len(), 1, "told once");
    world.edit(&[("one", Some("size: 6"))]);
    assert_eq!(values(&world, "one"), json!({"size": 6, "secret": "s"}));
}

#[test]
fn a_section_that_breaks_its_schema_at_start_counts_as_absent() {
    let mut world = world();
    world.data.insert("one".to_owned(), "size: 50".to_owned());
    let world = world.start();
    assert_eq!(rejections(&world).len(), 1);
    assert_eq!(values(&world, "one"), json!({"size": 1, "secret": "s"}));
}

#[test]
fn what_was_good_in_an_earlier_life_is_held_against_the_schema_of_this_one() {
    let mut world = world();
    world
        .last_good
        .get_or_insert_default()
        .insert("one".to_owned(), "size: 70".to_owned());
    world.data.insert("one".to_owned(), "size: 50".to_owned());
    let world = world.start();
    assert_eq!(values(&world, "one"), json!({"size": 1, "secret": "s"}));
}

#[test]
fn without_a_config_map_what_was_good_in_an_earlier_life_is_held_against_the_schema_too() {
    let mut world = world();
    world
        .last_good
        .get_or_insert_default()
        .insert("one".to_owned(), "size: 70".to_owned());
    world
        .last_good
        .get_or_insert_default()
        .insert("two".to_owned(), "a: 1".to_owned());
    world.handle(Event::InventoryChanged(world.inventory.clone()));
    world.handle(Event::ConfigChanged(ConfigRead::Missing));
    assert_eq!(values(&world, "one"), json!({"size": 1, "secret": "s"}));
    assert_eq!(values(&world, "two"), json!({"a": 1}));
    assert_eq!(rejections(&world).len(), 1);
}

#[test]
fn a_patch_that_breaks_a_schema_fails_its_hook() {
    let wish = json!([{"op": "add", "path": "/one/size", "value": "big"}]);
    let mut world = World::new(vec![described()])
        .hook("one", "h.sh", "beforeHelm: 1")
        .patching("one/h.sh beforeHelm", &wish, &json!([]))
        .start();
    assert_eq!(world.take_log(), ["one/h.sh beforeHelm"]);
    assert!(
        world
            .waits_for("one")
            .contains("one.size in body must be of type integer"),
        "{}",
        world.waits_for("one")
    );
    assert_eq!(values(&world, "one"), json!({"size": 1}));
}

#[test]
fn a_module_waits_by_name_for_what_helm_must_have() {
    let mut world = World::new(vec![described(), module(20, "two")]).start();
    assert_eq!(world.take_log(), ["two sync"]);
    let waits = world.waits_for("one");
    assert!(
        waits.contains("check helm values: 1 error occurred:\n\t* one.secret in body is required"),
        "{waits}"
    );
    world.sleep();
    assert_eq!(
        world.take_log(),
        [] as [&str; 0],
        "asked again, and nothing has changed"
    );
}

#[test]
fn what_helm_must_have_may_come_later() {
    let mut files = Files::default();
    files.insert("c", "properties: {secret: {type: string}}");
    files.insert("v", "x-extend: {schema: c}\nx-required-for-helm: secret");
    let needy = Module {
        schemas: Schemas::load(&files, Some("c"), Some("v")).unwrap(),
        ..module(10, "one")
    };
    let mut world = World::new(vec![needy]).start();
    assert_eq!(world.take_log(), [] as [&str; 0]);
    world.edit(&[("one", Some("secret: s"))]);
    assert_eq!(world.take_log(), ["one sync"]);
    world.edit(&[("one", None)]);
    assert!(world.waits_for("one").contains("one.secret in body is required"));
}
