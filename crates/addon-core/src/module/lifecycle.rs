//! The states of one module. A state owns what it needs; what comes next follows from the state alone.

use crate::hook::config::Stage;
use crate::name::HookName;
use crate::values::Version;

/// Where a module stands between being switched on and being gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lifecycle {
    /// Nothing of it runs or is known.
    Disabled,
    /// Its hooks are asked for their configuration.
    Configuring,
    /// Its start-up hooks run; this one is next.
    Starting(usize),
    /// Its hooks before the release run; this one is next.
    BeforeHelm(usize),
    /// Its release is brought up to date.
    Releasing,
    /// Its hooks after the release run.
    AfterHelm {
        /// The version of its values before the first of them.
        released: Version,
        /// This one is next.
        next: usize,
    },
    /// The release is what the values of this version want.
    Ready {
        /// The version of its values that was released.
        released: Version,
    },
    /// It is being removed.
    Deleting(Deletion),
}

/// How far a removal has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deletion {
    /// Its hooks are asked for their configuration, which was not needed before.
    Configuring,
    /// Its hooks before the removal run; this one is next.
    BeforeDelete(usize),
    /// Its release is uninstalled.
    Uninstalling,
    /// Its hooks after the removal run; this one is next.
    AfterDelete(usize),
}

/// The hooks of a module by what they are bound to, each list in the order in which it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookOrder {
    /// `onStartup`.
    pub startup: Vec<HookName>,
    /// `beforeHelm`.
    pub before_helm: Vec<HookName>,
    /// `afterHelm`.
    pub after_helm: Vec<HookName>,
    /// `beforeDeleteHelm`.
    pub before_delete: Vec<HookName>,
    /// `afterDeleteHelm`.
    pub after_delete: Vec<HookName>,
}

/// What must be done next. One step is one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Ask the hooks for their configuration.
    Configure,
    /// Run this hook for this stage.
    Hook(Stage, HookName),
    /// Bring the release up to date.
    Release,
    /// Uninstall the release.
    Uninstall,
    /// Nothing: the run has reached its end.
    Done,
}

impl Step {
    /// The step in words, for people.
    pub fn describe(&self) -> &'static str {
        match self {
            Self::Configure => "ask its hooks for their configuration",
            Self::Hook(stage, _) => stage.key(),
            Self::Release => "bring its release up to date",
            Self::Uninstall => "uninstall its release",
            Self::Done => "nothing",
        }
    }
}

/// What a run must know beside the state.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    /// There is something for helm to install.
    pub has_chart: bool,
    /// A release of ours exists.
    pub has_release: bool,
    /// The version of the module's values now.
    pub version: Version,
}

impl Lifecycle {
    /// The state in words, for people.
    pub fn describe(&self) -> &'static str {
        match self {
            Self::Disabled => "Disabled",
            Self::Configuring => "Configuring",
            Self::Starting(_) => "Starting",
            Self::BeforeHelm(_) => "BeforeHelm",
            Self::Releasing => "Releasing",
            Self::AfterHelm { .. } => "AfterHelm",
            Self::Ready { .. } => "Ready",
            Self::Deleting(_) => "Deleting",
        }
    }

    /// Its schedules may fire: start-up is over and nobody removes it.
    pub fn takes_events(&self) -> bool {
        matches!(
            self,
            Self::BeforeHelm(_) | Self::Releasing | Self::AfterHelm { .. } | Self::Ready { .. }
        )
    }

    /// A run begins, or begins again after a failure: start-up is never repeated, the rest starts over.
    pub fn begin_run(&mut self) {
        match self {
            Self::Disabled | Self::Deleting(_) => *self = Self::Configuring,
            Self::Configuring | Self::Starting(_) => {}
            Self::BeforeHelm(_) | Self::Releasing | Self::AfterHelm { .. } | Self::Ready { .. } => {
                *self = Self::BeforeHelm(0);
            }
        }
    }

    /// A removal begins, or begins again after a failure.
    pub fn begin_delete(&mut self, hooks_known: bool) {
        match self {
            Self::Deleting(_) => {}
            Self::Disabled | Self::Configuring if !hooks_known => *self = Self::Deleting(Deletion::Configuring),
            Self::Disabled
            | Self::Configuring
            | Self::Starting(_)
            | Self::BeforeHelm(_)
            | Self::Releasing
            | Self::AfterHelm { .. }
            | Self::Ready { .. } => *self = Self::Deleting(Deletion::BeforeDelete(0)),
        }
    }

    /// Passes over what has nothing to do and says what comes next.
    pub fn step(&mut self, hooks: &HookOrder, facts: Facts) -> Step {
        loop {
            let hook = |list: &[HookName], next: usize| list.get(next).cloned();
            match self {
                Self::Disabled | Self::Ready { .. } => return Step::Done,
                Self::Configuring => return Step::Configure,
                Self::Starting(next) => match hook(&hooks.startup, *next) {
                    Some(name) => return Step::Hook(Stage::OnStartup, name),
                    None => *self = Self::BeforeHelm(0),
                },
                Self::BeforeHelm(next) => match hook(&hooks.before_helm, *next) {
                    Some(name) => return Step::Hook(Stage::BeforeHelm, name),
                    None => *self = Self::Releasing,
                },
                Self::Releasing if facts.has_chart => return Step::Release,
                Self::Releasing => {
                    *self = Self::AfterHelm {
                        released: facts.version,
                        next: 0,
                    }
                }
                Self::AfterHelm { released, next } => match hook(&hooks.after_helm, *next) {
                    Some(name) => return Step::Hook(Stage::AfterHelm, name),
                    None => *self = Self::Ready { released: *released },
                },
                Self::Deleting(stage) => match stage {
                    Deletion::Configuring => return Step::Configure,
                    Deletion::BeforeDelete(next) if facts.has_release => match hook(&hooks.before_delete, *next) {
                        Some(name) => return Step::Hook(Stage::BeforeDeleteHelm, name),
                        None => *stage = Deletion::Uninstalling,
                    },
                    Deletion::BeforeDelete(_) => *stage = Deletion::Uninstalling,
                    Deletion::Uninstalling if facts.has_release => return Step::Uninstall,
                    Deletion::Uninstalling => *stage = Deletion::AfterDelete(0),
                    Deletion::AfterDelete(next) => match hook(&hooks.after_delete, *next) {
                        Some(name) => return Step::Hook(Stage::AfterDeleteHelm, name),
                        None => *self = Self::Disabled,
                    },
                },
            }
        }
    }

    /// The step that [`Lifecycle::step`] named went well. `version` is the one the release was made of.
    pub fn succeeded(&mut self, version: Version) {
        match self {
            Self::Configuring => *self = Self::Starting(0),
            Self::Starting(next) | Self::BeforeHelm(next) | Self::AfterHelm { next, .. } => *next += 1,
            Self::Releasing => {
                *self = Self::AfterHelm {
                    released: version,
                    next: 0,
                }
            }
            Self::Deleting(stage) => match stage {
                Deletion::Configuring => *stage = Deletion::BeforeDelete(0),
                Deletion::BeforeDelete(next) | Deletion::AfterDelete(next) => *next += 1,
                Deletion::Uninstalling => *stage = Deletion::AfterDelete(0),
            },
            Self::Disabled | Self::Ready { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> HookName {
        HookName::parse(text).unwrap()
    }

    fn order() -> HookOrder {
        HookOrder {
            startup: vec![name("s")],
            before_helm: vec![name("b1"), name("b2")],
            after_helm: vec![name("a")],
            before_delete: vec![name("bd")],
            after_delete: vec![name("ad")],
        }
    }

    fn drive(state: &mut Lifecycle, hooks: &HookOrder, facts: Facts) -> Vec<Step> {
        let mut steps = Vec::new();
        loop {
            let step = state.step(hooks, facts);
            if step == Step::Done {
                return steps;
            }
            steps.push(step);
            state.succeeded(facts.version);
        }
    }

    fn chart() -> Facts {
        Facts {
            has_chart: true,
            has_release: true,
            version: Version::default(),
        }
    }

    fn ready() -> Lifecycle {
        Lifecycle::Ready {
            released: Version::default(),
        }
    }

    #[test]
    fn a_first_run_does_everything_and_a_second_leaves_out_start_up() {
        let mut state = Lifecycle::Disabled;
        state.begin_run();
        let before = [
            Step::Hook(Stage::BeforeHelm, name("b1")),
            Step::Hook(Stage::BeforeHelm, name("b2")),
        ];
        let after = [Step::Release, Step::Hook(Stage::AfterHelm, name("a"))];
        let start = [Step::Configure, Step::Hook(Stage::OnStartup, name("s"))];
        assert_eq!(
            drive(&mut state, &order(), chart()),
            [&start[..], &before, &after].concat()
        );
        assert_eq!(state, ready());
        state.begin_run();
        assert_eq!(drive(&mut state, &order(), chart()), [&before[..], &after].concat());
    }

    #[test]
    fn a_module_without_chart_and_hooks_is_ready_at_once() {
        let mut state = Lifecycle::Starting(0);
        assert_eq!(
            drive(
                &mut state,
                &HookOrder::default(),
                Facts {
                    has_chart: false,
                    ..chart()
                }
            ),
            []
        );
        assert_eq!(state, ready());
    }

    #[test]
    fn a_failure_after_the_release_goes_back_before_it() {
        let mut state = Lifecycle::AfterHelm {
            released: Version::default(),
            next: 0,
        };
        state.begin_run();
        assert_eq!(state, Lifecycle::BeforeHelm(0));
        let mut state = Lifecycle::Starting(1);
        state.begin_run();
        assert_eq!(
            state,
            Lifecycle::Starting(1),
            "start-up hooks that succeeded are not run again"
        );
    }

    #[test]
    fn a_removal_without_a_release_runs_only_the_hooks_after_it() {
        let mut state = ready();
        state.begin_delete(true);
        let steps = drive(
            &mut state,
            &order(),
            Facts {
                has_release: false,
                ..chart()
            },
        );
        assert_eq!(steps, [Step::Hook(Stage::AfterDeleteHelm, name("ad"))]);
        assert_eq!(state, Lifecycle::Disabled);
    }

    #[test]
    fn a_removal_decided_while_we_were_down_asks_for_the_hooks_first() {
        let mut state = Lifecycle::Disabled;
        state.begin_delete(false);
        let steps = drive(&mut state, &order(), chart());
        assert_eq!(
            steps,
            [
                Step::Configure,
                Step::Hook(Stage::BeforeDeleteHelm, name("bd")),
                Step::Uninstall,
                Step::Hook(Stage::AfterDeleteHelm, name("ad")),
            ]
        );
    }

    #[test]
    fn a_module_switched_on_again_after_its_removal_failed_starts_from_the_beginning() {
        let mut state = Lifecycle::Deleting(Deletion::Uninstalling);
        state.begin_run();
        assert_eq!(state, Lifecycle::Configuring);
    }
}
