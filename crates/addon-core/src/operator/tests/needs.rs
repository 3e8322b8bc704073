//! Modules that depend on each other: which module waits, which is held, which is removed first, and the reports about it.

use super::*;

fn needing(order: u32, text: &str, needs: &[&str]) -> Module {
    let mut module = module(order, text);
    module.depends_on = needs.iter().map(|need| name(need)).collect();
    module
}

fn strict(mut world: World) -> World {
    let policy = Policy {
        strict_order: true,
        ..Policy::default()
    };
    world.operator = Operator::new(1, policy);
    world
}

fn needs(world: &World, module: &str) -> Option<String> {
    let modules = world.operator.answer(&ModulesQuery);
    modules.into_iter().find(|report| report.name == module).unwrap().needs
}

fn flags(names: &[&str], text: &'static str) -> Vec<(String, Option<&'static str>)> {
    names
        .iter()
        .map(|name| (format!("{name}Enabled"), Some(text)))
        .collect()
}

fn switch(world: &mut World, names: &[&str], text: &'static str) {
    let flags = flags(names, text);
    let edits: Vec<_> = flags.iter().map(|(key, text)| (key.as_str(), *text)).collect();
    world.edit(&edits);
}

#[test]
fn a_module_waits_for_what_it_needs_whatever_its_number() {
    let modules = vec![needing(10, "app", &["db"]), module(30, "db"), module(20, "other")];
    let mut world = World::new(modules);
    world.open.insert("db sync".to_owned());
    let mut world = world.start();
    assert_eq!(world.take_log(), ["other sync"]);
    assert_eq!(world.waits_for("app"), "module 'db', which it needs");
    assert_eq!(needs(&world, "app").as_deref(), Some("db"));
    world.close("db sync");
    assert_eq!(world.take_log(), ["db sync", "app sync"]);
    assert_eq!(needs(&world, "app"), None);
}

#[test]
fn a_failing_module_holds_back_only_those_that_need_it() {
    let modules = vec![
        module(10, "db"),
        needing(20, "app", &["db"]),
        needing(30, "web", &["app"]),
        module(40, "other"),
    ];
    let mut world = World::new(modules);
    world.failing.insert("db sync".to_owned(), 1);
    let mut world = world.start();
    assert_eq!(world.take_log(), ["db sync fails", "other sync"]);
    assert_eq!(world.waits_for("app"), "it needs module 'db', which fails");
    let held = "it needs module 'app', which is held: it needs module 'db', which fails";
    assert_eq!(world.waits_for("web"), held);
    assert_eq!(needs(&world, "web").as_deref(), Some("app"));
    let told = |notice: &&Notice| matches!(notice, Notice::ModuleHeld { .. });
    assert_eq!(world.notices.iter().filter(told).count(), 2);
    while world.log.is_empty() {
        world.sleep();
    }
    assert_eq!(world.take_log(), ["db sync", "app sync", "web sync"]);
}

#[test]
fn with_strict_order_it_holds_back_everything_behind_it() {
    let modules = vec![module(10, "db"), needing(20, "app", &["db"]), module(40, "other")];
    let mut world = strict(World::new(modules));
    world.failing.insert("db sync".to_owned(), 1);
    let mut world = world.start();
    assert_eq!(world.take_log(), ["db sync fails"]);
    assert_eq!(world.waits_for("other"), "modules before it: db, app");
    while world.log.is_empty() {
        world.sleep();
    }
    assert_eq!(world.take_log(), ["db sync", "app sync", "other sync"]);
}

#[test]
fn a_need_that_is_disabled_holds_the_module_until_it_is_enabled() {
    let mut db = module(10, "db");
    db.enabled = None;
    let mut world = World::new(vec![db, needing(20, "app", &["db"]), module(30, "other")]).start();
    assert_eq!(world.take_log(), ["other sync"]);
    assert_eq!(world.waits_for("app"), "it needs module 'db', which is disabled");
    switch(&mut world, &["db"], "true");
    assert_eq!(world.take_log(), ["db sync", "app sync", "other sync"]);
    // The module is switched off by an explicit flag, so it is removed. The modules that depend on it stay as they are.
    switch(&mut world, &["db"], "false");
    assert_eq!(world.take_log(), ["db delete", "other sync"]);
    assert_eq!(world.waits_for("app"), "it needs module 'db', which is disabled");
}

#[test]
fn circles_and_missing_names_hold_those_concerned_and_are_told_before_anything_runs() {
    let modules = vec![
        needing(10, "a", &["b"]),
        needing(20, "b", &["a"]),
        needing(30, "above", &["a"]),
        needing(40, "lost", &["nowhere"]),
        module(50, "fine"),
    ];
    let mut world = World::new(modules).start();
    assert_eq!(world.take_log(), ["fine sync"]);
    let told = |notice: &Notice| match notice {
        Notice::ModuleBlocked { module, failure } => Some(format!("{module}: {failure}")),
        _ => None,
    };
    let blocked: Vec<_> = world.notices.iter().filter_map(told).collect();
    assert_eq!(
        blocked,
        [
            "a: dependsOn goes round in a circle: a → b → a",
            "above: module 'a', which it needs, cannot run itself",
            "b: dependsOn goes round in a circle: b → a → b",
            "lost: module 'nowhere', named in dependsOn of its module.yaml, does not exist in any modules directory",
        ]
    );
    let first_run = world
        .notices
        .iter()
        .position(|notice| matches!(notice, Notice::ModuleReady { .. }));
    let last_told = world.notices.iter().rposition(|notice| told(notice).is_some());
    assert!(last_told < first_run);
    let lacking: Vec<_> = ["a", "above", "b", "lost", "fine"]
        .map(|name| needs(&world, name))
        .into();
    let lacking: Vec<_> = lacking.iter().map(Option::as_deref).collect();
    assert_eq!(lacking, [Some("b"), Some("a"), Some("a"), Some("nowhere"), None]);
    assert!(world.status().ready);
}

#[test]
fn removals_go_the_other_way_round() {
    let modules = vec![needing(10, "app", &["db"]), module(30, "db"), module(20, "other")];
    let mut world = World::new(modules).start();
    assert_eq!(world.take_log(), ["other sync", "db sync", "app sync"]);
    switch(&mut world, &["app", "db", "other"], "false");
    assert_eq!(world.take_log(), ["app delete", "db delete", "other delete"]);
}

#[test]
fn a_removal_that_fails_holds_back_only_what_the_module_needs() {
    let modules = vec![needing(30, "app", &["db"]), module(20, "db"), module(10, "other")];
    let mut world = World::new(modules).start();
    world.take_log();
    world.failing.insert("app delete".to_owned(), 1);
    switch(&mut world, &["app", "db", "other"], "false");
    assert_eq!(world.take_log(), ["app delete fails", "other delete"]);
    assert_eq!(world.waits_for("db"), "module 'app', which needs it, to be removed");
    while world.log.is_empty() {
        world.sleep();
    }
    assert_eq!(world.take_log(), ["app delete", "db delete"]);
}

#[test]
fn nothing_overtakes_a_removal_that_is_in_doubt_while_a_script_fails() {
    let mut app = needing(20, "app", &["db"]);
    app.has_enabled_script = true;
    let mut world = World::new(vec![app, module(10, "db")]).start();
    world.take_log();
    world.failing.insert("app delete".to_owned(), 9);
    switch(&mut world, &["app", "db"], "false");
    assert_eq!(world.take_log(), ["app delete fails"]);
    world.failing.insert("app enabled?".to_owned(), 1);
    switch(&mut world, &["app"], "true");
    assert_eq!(world.take_log(), ["app enabled? fails"]);
    assert_eq!(world.waits_for("db"), "module 'app', which needs it, to be removed");
    while !world.log.contains(&"db delete".to_owned()) {
        world.sleep();
    }
    assert!(world.log.contains(&"app enabled?".to_owned()), "{:?}", world.log);
}

#[test]
fn with_strict_order_a_removal_that_fails_holds_back_everything() {
    let mut world = strict(World::new(vec![
        module(20, "app"),
        module(10, "db"),
        module(30, "other"),
    ]))
    .start();
    world.take_log();
    world.failing.insert("app delete".to_owned(), 1);
    switch(&mut world, &["app", "db"], "false");
    assert_eq!(world.take_log(), ["app delete fails"]);
    while world.log.is_empty() {
        world.sleep();
    }
    assert_eq!(world.take_log(), ["app delete", "db delete", "other sync"]);
}

#[test]
fn modules_that_need_each_other_are_removed_all_the_same() {
    // Both modules were installed before their files declared the cycle.
    let mut world = World::new(vec![needing(10, "a", &["b"]), needing(20, "b", &["a"])]);
    for name in ["a", "b"] {
        world.releases.push(ReleaseSummary {
            name: name.to_owned(),
            ours: true,
            config: None,
        });
    }
    let mut world = world.start();
    world.take_log();
    switch(&mut world, &["a", "b"], "false");
    assert_eq!(world.take_log(), ["b delete", "a delete"]);
}

#[test]
fn a_first_run_in_a_named_queue_is_not_lost_while_its_module_is_held() {
    let pods = "kubernetes:\n- name: pods\n  kind: Pod\n  queue: side";
    let mut world = World::new(vec![module(10, "db"), needing(20, "app", &["db"])])
        .hook("", "g.sh", pods)
        .hook("app", "h.sh", pods);
    world.data.insert("appEnabled".to_owned(), "false".to_owned());
    let mut world = world.start();
    world.open.insert("g.sh kubernetes".to_owned());
    world.change("g.sh pods", WatchEvent::Added, "a");
    world.take_log();
    // The module's turn comes while its queue is busy. Then the module that it depends on is switched off.
    switch(&mut world, &["app"], "true");
    switch(&mut world, &["db"], "false");
    assert!(world.waits_for("app").contains("db"), "{}", world.waits_for("app"));
    world.close("g.sh kubernetes");
    switch(&mut world, &["db"], "true");
    let log = world.take_log();
    let first_runs = log.iter().filter(|line| *line == "app/h.sh kubernetes [pods all]");
    assert_eq!(first_runs.count(), 1, "{log:?}");
    assert_eq!(log.last().map(String::as_str), Some("app sync"), "{log:?}");
}
