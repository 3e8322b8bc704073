//! Views: the facts in the order and in the words in which a page shows them. Pure functions from facts to plain data.
//!
//! Must never decide about a module: the state, the health and the sentences are the core's.

pub mod graph;
pub mod module;
pub mod objects;
pub mod operator;
pub mod overview;
pub mod records;
mod values;

use serde::Serialize;

use crate::assets;
use crate::facts::{Fleet, Module, Operator};
use crate::text::row;

/// The place of a module in the overview, and the colour of a label. A label always has a word besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    /// It needs the attention of a person.
    Bad,
    /// It is on its way.
    Busy,
    /// It is as it should be.
    Good,
    /// It is off, or not known.
    Off,
}

/// A word with a colour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Label {
    /// The colour.
    pub tone: Tone,
    pub word: String,
}

impl Label {
    fn new(tone: Tone, word: impl Into<String>) -> Self {
        let word = word.into();
        Self { tone, word }
    }
}

/// The part that all views share: the head of the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Head {
    /// The title of the document.
    pub title: String,
    /// The way from this view to the first one: empty, or `../` for each level.
    pub root: String,
    /// Whether the view stays as it is until a person loads it again.
    pub still: bool,
    /// Whether modules are shown.
    pub on_modules: bool,
    /// Whether the graph is shown.
    pub on_graph: bool,
    /// Whether the operator is shown.
    pub on_operator: bool,
    /// The version of the program.
    pub version: String,
    /// The namespace of the releases.
    pub namespace: String,
    /// The pod that leads; empty outside of a cluster.
    pub pod: String,
    /// The state of the operator.
    pub state: Label,
    /// The name of the file with the style.
    pub style: String,
    /// The name of the file with the script.
    pub script: String,
}

/// The views between which the head leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The overview.
    Modules,
    /// One module, a level below.
    Module,
    /// The Events of one module, two levels below.
    Events,
    /// Two revisions of one module, four levels below.
    Comparison,
    Graph,
    /// The graph of one module, a level below.
    GraphOf,
    Operator,
    /// A message.
    Elsewhere,
}

impl Head {
    /// The head of a view with this title.
    pub fn of(operator: &Operator, place: Place, title: &str) -> Self {
        Self {
            title: row(title),
            root: match place {
                Place::Module | Place::GraphOf => "../".to_owned(),
                Place::Events => "../../".to_owned(),
                Place::Comparison => "../../../../".to_owned(),
                Place::Modules | Place::Graph | Place::Operator | Place::Elsewhere => String::new(),
            },
            still: matches!(place, Place::Events | Place::Comparison),
            on_modules: matches!(
                place,
                Place::Modules | Place::Module | Place::Events | Place::Comparison
            ),
            on_graph: matches!(place, Place::Graph | Place::GraphOf),
            on_operator: place == Place::Operator,
            version: row(&operator.version),
            namespace: row(&operator.namespace),
            pod: row(&operator.pod),
            state: state_of(operator),
            style: assets::style().name.clone(),
            script: assets::script().name.clone(),
        }
    }
}

fn state_of(operator: &Operator) -> Label {
    match (operator.ready, operator.converge_tasks > 0) {
        (false, _) => Label::new(Tone::Busy, "Starting"),
        (true, true) => Label::new(Tone::Busy, "Converging"),
        (true, false) => Label::new(Tone::Good, "Ready"),
    }
}

/// The group of a module.
fn tone_of(module: &Module) -> Tone {
    let is_held = matches!(module.state.as_str(), "Held" | "UpgradeHeld") || module.upgrade_held;
    let has_problem = !module.config_problems.is_empty() || !module.failing.is_empty();
    if module.fails || is_held || has_problem || module.late || module.health == "Unhealthy" {
        Tone::Bad
    } else if !module.enabled && module.state != "Deleting" {
        if module.decided { Tone::Off } else { Tone::Busy }
    } else if module.state == "Ready" && module.health != "RollingOut" {
        Tone::Good
    } else {
        Tone::Busy
    }
}

/// The state for people, as `module list` says it.
fn state_label(module: &Module) -> Label {
    let word = match (module.state.as_str(), module.enabled, module.decided) {
        ("Disabled", true, _) => "Waiting",
        ("Disabled", false, false) => "Undecided",
        (state, _, _) => state,
    };
    let is_held = matches!(word, "Held" | "UpgradeHeld");
    let tone = match word {
        _ if is_held || module.fails => Tone::Bad,
        "Ready" => Tone::Good,
        "Disabled" => Tone::Off,
        _ => Tone::Busy,
    };
    Label::new(tone, row(word))
}

/// The health of a module; none for a module without objects.
fn health_label(module: &Module) -> Option<Label> {
    let tone = match module.health.as_str() {
        "Healthy" => Tone::Good,
        "RollingOut" => Tone::Busy,
        "Unhealthy" => Tone::Bad,
        _ => return None,
    };
    Some(Label::new(tone, module.health.as_str()))
}

/// The reason why a module is not as it should be; empty if it is.
fn reason_of(module: &Module) -> &str {
    let failed = module.error.as_deref().filter(|_| module.fails);
    let elsewhere = module.failing.first().map(|failing| failing.error.as_str());
    let waits = Some(module.waits_for.as_str()).filter(|text| !text.is_empty());
    let problem = module.config_problems.first().map(String::as_str);
    let ailing = module.unhealthy.as_deref();
    failed
        .or(elsewhere)
        .or(problem)
        .or(waits)
        .or(ailing)
        .unwrap_or_default()
}

/// The modules that need this one.
fn needed_by<'a>(fleet: &'a Fleet, name: &'a str) -> impl Iterator<Item = &'a Module> {
    let needs = move |module: &&Module| module.depends_on.iter().any(|need| need == name);
    fleet.modules.iter().filter(needs)
}
