//! What is harmed in which round. Each thing is harmed in each way alone before pairs are drawn.

use std::fmt;

/// What the operator lives from.
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

/// What is done to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Harm {
    Missing,
    Empty,
    /// The first half is left.
    Cut,
    /// A link to itself; garbage, where there are no files.
    Unreadable,
    /// Missing at first, and back while the operator runs.
    Late,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Moment {
    AtStart,
    /// And then again at a start.
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

/// One round: one thing, or two.
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

/// Splitmix: good enough to choose, small enough to read.
pub(super) struct Draw(u64);

impl Draw {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).unwrap()
    }

    /// So many rounds: all that can happen alone, shuffled, and then pairs.
    pub(super) fn cases(&mut self, number: usize) -> Vec<Case> {
        let mut cases = Vec::new();
        for thing in THINGS {
            for harm in HARMS {
                for moment in MOMENTS {
                    let harms = vec![(thing, harm)];
                    cases.push(Case { harms, moment });
                }
            }
        }
        for last in (1..cases.len()).rev() {
            cases.swap(last, self.below(last + 1));
        }
        cases.truncate(number);
        while cases.len() < number {
            let one = self.below(THINGS.len());
            let other = (one + 1 + self.below(THINGS.len() - 1)) % THINGS.len();
            // What holds the other is harmed after it.
            let (inner, outer) = (THINGS[one.max(other)], THINGS[one.min(other)]);
            let harms = [inner, outer].map(|thing| (thing, HARMS[self.below(HARMS.len())]));
            let moment = MOMENTS[self.below(MOMENTS.len())];
            let harms = harms.into();
            cases.push(Case { harms, moment });
        }
        cases
    }
}
