//! Which modules are to run: asks the enabled scripts, one after another, and compares with what runs.
//!
//! A script that fails decides nothing: its module stays as it is until the script answers. One that takes its time is
//! waited for, but not by the other modules: they go on without it, and its answer counts when it comes.

mod late;
mod round;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use self::late::{Asked, Given};
pub(super) use self::round::{Inputs, Round};
use super::config::Config;
use super::modules::Modules;
use super::task::Reason;
use crate::failure::Failure;
use crate::module::enabling::{Extenders, Opinions, Verdict};
use crate::name::ModuleName;
use crate::time::Tick;

/// The verdicts, and the round that finds them.
#[derive(Debug)]
pub(super) struct Verdicts {
    /// The sources that count.
    extenders: Extenders,
    /// What global hooks said about modules' flags.
    dynamic: BTreeMap<ModuleName, bool>,
    /// The last verdict on each module.
    given: BTreeMap<ModuleName, Verdict>,
    stage: Stage,
    /// What changed since the last one; the first converge's reason never applies.
    cause: Option<Reason>,
    /// Modules to run when it is over, because their sections changed.
    touched: BTreeSet<ModuleName>,
    failures: u32,
    retry: Option<Tick>,
    /// Counts the changes of what verdicts depend on: an answer to what was is none to what is.
    inputs: u64,
    /// Scripts that run.
    running: BTreeMap<ModuleName, Asked>,
    /// What scripts answered for which nobody waited any more.
    answers: BTreeMap<ModuleName, Given>,
    /// Why scripts failed that have not answered since, and how often in a row.
    failed: BTreeMap<ModuleName, (u32, Failure)>,
}

#[derive(Debug, Default)]
enum Stage {
    /// Something that verdicts depend on changed.
    #[default]
    Stale,
    /// These modules have still to be looked at; a script of the first may be running.
    Asking {
        left: VecDeque<ModuleName>,
        undecided: BTreeSet<ModuleName>,
    },
    /// Every module has a verdict, except these, whose scripts failed.
    Known { undecided: BTreeSet<ModuleName> },
}

/// What is known.
impl Verdicts {
    /// There is none yet; these sources count.
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
        }
    }

    /// The last verdict on a module.
    pub(super) fn on(&self, module: &ModuleName) -> Option<&Verdict> {
        self.given.get(module)
    }

    /// The modules that are to run by their verdicts. One that was never decided stays as it is.
    pub(super) fn wanted(&self) -> BTreeSet<ModuleName> {
        let wanted = self.given.iter().filter(|(_, verdict)| verdict.enabled);
        wanted.map(|(name, _)| name.clone()).collect()
    }

    /// What the ordinary sources say about a module.
    pub(super) fn opinions(&self, modules: &Modules, config: &Config, name: &ModuleName) -> Opinions<'_> {
        let Some(unit) = modules.get(name) else {
            return Opinions::none(&self.extenders);
        };
        Opinions {
            extenders: &self.extenders,
            fixed: unit.found().enabled,
            dynamic: self.dynamic.get(name).copied(),
            config: config.flag(name),
        }
    }

    /// A round is under way.
    pub(super) fn is_asking(&self) -> bool {
        matches!(self.stage, Stage::Asking { .. })
    }

    /// There are verdicts, and nothing has changed since.
    pub(super) fn is_known(&self) -> bool {
        matches!(self.stage, Stage::Known { .. })
    }

    /// Modules whose scripts failed or have yet to answer.
    pub(super) fn undecided(&self) -> impl Iterator<Item = &ModuleName> {
        let undecided = match &self.stage {
            Stage::Known { undecided } | Stage::Asking { undecided, .. } => Some(undecided),
            Stage::Stale => None,
        };
        undecided.into_iter().flatten()
    }

    /// The module's script failed, or has yet to answer.
    pub(super) fn is_undecided(&self, module: &ModuleName) -> bool {
        match &self.stage {
            Stage::Known { undecided } | Stage::Asking { undecided, .. } => undecided.contains(module),
            Stage::Stale => false,
        }
    }

    /// When scripts that failed are asked again. A round goes to its end first, lest one that fails keeps a slow one from
    /// ever being heard.
    fn next_round(&self) -> Option<Tick> {
        self.retry.filter(|_| !self.is_asking())
    }

    /// Why the module's script failed the last time, how often in a row, and when it is asked again.
    pub(super) fn script_failure(&self, module: &ModuleName) -> Option<(u32, &Failure, Option<Tick>)> {
        let (failures, failure) = self.failed.get(module)?;
        Some((*failures, failure, self.retry))
    }

    /// Since when the module's script has been running.
    pub(super) fn script_runs_since(&self, module: &ModuleName) -> Option<Tick> {
        self.running.get(module).map(|asked| asked.since)
    }
}

/// What changes.
impl Verdicts {
    /// A hook said this about a module's flag. True if it had said something else before.
    pub(super) fn hear_hook(&mut self, module: &ModuleName, opinion: Option<bool>) -> bool {
        let before = match opinion {
            Some(opinion) => self.dynamic.insert(module.clone(), opinion),
            None => self.dynamic.remove(module),
        };
        before != opinion
    }

    /// The next converge asks again.
    pub(super) fn forget(&mut self) {
        self.stage = Stage::Stale;
        self.retry = None;
    }

    /// Something that verdicts depend on changed.
    pub(super) fn grow_stale(&mut self, cause: Reason) {
        self.forget();
        self.failures = 0;
        self.inputs += 1;
        self.answers.clear();
        self.cause = Some(cause);
    }

    /// A converge asks by itself, and runs all modules afterwards.
    pub(super) fn leave_to_converge(&mut self) {
        self.touched.clear();
    }

    /// These modules run when the round is over, as their own values changed.
    pub(super) fn touch(&mut self, modules: BTreeSet<ModuleName>) {
        self.touched.extend(modules);
    }

    /// Has the round look at these modules for the sake of their sections alone, unless one is under way.
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
