//! The runs of hooks that a case asks for: which hook, with which contexts.
//!
//! Contexts are made by the core, as for an operator. Must never make a context that no operator would give to the hook.

use addon_core::failure::Failure;
use addon_core::hook::condition::Evidence;
use addon_core::hook::config::{HookConfig, HookKind, KubernetesBinding, Stage};
use addon_core::hook::context::{BindingContext, Snapshots};
use addon_core::object::ObjectName;
use addon_core::review::Review;
use addon_core::review::request::{AdmissionRequest, ConversionRequest, ReviewRequest};
use addon_core::review::routes::{Opened, Routes};
use hooks::filters::compile;
use hooks::rehearsal;
use names::{BindingName, HookId};
use serde_json::{Value, json};
use std::time::Duration;
use watches::gate::Gate;
use watches::still::Still;

use super::case::{Case, Event, Mistake};
use super::subject::{Known, Subject};
use super::world::World;

/// Types of literal contexts for which the API server waits.
const REVIEWS: [&str; 3] = ["Validating", "Mutating", "Conversion"];

/// Why a run cannot begin.
pub(super) enum Trouble {
    /// The case itself has a mistake.
    Mistake(Mistake),
    /// The run would fail in an operator, too.
    Failure(Failure),
}

impl From<Mistake> for Trouble {
    fn from(mistake: Mistake) -> Self {
        Self::Mistake(mistake)
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// A run that is about to begin.
pub(super) struct Run {
    pub(super) told: rehearsal::Told,
    pub(super) timeout: Option<Duration>,
    /// The review that waits for the hook, if there is one.
    pub(super) review: Option<Review>,
}

/// A binding that a case names.
enum Bound<'a> {
    Stage(Stage),
    Schedule(&'a addon_core::hook::config::ScheduleBinding),
    Objects(&'a KubernetesBinding),
    Admission(&'a BindingName),
    Conversion(&'a addon_core::hook::config::ConversionBinding),
}

/// The hooks of a case, in the order of their runs; none if the case runs no hook.
pub(super) fn hooks<'a>(case: &Case, subject: &'a Subject<'_>) -> Result<Vec<&'a Known>, Mistake> {
    let kind = HookKind::from(&subject.owner);
    match (&case.hook, &case.on) {
        (Some(name), _) => subject.hook(name).map(|hook| vec![hook]),
        (None, Some(on)) => subject.at_stage(stage_of(on, kind).ok_or_else(|| {
            let stages: Vec<&str> = Stage::of(kind).iter().map(|stage| stage.key()).collect();
            Mistake::new(
                "on",
                format!("without 'hook' it should be one of {}", stages.join(", ")),
            )
        })?),
        (None, None) => Ok(Vec::new()),
    }
}

fn stage_of(word: &str, kind: HookKind) -> Option<Stage> {
    Stage::of(kind).iter().copied().find(|stage| stage.key() == word)
}

/// The run of a hook; none if a condition of the binding is not met. If the case has an event, it changes the cluster
/// before the run.
pub(super) fn run(case: &Case, hook: &Known, world: &mut World) -> Result<Option<Run>, Trouble> {
    if let Some(contexts) = &case.contexts {
        let is_asked = contexts
            .iter()
            .any(|context| REVIEWS.iter().any(|word| context["type"] == *word));
        let text = format!("{}\n", json!(contexts));
        return Ok(Some(Run {
            told: rehearsal::Told::Literal { text, is_asked },
            timeout: hook.config.timeout,
            review: None,
        }));
    }
    let bound = bound(case, &hook.config)?;
    check_event(case, &bound)?;
    let gate = match &bound {
        Bound::Objects(binding) => Gate::of(&hook.id, binding, compile)?,
        Bound::Stage(_) | Bound::Schedule(_) | Bound::Admission(_) | Bound::Conversion(_) => None,
    };
    let (context, timeout, review) = match bound {
        Bound::Stage(stage) => (BindingContext::stage(stage, &hook.config), hook.config.timeout, None),
        Bound::Schedule(binding) => (BindingContext::schedule(binding), binding.timeout, None),
        Bound::Objects(binding) => (of_objects(case, hook, binding, world)?, binding.timeout, None),
        Bound::Admission(name) => {
            let body = body(case, "AdmissionReview", "admission.k8s.io/v1")?;
            let request = AdmissionRequest::parse(&body).map_err(|error| Mistake::new("request", error.to_string()))?;
            reviewed(&hook.id, &hook.config, name.as_str(), ReviewRequest::Admission(request))?
        }
        Bound::Conversion(binding) => {
            let body = body(case, "ConversionReview", "apiextensions.k8s.io/v1")?;
            let request =
                ConversionRequest::parse(&body).map_err(|error| Mistake::new("request", error.to_string()))?;
            reviewed(
                &hook.id,
                &hook.config,
                &binding.crd_name,
                ReviewRequest::Conversion(request),
            )?
        }
    };
    let snapshots = snapshots(context.wanted_snapshots(), &hook.config, world)?;
    if !lets_through(gate.as_ref(), &context, hook, world)?
        || context.condition().is_some_and(|when| !when.is_met(&snapshots))
    {
        return Ok(None);
    }
    Ok(Some(Run {
        told: rehearsal::Told::Contexts {
            snapshots,
            contexts: vec![context],
            version: hook.config.version,
        },
        timeout: timeout.or(hook.config.timeout),
        review,
    }))
}

/// Whether the condition of a binding to objects lets the hook run for a change.
fn lets_through(gate: Option<&Gate>, context: &BindingContext, hook: &Known, world: &World) -> Result<bool, Failure> {
    let (Some(gate), BindingContext::Event { event, object, .. }) = (gate, context) else {
        return Ok(true);
    };
    let seen = snapshots(gate.snapshots(), &hook.config, world)?;
    Ok(gate.lets_through(Evidence::of_change(*event, object), |name| seen.get(name)))
}

/// The binding that the case names, or the only one.
fn bound<'a>(case: &Case, config: &'a HookConfig) -> Result<Bound<'a>, Mistake> {
    let stages = config.stages.keys().map(|stage| (stage.key(), Bound::Stage(*stage)));
    let schedules = config
        .schedules
        .iter()
        .map(|one| (one.name.as_str(), Bound::Schedule(one)));
    let objects = config
        .kubernetes
        .iter()
        .map(|one| (one.name.as_str(), Bound::Objects(one)));
    let admissions = config.validating.iter().chain(&config.mutating);
    let admissions = admissions.map(|one| (one.name.as_str(), Bound::Admission(&one.name)));
    let conversions = config
        .conversions
        .iter()
        .map(|one| (one.name.as_str(), Bound::Conversion(one)));
    let mut all: Vec<(&str, Bound<'a>)> = stages
        .chain(schedules)
        .chain(objects)
        .chain(admissions)
        .chain(conversions)
        .collect();
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    let place = match &case.on {
        Some(on) => names.iter().position(|name| name == on),
        None if all.len() == 1 => Some(0),
        None => {
            let problem = format!("the hook has several bindings, name one of them: {}", names.join(", "));
            return Err(Mistake::new("on", problem));
        }
    };
    match (place, &case.on) {
        (Some(place), _) => Ok(all.swap_remove(place).1),
        (None, on) => {
            let on = on.as_deref().unwrap_or_default();
            let problem = format!("the hook has no binding '{on}', only: {}", names.join(", "));
            Err(Mistake::new("on", problem))
        }
    }
}

fn check_event(case: &Case, bound: &Bound<'_>) -> Result<(), Mistake> {
    let (event, request) = (case.event.is_some(), case.request.is_some());
    match bound {
        Bound::Objects(_) if request => Err(Mistake::new("request", "a binding to objects gets no request")),
        Bound::Admission(_) | Bound::Conversion(_) if event => Err(Mistake::new("event", "a review has no event")),
        Bound::Stage(_) | Bound::Schedule(_) if event || request => {
            let field = if event { "event" } else { "request" };
            Err(Mistake::new(field, "this binding is not about objects"))
        }
        _ => Ok(()),
    }
}

/// The context of a first run, or of an event after the event has changed the cluster.
fn of_objects(
    case: &Case,
    hook: &Known,
    binding: &KubernetesBinding,
    world: &mut World,
) -> Result<BindingContext, Trouble> {
    let Some(Event { event, object }) = &case.event else {
        return if hook.config.has_first_run(binding) {
            Ok(BindingContext::Synchronization(binding.into()))
        } else {
            let problem = format!("it is missing, because binding '{}' has no first run", binding.name);
            Err(Mistake::new("event", problem).into())
        };
    };
    if !binding.events.contains(event) {
        let problem = format!("binding '{}' does not react to {event:?}", binding.name);
        return Err(Mistake::new("event.type", problem).into());
    }
    let homeless = |error: crate::imitation::Homeless| Mistake::new("event.object", error.to_string());
    world.put(object).map_err(homeless)?;
    let selected = world.selected(binding)?;
    let name = ObjectName::of(object);
    let is_same = |one: &&Value| {
        one["metadata"]["name"] == name.name.as_str()
            && (name.namespace.is_empty() || one["metadata"]["namespace"] == name.namespace.as_str())
    };
    let Some(found) = selected.iter().find(is_same) else {
        let problem = format!("binding '{}' does not select it", binding.name);
        return Err(Mistake::new("event.object", problem).into());
    };
    if *event == addon_core::hook::config::WatchEvent::Deleted {
        world.remove(object).map_err(homeless)?;
    }
    Ok(BindingContext::Event {
        told: binding.into(),
        event: *event,
        name: ObjectName::of(found),
        object: Still::of(binding, compile)?.view(found)?,
    })
}

/// The body of the API server's request.
fn body(case: &Case, kind: &str, api_version: &str) -> Result<Vec<u8>, Mistake> {
    let request = case
        .request
        .as_ref()
        .ok_or_else(|| Mistake::new("request", "it is missing: the binding reviews one"))?;
    let mut request = request.clone();
    if request.get("uid").is_none() {
        request["uid"] = json!("test");
    }
    Ok(json!({"kind": kind, "apiVersion": api_version, "request": request})
        .to_string()
        .into_bytes())
}

type Reviewed = (BindingContext, Option<Duration>, Option<Review>);

/// Opens a review at the path of the binding.
fn reviewed(id: &HookId, config: &HookConfig, name: &str, request: ReviewRequest) -> Result<Reviewed, Mistake> {
    let (routes, _) = Routes::of([(id, config)]);
    let path = match &request {
        ReviewRequest::Admission(_) => {
            let mut paths = routes.admissions();
            let found = paths.find(|(_, route)| route.binding.name.as_str() == name);
            found.map(|(path, _)| path).unwrap_or_default()
        }
        ReviewRequest::Conversion(_) => format!("/{name}"),
    };
    match routes.open(&path, request) {
        Opened::Running(review, run) => Ok((run.context, run.limit, Some(review))),
        Opened::Answered(_) | Opened::Edit(_) => Err(Mistake::new(
            "request",
            "no hook has to run for it: the objects have the desired version, or no rule leads there",
        )),
    }
}

fn snapshots<'a>(
    names: impl IntoIterator<Item = &'a BindingName>,
    config: &HookConfig,
    world: &World,
) -> Result<Snapshots, Failure> {
    let mut shown = Snapshots::new();
    for name in names {
        if let Some(binding) = config.kubernetes.iter().find(|binding| binding.name == *name) {
            shown.insert(name.clone(), world.snapshot(binding)?);
        }
    }
    Ok(shown)
}
