//! Plays one case: the values and the cluster at its start, the runs of hooks, the rendering; and compares the results.
//!
//! Must never leave anything behind: each case has its own values, its own cluster and its own directory.

use std::collections::BTreeMap;
use std::sync::Arc;

use addon_core::failure::Failure;
use addon_core::object::patch::Operation;
use addon_core::review::reply::Reply;
use addon_core::review::response::HookResponse;
use addon_core::review::{Ended, Progress, Review};
use addon_core::values::Store;
use addon_core::values::merge::merge;
use addon_core::values::patch::{Patch, PatchFile};
use addon_core::values::section::ConfigDocument;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use helm_yaml::yaml;
use hooks::Wrote;
use hooks::enabled;
use hooks::rehearsal::{Input, Stage};
use names::Owner;
use report::Chain;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::case::{Case, Mistake};
use super::steps::{self, Run, Trouble};
use super::subject::{Known, Subject};
use super::world::World;
use super::{compare, render};
use crate::offline::{Offline, with_framework};

/// The tools of a run.
pub(super) struct Tools<'a> {
    pub(super) subject: &'a Subject<'a>,
    pub(super) stage: Stage<'a>,
    pub(super) offline: Offline<'a>,
}

/// The state of a case that is played, and all that has come out so far.
struct Play<'a> {
    tools: &'a Tools<'a>,
    case: &'a Case,
    store: Store,
    world: World,
    values_patches: Vec<Value>,
    config_patches: Vec<Value>,
    ran: bool,
    objects: Vec<Operation>,
    metrics: Vec<Value>,
    review: Option<Value>,
    enabled: Option<(bool, Option<String>)>,
    rendered: Vec<Value>,
    printed: String,
}

/// Why a case ended before its end.
pub(super) enum Stop {
    Mistake(Mistake),
    /// The values, a hook or helm refused something.
    Refusal(String),
}

impl From<Mistake> for Stop {
    fn from(mistake: Mistake) -> Self {
        Self::Mistake(mistake)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        let Failure {
            report,
            hints,
            class: _,
        } = with_framework(failure);
        Self::Refusal(std::iter::once(report).chain(hints).collect::<Vec<_>>().join("\n"))
    }
}

impl From<Trouble> for Stop {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Mistake(mistake) => mistake.into(),
            Trouble::Failure(failure) => failure.into(),
        }
    }
}

/// Plays a case, and returns the differences between expected results and real ones; none if it passes.
pub(super) async fn play(case: &Case, tools: &Tools<'_>) -> Result<Vec<String>, Mistake> {
    let mut play = Play {
        tools,
        case,
        store: tools.subject.store.clone(),
        world: World::new(&tools.subject.crds),
        values_patches: Vec::new(),
        config_patches: Vec::new(),
        ran: false,
        objects: Vec::new(),
        metrics: Vec::new(),
        review: None,
        enabled: None,
        rendered: Vec::new(),
        printed: String::new(),
    };
    let refusal = match play.go().await {
        Ok(()) => None,
        Err(Stop::Refusal(refusal)) => Some(refusal),
        Err(Stop::Mistake(mistake)) => return Err(mistake),
    };
    let mut told = match (&case.expect.refused, refusal) {
        (None, Some(refusal)) => vec![format!("refused: {refusal}")],
        (Some(wanted), Some(refusal)) if refusal.contains(wanted) => play.differences(),
        (Some(wanted), Some(refusal)) => vec![format!("refused:\n  expected {wanted}\n  got      {refusal}")],
        (Some(wanted), None) => vec![format!("refused: expected {wanted:?}, got no refusal")],
        (None, None) => play.differences(),
    };
    let printed = play.printed.trim();
    if !told.is_empty() && !printed.is_empty() {
        told.push(format!("the hook printed:\n  {}", printed.replace('\n', "\n  ")));
    }
    Ok(told)
}

impl Play<'_> {
    async fn go(&mut self) -> Result<(), Stop> {
        self.prepare()?;
        let hooks = steps::hooks(self.case, self.tools.subject)?;
        for hook in hooks {
            self.run(hook).await?;
        }
        if self.case.expect.enabled.is_some() {
            self.ask_script().await?;
        }
        // An expected refusal that has not come yet may come from the chart.
        if self.case.expect.renders() || self.case.expect.refused.is_some() {
            let modules = self.modules();
            self.rendered = render::objects(self.tools, &self.store, &modules, self.case.expect.renders()).await?;
        }
        Ok(())
    }

    /// Sets the values and the objects that the case begins with.
    fn prepare(&mut self) -> Result<(), Stop> {
        let owner = &self.tools.subject.owner;
        if *owner == Owner::Global {
            self.case.check_for_global_hooks()?;
        }
        let sections = [
            ("global".to_owned(), &self.case.global),
            (owner.values_key(), &self.case.config),
        ];
        let data: BTreeMap<String, String> = sections
            .into_iter()
            .filter_map(|(key, section)| Some((key, yaml::to_string(section.as_ref()?))))
            .collect();
        if let Some(problem) = self.store.judge(&data, None, &BTreeMap::new()).problems.first() {
            return Err(Stop::Refusal(problem.to_string()));
        }
        let document = ConfigDocument::parse(&data);
        let global = document.global.good().cloned();
        let own = owner
            .module()
            .and_then(|name| document.sections.get(name)?.values.good().cloned());
        for (owner, section) in [(Owner::Global, global), (owner.clone(), own)] {
            if let Some(section) = section {
                let set = self.store.set_config(&owner, Some(section));
                set.map_err(|error| Stop::Refusal(Chain(&error).to_string()))?;
            }
        }
        let operations = additions(&owner.values_key(), &self.store.effective(owner), &self.case.values)?;
        let patch = Patch::parse(&Value::Array(operations).to_string(), PatchFile::Values);
        let patch = patch.map_err(|error| Mistake::new("values", Chain(&error).to_string()))?;
        self.commit(&patch, &Patch::default())?;
        let filled = self.world.fill(&self.case.objects);
        filled.map_err(|(place, error)| Mistake::new(&format!("objects[{place}]"), error.to_string()).into())
    }

    /// Runs a hook, and takes over the parts of its output in the same order as an operator.
    async fn run(&mut self, hook: &Known) -> Result<(), Stop> {
        let run = steps::run(self.case, hook, &mut self.world)?;
        let Some(Run { told, timeout, review }) = run else {
            return Ok(());
        };
        self.ran = true;
        let owner = &self.tools.subject.owner;
        let input = Input {
            hook: hook.id.clone(),
            program: hook.program.clone(),
            told,
            values: self.store.hook_values(owner),
            config_values: self.store.config_values(owner),
            timeout,
        };
        let ended = self.tools.stage.run(&input, &CancellationToken::new()).await;
        self.printed.push_str(&ended.printed);
        match ended.outcome {
            Ok(wrote) => {
                let response = wrote.response.clone();
                let taken = self.take(wrote).await;
                self.answer(review, if taken.is_ok() { Ok(response) } else { Err(()) });
                taken
            }
            Err(failure) => {
                self.answer(review, Err(()));
                let applied = self.world.apply(&ended.tolerated).await;
                self.objects.extend(ended.tolerated);
                let failure = failure.within(format_args!("hook '{}' failed", hook.id.name));
                Err(match applied {
                    Ok(()) => failure.into(),
                    Err(also) => Failure {
                        report: format!("{}; {}", failure.report, also.report),
                        ..failure
                    }
                    .into(),
                })
            }
        }
    }

    async fn take(&mut self, wrote: Wrote) -> Result<(), Stop> {
        let Wrote {
            values,
            metrics,
            response: _,
            objects,
        } = wrote;
        self.metrics.extend(metrics.operations.iter().map(compare::metric));
        let dropped = metrics.dropped.first().map(ToString::to_string);
        self.values_patches.extend(compare::operations(&values.values));
        self.config_patches.extend(compare::operations(&values.config));
        let applied = self.world.apply(&objects).await;
        self.objects.extend(objects);
        applied?;
        self.commit(&values.values, &values.config)?;
        match dropped {
            Some(dropped) => Err(Stop::Refusal(format!("a metric is not shown: {dropped}"))),
            None => Ok(()),
        }
    }

    /// Commits patches as an operator does: if the patch of values is refused, a valid one of config values counts.
    fn commit(&mut self, values: &Patch, config: &Patch) -> Result<(), Stop> {
        let owner = &self.tools.subject.owner;
        let both = self.store.propose(owner, values, config);
        let (proposal, refused) = match both {
            Ok(proposal) => (Some(proposal), None),
            Err(refused) => (self.store.propose(owner, &Patch::default(), config).ok(), Some(refused)),
        };
        if let Some(proposal) = proposal {
            let committed = self.store.commit(proposal);
            committed.map_err(|stale| Stop::Refusal(stale.to_string()))?;
        }
        match refused {
            None => Ok(()),
            Some(refused) => Err(Stop::Refusal(Chain(&refused).to_string())),
        }
    }

    /// The reply that the API server gets.
    fn answer(&mut self, review: Option<Review>, response: Result<HookResponse, ()>) {
        let Some(mut review) = review else {
            self.review = response
                .ok()
                .and_then(|response| response.admission)
                .map(|admission| json!(admission));
            return;
        };
        let ended = response.map_or(Ended::Failed, Ended::Well);
        self.review = match review.resume(ended) {
            Progress::Answered(Reply::Review(reply)) => Some(shown(&reply.to_value()["response"])),
            Progress::Answered(Reply::NoAnswer(why)) => Some(json!({"message": why.to_string()})),
            Progress::Run(run) => Some(json!({"next": run.context.binding()})),
        };
    }

    async fn ask_script(&mut self) -> Result<(), Stop> {
        let Tools { subject, stage, .. } = self.tools;
        let module = subject.module("expect.enabled")?;
        let Some(script) = &module.enabled_script else {
            return Err(Mistake::new("expect.enabled", "the module has no script 'enabled'").into());
        };
        let mut values = self.store.hook_values(&subject.owner).to_value();
        values["global"]["enabledModules"] = json!(self.case.enabled_modules);
        let documents = (Arc::new(values), self.store.config_values(&subject.owner));
        let cancel = CancellationToken::new();
        let answer = enabled::rehearse(stage, &module.name, script, documents, &cancel).await;
        self.enabled = Some(answer.map_err(|failure| failure.within("the script 'enabled' failed"))?);
        Ok(())
    }

    /// The modules that the chart sees as enabled.
    fn modules(&self) -> Vec<String> {
        let own = self.tools.subject.module.map(|module| module.name.as_str());
        self.case
            .enabled_modules
            .iter()
            .map(String::as_str)
            .chain(own)
            .map(str::to_owned)
            .collect()
    }

    fn differences(&self) -> Vec<String> {
        let (expect, owner) = (&self.case.expect, &self.tools.subject.owner);
        let mut told = Vec::new();
        if let Some(values) = &expect.values {
            told.extend(compare::part("values", values, Some(&self.store.effective(owner))));
        }
        if let Some(config) = &expect.config {
            told.extend(compare::part(
                "config",
                config,
                self.store.config_section(owner).as_deref(),
            ));
        }
        for (field, patch, got) in [
            ("valuesPatch", &expect.values_patch, &self.values_patches),
            ("configPatch", &expect.config_patch, &self.config_patches),
        ] {
            if let Some(patch) = patch {
                told.extend(compare::whole(field, &compare::operations(patch), got));
            }
        }
        if let Some(runs) = expect.runs {
            told.extend(compare::part("runs", &json!(runs), Some(&json!(self.ran))));
        }
        let objects = self.world.objects();
        told.extend(compare::objects("objects", &expect.objects, &objects));
        told.extend(compare::absent("absent", &expect.absent, &objects));
        if let Some(operations) = &expect.object_patches {
            let (wanted, got) = (compare::documents(operations), compare::documents(&self.objects));
            told.extend(compare::whole("objectPatches", &wanted, &got));
        }
        if let Some(metrics) = &expect.metrics {
            told.extend(compare::metrics("metrics", metrics, &self.metrics));
        }
        told.extend(compare::objects(
            "rendered",
            expect.rendered.as_deref().unwrap_or_default(),
            &self.rendered,
        ));
        told.extend(compare::absent(
            "notRendered",
            expect.not_rendered.as_deref().unwrap_or_default(),
            &self.rendered,
        ));
        if let Some(review) = &expect.review {
            told.extend(compare::part("review", review, self.review.as_ref()));
        }
        if let (Some(wanted), Some((enabled, reason))) = (expect.enabled, &self.enabled) {
            told.extend(compare::part("enabled", &json!(wanted), Some(&json!(enabled))));
            if let Some(wanted) = &expect.reason {
                told.extend(compare::part(
                    "reason",
                    &json!(wanted),
                    reason.as_ref().map(|text| json!(text)).as_ref(),
                ));
            }
        }
        told
    }
}

/// The patch that lays a map over values, with an operation for each key of the map.
fn additions(root: &str, effective: &Value, values: &Map<String, Value>) -> Result<Vec<Value>, Mistake> {
    let addition = |(key, value): (&String, &Value)| {
        let path = format!("/{root}/{}", key.replace('~', "~0").replace('/', "~1"));
        let below = effective.get(key).cloned().unwrap_or_default();
        let merged = merge(below, value).map_err(|error| Mistake::new("values", error.to_string()))?;
        Ok(json!({"op": "add", "path": path, "value": merged}))
    };
    values.iter().map(addition).collect()
}

/// A response in the form for cases: the message is beside the verdict, and the patch is decoded.
fn shown(response: &Value) -> Value {
    let mut shown = response.clone();
    for place in ["/status/message", "/result/message"] {
        if let Some(message) = response.pointer(place) {
            shown["message"] = message.clone();
        }
    }
    let patch = response["patch"].as_str().and_then(|text| STANDARD.decode(text).ok());
    if let Some(patch) = patch.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok()) {
        shown["patch"] = patch;
    }
    shown
}
