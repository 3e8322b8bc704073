//! The health of modules on two real nodes, beside a dead one: each of them has one trouble, all at the same time, and the operator tells it
//! in one sentence. Then the troubles end, and all modules are healthy.
//!
//! The operator runs outside of the cluster, because only the nodes have to be real. The times from the status of the
//! cluster to the sentence, and to the health, are printed and not judged.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]
#![expect(clippy::panic, reason = "a test that cannot go on ends there")]

mod case;
mod cases;
mod look;
mod outside;
mod storage;
mod workload;

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use testbed::namespace::Namespace;
use testbed::plane::ControlPlane;
use testbed::reader::Only;
use testbed::registry::{programs, push};
use testbed::report::tell;
use testbed::wait::{TimedOut, wait_evenly, wait_until};

use super::stage::{PATIENCE, start};
use case::{Case, Cure};
use look::Look;
use outside::{Operator, Outside};

/// The pauses between two looks, each of which takes about as long.
const CLOSE: Duration = Duration::from_millis(100);

#[test]
fn a_sentence_tells_each_trouble_and_ends_with_it() {
    if testbed::shared::has_no_node() {
        return;
    }
    let plane = start();
    let places = Places::make(&plane);
    let outside = Outside::build(&places.own);
    let cases = cases::all(&places, &push_image(&plane));
    for case in &cases {
        outside.add(case);
    }
    let operator = outside.start();
    thread::scope(|scope| {
        scope.spawn(|| storage::is_not_ready(&places, "widget"));
        all_troubles_are_told(&places, &operator, &cases);
    });
    objects_say_the_same(&places, &operator, &cases);
    few_events_tell_of_modules_that_flap(&places, &operator);
    all_cures_are_seen(&places, &outside, &operator, &cases);
    operator.stop();
}

/// The namespaces with the objects of modules.
pub(super) struct Places<'a> {
    /// The operator's own.
    pub(super) own: Namespace<'a>,
    /// Its pods have to obey the strictest standard.
    pub(super) restricted: Namespace<'a>,
    /// Its quota allows no pods.
    pub(super) full: Namespace<'a>,
}

impl<'a> Places<'a> {
    fn make(plane: &'a ControlPlane) -> Self {
        let places = Self {
            own: plane.namespace("health").unwrap(),
            restricted: plane.namespace("restricted").unwrap(),
            full: plane.namespace("full").unwrap(),
        };
        let label = "pod-security.kubernetes.io/enforce=restricted";
        plane
            .kubectl(["label", "namespace", places.restricted.name(), label])
            .unwrap();
        places
            .full
            .kubectl(["create", "quota", "none", "--hard=pods=0"])
            .unwrap();
        let kinds = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/charts/addon-operator/crds/status-objects.yaml"
        );
        plane.kubectl(["apply", "--server-side", "--filename", kinds]).unwrap();
        plane.add_real_node("second").unwrap();
        storage::add_a_dead_node(plane);
        places
    }

    pub(super) fn all(&self) -> [&Namespace<'a>; 3] {
        [&self.own, &self.restricted, &self.full]
    }
}

/// Pushes the image of all pods with the tag `1`, and returns its repository.
pub(super) fn push_image(plane: &ControlPlane) -> String {
    let programs = ["sh", "cat", "date", "head", "sleep", "touch", "tr"].map(Path::new);
    let layer = programs::layer(&programs, &[("etc/passwd", "root:x:0:0::/:\napp:x:1001:1001::/:\n")]);
    let registry = plane.registry().unwrap();
    let config = json!({ "User": "1001", "WorkingDir": "/tmp", "Entrypoint": ["sh", "-c"], "Cmd": ["exec sleep inf"] });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(push::Repository::at(registry, "app").push("1", &config, &[layer]));
    format!("{registry}/app")
}

/// Waits until each sentence was told, and prints how long that took after the status of the cluster.
fn all_troubles_are_told(places: &Places<'_>, operator: &Operator<'_>, cases: &[Case]) {
    let mut shown: BTreeMap<&str, Instant> = BTreeMap::new();
    let mut told: BTreeMap<&str, (usize, Instant)> = BTreeMap::new();
    let look = || {
        let look = Look::take(places, operator)?;
        let now = Instant::now();
        let mut missing = Vec::new();
        for case in cases {
            note(&mut shown, case.name, case.sign.is_in(&look, case.name), now);
            let (done, _) = told.get(case.name).copied().unwrap_or((0, now));
            let Some(step) = case.steps.get(done) else { continue };
            match step.lacks(&look, case.name) {
                None => {
                    told.insert(case.name, (done + 1, now));
                    missing.extend((done + 1 < case.steps.len()).then(|| format!("{}: its next step", case.name)));
                }
                Some(lacks) => missing.push(format!("{}: {lacks}", case.name)),
            }
            let shown = shown.get(case.name).copied();
            if done == 0 && told.contains_key(case.name) {
                tell(&delay(case.name, "told", shown, now, look.sentence(case.name)));
            }
        }
        if missing.is_empty() {
            Ok(Some(()))
        } else {
            Err(missing.join("\n"))
        }
    };
    has_come(
        wait_evenly(CLOSE, PATIENCE, "a sentence for each trouble", look),
        places,
        operator,
    );
}

/// Shows the evidence if a wait was in vain.
fn has_come(waited: Result<(), TimedOut>, places: &Places<'_>, operator: &Operator<'_>) {
    if let Err(late) = waited {
        panic!("{late}\n{}", evidence(places, operator));
    }
}

/// Waits until the condition of each module's object says the same as the operator. The modules that flap are not looked at.
fn objects_say_the_same(places: &Places<'_>, operator: &Operator<'_>, cases: &[Case]) {
    let look = || {
        let look = Look::take(places, operator)?;
        let objects = places
            .own
            .objects("modules", Only::All)
            .map_err(|error| error.to_string())?;
        let is_steady = |case: &&Case| !["flap", "waver"].contains(&case.name);
        let differing = cases.iter().filter(is_steady).filter_map(|case| {
            let object = objects.iter().find(|object| object["metadata"]["name"] == case.name);
            let conditions = object.and_then(|object| object["status"]["conditions"].as_array());
            let condition = conditions.and_then(|all| all.iter().find(|one| one["type"] == "Healthy"));
            let said = condition.map(|condition| (condition["status"].as_str(), condition["message"].as_str()));
            let status = match look.health(case.name) {
                "Healthy" => "True",
                "Unhealthy" => "False",
                _ => "Unknown",
            };
            let expected = (Some(status), Some(look.sentence(case.name)));
            (said != Some(expected)).then(|| format!("{}: {said:?}, not {expected:?}", case.name))
        });
        let differing: Vec<String> = differing.collect();
        let is_complete = objects.len() == cases.len();
        if is_complete && differing.is_empty() {
            Ok(Some(()))
        } else {
            Err(format!("{} objects; {}", objects.len(), differing.join("\n")))
        }
    };
    has_come(
        wait_evenly(CLOSE, PATIENCE, "objects that say the same", look),
        places,
        operator,
    );
}

/// Notes since when something is so.
fn note<'a>(since: &mut BTreeMap<&'a str, Instant>, name: &'a str, is_so: bool, now: Instant) {
    if is_so {
        since.entry(name).or_insert(now);
    } else {
        since.remove(name);
    }
}

/// The line about one delay. A look reads the cluster first, so it may see the operator ahead.
fn delay(name: &str, what: &str, from: Option<Instant>, at: Instant, sentence: &str) -> String {
    let delay = from.map_or_else(String::new, |from| {
        format!(
            " {:.1} s after the cluster",
            at.saturating_duration_since(from).as_secs_f32()
        )
    });
    format!("{name}: {what}{delay}: {sentence}")
        .trim_end_matches([':', ' '])
        .to_owned()
}

/// Modules that are healthy for seconds only are told unhealthy once.
fn few_events_tell_of_modules_that_flap(places: &Places<'_>, operator: &Operator<'_>) {
    const RELAPSES: usize = 3;
    let look = || {
        let relapses = |name: &str| {
            operator
                .turns(name)
                .windows(2)
                .filter(|pair| pair == &["Healthy", "other"])
                .count()
        };
        let seen = [relapses("flap"), relapses("waver")];
        if seen.iter().all(|seen| *seen >= RELAPSES) {
            Ok(Some(()))
        } else {
            // Each look notes the present state.
            Look::take(places, operator)?;
            Err(format!("relapses: {seen:?}"))
        }
    };
    has_come(wait_until(PATIENCE, "modules that flap", look), places, operator);
    for name in ["flap", "waver"] {
        let told = operator.news(name);
        assert_eq!(
            told,
            (1, 0),
            "{name} is told unhealthy once\n{}",
            evidence(places, operator)
        );
    }
}

/// Ends all troubles, and waits until all modules are healthy.
fn all_cures_are_seen(places: &Places<'_>, outside: &Outside<'_>, operator: &Operator<'_>, cases: &[Case]) {
    let by_edit = cases.iter().filter(|case| matches!(case.cure, Cure::Edit));
    outside.configure(by_edit.map(|case| case.name));
    for case in cases {
        case.cure.apply(places);
    }
    let mut well: BTreeMap<&str, Instant> = BTreeMap::new();
    let mut healthy: BTreeMap<&str, Instant> = BTreeMap::new();
    let look = || {
        let look = Look::take(places, operator)?;
        let now = Instant::now();
        let mut missing = Vec::new();
        for case in cases {
            let is_healthy = look.health(case.name) == "Healthy";
            note(&mut well, case.name, look.is_well(case.name), now);
            note(&mut healthy, case.name, is_healthy, now);
            missing.extend((!is_healthy).then(|| format!("{}: {}", case.name, look.sentence(case.name))));
        }
        if missing.is_empty() {
            Ok(Some(()))
        } else {
            Err(missing.join("\n"))
        }
    };
    has_come(
        wait_evenly(CLOSE, PATIENCE, "all modules to be healthy", look),
        places,
        operator,
    );
    for (name, at) in healthy {
        tell(&delay(name, "healthy", well.get(name).copied(), at, ""));
    }
}

/// All that a person would look at.
fn evidence(places: &Places<'_>, operator: &Operator<'_>) -> String {
    let mut text = operator.evidence();
    for place in places.all() {
        text += &place.evidence();
    }
    text
}
