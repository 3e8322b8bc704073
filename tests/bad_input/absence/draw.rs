//! The harm of each round. First each harm is done to each thing alone, then pairs are drawn.

use std::fmt;

use testbed::draw::Draw;

/// A source or file that the operator reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Thing {
    ModulesDir,
    ValuesFile,
    ModuleDirs,
    ChartFile,
    Templates,
    Template,
    ModuleValues,
    Hook,
    ConfigMap,
    State,
}

/// The harm that is done to a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Harm {
    Missing,
    Empty,
    /// Only the first half of the text is left.
    Cut,
    /// A file becomes a link to itself; the ConfigMap gets garbage.
    Unreadable,
    /// Missing at the start, and put back while the operator runs.
    Late,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Moment {
    AtStart,
    /// While the operator runs, and the thing is still harmed at the next start.
    Running,
}

const THINGS: [Thing; 10] = [
    Thing::ModulesDir,
    Thing::ValuesFile,
    Thing::ModuleDirs,
    Thing::ChartFile,
    Thing::Templates,
    Thing::Template,
    Thing::ModuleValues,
    Thing::Hook,
    Thing::ConfigMap,
    Thing::State,
];
const HARMS: [Harm; 5] = [Harm::Missing, Harm::Empty, Harm::Cut, Harm::Unreadable, Harm::Late];
const MOMENTS: [Moment; 2] = [Moment::AtStart, Moment::Running];

/// One round: one or two things, each with its harm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) harms: Vec<(Thing, Harm)>,
    pub(super) moment: Moment,
}

impl fmt::Display for Thing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::ModulesDir => "the modules directory",
            Self::ValuesFile => "the common values file",
            Self::ModuleDirs => "the directories of three modules",
            Self::ChartFile => "a Chart.yaml",
            Self::Templates => "the templates of a module",
            Self::Template => "one template",
            Self::ModuleValues => "the values file of a module",
            Self::Hook => "a hook",
            Self::ConfigMap => "the ConfigMap",
            Self::State => "the state Secret",
        })
    }
}

impl fmt::Display for Harm {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Missing => "missing",
            Self::Empty => "empty",
            Self::Cut => "cut",
            Self::Unreadable => "unreadable",
            Self::Late => "late",
        })
    }
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let harms: Vec<_> = self
            .harms
            .iter()
            .map(|(thing, harm)| format!("{thing} {harm}"))
            .collect();
        let moment = match self.moment {
            Moment::AtStart => "at a start",
            Moment::Running => "while it runs",
        };
        write!(out, "{}, {moment}", harms.join(" and "))
    }
}

/// The cases of a campaign: first every single harm, shuffled, then random pairs.
pub(super) fn cases(draw: &mut Draw, number: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for thing in THINGS {
        for harm in HARMS {
            for moment in MOMENTS {
                let harms = vec![(thing, harm)];
                cases.push(Case { harms, moment });
            }
        }
    }
    draw.shuffle(&mut cases);
    cases.truncate(number);
    while cases.len() < number {
        let one = draw.below(THINGS.len());
        let other = (one + 1 + draw.below(THINGS.len() - 1)) % THINGS.len();
        // The inner thing is harmed first, because a harm of the outer thing can remove the inner thing.
        let (inner, outer) = (THINGS[one.max(other)], THINGS[one.min(other)]);
        let harms = [inner, outer].map(|thing| (thing, draw.pick(&HARMS)));
        let moment = draw.pick(&MOMENTS);
        let harms = harms.into();
        cases.push(Case { harms, moment });
    }
    cases
}
