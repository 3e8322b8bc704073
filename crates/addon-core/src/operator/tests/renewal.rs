//! New lives of single modules: other files take the place of those before, between two steps.

use values_schema::schema::Files;

use super::*;
use crate::module::Edition;

impl World {
    /// Reads a module's directory again, which is now as `change` makes it.
    fn read_again(&mut self, edition: u64, module: &str, change: impl FnOnce(&mut Module)) {
        let known = self
            .inventory
            .modules
            .iter_mut()
            .find(|known| known.name == name(module));
        let known = known.expect("a module of that name");
        change(known);
        let found = Box::new(known.clone());
        self.handle(Event::ModuleRead(Edition(edition), Origin::Directory, found));
    }

    fn came(&mut self, edition: u64, found: Module) {
        self.inventory.modules.push(found.clone());
        self.handle(Event::ModuleRead(Edition(edition), Origin::Directory, Box::new(found)));
    }

    fn refusals(&self) -> Vec<String> {
        let refused = |notice: &Notice| match notice {
            Notice::FilesRefused { module, failure } => Some(format!("{module}: {}", failure.report)),
            _ => None,
        };
        self.notices.iter().filter_map(refused).collect()
    }
}

fn value(world: &World, module: &str, key: &str) -> Value {
    let query = ValuesQuery {
        module: Some(name(module)),
        with_global: false,
        secrets: Secrets::Shown,
    };
    world.operator.answer(&query).unwrap()[key].clone()
}

#[test]
fn only_the_module_that_was_read_again_begins_a_new_life() {
    let mut world = World::new(vec![module(1, "one"), module(2, "two")])
        .hook("one", "start.sh", "onStartup: 1")
        .hook("two", "start.sh", "onStartup: 1")
        .start();
    assert_eq!(
        world.take_log(),
        [
            "one/start.sh onStartup",
            "one sync",
            "two/start.sh onStartup",
            "two sync"
        ]
    );
    world.read_again(1, "one", |module| module.values = json!({"a": 2}));
    assert_eq!(
        world.take_log(),
        ["files of one 1", "one/start.sh onStartup", "one sync"]
    );
    assert_eq!(world.asked.iter().filter(|asked| *asked == "one --config").count(), 2);
    assert_eq!(world.state("one"), "Ready");
}

#[test]
fn a_running_step_ends_before_the_files_change_and_no_step_follows_with_the_old_ones() {
    let mut world = World::new(vec![module(1, "one")]).hook("one", "after.sh", "afterHelm: 1");
    world.open.insert("one sync".to_owned());
    let mut world = world.start();
    world.take_log();
    world.read_again(1, "one", |module| module.values = json!({"a": 2}));
    world.read_again(2, "one", |module| module.values = json!({"a": 3}));
    assert_eq!(world.take_log(), [""; 0]);
    world.close("one sync");
    assert_eq!(
        world.take_log(),
        ["one sync", "files of one 2", "one sync", "one/after.sh afterHelm"]
    );
}

#[test]
fn a_run_that_fails_again_and_again_goes_on_at_once_with_the_new_files() {
    let mut world = World::new(vec![module(1, "one")]).hook("one", "before.sh", "beforeHelm: 1");
    world.failing.insert("one/before.sh beforeHelm".to_owned(), 1);
    let mut world = world.start();
    assert_eq!(world.take_log(), ["one/before.sh beforeHelm fails"]);
    let waits = world.tick;
    world.read_again(1, "one", |module| module.values = json!({"a": 2}));
    assert_eq!(
        world.take_log(),
        ["files of one 1", "one/before.sh beforeHelm", "one sync"]
    );
    assert!(world.tick < waits + Duration::from_secs(1), "it waited for the retry");
}

#[test]
fn the_new_life_has_no_patches_of_the_old_one_and_keeps_the_section() {
    let mut world = World::new(vec![module(1, "one")])
        .hook("one", "start.sh", "onStartup: 1")
        .patching(
            "one/start.sh onStartup",
            &json!([{"op": "add", "path": "/one/of_hook", "value": 1}]),
            &json!([]),
        )
        .start();
    world.edit(&[("one", Some("of_people: 2"))]);
    assert_eq!(
        (value(&world, "one", "of_hook"), value(&world, "one", "of_people")),
        (json!(1), json!(2))
    );
    world.patches.clear();
    world.read_again(1, "one", |module| module.values = json!({"of_files": 3}));
    let found = ["of_hook", "of_people", "of_files"].map(|key| value(&world, "one", key));
    assert_eq!(found, [json!(null), json!(2), json!(3)]);
}

#[test]
fn a_new_module_joins_and_another_place_in_the_order_is_taken_up_by_a_converge() {
    let mut world = World::new(vec![module(2, "two")]).start();
    world.take_log();
    world.came(1, module(1, "one"));
    assert_eq!(world.take_log(), ["files of one 1", "one sync", "two sync"]);
    world.read_again(2, "one", |module| module.order = 3);
    assert_eq!(world.take_log(), ["files of one 2", "two sync", "one sync"]);
}

#[test]
fn files_that_cannot_be_used_change_nothing() {
    let mut world = World::new(vec![module(1, "one")]).start();
    world.take_log();
    let broken = Failure::new(Class::Invalid, "cannot read module 'one': no");
    world.read_again(1, "one", |module| module.broken = Some(broken));
    world.read_again(2, "one", |module| {
        module.broken = None;
        module.values = json!("no map");
    });
    assert_eq!(world.take_log(), [""; 0]);
    let refused = world.refusals();
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert_eq!(refused[0], "one: cannot read module 'one': no");
    assert_eq!(world.state("one"), "Ready");
}

#[test]
fn files_that_mend_a_broken_module_let_it_run() {
    let mut broken = module(1, "one");
    broken.broken = Some(Failure::new(Class::Invalid, "no"));
    let mut world = World::new(vec![broken]).start();
    assert_eq!(world.take_log(), [""; 0]);
    world.read_again(1, "one", |module| module.broken = None);
    assert_eq!(world.take_log(), ["files of one 1", "one sync"]);
}

#[test]
fn a_section_that_only_the_new_schema_allows_counts_from_then_on() {
    let schema = |text: &str| {
        let mut files = Files::default();
        files.insert("c", text);
        Schemas::load(&files, Some("c"), None).unwrap()
    };
    let mut first = module(1, "one");
    first.schemas = schema("type: object\nadditionalProperties: false\nproperties: {old: {type: integer}}");
    let mut world = World::new(vec![first]).start();
    world.edit(&[("one", Some("new: 2"))]);
    assert_eq!(value(&world, "one", "new"), json!(null));
    let next = schema("type: object\nadditionalProperties: false\nproperties: {new: {type: integer}}");
    world.read_again(1, "one", |module| module.schemas = next);
    assert_eq!(value(&world, "one", "new"), json!(2));
}

#[test]
fn a_removal_under_way_goes_on_with_the_new_hooks() {
    let mut world = World::new(vec![module(1, "one")])
        .hook("one", "gone.sh", "beforeDeleteHelm: 1")
        .start();
    world.take_log();
    world.failing.insert("one/gone.sh beforeDeleteHelm".to_owned(), 1);
    world.edit(&[("oneEnabled", Some("false"))]);
    assert_eq!(world.take_log(), ["one/gone.sh beforeDeleteHelm fails"]);
    world.read_again(1, "one", |module| module.values = json!({"a": 2}));
    assert_eq!(
        world.take_log(),
        ["files of one 1", "one/gone.sh beforeDeleteHelm", "one delete"]
    );
    assert_eq!(world.state("one"), "Disabled");
}

#[test]
fn changes_of_objects_reach_the_new_hooks_after_their_first_run_and_never_the_old_ones() {
    let mut world = World::new(vec![module(1, "one")])
        .hook("one", "watch.sh", "kubernetes: [{name: pods, kind: Pod, queue: other}]")
        .start();
    world.take_log();
    let late = world.change_unheard("one/watch.sh pods", WatchEvent::Modified, "a");
    world.read_again(1, "one", |module| module.values = json!({"a": 2}));
    assert_eq!(world.stopped, ["one/watch.sh pods"]);
    world.handle(Event::ObjectChanged(late));
    assert_eq!(
        world.take_log(),
        [
            "files of one 1",
            "one/watch.sh watch",
            "one/watch.sh kubernetes [pods all]",
            "one sync"
        ]
    );
    world.change("one/watch.sh pods", WatchEvent::Modified, "a");
    assert_eq!(world.take_log(), ["one/watch.sh kubernetes [pods Modified a]"]);
}

#[test]
fn a_release_whose_module_comes_is_not_purged_any_more() {
    let mut world = World::new(vec![module(2, "two")]);
    world.releases.push(ReleaseSummary {
        name: "one".to_owned(),
        ours: true,
        config: None,
    });
    world.failing.insert("one delete".to_owned(), 1);
    let mut world = world.start();
    assert_eq!(world.take_log(), ["two sync", "one delete fails"]);
    world.came(1, module(1, "one"));
    assert_eq!(world.take_log(), ["files of one 1", "one sync", "two sync"]);
    assert_eq!(world.tasks("main"), [""; 0]);
}
