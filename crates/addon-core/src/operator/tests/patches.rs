//! Patches of hooks, and the effects and reports of a refused one.

use super::*;

const EVERY_SECOND: &str = "schedule:\n- crontab: '* * * * * *'\n  queue: side\n  allowFailure: ";

fn add(path: &str, value: impl Into<Value>) -> Value {
    json!([{"op": "add", "path": path, "value": value.into()}])
}

fn failures(world: &World) -> Vec<&str> {
    let failed = |notice: &Notice| matches!(notice, Notice::HookFailed { .. });
    let told = world.notices.iter().filter(|notice| failed(notice));
    told.filter_map(|notice| match notice {
        Notice::HookFailed { failure, .. } => Some(failure.report.as_str()),
        _ => None,
    })
    .collect()
}

fn config_values(world: &World, module: &str) -> Value {
    let (module, with_global) = (Some(name(module)), false);
    let query = ConfigValuesQuery {
        module,
        with_global,
        secrets: Secrets::Shown,
    };
    world.operator.answer(&query).unwrap()
}

#[test]
fn refusals_name_the_hook_and_which_of_its_patches_it_was() {
    let none = json!([]);
    let rows = [
        (
            "one",
            add("/two/a", 1),
            none.clone(),
            "module hook 'h.sh': dynamic module values update error: merge module 'one' values failed: unacceptable patch \
             operation for path 'two' (only 'one' accepted)",
        ),
        (
            "one",
            none.clone(),
            add("/one/no/where", 1),
            "module hook 'h.sh': kube module config values update error: merge module 'one' values failed: nothing at the \
             parent of '/one/no/where'",
        ),
        (
            "one",
            add("/two/a", 1),
            add("/one/no/where", 1),
            "module hook 'h.sh': kube module config values update error: merge module 'one' values failed: nothing at the \
             parent of '/one/no/where'",
        ),
        (
            "",
            add("/one/a", 1),
            none.clone(),
            "global hook 'h.sh': dynamic global values update error: merge global values failed: unacceptable patch \
             operation for path 'one' (only 'global' and '*Enabled' are permitted)",
        ),
        (
            "",
            none.clone(),
            json!([{"op": "replace", "path": "/global/a", "value": 1}]),
            "global hook 'h.sh': kube config global values update error: merge global values failed: unsupported patch \
             operation 'replace'",
        ),
        (
            "",
            add("/oneEnabled", "true"),
            none,
            "apply enabled patches from global values patch: apply enabled patch operation 'add' for /oneEnabled: \
             unsupported module enabled value: should be true or false, not of type string",
        ),
    ];
    for (owner, values, config, text) in rows {
        let words = if owner.is_empty() {
            "h.sh schedule"
        } else {
            "one/h.sh schedule"
        };
        let mut world = World::new(vec![module(10, "one")])
            .hook(owner, "h.sh", &format!("{EVERY_SECOND}true"))
            .patching(words, &values, &config)
            .start();
        world.sleep();
        assert_eq!(failures(&world), [text]);
    }
}

#[test]
fn a_section_that_cannot_be_saved_fails_its_hook() {
    let mut world = World::new(vec![module(10, "one")])
        .hook("one", "h.sh", &format!("{EVERY_SECOND}true"))
        .patching("one/h.sh schedule", &json!([]), &add("/one/a", 1))
        .start();
    world.failing.insert("save one".to_owned(), 1);
    world.sleep();
    assert_eq!(
        failures(&world),
        ["module hook 'h.sh': set kube module config failed: no"]
    );
}

/// A hook whose config patch is valid and whose values patch is not.
fn half_good(allow_failure: bool) -> World {
    let config = format!("{EVERY_SECOND}{allow_failure}");
    let remove = json!([{"op": "remove", "path": "/one/nowhere"}]);
    let mut world = World::new(vec![module(10, "one")])
        .hook("one", "h.sh", &config)
        .patching("one/h.sh schedule", &remove, &add("/one/config", 1))
        .start();
    world.take_log();
    world.sleep();
    world
}

#[test]
fn a_config_patch_counts_although_the_values_patch_beside_it_is_refused() {
    for allow_failure in [true, false] {
        let mut world = half_good(allow_failure);
        assert_eq!(
            world.take_log(),
            ["one/h.sh schedule", "save one", "one sync"],
            "the release follows at once"
        );
        assert_eq!(world.data["one"].trim(), "config: 1");
        assert_eq!(config_values(&world, "one"), json!({"config": 1}));
        let refused = "module hook 'h.sh': dynamic module values update error: merge module 'one' values failed: nothing \
                       to remove at '/one/nowhere'";
        assert_eq!(failures(&world), [refused]);
        while world.log.is_empty() {
            world.sleep();
        }
        assert_eq!(world.take_log(), ["one/h.sh schedule"], "nothing is written twice");
    }
}

#[test]
fn a_refused_values_patch_is_forgotten_when_its_config_patch_is_not_saved() {
    let remove = json!([{"op": "remove", "path": "/one/nowhere"}]);
    let mut world = World::new(vec![module(10, "one")])
        .hook("one", "h.sh", &format!("{EVERY_SECOND}true"))
        .patching("one/h.sh schedule", &remove, &add("/one/config", 1))
        .start();
    world.failing.insert("save one".to_owned(), 1);
    world.sleep();
    assert_eq!(
        failures(&world),
        ["module hook 'h.sh': set kube module config failed: no"]
    );
    assert_eq!(config_values(&world, "one"), Value::Null);
}

#[test]
fn a_module_that_is_enabled_again_finds_no_trace_of_a_section_that_is_gone() {
    let mut world = World::new(vec![module(10, "one")]).start();
    world.edit(&[("oneEnabled", Some("false"))]);
    world.edit(&[("oneEnabled", None)]);
    assert_eq!(world.state("one"), "Ready");
    assert_eq!(config_values(&world, "one"), Value::Null);

    world.edit(&[("oneEnabled", Some("true"))]);
    world.edit(&[("oneEnabled", None)]);
    assert_eq!(config_values(&world, "one"), json!({}), "its life went on");

    world.edit(&[("one", Some("size: 1")), ("oneEnabled", Some("false"))]);
    assert_eq!(world.state("one"), "Disabled");
    assert_eq!(
        config_values(&world, "one"),
        json!({"size": 1}),
        "values wait for the next life"
    );
}

#[test]
fn a_module_that_is_mentioned_again_by_a_later_reading_is_no_news() {
    let mut off = module(10, "one");
    off.has_enabled_script = true;
    let mut world = World::new(vec![off, module(20, "two")]).start();
    world.edit(&[("oneEnabled", Some("false"))]);
    world.edit(&[("oneEnabled", Some("true")), ("twoMaintenance", Some(""))]);
    world.edit(&[("oneEnabled", Some("false"))]);
    world.take_log();
    world.edit(&[("unknown", Some("a: 1"))]);
    assert_eq!(world.take_log(), [""; 0]);
    assert_eq!(config_values(&world, "one"), json!({}));
}

#[test]
fn a_section_that_would_not_fit_into_the_config_map_is_refused_before_it_is_sent() {
    let mut world = World::new(vec![module(10, "one")])
        .hook("one", "h.sh", &format!("{EVERY_SECOND}true"))
        .patching(
            "one/h.sh schedule",
            &json!([]),
            &add("/one/blob", "x".repeat(700 << 10)),
        )
        .start();
    world.edit(&[("two", Some(&format!("text: {}", "y".repeat(400 << 10))))]);
    world.take_log();
    world.sleep();
    assert_eq!(
        failures(&world),
        [
            "module hook 'h.sh': set kube module config failed: the section 'one' would take 716812 bytes and the \
             ConfigMap as a whole 1126418, and it can hold 1048576"
        ]
    );
    assert!(!world.take_log().contains(&"save one".to_owned()));
    world.edit(&[("two", None)]);
    while !world.data.contains_key("one") {
        world.sleep();
    }
}
