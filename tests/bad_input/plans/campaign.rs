//! Draws edits, plans each, makes it, and compares the objects with the plan.
//!
//! Nothing may happen that was not said, and at least 99 of 100 objects must change exactly as it was said.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use plan::document::{ObjectAct, ObjectPlan, Plan};
use plan::fields::{self, Field};
use serde_json::{Value, json};
use testbed::campaign::{Campaign, percentile};
use testbed::draw::Draw;
use testbed::reader::Only;
use testbed::wait::wait_until;

use super::super::stage::{CONVERGED, Operator, PATIENCE, Stage};
use super::manifest;
use super::modules;

/// The rounds of a test.
const ROUNDS: usize = 12;
/// The kinds that the modules of the campaign have.
const KINDS: [&str; 6] = ["configmap", "deployment", "job", "rolebinding", "secret", "service"];
/// Fields that controllers and the API server write.
const OF_OTHERS: [&str; 8] = [
    "metadata.annotations[\"deployment.kubernetes.io/revision\"]",
    "metadata.generation",
    "metadata.resourceVersion",
    "metadata.uid",
    "metadata.creationTimestamp",
    "metadata.managedFields",
    "status",
    "apiVersion",
];

/// The objects of all releases by kind and name.
type Objects = BTreeMap<String, Value>;

/// The fate of an object in an edit: an act, and the fields that change with their values after it.
type Fate = (ObjectAct, Vec<(String, Option<Value>)>);

#[test]
fn what_a_plan_says_is_what_happens() {
    let campaign = Campaign::of_this_run().unwrap();
    let rounds = campaign.rounds().unwrap_or(ROUNDS);
    println!("seed {}", campaign.seed);
    let stage = Stage::build("plans");
    let mut data = modules::write(&stage);
    stage.configure(&json!(data));
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    let mut draw = Draw::new(campaign.seed);
    let mut tally = Tally::default();
    for round in 0..rounds {
        lose_kind(&stage, &data);
        let edits = modules::edit(&mut data, &mut draw);
        play(&stage, &operator, &data, &mut tally, &format!("round {round}: {edits}"));
    }
    operator.stop();
    stage.kubectl(&format!("delete crd {} --ignore-not-found", gadgets(&stage)));
    let text = tally.text(rounds);
    println!("{text}");
    campaign.keep("plan", &text).unwrap();
    assert!(tally.wrong.len() * 100 <= tally.objects, "{text}");
    assert!(tally.unsaid.is_empty(), "{text}");
    assert!(tally.objects > rounds / 2, "the edits changed next to nothing: {text}");
}

fn play(stage: &Stage, operator: &Operator<'_>, data: &BTreeMap<String, String>, tally: &mut Tally, title: &str) {
    stage.write("edit.yaml", &manifest(&json!(data)));
    let command = format!("plan -o json -f {}", stage.path("edit.yaml").display());
    let before = objects(stage);
    let begun = Instant::now();
    let plan: Plan = serde_json::from_str(&operator.try_ask(&command)).unwrap();
    tally.times.push(begun.elapsed());
    assert_eq!(objects(stage), before, "{title}: the plan itself changed objects");
    stage.configure(&json!(data));
    let settled = || {
        let left: Plan = serde_json::from_str(&operator.try_ask(&command)).map_err(|error| error.to_string())?;
        let is_done = left.is_empty();
        is_done.then_some(Some(())).ok_or_else(|| format!("{left:?}"))
    };
    wait_until(PATIENCE, "nothing left to do", settled).unwrap();
    tally.compare(title, &said(&plan), &happened(&before, &objects(stage)));
}

/// The name of the CRD that a module brings.
fn gadgets(stage: &Stage) -> String {
    format!("gadgets.{}", modules::group(stage))
}

/// Removes the CRD of a module that is off, as a person may do, so that the next start of the module brings it again.
fn lose_kind(stage: &Stage, data: &BTreeMap<String, String>) {
    if data.get("kindsEnabled").is_some_and(|on| on == "false") {
        stage.kubectl(&format!("delete crd {} --ignore-not-found", gadgets(stage)));
    }
}

fn objects(stage: &Stage) -> Objects {
    let of_helm = Only::Labels("app.kubernetes.io/managed-by=Helm");
    let all = KINDS.iter().flat_map(|kind| {
        let objects = stage.namespace().objects(kind, of_helm).unwrap();
        objects.into_iter().map(move |object| ((*kind).to_owned(), object))
    });
    let all = all.chain(of_the_kind(stage)).map(|(kind, mut object)| {
        let name = format!("{kind}/{}", object["metadata"]["name"].as_str().unwrap());
        object["metadata"]["managedFields"].take();
        for field in ["resourceVersion", "generation"] {
            object["metadata"][field].take();
        }
        object["status"].take();
        (name, object)
    });
    all.collect()
}

/// The CRD that a module brings, and its objects; nothing if it is not there.
fn of_the_kind(stage: &Stage) -> Vec<(String, Value)> {
    let gadgets = gadgets(stage);
    let found = stage.kubectl(&format!("get crd {gadgets} --ignore-not-found --output=json"));
    let Ok(crd) = serde_json::from_str::<Value>(&found) else {
        return Vec::new();
    };
    let listed = stage.kubectl(&format!("get {gadgets} --output=json"));
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let objects = listed["items"].as_array().unwrap().iter();
    let objects = objects.map(|object| ("gadget".to_owned(), object.clone()));
    let crd = ("customresourcedefinition".to_owned(), crd);
    objects.chain([crd]).collect()
}

fn said(plan: &Plan) -> BTreeMap<String, Fate> {
    let releases = plan.modules.iter().filter_map(|module| module.release.as_ref());
    let crds = plan.modules.iter().flat_map(|module| &module.crds);
    let is_act = |object: &&ObjectPlan| object.act != ObjectAct::Leave;
    let fates = releases
        .flat_map(|release| &release.objects)
        .chain(crds)
        .filter(is_act)
        .map(|object| {
            let name = format!("{}/{}", object.kind.to_lowercase(), object.name);
            (name, (object.act, told(&object.kind, &object.fields)))
        });
    fates.collect()
}

fn happened(before: &Objects, after: &Objects) -> BTreeMap<String, Fate> {
    let mut fates = BTreeMap::new();
    for (name, object) in before {
        let kind = object["kind"]
            .as_str()
            .unwrap_or_else(|| name.split('/').next().unwrap());
        let fate = match after.get(name) {
            None => (ObjectAct::Delete, Vec::new()),
            Some(now) if now["metadata"]["uid"] != object["metadata"]["uid"] => (ObjectAct::Replace, Vec::new()),
            Some(now) => (ObjectAct::Change, told(kind, &fields::changed(object, now))),
        };
        if fate.0 != ObjectAct::Change || !fate.1.is_empty() {
            fates.insert(name.clone(), fate);
        }
    }
    let new = after.keys().filter(|name| !before.contains_key(*name));
    fates.extend(new.map(|name| (name.clone(), (ObjectAct::Create, Vec::new()))));
    fates
}

/// The fields with their values after the edit. Of a Secret only the paths are told.
fn told(kind: &str, fields: &[Field]) -> Vec<(String, Option<Value>)> {
    let is_of_others = |path: &str| OF_OTHERS.iter().any(|own| path.starts_with(own));
    let is_secret = kind.eq_ignore_ascii_case("secret");
    let told = fields.iter().filter(|field| !is_of_others(&field.path));
    let mut told: Vec<_> = told
        .map(|field| (field.path.clone(), field.after.clone().filter(|_| !is_secret)))
        .collect();
    told.sort_by(|one, other| one.0.cmp(&other.0));
    told
}

/// The sums of a campaign.
#[derive(Default)]
struct Tally {
    /// The number of objects that a plan named or an edit changed.
    objects: usize,
    acts: BTreeMap<ObjectAct, usize>,
    /// Objects to which another thing happened than was said.
    wrong: Vec<String>,
    /// Objects to which a thing happened although nothing was said.
    unsaid: Vec<String>,
    times: Vec<Duration>,
}

impl Tally {
    fn compare(&mut self, title: &str, said: &BTreeMap<String, Fate>, happened: &BTreeMap<String, Fate>) {
        let names: std::collections::BTreeSet<_> = said.keys().chain(happened.keys()).collect();
        for name in names {
            self.objects += 1;
            let (said, happened) = (said.get(name), happened.get(name));
            if let Some((act, _)) = happened {
                *self.acts.entry(*act).or_default() += 1;
            }
            if said == happened {
                continue;
            }
            let line = format!("{title}: {name}: said {said:?}, happened {happened:?}");
            if said.is_none() {
                self.unsaid.push(line.clone());
            }
            self.wrong.push(line);
        }
    }

    fn text(&self, rounds: usize) -> String {
        let exact = self.objects - self.wrong.len();
        let mut text = format!(
            "{rounds} edits were planned and made. Of {} objects, {exact} changed exactly as it was said; to {} something \
             happened that was not said.\n\n",
            self.objects,
            self.unsaid.len()
        );
        for (act, number) in &self.acts {
            let _ = writeln!(text, "- {act:?}: {number}");
        }
        let at = |percent| {
            percentile(self.times.iter().copied(), percent)
                .unwrap_or_default()
                .as_millis()
        };
        let _ = writeln!(
            text,
            "\nA plan took {} ms (median), at most {} ms, with the command's start.",
            at(50),
            at(100)
        );
        for line in &self.wrong {
            let _ = writeln!(text, "\n- {line}");
        }
        text
    }
}
