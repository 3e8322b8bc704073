//! What the operator knows about each module beside its values: how far it has come, and in which order its hooks run.

use serde_json::Value;

use super::Operator;
use super::event::SyncAction;
use crate::module::Module;
use crate::module::enabling::Verdict;
use crate::module::lifecycle::{Facts, HookOrder, Lifecycle, Step};
use crate::name::{ModuleName, Owner};
use crate::time::Tick;
use crate::values::section::Entry;
use crate::values::{Globals, Version};

/// One module.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) found: Module,
    pub(super) life: Lifecycle,
    pub(super) order: HookOrder,
    /// Its hooks have been configured since it was last switched on.
    pub(super) hooks_known: bool,
    /// Its CRDs have been put into the cluster since it was last switched on.
    pub(super) crds_ensured: bool,
    /// The conversion webhooks of its chart have been put into the cluster since a converge took it up.
    pub(super) conversions_ensured: bool,
    /// It is among those that the last converge took up.
    pub(super) enabled: bool,
    pub(super) verdict: Option<Verdict>,
    /// What a global hook said about its flag.
    pub(super) dynamic: Option<bool>,
    pub(super) turn: Turn,
    /// The run under way, or the one that is tried again.
    pub(super) run: Option<Run>,
    pub(super) last_failure: Option<String>,
    /// Failures of its runs or of its removal since it last succeeded, also of such that were given up for a new one.
    pub(super) failures: u32,
    /// Its upgrade waits for a person.
    pub(super) upgrade_held: bool,
    /// The version of its values of which it is known that helm may get them.
    pub(super) fits: Option<Version>,
    /// What the ConfigMap has to say about its section once the run under way, or its removal, has ended.
    pub(super) deferred: Option<Entry<Value>>,
}

/// A run of a module, from its first step to its end: what is true of it alone.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) began: Tick,
    /// The global values as this attempt found them: it sees one state of them from start to end.
    pub(super) globals: Globals,
    /// The step of which a job was started last.
    pub(super) step: Step,
    pub(super) release: Release,
}

/// How far a run has come with the release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Release {
    /// Its job has not been started.
    ToCome,
    /// Its job is under way.
    UnderWay {
        began: Tick,
        /// The version of the module's values that it was given.
        version: Version,
    },
    /// It is as the values want it.
    Synced { action: SyncAction, version: Version },
}

impl Release {
    /// The version of the values that it is made of.
    pub(super) fn version(self) -> Version {
        match self {
            Self::ToCome => Version::default(),
            Self::UnderWay { version, .. } | Self::Synced { version, .. } => version,
        }
    }

    /// The work that it needed, once that is known.
    pub(super) fn action(self) -> Option<SyncAction> {
        match self {
            Self::ToCome | Self::UnderWay { .. } => None,
            Self::Synced { action, .. } => Some(action),
        }
    }
}

impl Run {
    pub(super) fn begin(now: Tick, globals: Globals) -> Self {
        Self {
            began: now,
            globals,
            step: Step::Done,
            release: Release::ToCome,
        }
    }

    /// An attempt failed. The next one sees the global values of now. Says which step failed, and since when helm was at work.
    pub(super) fn fail(&mut self, globals: Globals) -> (Step, Option<Tick>) {
        self.globals = globals;
        match self.release {
            Release::UnderWay { began, .. } => {
                self.release = Release::ToCome;
                (Step::Release, Some(began))
            }
            Release::ToCome | Release::Synced { .. } => (self.step.clone(), None),
        }
    }
}

/// How a module stands in the current converge, or stood when the last one ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Turn {
    /// It does not take part.
    Out,
    /// Modules before it, or those it needs, have not passed.
    Waiting,
    /// Its run is in its lane.
    Running,
    /// It succeeded.
    Passed,
    /// It failed at least once and is retried in its own lane.
    Failed,
    /// Its run hangs, and counts when it ends.
    Late,
    /// It cannot run until something else changes, which is named.
    Held(Hold),
}

/// Why an enabled module cannot run for now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hold {
    pub(super) reason: String,
    /// The module without whose success it cannot run.
    pub(super) need: Option<ModuleName>,
    /// What it says of itself is at fault, not what becomes of others.
    pub(super) is_own_fault: bool,
    /// It goes on when the trial of our version is passed.
    pub(super) is_for_trial: bool,
}

impl Turn {
    /// Those behind it need not wait any longer.
    pub(super) fn is_over(&self, strict: bool) -> bool {
        match self {
            Self::Out | Self::Passed => true,
            Self::Waiting | Self::Running => false,
            Self::Failed | Self::Late | Self::Held(_) => !strict,
        }
    }

    /// It goes on when the trial of our version is passed.
    pub(super) fn waits_for_trial(&self) -> bool {
        self.hold().is_some_and(|hold| hold.is_for_trial)
    }

    /// It takes part and has not been let run.
    pub(super) fn is_to_come(&self) -> bool {
        match self {
            Self::Waiting | Self::Held(_) => true,
            Self::Out | Self::Running | Self::Passed | Self::Failed | Self::Late => false,
        }
    }

    /// It takes part and has not succeeded.
    pub(super) fn is_lacking(&self) -> bool {
        match self {
            Self::Failed | Self::Late | Self::Held(_) => true,
            Self::Out | Self::Waiting | Self::Running | Self::Passed => false,
        }
    }

    /// A converge has to get through it: it waits for its run, or the run is in its lane.
    pub(super) fn is_awaited(&self) -> bool {
        match self {
            Self::Waiting | Self::Running => true,
            Self::Out | Self::Passed | Self::Failed | Self::Late | Self::Held(_) => false,
        }
    }

    /// A run is in its lane and has not failed.
    pub(super) fn is_under_way(&self) -> bool {
        match self {
            Self::Running | Self::Late => true,
            Self::Out | Self::Waiting | Self::Passed | Self::Failed | Self::Held(_) => false,
        }
    }

    /// The reason for which it cannot run.
    pub(super) fn hold(&self) -> Option<&Hold> {
        match self {
            Self::Held(hold) => Some(hold),
            Self::Out | Self::Waiting | Self::Running | Self::Passed | Self::Failed | Self::Late => None,
        }
    }

    /// It cannot run as it is declared.
    pub(super) fn is_own_fault(&self) -> bool {
        self.hold().is_some_and(|hold| hold.is_own_fault)
    }
}

impl Unit {
    pub(super) fn new(found: Module) -> Self {
        Self {
            found,
            life: Lifecycle::Disabled,
            order: HookOrder::default(),
            hooks_known: false,
            crds_ensured: false,
            conversions_ensured: false,
            enabled: false,
            verdict: None,
            dynamic: None,
            turn: Turn::Out,
            run: None,
            last_failure: None,
            failures: 0,
            upgrade_held: false,
            fits: None,
            deferred: None,
        }
    }

    /// The release of the run under way is as the values want it.
    pub(super) fn released(&mut self, action: SyncAction) {
        let Some(run) = &mut self.run else { return };
        let version = run.release.version();
        run.release = Release::Synced { action, version };
        self.fits = self.found.has_chart.then_some(version);
    }

    /// There are CRDs that nobody has looked after since it was switched on.
    pub(super) fn needs_crds(&self) -> bool {
        self.found.has_crds && !self.crds_ensured
    }

    /// Its run waits for something that failed and is tried again elsewhere: nobody else waits for it.
    pub(super) fn held_up(&mut self, report: String) {
        if self.turn.is_under_way() {
            self.turn = Turn::Failed;
        }
        self.last_failure = Some(report);
    }
}

impl Operator {
    /// What a module's next step depends on, beside its state.
    pub(super) fn facts(&self, module: &ModuleName) -> Facts {
        let unit = self.modules.get(module);
        let has_chart = unit.is_some_and(|unit| unit.found.has_chart);
        let needs_crds = unit.is_some_and(Unit::needs_crds);
        let needs_conversions = unit.is_some_and(|unit| self.needs_conversions(unit));
        let has_release = self.removal.is_ours(module.as_str());
        Facts {
            has_chart,
            needs_crds,
            needs_conversions,
            has_release,
            version: self.values.version(&Owner::Module(module.clone())),
        }
    }

    /// The modules that take part and have failed, hang or are held.
    pub(super) fn lacking(&self) -> Vec<ModuleName> {
        let units = self.modules.values();
        let lacking = units.filter(|unit| unit.enabled && unit.turn.is_lacking());
        lacking.map(|unit| unit.found.name.clone()).collect()
    }

    /// All module names by order number and name.
    pub(super) fn modules_in_order(&self) -> Vec<ModuleName> {
        let mut names: Vec<_> = self
            .modules
            .values()
            .map(|unit| (unit.found.order, &unit.found.name))
            .collect();
        names.sort();
        names.into_iter().map(|(_, name)| name.clone()).collect()
    }

    /// Puts the hooks of a module into the order in which they run.
    pub(super) fn order_hooks(&mut self, owner: &Owner) {
        let Owner::Module(name) = owner else { return };
        let order = self.bindings.order(owner);
        if let Some(unit) = self.modules.get_mut(name) {
            unit.order = order;
            unit.hooks_known = true;
        }
    }
}
