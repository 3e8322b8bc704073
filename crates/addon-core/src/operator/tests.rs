//! Whole lives of an operator in a few lines each: what it asks for, in which order. Random histories are the
//! simulator's work.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use super::event::{ConfigRead, ReleaseSummary, Saved, SavedState, ScriptAnswer, SyncAction, Synced};
use super::*;
use crate::failure::Class;
use crate::hook::config::HookKind;
use crate::hook::output::HookOutput;
use crate::module::{Inventory, Module};
use crate::name::{HookName, Owner};
use crate::values::patch::{Patch, PatchFile};

mod saving;

/// A world in which every job ends at once, as the test wants it to.
struct World {
    operator: Operator,
    tick: Tick,
    inventory: Inventory,
    hooks: BTreeMap<(String, String), String>,
    releases: Vec<ReleaseSummary>,
    data: BTreeMap<String, String>,
    version: u64,
    /// What ran, in words.
    log: Vec<String>,
    notices: Vec<Notice>,
    /// Jobs by their words that fail so many times.
    failing: BTreeMap<String, usize>,
    /// Jobs by their words that stay open.
    open: BTreeSet<String>,
    pending: Vec<(JobId, Job)>,
    patches: BTreeMap<String, (Patch, Patch)>,
    last_good: BTreeMap<String, String>,
}

fn name(text: &str) -> ModuleName {
    ModuleName::parse(text).unwrap()
}

fn module(order: u32, text: &str) -> Module {
    Module {
        name: name(text),
        order,
        values: json!({}),
        enabled: Some(true),
        has_chart: true,
        has_enabled_script: false,
        has_hooks: false,
        depends_on: Vec::new(),
        broken: None,
    }
}

impl World {
    fn new(modules: Vec<Module>) -> Self {
        let inventory = Inventory {
            global_values: json!({}),
            has_global_hooks: false,
            modules,
            complete: true,
        };
        Self {
            operator: Operator::new(1, Policy::default()),
            tick: Tick::ZERO,
            inventory,
            hooks: BTreeMap::new(),
            releases: Vec::new(),
            data: BTreeMap::new(),
            version: 1,
            log: Vec::new(),
            notices: Vec::new(),
            failing: BTreeMap::new(),
            open: BTreeSet::new(),
            pending: Vec::new(),
            patches: BTreeMap::new(),
            last_good: BTreeMap::new(),
        }
    }

    /// A hook of a module, or of nobody with an empty name.
    fn hook(mut self, owner: &str, hook: &str, config: &str) -> Self {
        self.hooks.insert(
            (owner.to_owned(), hook.to_owned()),
            format!("configVersion: v1\n{config}"),
        );
        if owner.is_empty() {
            self.inventory.has_global_hooks = true;
        }
        for module in &mut self.inventory.modules {
            module.has_hooks |= module.name.as_str() == owner;
        }
        self
    }

    fn patching(mut self, words: &str, values: &Value, config: &Value) -> Self {
        let patch = |value: &Value, file| Patch::parse(&value.to_string(), file).unwrap();
        self.patches.insert(
            words.to_owned(),
            (patch(values, PatchFile::Values), patch(config, PatchFile::Config)),
        );
        self
    }

    fn now(&self) -> Now {
        let wall = jiff::Timestamp::from_second(1_800_000_000).unwrap() + (self.tick - Tick::ZERO);
        Now { tick: self.tick, wall }
    }

    fn handle(&mut self, event: Event) {
        self.tick = self.tick + Duration::from_millis(1);
        self.operator.handle(self.now(), event);
        self.drain();
    }

    fn start(mut self) -> Self {
        self.handle(Event::InventoryChanged(self.inventory.clone()));
        self.edit(&[]);
        self
    }

    fn edit(&mut self, edits: &[(&str, Option<&str>)]) {
        for (key, text) in edits {
            match text {
                Some(text) => self.data.insert((*key).to_owned(), (*text).to_owned()),
                None => self.data.remove(*key),
            };
        }
        self.version += 1;
        let read = ConfigRead::Present {
            version: self.version,
            data: self.data.clone(),
        };
        self.handle(Event::ConfigChanged(read));
    }

    fn drain(&mut self) {
        while let Some(effect) = self.operator.poll_effect() {
            match effect {
                Effect::StartJob(id, job) => self.pending.push((id, job)),
                Effect::Tell(notice) => self.notices.push(notice),
                Effect::CancelJob(_) => {}
                Effect::Exit => self.log.push("exit".to_owned()),
            }
        }
        if let Some(at) = self
            .pending
            .iter()
            .position(|(_, job)| !self.open.contains(&words(job)))
        {
            let (id, job) = self.pending.remove(at);
            let result = self.carry_out(&job);
            self.handle(Event::JobFinished(id, result));
        }
    }

    fn carry_out(&mut self, job: &Job) -> Result<Done, Failure> {
        let words = words(job);
        if let Some(left) = self.failing.get_mut(&words).filter(|left| **left > 0) {
            *left -= 1;
            self.log.push(format!("{words} fails"));
            return Err(Failure::new(Class::HookFailed, "no"));
        }
        if !words.is_empty() {
            self.log.push(words.clone());
        }
        Ok(match job {
            Job::LoadState => Done::StateLoaded(SavedState {
                last_good: self.last_good.clone(),
            }),
            Job::SaveState { last_good } => {
                self.last_good.clone_from(last_good);
                Done::StateSaved
            }
            Job::ListReleases => Done::ReleasesListed(self.releases.clone()),
            Job::ConfigureHooks(owner) => Done::HooksConfigured(self.configs(owner)),
            Job::RunHook(_) => {
                let (values, config) = self.patches.get(&words).cloned().unwrap_or_default();
                let output = HookOutput { config, values };
                Done::HookRan {
                    output,
                    usage: event::Usage::default(),
                }
            }
            Job::RunEnabledScript { .. } => Done::ScriptAnswered(ScriptAnswer {
                enabled: true,
                ..Default::default()
            }),
            Job::SyncRelease { .. } => Done::ReleaseSynced(Synced {
                action: SyncAction::Upgraded,
                revision: 1,
            }),
            Job::DeleteRelease { .. } => Done::ReleaseDeleted,
            Job::SaveConfig { key, text, .. } => {
                self.data.insert(key.clone(), text.clone());
                self.version += 1;
                Done::ConfigSaved(Saved::Written { version: self.version })
            }
        })
    }

    fn configs(&self, owner: &Owner) -> Vec<(HookName, HookConfig)> {
        let whose = owner.module().map(ToString::to_string).unwrap_or_default();
        let of_owner = self.hooks.iter().filter(|((owner, _), _)| *owner == whose);
        of_owner
            .map(|((_, hook), text)| {
                (
                    HookName::parse(hook).unwrap(),
                    HookConfig::parse(text, HookKind::from(owner)).unwrap(),
                )
            })
            .collect()
    }

    /// Lets time pass until the operator wants to be woken.
    fn sleep(&mut self) {
        let (at, _) = self.operator.poll_timeout().expect("something to wait for");
        self.tick = at;
        self.operator.handle(self.now(), Event::TimerFired);
        self.drain();
    }

    fn close(&mut self, words_wanted: &str) {
        self.open.remove(words_wanted);
        self.drain();
    }

    fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    fn state(&self, module: &str) -> String {
        let Answer::Modules(modules) = self.operator.answer(&Query::Modules) else {
            panic!()
        };
        modules
            .into_iter()
            .find(|report| report.name == module)
            .map(|report| report.state)
            .unwrap()
    }
}

/// A job in words; chores and configuration have none.
fn words(job: &Job) -> String {
    match job {
        Job::LoadState | Job::SaveState { .. } | Job::ListReleases | Job::ConfigureHooks(_) => String::new(),
        Job::RunHook(run) => {
            let whose = run
                .hook
                .owner
                .module()
                .map(|name| format!("{name}/"))
                .unwrap_or_default();
            format!("{whose}{} {}", run.hook.name, run.labels.binding)
        }
        Job::RunEnabledScript { module, .. } => format!("{module} enabled?"),
        Job::SyncRelease { module, .. } => format!("{module} sync"),
        Job::DeleteRelease { release } => format!("{release} delete"),
        Job::SaveConfig { key, .. } => format!("save {key}"),
    }
}

#[test]
fn a_first_converge_goes_through_everything_in_order() {
    let mut world = World::new(vec![module(20, "two"), module(10, "one")])
        .hook("", "g.sh", "onStartup: 1\nbeforeAll: 1\nafterAll: 1")
        .hook("one", "h.sh", "onStartup: 1\nbeforeHelm: 1\nafterHelm: 1")
        .start();
    assert_eq!(
        world.take_log(),
        [
            "g.sh onStartup",
            "g.sh beforeAll",
            "one/h.sh onStartup",
            "one/h.sh beforeHelm",
            "one sync",
            "one/h.sh afterHelm",
            "two sync",
            "g.sh afterAll"
        ]
    );
    assert_eq!(
        (world.state("one"), world.state("two")),
        ("Ready".to_owned(), "Ready".to_owned())
    );
    let Answer::Status(status) = world.operator.answer(&Query::Status) else {
        panic!()
    };
    assert!(status.ready && status.waiting.is_empty(), "{status:?}");
}

#[test]
fn an_edit_of_one_section_runs_that_module_and_one_of_the_global_section_runs_all() {
    let mut world = World::new(vec![module(10, "one"), module(20, "two")])
        .hook("", "g.sh", "beforeAll: 1")
        .start();
    world.take_log();
    world.edit(&[("one", Some("size: 1"))]);
    assert_eq!(world.take_log(), ["one sync"]);
    world.edit(&[("one", Some("# remark\nsize:   1"))]);
    assert_eq!(world.take_log(), [""; 0]);
    world.edit(&[("global", Some("color: red"))]);
    assert_eq!(world.take_log(), ["g.sh beforeAll", "one sync", "two sync"]);
}

#[test]
fn a_flag_removes_a_module_with_its_hooks_and_brings_it_back() {
    let hooks = "onStartup: 1\nbeforeDeleteHelm: 1\nafterDeleteHelm: 1";
    let mut world = World::new(vec![module(10, "one")]).hook("one", "h.sh", hooks).start();
    world.take_log();
    world.edit(&[("oneEnabled", Some("false"))]);
    assert_eq!(
        world.take_log(),
        ["one/h.sh beforeDeleteHelm", "one delete", "one/h.sh afterDeleteHelm"]
    );
    assert_eq!(world.state("one"), "Disabled");
    world.edit(&[("oneEnabled", None)]);
    assert_eq!(world.take_log(), ["one/h.sh onStartup", "one sync"]);
}

#[test]
fn a_failing_module_holds_back_only_who_needs_it_and_its_recovery_runs_the_last_hooks_again() {
    let mut needy = module(20, "needy");
    needy.depends_on = vec![name("bad")];
    let mut world = World::new(vec![module(10, "bad"), module(20, "good"), needy]).hook("", "g.sh", "afterAll: 1");
    world.failing.insert("bad sync".to_owned(), 1);
    let mut world = world.start();
    assert_eq!(world.take_log(), ["bad sync fails", "good sync", "g.sh afterAll"]);
    world.sleep();
    assert_eq!(world.take_log(), ["bad sync", "needy sync", "g.sh afterAll"]);
}

#[test]
fn a_deleted_config_map_changes_nothing_and_an_empty_one_does() {
    let mut off = module(10, "one");
    off.enabled = None;
    let mut world = World::new(vec![off]).start();
    world.edit(&[("oneEnabled", Some("true")), ("one", Some("size: 1"))]);
    assert_eq!(world.take_log(), ["one sync"]);
    world.handle(Event::ConfigChanged(ConfigRead::Missing));
    assert_eq!(world.take_log(), [""; 0]);
    assert_eq!(world.state("one"), "Ready");
    world.edit(&[("oneEnabled", None), ("one", None)]);
    assert_eq!(world.take_log(), ["one delete"]);
}

#[test]
fn a_broken_section_leaves_its_module_on_the_last_good_one() {
    let mut world = World::new(vec![module(10, "one"), module(20, "two")]).start();
    world.edit(&[("one", Some("size: 1"))]);
    world.take_log();
    world.edit(&[("one", Some("size: [")), ("two", Some("size: 2"))]);
    assert_eq!(world.take_log(), ["two sync"]);
    let query = Query::Values {
        module: Some(name("one")),
        with_global: false,
    };
    assert_eq!(world.operator.answer(&query), Answer::Document(json!({"size": 1})));
    assert!(
        world
            .notices
            .iter()
            .any(|notice| matches!(notice, Notice::ConfigRejected { key, .. } if key == "one"))
    );
}

#[test]
fn a_config_patch_is_saved_first_and_sets_off_nothing() {
    let patch = json!([{"op": "add", "path": "/one/wish", "value": 1}]);
    let mut world = World::new(vec![module(10, "one")])
        .hook("one", "h.sh", "beforeHelm: 1")
        .patching("one/h.sh beforeHelm", &json!([]), &patch)
        .start();
    assert_eq!(world.take_log(), ["one/h.sh beforeHelm", "save one", "one sync"]);
    world.edit(&[]);
    assert_eq!(world.take_log(), [""; 0]);
    assert_eq!(world.data["one"].trim(), "wish: 1");
}

#[test]
fn values_changed_after_the_release_run_the_module_once_more() {
    let patch = json!([{"op": "add", "path": "/one/seen", "value": true}]);
    let mut world = World::new(vec![module(10, "one")])
        .hook("one", "h.sh", "afterHelm: 1")
        .patching("one/h.sh afterHelm", &patch, &json!([]))
        .start();
    assert_eq!(
        world.take_log(),
        ["one sync", "one/h.sh afterHelm", "one sync", "one/h.sh afterHelm"]
    );
}

#[test]
fn a_restart_of_a_converge_waits_for_the_run_under_way() {
    let mut world = World::new(vec![module(10, "one"), module(20, "two")]).hook("", "g.sh", "beforeAll: 1");
    world.open.insert("one sync".to_owned());
    let mut world = world.start();
    world.edit(&[("global", Some("color: red"))]);
    assert_eq!(world.take_log(), ["g.sh beforeAll"]);
    world.close("one sync");
    assert_eq!(world.take_log(), ["one sync", "g.sh beforeAll", "one sync", "two sync"]);
}

#[test]
fn foreign_releases_stay_and_those_without_a_module_are_purged_after_the_first_converge() {
    let mut world = World::new(vec![module(10, "one")]);
    let release = |name: &str, ours| ReleaseSummary {
        name: name.to_owned(),
        ours,
    };
    world.releases = vec![release("gone", true), release("theirs", false), release("one", true)];
    let mut world = world.start();
    assert_eq!(world.take_log(), ["one sync", "gone delete"]);
}

#[test]
fn a_purge_of_more_than_half_is_held() {
    let mut world = World::new(vec![module(10, "one")]);
    world.releases = ["a", "b", "c", "one"]
        .iter()
        .map(|name| ReleaseSummary {
            name: (*name).to_owned(),
            ours: true,
        })
        .collect();
    let mut world = world.start();
    assert_eq!(world.take_log(), ["one sync"]);
    assert!(
        world
            .notices
            .iter()
            .any(|notice| matches!(notice, Notice::PurgeHeld { releases, .. } if releases.len() == 3))
    );
}

#[test]
fn a_schedule_fires_after_the_first_converge_and_its_change_of_values_runs_the_module() {
    let patch = json!([{"op": "add", "path": "/one/tick", "value": 1}]);
    let mut world = World::new(vec![module(10, "one")])
        .hook("one", "h.sh", "schedule:\n- crontab: '* * * * * *'\n  queue: side")
        .patching("one/h.sh schedule", &patch, &json!([]))
        .start();
    world.take_log();
    world.sleep();
    assert_eq!(world.take_log(), ["one/h.sh schedule", "one sync"]);
    world.sleep();
    assert_eq!(world.take_log(), ["one/h.sh schedule"]);
}

#[test]
fn what_a_hook_asks_for_after_its_module_was_switched_off_is_not_found_by_the_next_life() {
    let patch = json!([{"op": "add", "path": "/one/tick", "value": 1}]);
    let mut world = World::new(vec![module(10, "one")])
        .hook("one", "h.sh", "schedule:\n- crontab: '* * * * * *'\n  queue: side")
        .patching("one/h.sh schedule", &patch, &json!([]))
        .start();
    world.open.insert("one/h.sh schedule".to_owned());
    world.sleep();
    world.edit(&[("oneEnabled", Some("false"))]);
    assert_eq!(world.state("one"), "Disabled");
    world.close("one/h.sh schedule");
    world.edit(&[("oneEnabled", None)]);
    let query = Query::Values {
        module: Some(name("one")),
        with_global: false,
    };
    assert_eq!(world.operator.answer(&query), Answer::Document(json!({})));
}

#[test]
fn nothing_starts_after_a_shutdown_was_asked_for() {
    let mut world = World::new(vec![module(10, "one"), module(20, "two")]);
    world.open.insert("one sync".to_owned());
    let mut world = world.start();
    world.handle(Event::ShutdownRequested);
    world.close("one sync");
    assert_eq!(world.take_log(), ["one sync", "exit"]);
}

#[test]
fn a_failing_script_decides_nothing_and_is_asked_again() {
    let mut scripted = module(10, "one");
    scripted.has_enabled_script = true;
    let mut world = World::new(vec![scripted, module(20, "two")]);
    world.failing.insert("one enabled?".to_owned(), 1);
    let mut world = world.start();
    assert_eq!(world.take_log(), ["one enabled? fails", "two sync"]);
    world.sleep();
    assert_eq!(world.take_log(), ["one enabled?", "one sync", "two sync"]);
}

#[test]
fn a_step_that_fails_again_for_the_same_reason_is_told_as_such() {
    let mut world = World::new(vec![module(10, "one")]);
    // Both steps of the start have no words.
    world.failing.insert(String::new(), 4);
    let mut world = world.start();
    world.sleep();
    let again: Vec<bool> = world
        .notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::StepFailed { again, .. } => Some(*again),
            _ => None,
        })
        .collect();
    assert_eq!(again, [false, false, true, true]);
}

#[test]
fn the_first_reading_of_the_config_map_ends_the_waits_for_the_api_server() {
    let mut world = World::new(vec![module(10, "one")]);
    world.failing.insert(String::new(), 2);
    let inventory = world.inventory.clone();
    world.handle(Event::InventoryChanged(inventory));
    assert_eq!(world.take_log(), [" fails", " fails"]);
    world.edit(&[]);
    assert_eq!(world.take_log(), ["one sync"], "no time has passed");
}
