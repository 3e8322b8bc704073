//! A snapshot must report everything that an observer needs, and no more.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::object::json::Json;

const PART: PartId = PartId(1);

fn name(namespace: &str, name: &str) -> ObjectName {
    ObjectName {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        kind: "Pod".to_owned(),
    }
}

fn view(state: u8) -> ObjectView {
    ObjectView {
        object: None,
        filter_result: Some(Json::from(&json!(state))),
    }
}

fn sighting(object: &str, state: u8) -> Sighting {
    Sighting {
        name: Arc::new(name("ns", object)),
        view: view(state),
        digest: Digest::of(&json!(state)),
    }
}

fn snapshot() -> Snapshot {
    let mut snapshot = Snapshot::new(Order::ByName);
    snapshot.add_part(PART);
    snapshot
}

#[test]
fn the_first_listing_is_no_change() {
    let mut snapshot = snapshot();
    snapshot.fill(PART, sighting("a", 1));
    snapshot.fill(PART, sighting("b", 1));
    snapshot.unfill(PART, &name("ns", "b"));
    assert_eq!((snapshot.seq(), snapshot.len()), (0, 1));
    assert_eq!(
        snapshot.see(PART, sighting("a", 1)),
        None,
        "a watch may begin with what was listed"
    );
    assert_eq!(snapshot.seq(), 0);
    let [since_start, _] = snapshot.operations();
    assert_eq!(
        since_start,
        Operations {
            count: 1,
            added: 1,
            ..Operations::default()
        }
    );
}

#[test]
fn what_the_binding_does_not_look_at_is_kept_and_not_told() {
    let mut snapshot = snapshot();
    snapshot.fill(PART, sighting("a", 1));
    let moved = Sighting {
        view: view(9),
        ..sighting("a", 1)
    };
    assert_eq!(snapshot.see(PART, moved), None);
    assert_eq!(snapshot.objects(), [view(9)]);
    assert_eq!(snapshot.see(PART, sighting("a", 2)), Some(Change::Modified(view(2))));
}

#[test]
fn a_deleted_object_is_told_once_in_its_last_state() {
    let mut snapshot = snapshot();
    snapshot.fill(PART, sighting("a", 1));
    snapshot.fill(PART, sighting("b", 2));
    let a = name("ns", "a");
    assert_eq!(snapshot.lose(PART, &a, Some(view(3))), Some(Change::Deleted(view(3))));
    assert_eq!(snapshot.lose(PART, &a, Some(view(3))), None);
    assert_eq!(
        snapshot.lose(PART, &name("ns", "b"), None),
        Some(Change::Deleted(view(2))),
        "of one that only vanished, the last state we know"
    );
    assert_eq!(snapshot.seq(), 2);
}

#[test]
fn operations_are_counted_since_the_start_and_since_the_last_run() {
    let mut snapshot = snapshot();
    snapshot.see(PART, sighting("a", 1));
    snapshot.see(PART, sighting("a", 2));
    snapshot.begin_run();
    snapshot.lose(PART, &name("ns", "a"), None);
    let [since_start, since_run] = snapshot.operations();
    let expected = Operations {
        count: 0,
        added: 1,
        deleted: 1,
        modified: 1,
        cleaned: 1,
    };
    assert_eq!(since_start, expected);
    assert_eq!(
        since_run,
        Operations {
            count: -1,
            added: 0,
            modified: 0,
            ..expected
        }
    );
}

#[test]
fn a_part_leaves_without_a_word_and_takes_only_its_own() {
    let mut snapshot = snapshot();
    let other = PartId(2);
    snapshot.add_part(other);
    snapshot.fill(PART, sighting("a", 1));
    snapshot.fill(
        other,
        Sighting {
            name: Arc::new(name("b", "a")),
            ..sighting("a", 2)
        },
    );
    snapshot.begin_round(PART);
    assert_eq!(snapshot.vanished(PART).len(), 1);
    assert_eq!(snapshot.vanished(other).len(), 0, "the listing was of another part");
    assert_eq!(snapshot.objects(), [view(2), view(1)], "parts are shown as one");
    snapshot.drop_part(PART);
    assert_eq!((snapshot.objects(), snapshot.seq()), (vec![view(2)], 0));
    assert_eq!(
        snapshot.see(PART, sighting("a", 7)),
        None,
        "what comes late for a part that is gone is nothing"
    );
}

#[test]
fn what_could_not_be_seen_stays_and_is_no_source_for_others() {
    let mut snapshot = snapshot();
    let seen = |snapshot: &Snapshot| snapshot.sightings(PART).map(|all| all.len());
    let (a, b) = (sighting("a", 1), sighting("b", 1));
    let (name_a, name_b) = (Arc::clone(&a.name), Arc::clone(&b.name));
    snapshot.fill(PART, a.clone());
    assert_eq!(seen(&snapshot), Some(1));
    snapshot.begin_round(PART);
    snapshot.obscure(PART, &name_a);
    snapshot.obscure(PART, &name_b);
    assert_eq!((snapshot.vanished(PART).len(), snapshot.objects()), (0, vec![view(1)]));
    assert_eq!(
        seen(&snapshot),
        None,
        "of one nothing is known, and of the other only what was"
    );
    assert_eq!(snapshot.see(PART, a), None);
    assert_eq!(snapshot.lose(PART, &name_b, None), None, "nobody has heard of it");
    assert_eq!(seen(&snapshot), Some(1));
    snapshot.obscure(PART, &name_b);
    snapshot.begin_round(PART);
    assert_eq!(seen(&snapshot), Some(1), "a listing begins anew");
}

#[test]
fn the_order_without_objects_is_that_of_a_text() {
    let fill = |order| {
        let mut snapshot = Snapshot::new(order);
        snapshot.add_part(PART);
        for (namespace, state) in [("a", 1), ("a-b", 2), ("", 0)] {
            let name = Arc::new(name(namespace, "x"));
            snapshot.fill(
                PART,
                Sighting {
                    name,
                    ..sighting("x", state)
                },
            );
        }
        snapshot.objects()
    };
    assert_eq!(fill(Order::ByName), [view(0), view(1), view(2)]);
    assert_eq!(
        fill(Order::ByText),
        [view(0), view(2), view(1)],
        "a dash comes before a slash"
    );
}

/// An event in the cluster, or in the way in which reports of it arrive.
#[derive(Debug, Clone)]
enum Step {
    /// An object gets this state.
    Put(u8, u8),
    Remove(u8),
    /// The last event is reported once more.
    Repeat,
    /// Events are lost until the next listing.
    Lose,
    Relist,
    /// A listing breaks off after so many objects.
    BrokenRelist(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0..4_u8, 0..3_u8).prop_map(|(object, state)| Step::Put(object, state)),
        3 => (0..4_u8).prop_map(Step::Remove),
        1 => Just(Step::Repeat),
        1 => Just(Step::Lose),
        2 => Just(Step::Relist),
        1 => (0..4_usize).prop_map(Step::BrokenRelist),
    ]
}

/// A hook that applies every change to its own copy, and panics at a change that does not fit.
#[derive(Debug, Default)]
struct Observer {
    objects: BTreeMap<String, ObjectView>,
    changes: u64,
}

impl Observer {
    fn hear(&mut self, object: &str, change: Option<Change>) {
        let Some(change) = change else { return };
        self.changes += 1;
        let known = self.objects.get(object);
        match change {
            Change::Added(view) => {
                assert_eq!(known, None, "{object} was there");
                self.objects.insert(object.to_owned(), view);
            }
            Change::Modified(view) => {
                assert!(known.is_some_and(|known| *known != view), "{object} did not change");
                self.objects.insert(object.to_owned(), view);
            }
            Change::Deleted(_) => assert!(self.objects.remove(object).is_some(), "{object} was not there"),
        }
    }
}

#[derive(Debug, Default)]
struct World {
    objects: BTreeMap<String, u8>,
    last: Option<String>,
    deaf: bool,
}

impl World {
    fn tell(&self, object: &str, snapshot: &mut Snapshot, observer: &mut Observer) {
        if self.deaf {
            return;
        }
        let change = match self.objects.get(object) {
            Some(state) => snapshot.see(PART, sighting(object, *state)),
            None => snapshot.lose(PART, &name("ns", object), None),
        };
        observer.hear(object, change);
    }

    fn list(&mut self, limit: Option<usize>, snapshot: &mut Snapshot, observer: &mut Observer) {
        snapshot.begin_round(PART);
        for (object, state) in self.objects.iter().take(limit.unwrap_or(usize::MAX)) {
            observer.hear(object, snapshot.see(PART, sighting(object, *state)));
        }
        self.deaf = limit.is_some();
        if self.deaf {
            return;
        }
        for gone in snapshot.vanished(PART) {
            observer.hear(&gone.name, snapshot.lose(PART, &gone, None));
        }
    }

    fn take(&mut self, step: &Step, snapshot: &mut Snapshot, observer: &mut Observer) {
        match step {
            Step::Put(object, state) => {
                self.objects.insert(object.to_string(), *state);
                self.last = Some(object.to_string());
                self.tell(&object.to_string(), snapshot, observer);
            }
            Step::Remove(object) => {
                self.objects.remove(&object.to_string());
                self.last = Some(object.to_string());
                self.tell(&object.to_string(), snapshot, observer);
            }
            Step::Repeat => {
                if let Some(last) = self.last.clone() {
                    self.tell(&last, snapshot, observer);
                    let told = observer.changes;
                    self.tell(&last, snapshot, observer);
                    assert_eq!(observer.changes, told, "{last} was told twice");
                }
            }
            Step::Lose => self.deaf = true,
            Step::Relist => self.list(None, snapshot, observer),
            Step::BrokenRelist(after) => self.list(Some(*after), snapshot, observer),
        }
    }
}

proptest! {
    #[test]
    fn whoever_hears_every_change_knows_what_there_is(steps in prop::collection::vec(step(), 0..60)) {
        let (mut world, mut snapshot, mut observer) = (World::default(), snapshot(), Observer::default());
        for step in &steps {
            world.take(step, &mut snapshot, &mut observer);
            let heard: Vec<_> = observer.objects.values().cloned().collect();
            prop_assert_eq!(snapshot.objects(), heard, "a snapshot is what was told until now");
            prop_assert_eq!(snapshot.seq(), observer.changes);
            if !world.deaf {
                let there: Vec<_> = world.objects.values().map(|state| view(*state)).collect();
                prop_assert_eq!(snapshot.objects(), there);
            }
        }
    }
}
