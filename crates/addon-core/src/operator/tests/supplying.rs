//! Modules that come from registries: they wait for files, files prove themselves or fail, and the end of a source removes.

use super::*;
use crate::module::Edition;
use crate::operator::health::Seen;

const ONE: &str = "one: {repository: r.example.com/one, version: stable, order: 5}";
const KEY: &str = "moduleSources";

impl World {
    /// A world whose ConfigMap names these sources. No kept copy was read yet.
    fn with_sources(modules: Vec<Module>, sources: &str) -> Self {
        let mut world = Self::new(modules);
        world.data.insert(KEY.to_owned(), sources.to_owned());
        world.start()
    }

    /// A world in which the module `one` runs with the first files of its source.
    fn served() -> Self {
        let mut world = Self::with_sources(vec![module(10, "two")], ONE);
        world.copies_read();
        world.fetched(1, false, module(5, "one"));
        world.take_log();
        world
    }

    /// A world with these sources, in which `one` has a release and no files.
    fn with_release(sources: &str) -> Self {
        let mut world = Self::new(vec![module(10, "two")]);
        world.data.insert(KEY.to_owned(), sources.to_owned());
        world.listed("one");
        world.start()
    }

    fn copies_read(&mut self) {
        self.handle(Event::CopiesRead);
    }

    /// Files come from a source.
    fn fetched(&mut self, edition: u64, has_former: bool, module: Module) {
        let module = Module {
            enabled: None,
            ..module
        };
        let origin = Origin::Source { has_former };
        self.handle(Event::ModuleRead(Edition(edition), origin, Box::new(module)));
    }

    fn taken_out(&mut self) {
        self.edit(&[(KEY, None)]);
    }

    fn has_refused_files(&self) -> bool {
        let is_refusal = |notice: &Notice| matches!(notice, Notice::FilesRefused { .. });
        self.notices.iter().any(is_refusal)
    }

    /// Lets time pass until the release of `one` is purged. The directories are read again before.
    fn wait_for_purge(&mut self) {
        while self.operator.poll_timeout().is_some() && !self.log.iter().any(|line| line == "one delete") {
            self.sleep();
        }
        assert!(self.log.contains(&"one delete".to_owned()), "{:?}", self.log);
    }

    fn listed(&mut self, release: &str) {
        self.releases.push(ReleaseSummary {
            name: release.to_owned(),
            ours: true,
            config: None,
        });
    }
}

fn scripted(order: u32, text: &str) -> Module {
    Module {
        has_enabled_script: true,
        ..module(order, text)
    }
}

#[test]
fn the_first_converge_waits_for_the_kept_copies() {
    let mut world = World::with_sources(vec![module(10, "two")], ONE);
    assert_eq!(world.take_log(), [""; 0]);
    assert!(world.status().waiting.iter().any(|wait| wait.contains("kept copies")));
    world.fetched(1, false, module(5, "one"));
    world.copies_read();
    assert_eq!(
        world.take_log(),
        ["files of one 1", "one sync", "judged one 1 Good", "two sync"]
    );
}

#[test]
fn a_module_waits_for_its_files_and_then_joins() {
    let mut world = World::with_sources(vec![module(10, "two")], ONE);
    world.copies_read();
    assert_eq!(world.take_log(), ["two sync"]);
    assert!(
        world
            .waits_for("one")
            .contains("waits for its files from r.example.com/one")
    );
    world.edit(&[("one", Some("a: 1"))]);
    world.fetched(1, false, module(5, "one"));
    let log = world.take_log();
    assert_eq!(log[..3], ["files of one 1", "one sync", "judged one 1 Good"], "{log:?}");
    assert_eq!(world.state("one"), "Ready");
}

#[test]
fn a_flag_switches_a_module_with_a_source_off() {
    let mut world = World::served();
    world.edit(&[("oneEnabled", Some("false"))]);
    assert_eq!(world.take_log(), ["one delete", "two sync"]);
}

#[test]
fn a_directory_does_not_step_in_for_a_source() {
    let mut world = World::with_sources(vec![module(10, "one")], ONE);
    world.listed("one");
    world.copies_read();
    assert_eq!(world.take_log(), [""; 0]);
    world.handle(Event::ModuleRead(
        Edition(1),
        Origin::Directory,
        Box::new(module(10, "one")),
    ));
    assert!(world.has_refused_files());
    world.fetched(2, false, module(5, "one"));
    assert_eq!(world.take_log(), ["files of one 2", "one sync", "judged one 2 Good"]);
    // Without the source the directory counts again, once it is read. Nothing is removed meanwhile.
    world.taken_out();
    assert_eq!(world.take_log(), [""; 0]);
    world.handle(Event::ModuleRead(
        Edition(3),
        Origin::Directory,
        Box::new(module(10, "one")),
    ));
    assert_eq!(world.take_log(), ["files of one 3", "one sync"]);
}

#[test]
fn the_release_of_a_module_without_files_stays() {
    let mut world = World::with_release(ONE);
    world.copies_read();
    assert_eq!(world.take_log(), ["two sync"]);
    // Switched off by hand, the module waits for its files as well.
    world.edit(&[("oneEnabled", Some("false"))]);
    assert_eq!(world.take_log(), ["two sync"]);
}

#[test]
fn a_source_that_is_taken_out_removes_its_module_even_if_a_flag_is_left() {
    let mut world = World::with_sources(vec![module(10, "two")], ONE);
    world.copies_read();
    world.fetched(1, false, module(5, "one"));
    world.edit(&[("oneEnabled", Some("true"))]);
    world.take_log();
    world.taken_out();
    assert_eq!(world.take_log(), ["one delete", "two sync"]);
    // The source comes back: files are needed again, and the old ones do not run.
    world.edit(&[(KEY, Some(ONE))]);
    assert_eq!(world.take_log(), ["two sync"]);
    world.fetched(2, false, module(5, "one"));
    let log = world.take_log();
    assert_eq!(log[..2], ["files of one 2", "one sync"], "{log:?}");
}

#[test]
fn a_source_that_is_taken_out_twice_removes_its_module_without_files_in_between() {
    let mut world = World::with_sources(vec![module(10, "two")], ONE);
    world.copies_read();
    world.fetched(1, false, module(5, "one"));
    world.edit(&[("oneEnabled", Some("true"))]);
    world.taken_out();
    world.take_log();
    world.edit(&[(KEY, Some(ONE))]);
    world.taken_out();
    let log = world.take_log();
    assert!(!log.iter().any(|line| line == "one sync"), "{log:?}");
    assert_eq!(world.state("one"), "Disabled");
}

#[test]
fn a_directory_that_comes_after_the_end_of_a_source_counts() {
    let mut world = World::served();
    world.taken_out();
    assert_eq!(world.take_log(), ["one delete", "two sync"]);
    let found = Box::new(module(5, "one"));
    world.handle(Event::ModuleRead(Edition(2), Origin::Directory, found));
    let log = world.take_log();
    assert_eq!(log[..2], ["files of one 2", "one sync"], "{log:?}");
}

#[test]
fn sources_that_were_taken_out_while_no_operator_ran_are_no_loss() {
    let names = ["one", "three", "four"];
    let entry = |name: &&str| format!("{name}: {{repository: r.example.com/{name}, version: stable}}\n");
    let sources: String = names.iter().map(entry).collect();
    let mut world = World::new(vec![module(10, "two")]);
    world.last_good = Some([(KEY.to_owned(), sources)].into());
    for name in names {
        world.listed(name);
    }
    let mut world = world.start();
    world.wait_for_purge();
    let held = |notice: &Notice| matches!(notice, Notice::PurgeHeld { .. });
    assert!(!world.notices.iter().any(held), "{:?}", world.notices);
}

#[test]
fn the_end_of_a_source_removes_a_release_whose_files_never_came() {
    let mut world = World::with_release(ONE);
    world.copies_read();
    assert_eq!(world.take_log(), ["two sync"]);
    world.taken_out();
    world.wait_for_purge();
}

#[test]
fn a_mended_key_removes_what_no_source_names() {
    let mut world = World::with_release("one: {");
    assert_eq!(world.take_log(), ["two sync"]);
    world.edit(&[(KEY, Some(""))]);
    world.wait_for_purge();
}

#[test]
fn nothing_is_removed_while_the_sources_cannot_be_read() {
    let mut world = World::with_release("one: {");
    for _ in 0..5 {
        if world.operator.poll_timeout().is_some() {
            world.sleep();
        }
    }
    assert_eq!(world.take_log(), ["two sync"]);
}

#[test]
fn files_that_fail_three_times_are_given_up_where_others_did_well() {
    let mut world = World::served();
    world.failing.insert("one sync".to_owned(), 3);
    world.fetched(2, true, module(5, "one"));
    while world.failing["one sync"] > 0 {
        world.sleep();
    }
    let log = world.take_log();
    let judged: Vec<_> = log.iter().filter(|line| line.starts_with("judged")).collect();
    assert_eq!(judged, ["judged one 2 Bad"], "{log:?}");
}

#[test]
fn files_whose_script_fails_three_times_are_given_up_as_well() {
    let mut world = World::served();
    world.failing.insert("one enabled?".to_owned(), 3);
    world.fetched(2, true, scripted(5, "one"));
    while world.failing["one enabled?"] > 0 {
        world.sleep();
    }
    let log = world.take_log();
    let judged: Vec<_> = log.iter().filter(|line| line.starts_with("judged")).collect();
    assert_eq!(judged, ["judged one 2 Bad"], "{log:?}");
}

#[test]
fn files_are_good_once_a_run_succeeded_and_their_script_answers() {
    let mut world = World::served();
    world.failing.insert("one enabled?".to_owned(), 1);
    world.fetched(2, true, scripted(5, "one"));
    let log = world.take_log();
    assert!(!log.iter().any(|line| line.starts_with("judged")), "{log:?}");
    world.sleep();
    let log = world.take_log();
    assert_eq!(log[..2], ["one enabled?", "judged one 2 Good"], "{log:?}");
}

/// A world in which the module `one` runs with its second files, and its first ones did well.
fn with_health(first: Seen) -> World {
    let mut world = World::new(vec![module(10, "two")]);
    world.operator = Operator::new(1, health::policy());
    world.data.insert(KEY.to_owned(), ONE.to_owned());
    let mut world = world.start();
    world.ill.insert("one".to_owned());
    world.copies_read();
    world.fetched(1, false, module(5, "one"));
    world.see("one", 1, first);
    world.pass(Duration::from_secs(10));
    world.take_log();
    world.revisions.insert("one".to_owned(), 2);
    world.fetched(2, true, module(5, "one"));
    world
}

fn judged(world: &mut World) -> Vec<String> {
    let log = world.take_log().into_iter();
    log.filter(|line| line.starts_with("judged")).collect()
}

#[test]
fn files_are_good_once_their_module_is_healthy() {
    let mut world = with_health(Seen::Healthy);
    world.see("one", 2, Seen::InProgress("Deployment web: 0 of 1".to_owned()));
    assert!(judged(&mut world).is_empty());
    world.see("one", 2, Seen::Healthy);
    assert_eq!(judged(&mut world), ["judged one 2 Good"]);
}

#[test]
fn files_that_make_their_module_unhealthy_are_given_up() {
    let failed = || Seen::Failed("Job move: it has failed".to_owned());
    let mut world = with_health(Seen::Healthy);
    world.see("one", 2, failed());
    assert!(judged(&mut world).is_empty());
    world.pass(Duration::from_secs(6));
    assert_eq!(judged(&mut world), ["judged one 2 Bad"]);

    // The files before made it unhealthy, too.
    let mut world = with_health(failed());
    world.see("one", 2, failed());
    world.pass(Duration::from_secs(6));
    assert!(judged(&mut world).is_empty());
}

#[test]
fn the_script_of_a_directory_is_not_asked_where_files_are_to_come() {
    let mut world = World::with_sources(vec![scripted(10, "one")], ONE);
    world.copies_read();
    assert_eq!(world.take_log(), [""; 0]);
    assert!(world.waits_for("one").contains("waits for its files"));
}

#[test]
fn a_module_without_files_does_not_run_when_the_module_that_it_needs_succeeds() {
    let one = Module {
        depends_on: vec![name("two")],
        ..module(10, "one")
    };
    let mut world = World::with_sources(vec![one, module(5, "two")], ONE);
    world.failing.insert("two sync".to_owned(), 1);
    world.copies_read();
    assert_eq!(world.take_log(), ["two sync fails"]);
    world.sleep();
    assert_eq!(world.take_log(), ["two sync"]);
    assert!(world.waits_for("one").contains("waits for its files"));
}

#[test]
fn a_purge_that_waits_for_its_retry_is_given_up_when_a_source_names_its_module() {
    let mut world = World::new(vec![module(10, "two")]);
    world.listed("one");
    world.failing.insert("one delete".to_owned(), 1);
    let mut world = world.start();
    while world.failing["one delete"] > 0 {
        world.sleep();
    }
    world.edit(&[(KEY, Some(ONE))]);
    world.copies_read();
    assert_eq!(world.tasks("main"), [""; 0]);
    assert!(!world.log.contains(&"one delete".to_owned()), "{:?}", world.log);
}

#[test]
fn a_purge_that_fails_after_a_source_named_its_module_is_not_tried_again() {
    let mut world = World::new(vec![module(10, "two")]);
    world.listed("one");
    world.open.insert("one delete".to_owned());
    world.failing.insert("one delete".to_owned(), 1);
    let mut world = world.start();
    while world.tasks("main").is_empty() {
        world.sleep();
    }
    world.edit(&[(KEY, Some(ONE))]);
    world.copies_read();
    world.close("one delete");
    assert_eq!(world.tasks("main"), [""; 0]);
    assert!(!world.log.contains(&"one delete".to_owned()), "{:?}", world.log);
}

#[test]
fn a_module_that_failed_before_is_not_given_back() {
    let mut world = World::with_sources(vec![module(10, "two")], ONE);
    world.copies_read();
    world.failing.insert("one sync".to_owned(), 9);
    world.fetched(1, false, module(5, "one"));
    world.fetched(2, true, module(5, "one"));
    while world.failing["one sync"] > 0 {
        world.sleep();
    }
    let log = world.take_log();
    assert!(!log.iter().any(|line| line.ends_with("Bad")), "{log:?}");
}

#[test]
fn files_with_a_mistake_are_given_up_at_once() {
    let mut world = World::served();
    let broken = Some(Failure::new(Class::Invalid, "a mistake"));
    world.fetched(
        2,
        true,
        Module {
            broken,
            ..module(5, "one")
        },
    );
    assert_eq!(world.take_log(), ["judged one 2 Bad"]);
    assert_eq!(world.state("one"), "Ready");
}

#[test]
fn files_that_come_after_their_source_went_are_refused_and_not_judged() {
    let mut world = World::with_sources(vec![module(10, "two")], ONE);
    world.copies_read();
    world.taken_out();
    world.take_log();
    world.fetched(1, false, module(5, "one"));
    assert_eq!(world.take_log(), [""; 0]);
    assert!(world.has_refused_files());
}

#[test]
fn a_source_that_goes_and_comes_back_has_a_higher_number() {
    let mut world = World::served();
    let naming = |world: &World| {
        let named = world.operator.answer(&query::SourcesQuery).unwrap();
        named[&name("one")].naming
    };
    let before = naming(&world);
    world.edit(&[("one", Some("a: 1"))]);
    assert_eq!(naming(&world), before);
    world.taken_out();
    world.edit(&[(KEY, Some(ONE))]);
    assert!(naming(&world) > before);
    assert!(world.waits_for("one").contains("waits for its files"));
}

#[test]
fn a_source_ends_the_hold_of_its_release() {
    let mut world = World::new(vec![module(10, "two")]);
    for name in ["one", "three", "four"] {
        world.listed(name);
    }
    let mut world = world.start();
    let held = |world: &World| {
        world
            .status()
            .held
            .into_iter()
            .map(|held| held.release)
            .collect::<Vec<_>>()
    };
    assert_eq!(held(&world), ["four", "one", "three"]);
    world.open.insert("two sync".to_owned());
    world.edit(&[("two", Some("a: 1"))]);
    world.edit(&[(KEY, Some(ONE))]);
    assert_eq!(held(&world), ["four", "three"]);
}

#[test]
fn a_run_that_was_queued_does_not_begin_once_files_are_awaited() {
    let mut world =
        World::new(vec![module(10, "one")]).hook("", "slow.sh", "schedule: [{name: s, crontab: '* * * * *'}]");
    world.open.insert("slow.sh schedule".to_owned());
    let mut world = world.start();
    assert_eq!(world.take_log(), ["one sync"]);
    while world.pending.is_empty() {
        world.sleep();
    }
    // The converge waits for the hook.
    world.edit(&[("one", Some("a: 1")), (KEY, Some(ONE))]);
    assert_eq!(world.take_log(), [""; 0]);
}

#[test]
fn a_source_waits_for_the_values_that_a_lost_file_held_for_its_module() {
    let said = crate::module::outline::ValuesFile {
        sections: ["one".to_owned()].into(),
        ..Default::default()
    };
    let mut world = World::new(vec![module(10, "two")]);
    world.data.insert(KEY.to_owned(), ONE.to_owned());
    world.inventory.values_files = [("values.yaml".to_owned(), None)].into();
    world.values_files = Some([("values.yaml".to_owned(), Some(said))].into());
    let mut world = world.start();
    world.copies_read();
    world.fetched(1, false, module(5, "one"));
    assert_eq!(world.take_log(), ["two sync"]);
    assert!(world.has_refused_files());
}

#[test]
fn a_purge_that_waits_for_its_retry_waits_for_the_sources_to_be_read() {
    let mut world = World::new(vec![module(10, "two")]);
    world.listed("one");
    world.failing.insert("one delete".to_owned(), 1);
    let mut world = world.start();
    while world.failing["one delete"] > 0 {
        world.sleep();
    }
    world.edit(&[(KEY, Some("one: {"))]);
    assert_eq!(world.tasks("main"), [""; 0]);
    world.edit(&[(KEY, Some(""))]);
    world.wait_for_purge();
}

#[test]
fn files_that_fail_are_given_up_where_this_life_has_seen_no_run() {
    let mut world = World::with_sources(vec![module(10, "two")], ONE);
    world.copies_read();
    world.failing.insert("one sync".to_owned(), 3);
    world.fetched(1, true, module(5, "one"));
    while world.failing["one sync"] > 0 {
        world.sleep();
    }
    assert!(world.log.contains(&"judged one 1 Bad".to_owned()), "{:?}", world.log);
}
