//! The routes: which hook answers at which path.
//!
//! Every admission binding has a path of its own. Every resource has one path for all its conversions. Must never let
//! one binding replace another: if two bindings want the same path, the later binding gets another path. If that is
//! impossible, the later binding is reported.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use names::{BindingName, HookId};

use super::chain::Chain;
use super::conversion::Conversion;
use super::reply::{NoAnswer, Reply, admission_error};
use super::request::{AdmissionRequest, ReviewRequest};
use super::{Progress, Review};
use crate::hook::config::{AdmissionBinding, ConversionRule, HookConfig, HookKind};
use crate::hook::context::{Ask, Told};
use crate::hook::in_text::HookInText;

/// The first part of the path of every admission binding.
const CONFIGURATION: &str = "hooks";
/// The path for edits of our own ConfigMap.
pub(super) const EDITS: &str = "config-map";

/// The kind of an admission binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AdmissionKind {
    /// The binding allows or denies requests.
    Validating,
    /// The binding may change objects, too.
    Mutating,
}

impl AdmissionKind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Validating, Self::Mutating];

    pub(super) fn ask(self) -> Ask {
        match self {
            Self::Validating => Ask::Validating,
            Self::Mutating => Ask::Mutating,
        }
    }

    /// The key of the kind in a hook's configuration.
    pub fn key(self) -> &'static str {
        match self {
            Self::Validating => "kubernetesValidating",
            Self::Mutating => "kubernetesMutating",
        }
    }
}

/// An admission binding at its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionRoute {
    /// The hook.
    pub hook: HookId,
    /// The kind of the binding.
    pub kind: AdmissionKind,
    /// The binding, which becomes an entry of the webhook configuration.
    pub binding: AdmissionBinding,
    pub(super) told: Told,
    pub(super) timeout: Duration,
}

/// A conversion rule of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookRule {
    /// The hook.
    pub hook: HookId,
    /// The versions.
    pub rule: ConversionRule,
    pub(super) told: Told,
    pub(super) limit: Option<Duration>,
}

/// All conversions of one resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConversionRoute {
    chain: Chain<Converter>,
}

/// The hook of a rule, and its binding.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Converter {
    hook: HookId,
    told: Told,
    limit: Option<Duration>,
}

impl ConversionRoute {
    /// The rules that lead from one version to another; `None` if there are none.
    pub fn steps(&self, from: &str, to: &str) -> Option<Vec<HookRule>> {
        let path = self.chain.path(from, to)?.into_iter();
        let steps = path.map(|(rule, Converter { hook, told, limit })| HookRule {
            hook: hook.clone(),
            rule: rule.clone(),
            told: told.clone(),
            limit: *limit,
        });
        Some(steps.collect())
    }
}

/// Two bindings of one kind with the same name, which a cluster cannot distinguish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clash {
    /// The kind of both bindings.
    pub kind: AdmissionKind,
    /// The name of both bindings.
    pub name: BindingName,
    /// The hook whose binding is served.
    pub kept: HookId,
    /// The hook whose binding is not served.
    pub refused: HookId,
}

impl Clash {
    /// The text of the clash. Hooks without a module are of the kind `unowned`.
    pub fn told(&self, unowned: HookKind) -> String {
        let Self {
            kind,
            name,
            kept,
            refused,
        } = self;
        let (kind, refused, kept) = (
            kind.key(),
            HookInText::of(refused, unowned),
            HookInText::of(kept, unowned),
        );
        format!("{kind} '{name}' of {refused} is not served: {kept} has a binding of that name")
    }
}

/// The paths with the bindings that answer there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Routes {
    /// The admission routes by the text behind `/hooks/` in their paths.
    admission: BTreeMap<String, AdmissionRoute>,
    /// The conversion routes by the name of the `CustomResourceDefinition`.
    conversion: BTreeMap<String, ConversionRoute>,
    /// The name of our own ConfigMap, if its edits are reviewed.
    config_map: Option<String>,
}

impl Routes {
    /// The routes of these hooks, and the bindings that cannot have a route. Bindings come in the order of the hooks.
    /// In one hook, validating bindings come before mutating ones.
    pub fn of<'a>(hooks: impl IntoIterator<Item = (&'a HookId, &'a HookConfig)>) -> (Self, Vec<Clash>) {
        let (mut routes, mut clashes) = (Self::default(), Vec::new());
        let mut named: BTreeMap<(AdmissionKind, BindingName), HookId> = BTreeMap::new();
        let mut bindings = Vec::new();
        for (hook, config) in hooks {
            for (kind, binding) in admissions(config) {
                if let Some(kept) = named.get(&(kind, binding.name.clone())) {
                    clashes.push(Clash {
                        kind,
                        name: binding.name.clone(),
                        kept: kept.clone(),
                        refused: hook.clone(),
                    });
                } else {
                    named.insert((kind, binding.name.clone()), hook.clone());
                    bindings.push((hook, kind, binding));
                }
            }
            routes.add_conversions(hook, config);
        }
        routes.add_admissions(bindings);
        (routes, clashes)
    }

    /// Adds admission bindings. The first one gets the plain path. A later one gets a numbered path, which never equals a
    /// plain path.
    fn add_admissions(&mut self, bindings: Vec<(&HookId, AdmissionKind, &AdmissionBinding)>) {
        let plain: BTreeSet<String> = bindings.iter().map(|(_, _, binding)| place(binding)).collect();
        for (hook, kind, binding) in bindings {
            let wanted = place(binding);
            let numbered = (2_u32..).map(|number| format!("{wanted}-{number}"));
            let free = |path: &String| !self.admission.contains_key(path) && (*path == wanted || !plain.contains(path));
            let path = std::iter::once(wanted.clone()).chain(numbered).find(free);
            let route = AdmissionRoute {
                hook: hook.clone(),
                kind,
                told: Told::from(binding),
                timeout: timeout(binding),
                binding: binding.clone(),
            };
            self.admission.extend(path.map(|path| (path, route)));
        }
    }

    fn add_conversions(&mut self, hook: &HookId, config: &HookConfig) {
        for binding in &config.conversions {
            let route = self.conversion.entry(binding.crd_name.clone()).or_default();
            for rule in &binding.conversions {
                let converter = Converter {
                    hook: hook.clone(),
                    told: Told::from(binding),
                    limit: binding.timeout,
                };
                route.chain.add(rule.clone(), converter);
            }
        }
    }

    /// These routes with the path for edits of this ConfigMap, which no hook answers.
    #[must_use]
    pub fn with_edits_of(self, config_map: &str) -> Self {
        Self {
            config_map: Some(config_map.to_owned()),
            ..self
        }
    }

    /// Whether the API server has nothing to ask: there are no routes.
    pub fn is_empty(&self) -> bool {
        !self.admits() && self.conversion.is_empty()
    }

    /// Whether the routes include one for admission.
    pub fn admits(&self) -> bool {
        !self.admission.is_empty() || self.config_map.is_some()
    }

    /// The ConfigMap whose edits are reviewed.
    pub fn config_map(&self) -> Option<&str> {
        self.config_map.as_deref()
    }

    /// Admission bindings with their paths, in the order of the paths.
    pub fn admissions(&self) -> impl Iterator<Item = (String, &AdmissionRoute)> {
        let routes = self.admission.iter();
        routes.map(|(path, route)| (format!("/{CONFIGURATION}/{path}"), route))
    }

    /// The names of the CustomResourceDefinitions that hooks convert, in order.
    pub fn conversions(&self) -> impl Iterator<Item = &str> {
        self.conversion.keys().map(String::as_str)
    }

    /// Begins a review. A request at an unknown path is answered at once.
    pub fn open(&self, path: &str, request: ReviewRequest) -> Opened {
        match request {
            ReviewRequest::Admission(request) if split(path).0 == EDITS => match self.config_map {
                Some(_) => Opened::Edit(request),
                // The webhook was removed, and the API server has not noticed yet. The request must not be held up.
                None => Opened::Answered(Reply::NoAnswer(NoAnswer::Unjudged)),
            },
            ReviewRequest::Admission(request) => match self.admission_at(path) {
                Ok(route) => Opened::of(Review::admission(route, request)),
                Err(what) => Opened::Answered(admission_error(&request.head, &what)),
            },
            ReviewRequest::Conversion(request) => {
                let crd = crd(path);
                let (conversion, progress) = Conversion::open(crd, self.conversion.get(crd), request);
                Opened::of((Review::conversion(conversion), progress))
            }
        }
    }

    /// Whether an admission binding reviews requests at the path.
    pub fn admits_at(&self, path: &str) -> bool {
        match split(path).0 {
            EDITS => self.config_map.is_some(),
            _ => self.admission_at(path).is_ok(),
        }
    }

    /// Whether objects are converted at the given path.
    pub fn converts_at(&self, path: &str) -> bool {
        self.conversion.contains_key(crd(path))
    }

    fn admission_at(&self, path: &str) -> Result<&AdmissionRoute, String> {
        let (configuration, id) = split(path);
        let route = (configuration == CONFIGURATION).then(|| self.admission.get(&id));
        route
            .flatten()
            .ok_or_else(|| format!("no hook found for '{configuration}' '{id}'"))
    }
}

fn crd(path: &str) -> &str {
    path.trim_start_matches('/')
}

/// The result of opening a review.
#[derive(Debug, Clone)]
pub enum Opened {
    /// A hook has to run.
    Running(Review, Box<super::Run>),
    /// No hook has to run.
    Answered(Reply),
    /// The request is about our own ConfigMap, which no hook answers.
    Edit(AdmissionRequest),
}

impl Opened {
    fn of((review, progress): (Review, Progress)) -> Self {
        match progress {
            Progress::Run(run) => Self::Running(review, run),
            Progress::Answered(reply) => Self::Answered(reply),
        }
    }
}

fn admissions(config: &HookConfig) -> impl Iterator<Item = (AdmissionKind, &AdmissionBinding)> {
    let validating = config
        .validating
        .iter()
        .map(|binding| (AdmissionKind::Validating, binding));
    let mutating = config.mutating.iter().map(|binding| (AdmissionKind::Mutating, binding));
    validating.chain(mutating)
}

/// The timeout of a binding. The number of a mutating binding was not checked before, so it may be out of range.
fn timeout(binding: &AdmissionBinding) -> Duration {
    let seconds = binding.timeout_seconds.clamp(1, 30);
    Duration::from_secs(seconds.unsigned_abs())
}

fn place(binding: &AdmissionBinding) -> String {
    safe(binding.name.as_str())
}

/// The name of a binding in the form of a URL path.
pub fn safe(name: &str) -> String {
    let mut safe = String::with_capacity(name.len());
    for c in name.chars() {
        let (dash, c) = match c {
            'A'..='Z' => (true, c.to_ascii_lowercase()),
            'a'..='z' | '0'..='9' | '/' => (false, c),
            _ => (true, '-'),
        };
        if dash && !safe.ends_with('-') {
            safe.push('-');
        }
        if c != '-' {
            safe.push(c);
        }
    }
    safe
}

/// The first part of a path, and the rest. A double slash counts as one.
fn split(path: &str) -> (&str, String) {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    let configuration = parts.next().unwrap_or_default();
    (configuration, parts.collect::<Vec<_>>().join("/"))
}
