use super::*;
use crate::condition::Status;
use crate::module::ModuleSheet;
use crate::sheet::RECONCILING;

fn key(name: &str) -> Key {
    Key {
        kind: Kind::Module,
        name: name.to_owned(),
    }
}

/// A sheet of a module that is on its way, or ready.
fn sheet(state: &str, message: &str) -> Sheet {
    let is_ready = state == "Ready";
    let mut conditions = vec![Condition::new("Ready", is_ready, state, message)];
    if !is_ready {
        conditions.push(Condition::new(RECONCILING, true, state, message));
    }
    Sheet::Module(Box::new(ModuleSheet {
        state: state.to_owned(),
        conditions,
        ..ModuleSheet::default()
    }))
}

fn sheets(all: &[(&str, Sheet)]) -> Sheets {
    Sheets {
        all: all.iter().map(|(name, sheet)| (key(name), sheet.clone())).collect(),
        are_complete: true,
    }
}

/// A ledger, and a clock of its own.
struct World {
    ledger: Ledger,
    begin: Instant,
}

impl World {
    fn new() -> Self {
        Self {
            ledger: Ledger::default(),
            begin: Instant::now(),
        }
    }

    fn want(&mut self, at: f64, all: &[(&str, Sheet)]) {
        self.ledger.want(&sheets(all), self.begin + Duration::from_secs_f64(at));
    }

    /// Carries out the writes that are due, and returns the states that they tell, in order.
    fn write(&mut self, at: f64) -> Vec<String> {
        let now = self.begin + Duration::from_secs_f64(at);
        let time = Timestamp::from_second(1_000_000).unwrap();
        let mut told = Vec::new();
        while let Some(write) = self.ledger.due(now, time) {
            told.push(match &write {
                Write::Put(key, sheet) => {
                    let Sheet::Module(module) = &**sheet else {
                        panic!("a module's sheet")
                    };
                    format!("{} {}", key.name, module.state)
                }
                Write::Delete(key) => format!("{} deleted", key.name),
            });
            self.ledger.wrote(write, now);
        }
        told
    }
}

#[test]
fn a_state_that_lasts_is_written_at_once_and_a_passing_one_only_if_it_lasts() {
    let mut world = World::new();
    world.want(0.0, &[("a", sheet("Releasing", "")), ("b", sheet("Ready", ""))]);
    assert_eq!(world.write(0.0), ["b Ready"]);
    world.want(0.5, &[("a", sheet("Ready", "")), ("b", sheet("Ready", ""))]);
    assert_eq!(world.write(0.5), ["a Ready"]);
    assert_eq!(world.ledger.next(), None);
    world.want(10.0, &[("a", sheet("Releasing", "")), ("b", sheet("Ready", ""))]);
    assert_eq!(world.write(11.5), [""; 0]);
    assert_eq!(world.write(12.0), ["a Releasing"]);
}

#[test]
fn an_object_is_written_at_most_once_a_second_and_words_alone_seldom() {
    let mut world = World::new();
    world.want(0.0, &[("a", sheet("Ready", "one"))]);
    assert_eq!(world.write(0.0).len(), 1);
    world.want(0.2, &[("a", sheet("Ready", "two"))]);
    assert_eq!(world.write(0.9), [""; 0]);
    assert_eq!(world.write(1.0).len(), 1);
    world.want(2.0, &[("a", sheet("Releasing", "one"))]);
    assert_eq!(world.write(5.0).len(), 1);
    let mut writes = 0;
    for second in 6..66 {
        let at = f64::from(second);
        world.want(at, &[("a", sheet("Releasing", &second.to_string()))]);
        writes += world.write(at).len();
    }
    assert_eq!(writes, 2);
}

#[test]
fn a_next_try_that_is_computed_again_is_no_news() {
    let failed = |second: i64| {
        let Sheet::Module(mut module) = sheet("Ready", "no") else {
            panic!("a module's sheet")
        };
        module.failure = Some(crate::module::Failure {
            next_try: Timestamp::from_second(second).ok(),
            ..crate::module::Failure::default()
        });
        Sheet::Module(module)
    };
    let mut world = World::new();
    let mut writes = 0;
    for (at, next) in [(0.0, 100), (2.0, 101), (4.0, 99), (6.0, 101), (8.0, 120)] {
        world.want(at, &[("a", failed(next))]);
        writes += world.write(at).len();
    }
    assert_eq!(writes, 2);
}

#[test]
fn a_converge_of_modules_that_wait_for_their_turn_costs_two_writes_each() {
    let mut world = World::new();
    let mut writes = 0;
    for step in 0..600_u32 {
        let at = f64::from(step) / 10.0;
        let state = |number: u32| match step {
            _ if step < number * 10 => sheet("Configuring", &format!("modules before it: {}", step / 10)),
            _ if step < number * 10 + 5 => sheet("Releasing", ""),
            _ => sheet("Ready", ""),
        };
        let all: Vec<_> = (0..30).map(|number| (format!("m{number:02}"), state(number))).collect();
        let all: Vec<_> = all.iter().map(|(name, sheet)| (name.as_str(), sheet.clone())).collect();
        world.want(at, &all);
        writes += world.write(at).len();
    }
    assert!(writes <= 60, "{writes}");
}

#[test]
fn objects_without_a_module_are_deleted_only_if_all_modules_are_known() {
    let mut world = World::new();
    let found = [("a", sheet("Ready", "")), ("gone", sheet("Ready", ""))];
    world.ledger.found(sheets(&found).all);
    let mut wanted = sheets(&[("a", sheet("Ready", ""))]);
    wanted.are_complete = false;
    world.ledger.want(&wanted, world.begin);
    assert_eq!(world.write(0.0), [""; 0]);
    world.want(1.0, &[("a", sheet("Ready", ""))]);
    assert_eq!(world.write(1.0), ["gone deleted"]);
    assert_eq!(world.write(2.0), [""; 0]);
}

#[test]
fn a_start_tells_of_no_module_that_waits_for_the_first_converge() {
    let mut world = World::new();
    world.ledger.found(sheets(&[("a", sheet("Ready", ""))]).all);
    let mut starting = sheets(&[("a", sheet("Configuring", "")), ("new", sheet("Configuring", ""))]);
    starting.are_complete = false;
    world.ledger.want(&starting, world.begin);
    assert_eq!(world.write(60.0), ["new Configuring"]);
    world.want(61.0, &[("a", sheet("Ready", "")), ("new", sheet("Ready", ""))]);
    assert_eq!(world.write(70.0), ["new Ready"]);
}

#[test]
fn a_condition_keeps_its_time_while_its_status_stays() {
    let mut ledger = Ledger::default();
    let times = [1_000, 2_000, 3_000].map(|second| Timestamp::from_second(second).unwrap());
    let mut since = Vec::new();
    let messages = [("Ready", "one"), ("Ready", "two"), ("Failed", "three")];
    for ((state, message), time) in messages.into_iter().zip(times) {
        let now = Instant::now() + Duration::from_secs(time.as_second().unsigned_abs());
        let mut sheet = sheet("Ready", message);
        sheet.conditions_mut()[0].status = Status::from(state == "Ready");
        ledger.want(&sheets(&[("a", sheet)]), now);
        let write = ledger.due(now, time).unwrap();
        let Write::Put(_, put) = &write else {
            panic!("{write:?}")
        };
        since.push(put.conditions()[0].since.unwrap());
        ledger.wrote(write, now);
    }
    assert_eq!(since, [times[0], times[0], times[2]]);
}
