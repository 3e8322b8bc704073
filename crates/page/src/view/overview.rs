//! The overview: all modules, grouped by their state, with those that need attention on top.

use serde::Serialize;

use super::{Head, Label, Place, Tone, health_label, reason_of, state_label, tone_of};
use crate::facts::{Fleet, Module, Operator};
use crate::text::{Moment, block, encoded, plain, row};

/// The longest text beside a fact that needs a person, in characters.
const IN_ALARM: usize = 600;
/// The width of the bar of counts.
const WIDTH: usize = 1000;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overview {
    pub head: Head,
    /// The number of modules.
    pub total: usize,
    /// A group for each state, also the empty ones.
    pub groups: Vec<Group>,
    /// The facts about the operator that need the attention of a person.
    pub alarms: Vec<Alarm>,
    /// The obstacles of the first converge.
    pub waiting: Vec<String>,
    /// The name of the ConfigMap that switches modules on.
    pub config_map: String,
}

/// The modules of one state.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// The colour.
    pub tone: Tone,
    /// The name.
    pub title: &'static str,
    /// The number of its modules.
    pub count: usize,
    /// The beginning of its part of the bar.
    pub x: usize,
    /// The width of its part of the bar.
    pub width: usize,
    /// Its modules.
    pub rows: Vec<Row>,
}

/// A module in a group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    pub name: String,
    /// The path of its view, from the root.
    pub link: String,
    /// The order number.
    pub order: u32,
    pub state: Label,
    pub health: Option<Label>,
    /// The version of the chart.
    pub version: String,
    /// The revision of the release.
    pub revision: Option<u32>,
    /// The objects: those that work of all.
    pub objects: String,
    /// The reason why it is not as it should be.
    pub reason: String,
    /// The remedy.
    pub hint: String,
    /// The time since which it is not healthy.
    pub since: Option<Moment>,
    /// Short remarks: maintenance, drift, warnings.
    pub badges: Vec<&'static str>,
}

/// A fact about the operator that needs the attention of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Alarm {
    /// The fact.
    pub title: String,
    /// The reason.
    pub text: String,
    /// The command that shows more or confirms; empty if there is none.
    pub command: String,
}

impl Overview {
    /// The overview of these facts.
    pub fn of(fleet: &Fleet) -> Self {
        let mut groups = [
            (Tone::Bad, "Needs attention"),
            (Tone::Busy, "In progress"),
            (Tone::Good, "Ready"),
            (Tone::Off, "Off"),
        ]
        .map(|(tone, title)| Group {
            tone,
            title,
            count: 0,
            x: 0,
            width: 0,
            rows: Vec::new(),
        });
        for module in &fleet.modules {
            let tone = tone_of(module);
            if let Some(group) = groups.iter_mut().find(|group| group.tone == tone) {
                group.rows.push(Row::of(module));
            }
        }
        let total = fleet.modules.len();
        let mut before = 0;
        for group in &mut groups {
            group.count = group.rows.len();
            let edge = |number: usize| (number * WIDTH).checked_div(total).unwrap_or(0);
            group.x = edge(before);
            before += group.count;
            group.width = edge(before) - group.x;
        }
        Self {
            head: Head::of(&fleet.operator, Place::Modules, "Modules"),
            total,
            groups: groups.into(),
            alarms: alarms(&fleet.operator),
            waiting: fleet.operator.waiting.iter().map(|text| block(text)).collect(),
            config_map: row(&fleet.operator.config_map),
        }
    }
}

impl Row {
    fn of(module: &Module) -> Self {
        let objects = module.objects.map(|all| {
            let ailing = module.ailing.unwrap_or(0);
            format!("{}/{all}", all.saturating_sub(ailing))
        });
        let marks = [
            (module.late, "late"),
            (module.in_maintenance, "maintenance"),
            (!module.drift.is_empty(), "drift"),
            (!module.remarks.is_empty(), "warning"),
        ];
        Self {
            name: row(&module.name),
            link: format!("modules/{}", encoded(&module.name)),
            order: module.order,
            state: state_label(module),
            health: health_label(module),
            version: module.version.as_deref().map(row).unwrap_or_default(),
            revision: module.revision,
            objects: objects.unwrap_or_default(),
            reason: row(reason_of(module)),
            hint: module.hints.first().map(|hint| row(hint)).unwrap_or_default(),
            since: module.unhealthy_since.and_then(Moment::at),
            badges: marks
                .into_iter()
                .filter(|(holds, _)| *holds)
                .map(|(_, word)| word)
                .collect(),
        }
    }
}

/// The facts about the operator that need the attention of a person.
pub(super) fn alarms(operator: &Operator) -> Vec<Alarm> {
    let mut all = Vec::new();
    let mut tell = |title: String, text: &str, command: &str| {
        all.push(Alarm {
            title: row(&title),
            text: plain(text, IN_ALARM),
            command: command.to_owned(),
        });
    };
    for (key, problem) in &operator.config_problems {
        tell(format!("The key {key} of the ConfigMap cannot be used"), problem, "");
    }
    for release in &operator.config_lost {
        let text = "Its values and flags were in the ConfigMap and are gone.";
        tell(
            format!("The configuration of {release} is lost"),
            text,
            "addon-operator config lost",
        );
    }
    let confirmable = operator.held.iter().filter(|held| held.confirmable).count();
    for held in &operator.held {
        let command = if held.confirmable {
            format!("addon-operator module purge --confirm {confirmable}")
        } else {
            String::new()
        };
        let text = format!("{}: {}", held.sign, held.reason);
        tell(format!("The removal of {} is held", held.release), &text, &command);
    }
    for text in &operator.old_values {
        tell("A global hook fails".to_owned(), text, "");
    }
    for key in &operator.unkept {
        let text = "If it is broken or gone at the next start, its last good text is unknown.";
        tell(format!("The key {key} is too large to be remembered"), text, "");
    }
    all
}
