//! One life of the operator, from start to exit or kill, with what can be seen of it from outside.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use addon_core::operator::Operator;
use addon_core::operator::effect::{Effect, Job, JobId};
use addon_core::operator::event::{Drift, Event, Finished};
use addon_core::operator::policy::{Edits, Leadership, Mode, OnTrial, Policy};
use addon_core::operator::preview::{Preview, PreviewQuery};
use addon_core::operator::query::{
    ModuleReport, ModulesQuery, MonitorsQuery, PatchesQuery, QueueReport, QueuesQuery, Secrets, SourcesQuery, Status,
    StatusQuery, ValuesQuery, Waiting,
};
use addon_core::release::ConfigTrace;
use clock::{Now, Tick};
use jiff::Timestamp;
use names::{MonitorId, Owner};
use serde_json::Value;

use crate::monitors::Monitors;
use crate::setup::Setup;
use crate::sources::Named;
use crate::told::Told;
use crate::world::{CONFIG_MAP, module_name};

/// The wall clock at the beginning of the world, in seconds since 1970.
const EPOCH: i64 = 1_767_225_600;

/// A running job.
#[derive(Debug, Clone)]
pub struct Running {
    /// The job.
    pub job: Job,
    /// Whether the job was asked to end early.
    pub cancelled: bool,
    /// Whether the job exceeds its time limit.
    pub late: bool,
    /// Whether a standby started the job as a preparation, so that it is in no lane.
    pub warms: bool,
    /// The last changes in the snapshots that the job has read, if it has read them.
    pub read: Option<BTreeMap<MonitorId, u64>>,
    /// The job's outcome, if the world has changed already and only the report to the operator is missing.
    pub finished: Option<Finished>,
}

/// One life of the simulated operator.
#[derive(Debug)]
pub struct Life {
    /// The number of lives before this life.
    pub number: u64,
    /// The time at which the life began, in microseconds of the world.
    pub born: u64,
    operator: Operator,
    /// A second operator that gets the same events and must put out the same effects.
    twin: Option<Operator>,
    /// The running jobs.
    pub running: BTreeMap<JobId, Running>,
    /// The runs of global hooks that hung in the queue of the modules, and went on in a lane of their own.
    pub moved: BTreeSet<JobId>,
    /// The monitors.
    pub monitors: Monitors,
    /// The events of this life, and the conclusions from them.
    pub told: Told,
    /// The last report about each release that was listed or added since.
    pub lookout: BTreeMap<String, Option<Drift>>,
    /// The newest revision of each release whose health was drawn.
    pub healths: BTreeMap<String, u32>,
    /// The revisions that took an upgrade back, and for which a person was found.
    pub mended: BTreeSet<(String, u32)>,
    /// Whether the releases are watched.
    pub watches_releases: bool,
    /// The releases at the start, and whether each was ours.
    pub listed: BTreeMap<String, bool>,
    /// The traces of the ConfigMap on our releases.
    pub traces: BTreeMap<String, ConfigTrace>,
    /// The seconds by which the wall clock was set.
    pub skew: i64,
    /// Whether the clock was set since the last event.
    pub clock_was_set: bool,
    /// Whether the operator leads.
    pub leads: bool,
    /// Whether the operator is on trial, as far as the operator knows.
    pub on_trial: OnTrial,
    /// Whether another replica leads, so that the operator has to end at once.
    pub deposed: bool,
    /// The time at which the operator was asked to stop, in microseconds of the world.
    pub stopping: Option<u64>,
    /// Whether the operator has put out `Exit`.
    pub exited: bool,
}

/// All answers of an operator at one moment.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The status.
    pub status: Status,
    /// The queues.
    pub queues: Vec<QueueReport>,
    /// The modules.
    pub modules: BTreeMap<String, ModuleReport>,
    /// The effective values of `global` and of each module.
    pub values: BTreeMap<String, Value>,
    /// The patches of hooks, of `global` and of each module.
    pub patches: BTreeMap<String, Value>,
    /// The time at which the operator wants to be woken, in microseconds of the world, and the reason.
    pub timeout: Option<(u64, Waiting)>,
}

impl Seen {
    /// Whether the operator waits only for the next time of a schedule, or of a comparison of its webhooks.
    pub fn is_looked_after(&self) -> bool {
        let publishes = |step: &str| step == "publish the webhooks";
        match &self.timeout {
            Some((_, Waiting::Schedule { .. })) => true,
            Some((_, Waiting::Step(step))) if publishes(step) => {
                !self.status.waiting.iter().any(|line| line.starts_with(step.as_str()))
            }
            _ => false,
        }
    }

    /// Whether the head of a queue waits for a time. An earlier timer may hide that time in `timeout`.
    pub fn sleeps(&self) -> bool {
        self.queues.iter().any(|queue| queue.status.starts_with("sleep"))
    }

    /// Whether a module waits for the health of another one. An earlier timer may hide the end of that wait in `timeout`.
    pub fn heals(&self) -> bool {
        let mut modules = self.modules.values();
        modules.any(|module| module.enabled && module.waits_for.contains("to be healthy"))
    }
}

/// The moment of the world on the clocks of a life.
pub fn moment(clock: u64, born: u64, skew: i64) -> Now {
    let micros = i64::try_from(clock).unwrap_or(i64::MAX);
    let wall = Timestamp::from_microsecond((EPOCH + skew) * 1_000_000 + micros).unwrap_or(Timestamp::MAX);
    Now {
        tick: Tick::from_micros(clock - born),
        wall,
    }
}

impl Life {
    /// A life that knows nothing yet.
    pub fn new(seed: u64, number: u64, born: u64, setup: &Setup, on_trial: OnTrial, with_twin: bool) -> Self {
        let policy = Policy {
            mode: if setup.alone { Mode::Hooks } else { Mode::Addons },
            leadership: if setup.elected {
                Leadership::Elected
            } else {
                Leadership::Alone
            },
            on_trial,
            strict_order: setup.strict,
            hook_slots: setup.hook_slots.max(1),
            review_slots: setup.review_slots.max(1),
            edits: if setup.edits && !setup.alone {
                Edits::Always {
                    config_map: CONFIG_MAP.to_owned(),
                }
            } else {
                Edits::Unasked
            },
            helm_slots: setup.helm_slots.max(1),
            patience: setup.patience.map_or(Policy::default().patience, Duration::from_secs),
            watches_releases: setup.restores,
            ignore_release: setup.ignore.clone(),
            ..Policy::default()
        };
        let seed = seed.wrapping_add(number);
        Self {
            number,
            born,
            twin: with_twin.then(|| Operator::new(seed, policy.clone())),
            operator: Operator::new(seed, policy),
            running: BTreeMap::new(),
            moved: BTreeSet::new(),
            monitors: Monitors::default(),
            told: Told::default(),
            lookout: BTreeMap::new(),
            healths: BTreeMap::new(),
            mended: BTreeSet::new(),
            watches_releases: false,
            listed: BTreeMap::new(),
            traces: BTreeMap::new(),
            skew: 0,
            clock_was_set: false,
            leads: !setup.elected,
            on_trial,
            deposed: false,
            stopping: None,
            exited: false,
        }
    }

    /// Passes an event in, and returns its effects. An error if the twin's effects differ.
    pub fn handle(&mut self, clock: u64, event: &Event) -> Result<Vec<Effect>, String> {
        let now = moment(clock, self.born, self.skew);
        let effects = drain(&mut self.operator, now, event);
        if let Some(twin) = &mut self.twin {
            let other = drain(twin, now, event);
            let (one, other) = (format!("{effects:?}"), format!("{other:?}"));
            if one != other || self.operator.poll_timeout() != twin.poll_timeout() {
                return Err(format!("{one}\nand the second time\n{other}"));
            }
        }
        Ok(effects)
    }

    /// Whether the job is a step of a global hook in a lane of its own.
    pub fn is_aside(&self, job: &Job) -> bool {
        job.is_aside() || self.moved.contains(&job.id())
    }

    /// The time at which the operator wants to be woken, in microseconds of the world, and the reason.
    pub fn timeout(&self) -> Option<(u64, Waiting)> {
        let (tick, waiting) = self.operator.poll_timeout()?;
        Some((self.born + tick.as_micros(), waiting))
    }

    /// A copy of the operator, for a preview.
    pub fn preview(&self) -> Preview {
        self.operator.answer(&PreviewQuery)
    }

    /// Asks for all answers.
    pub fn look(&self) -> Seen {
        let status = self.operator.answer(&StatusQuery);
        let queues = self.operator.answer(&QueuesQuery);
        let modules = self.operator.answer(&ModulesQuery);
        let mut values = BTreeMap::from([("global".to_owned(), self.values(None))]);
        let mut patches = BTreeMap::from([("global".to_owned(), self.patches(None))]);
        for module in &modules {
            values.insert(module.name.clone(), self.values(Some(&module.name)));
            patches.insert(module.name.clone(), self.patches(Some(&module.name)));
        }
        let modules = modules
            .into_iter()
            .map(|module| (module.name.clone(), module))
            .collect();
        Seen {
            status,
            queues,
            modules,
            values,
            patches,
            timeout: self.timeout(),
        }
    }

    /// The ids of all monitors that the operator names in its answers.
    pub fn named_monitors(&self) -> BTreeSet<MonitorId> {
        let modules = self
            .look()
            .modules
            .into_keys()
            .map(|name| Owner::Module(module_name(&name)));
        let owners = modules.chain([Owner::Global]);
        let answers = owners.map(|owner| self.operator.answer(&MonitorsQuery(owner)));
        let bindings = answers
            .flat_map(Result::unwrap_or_default)
            .flat_map(|(_, bindings)| bindings);
        bindings.map(|(_, id)| id).collect()
    }

    /// The applied sources of modules, each with its order number; `None` while they are not known.
    pub fn sources(&self) -> Option<Named> {
        let named = self.operator.answer(&SourcesQuery)?.into_iter();
        Some(
            named
                .map(|(name, named)| (name.to_string(), named.source.order))
                .collect(),
        )
    }

    /// The number of the naming of each source. A source that is named again after it was gone has a higher number.
    pub fn namings(&self) -> BTreeMap<String, u64> {
        let named = self.operator.answer(&SourcesQuery).into_iter().flatten();
        named.map(|(name, named)| (name.to_string(), named.naming)).collect()
    }

    fn patches(&self, module: Option<&str>) -> Value {
        let query = PatchesQuery {
            module: module.map(module_name),
            secrets: Secrets::Shown,
        };
        self.operator.answer(&query).unwrap_or_default()
    }

    fn values(&self, module: Option<&str>) -> Value {
        let query = ValuesQuery {
            module: module.map(module_name),
            with_global: false,
            secrets: Secrets::Shown,
        };
        self.operator.answer(&query).unwrap_or_default()
    }
}

fn drain(operator: &mut Operator, now: Now, event: &Event) -> Vec<Effect> {
    operator.handle(now, event.clone());
    std::iter::from_fn(|| operator.poll_effect()).collect()
}
