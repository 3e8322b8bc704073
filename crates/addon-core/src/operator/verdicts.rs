//! The verdicts, which decide which modules run. A round asks the enabled scripts, one after another.
//!
//! If a script fails, its module stays as it is until the script answers. If a script takes long, its module waits for
//! the answer and the other modules go on.

mod late;
mod round;
mod switching;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use self::late::{Asked, Given};
pub(super) use self::round::{Inputs, Round};
pub(super) use self::switching::Kept;
use clock::Tick;
use names::ModuleName;

use self::switching::Switching;
use super::config::Config;
use super::modules::Modules;
use super::supply::Supply;
use super::task::Reason;
use crate::failure::Failure;
use crate::module::enabling::{Extenders, Opinions, Verdict};

/// The verdicts, and the round that finds new ones.
#[derive(Debug, Clone)]
pub(super) struct Verdicts {
    /// The sources of verdicts that are used.
    extenders: Extenders,
    /// The flags of modules that global hooks have set.
    dynamic: BTreeMap<ModuleName, bool>,
    /// The last verdict on each module.
    given: BTreeMap<ModuleName, Verdict>,
    stage: Stage,
    /// The reason of the round: the last change of an input. The first converge does not use it.
    cause: Option<Reason>,
    /// Modules to run when the round is over, because their sections changed.
    touched: BTreeSet<ModuleName>,
    failures: u32,
    retry: Option<Tick>,
    /// The number of changes of the inputs of verdicts. An answer to older inputs does not count.
    inputs: u64,
    /// The running scripts.
    running: BTreeMap<ModuleName, Asked>,
    /// The late answers of scripts, which the round had gone on without.
    answers: BTreeMap<ModuleName, Given>,
    /// The failures of scripts since their last answer: how often in a row, and the last error.
    failed: BTreeMap<ModuleName, (u32, Failure)>,
    switching: Switching,
}

#[derive(Debug, Clone, Default)]
enum Stage {
    /// An input of verdicts changed.
    #[default]
    Stale,
    /// A round is under way. `left` are the modules that have no verdict in this round yet. The script of the first of
    /// these modules may be running.
    Asking {
        left: VecDeque<ModuleName>,
        undecided: BTreeSet<ModuleName>,
    },
    /// The round is over. Every module has a verdict, except the modules whose scripts failed.
    Known { undecided: BTreeSet<ModuleName> },
}

/// The state of the verdicts.
impl Verdicts {
    /// The state before the first round, with the sources of verdicts.
    pub(super) fn new(extenders: Extenders) -> Self {
        Self {
            extenders,
            dynamic: BTreeMap::new(),
            given: BTreeMap::new(),
            stage: Stage::default(),
            cause: None,
            touched: BTreeSet::new(),
            failures: 0,
            retry: None,
            inputs: 0,
            running: BTreeMap::new(),
            answers: BTreeMap::new(),
            failed: BTreeMap::new(),
            switching: Switching::default(),
        }
    }

    /// The last verdict on a module.
    pub(super) fn on(&self, module: &ModuleName) -> Option<&Verdict> {
        self.given.get(module)
    }

    /// The modules that the verdicts switch on. A module without a verdict stays as it is.
    pub(super) fn wanted(&self) -> BTreeSet<ModuleName> {
        let wanted = self.given.iter().filter(|(_, verdict)| verdict.enabled);
        wanted.map(|(name, _)| name.clone()).collect()
    }

    /// The modules that the last verdicts switch off, by name.
    pub(super) fn refused(&self) -> impl Iterator<Item = (&ModuleName, &Verdict)> {
        self.given.iter().filter(|(_, verdict)| !verdict.enabled)
    }

    /// The decisions of all sources except the enabled script.
    pub(super) fn opinions(
        &self,
        modules: &Modules,
        config: &Config,
        supply: &Supply,
        name: &ModuleName,
    ) -> Opinions<'_> {
        let Some(unit) = modules.get(name) else {
            return Opinions::none(&self.extenders);
        };
        let of_end = supply.is_withdrawn(name).then_some(false);
        Opinions {
            extenders: &self.extenders,
            fixed: unit.found().enabled,
            is_supplied: supply.names(name),
            dynamic: self.dynamic.get(name).copied(),
            config: of_end.or_else(|| config.flag(name)),
        }
    }

    /// Whether a round of verdicts is under way.
    pub(super) fn is_asking(&self) -> bool {
        matches!(self.stage, Stage::Asking { .. })
    }

    /// Whether the last round is over and no input has changed since.
    pub(super) fn is_known(&self) -> bool {
        matches!(self.stage, Stage::Known { .. })
    }

    /// Modules whose scripts failed or have not answered yet.
    pub(super) fn undecided(&self) -> impl Iterator<Item = &ModuleName> {
        let undecided = match &self.stage {
            Stage::Known { undecided } | Stage::Asking { undecided, .. } => Some(undecided),
            Stage::Stale => None,
        };
        undecided.into_iter().flatten()
    }

    /// Whether the module's script failed or has not answered yet.
    pub(super) fn is_undecided(&self, module: &ModuleName) -> bool {
        match &self.stage {
            Stage::Known { undecided } | Stage::Asking { undecided, .. } => undecided.contains(module),
            Stage::Stale => false,
        }
    }

    /// The time at which failed scripts are asked again. A running round ends first: otherwise a script that fails
    /// often would keep the round from ever reaching a slow script.
    fn next_round(&self) -> Option<Tick> {
        self.retry.filter(|_| !self.is_asking())
    }

    /// The last failure of the module's script: how often in a row, the error, and the time of the next attempt.
    pub(super) fn script_failure(&self, module: &ModuleName) -> Option<(u32, &Failure, Option<Tick>)> {
        let (failures, failure) = self.failed.get(module)?;
        Some((*failures, failure, self.retry))
    }

    /// The hold of a module that programs have switched too often, if another verdict waits for its end.
    pub(super) fn kept(&self, module: &ModuleName, now: Tick) -> Option<Kept> {
        self.switching.kept(module, now)
    }

    /// The start of the module's running script.
    pub(super) fn script_runs_since(&self, module: &ModuleName) -> Option<Tick> {
        self.running.get(module).map(|asked| asked.since)
    }
}

/// Changes of the inputs.
impl Verdicts {
    /// Notes the flag that a hook set or cleared. True if it differs from the flag before.
    pub(super) fn hear_hook(&mut self, module: &ModuleName, opinion: Option<bool>) -> bool {
        let before = match opinion {
            Some(opinion) => self.dynamic.insert(module.clone(), opinion),
            None => self.dynamic.remove(module),
        };
        before != opinion
    }

    /// Makes the next converge begin a new round.
    pub(super) fn forget(&mut self) {
        self.stage = Stage::Stale;
        self.retry = None;
    }

    /// Notes that an input of verdicts changed.
    pub(super) fn grow_stale(&mut self, cause: Reason) {
        self.forget();
        self.failures = 0;
        self.inputs += 1;
        self.answers.clear();
        self.cause = Some(cause);
    }

    /// Leaves the changed modules to a converge, which runs all modules after its own round.
    pub(super) fn leave_to_converge(&mut self) {
        self.touched.clear();
    }

    /// Makes these modules run when the round is over, because their own values changed.
    pub(super) fn touch(&mut self, modules: BTreeSet<ModuleName>) {
        self.touched.extend(modules);
    }

    /// Begins a round because sections changed, unless one is under way.
    pub(super) fn begin_for_sections(&mut self, modules: &Modules) {
        if !self.is_asking() {
            self.cause = Some(Reason::ConfigChanged);
            self.begin(modules);
        }
    }

    /// Begins a round.
    pub(super) fn begin(&mut self, modules: &Modules) {
        self.stage = Stage::Asking {
            left: modules.in_order().into(),
            undecided: BTreeSet::new(),
        };
    }
}
