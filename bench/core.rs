//! `cargo bench -p addon-core --bench core`: the time of the core alone, without a process or an API server. Modules of one
//! order number with two hooks each come up, then the section of one of them is edited again and again.
//!
//! It only measures and is never a test.
#![expect(clippy::disallowed_types, reason = "this is about time, and nothing is decided")]

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use addon_core::hook::config::{HookConfig, HookKind};
use addon_core::module::{Inventory, Module};
use addon_core::operator::Operator;
use addon_core::operator::effect::{Effect, Job};
use addon_core::operator::event::{ConfigRead, Event, Finished, HookRan, SavedState, SyncAction, Synced};
use addon_core::operator::policy::Policy;
use addon_core::operator::provenance::Provenance;
use addon_core::operator::query::StatusQuery;
use clock::{Now, Tick};
use jiff::Timestamp;
use names::{HookName, ModuleName, Owner};
use serde_json::json;
use values_schema::schema::Schemas;

const MODULES: [usize; 4] = [10, 50, 200, 1000];
const EDITS: u32 = 100;

/// The configurations of each module's hooks: one before helm, and one that watches and has a schedule.
const HOOKS: [(&str, &str); 2] = [
    ("hooks/before", "configVersion: v1\nbeforeHelm: 10\n"),
    (
        "hooks/pods",
        "configVersion: v1\nkubernetes:\n- {name: pods, kind: Pod}\nschedule:\n- {name: daily, crontab: '0 3 * * *'}\n",
    ),
];

fn main() -> io::Result<()> {
    let mut out = io::stdout();
    writeln!(
        out,
        "| modules | start, ms | us an event | an edit until all is done, us |"
    )?;
    writeln!(out, "|---|---|---|---|")?;
    for count in MODULES {
        let mut world = World::new(count);
        let start = world.start();
        assert!(world.is_ready(), "the first converge has not ended");
        let (started, events) = (start.as_secs_f64(), world.events);
        let edits: Duration = (0..EDITS).map(|edit| world.edit(edit)).sum();
        writeln!(
            out,
            "| {count} | {:.1} | {:.1} | {:.0} |",
            started * 1e3,
            started * 1e6 / f64::from(events),
            edits.as_secs_f64() * 1e6 / f64::from(EDITS)
        )?;
    }
    Ok(())
}

/// A world in which every job succeeds, in the order in which the jobs began.
struct World {
    operator: Operator,
    inventory: Inventory,
    tick: Tick,
    events: u32,
    jobs: VecDeque<Job>,
    data: BTreeMap<String, String>,
    version: u64,
}

impl World {
    fn new(count: usize) -> Self {
        Self {
            operator: Operator::new(1, Policy::default()),
            inventory: Inventory {
                global_values: json!({}),
                global_schemas: Schemas::default(),
                has_global_hooks: false,
                modules: (0..count).map(module).collect(),
                values_files: BTreeMap::new(),
                complete: true,
            },
            tick: Tick::ZERO,
            events: 0,
            jobs: VecDeque::new(),
            data: (0..count).map(|at| (format!("module{at}"), "{}".to_owned())).collect(),
            version: 0,
        }
    }

    fn start(&mut self) -> Duration {
        let inventory = Event::InventoryChanged(self.inventory.clone());
        self.until_done(inventory) + self.read_config()
    }

    fn is_ready(&self) -> bool {
        self.operator.answer(&StatusQuery).ready
    }

    fn edit(&mut self, edit: u32) -> Duration {
        self.data.insert("module7".to_owned(), format!("edit: {edit}"));
        self.read_config()
    }

    fn read_config(&mut self) -> Duration {
        self.version += 1;
        let read = ConfigRead::Present {
            version: self.version,
            data: self.data.clone(),
            provenance: Provenance::default(),
        };
        self.until_done(Event::ConfigChanged(read))
    }

    /// Hands the event to the core, then the outcomes of all jobs that follow from it. Returns the time that the core took.
    fn until_done(&mut self, event: Event) -> Duration {
        let mut took = Duration::ZERO;
        let mut next = Some(event);
        while let Some(event) = next {
            self.events += 1;
            self.tick = self.tick + Duration::from_millis(1);
            let wall = Timestamp::UNIX_EPOCH + (self.tick - Tick::ZERO);
            let now = Now { tick: self.tick, wall };
            let began = Instant::now();
            self.operator.handle(now, event);
            while let Some(effect) = self.operator.poll_effect() {
                if let Effect::StartJob(job) = effect {
                    self.jobs.push_back(job);
                }
            }
            let _ = self.operator.poll_timeout();
            took += began.elapsed();
            next = self
                .jobs
                .pop_front()
                .map(|job| Event::JobFinished(outcome(&self.inventory, job)));
        }
        took
    }
}

fn module(at: usize) -> Module {
    let name = ModuleName::parse(&format!("module{at}")).expect("the name of a module");
    Module {
        enabled: Some(true),
        has_chart: true,
        has_hooks: true,
        ..Module::without_files(name, 10)
    }
}

fn hooks(owner: &Owner) -> Vec<(HookName, HookConfig)> {
    let hook = |(name, config)| {
        let name = HookName::parse(name).expect("the name of a hook");
        let config = HookConfig::parse(config, HookKind::from(owner)).expect("the configuration of a hook");
        (name, config)
    };
    HOOKS.into_iter().map(hook).collect()
}

/// The outcome of a job that succeeds.
fn outcome(inventory: &Inventory, job: Job) -> Finished {
    match job {
        Job::LoadState(ticket) => Finished::StateLoaded(ticket, Ok(SavedState::default())),
        Job::SaveState { ticket, .. } => Finished::StateSaved(ticket, Ok(Vec::new())),
        Job::SaveValuesFiles(_, ticket) => Finished::ValuesFilesSaved(ticket, Ok(())),
        Job::SaveGiven(_, ticket) => Finished::GivenSaved(ticket, Ok(())),
        Job::ReadDirectories(ticket) => Finished::DirectoriesRead(ticket, Ok(inventory.outline())),
        Job::ListReleases(ticket) => Finished::ReleasesListed(ticket, Ok(Vec::new())),
        Job::WatchReleases { ticket, .. } => Finished::ReleasesWatched(ticket, Ok(())),
        Job::ConfigureHooks(owner, ticket) => Finished::HooksConfigured(ticket, Ok(hooks(&owner))),
        Job::PublishWebhooks(_, ticket) => Finished::WebhooksPublished(ticket, Ok(())),
        Job::Vet(unvetted, ticket) => Finished::Vetted(ticket, Ok(unvetted.vet())),
        Job::StartMonitors { ticket, .. } => Finished::MonitorsStarted(ticket, Ok(())),
        Job::RunHook(_, ticket) => Finished::HookRan(ticket, Ok(HookRan::default())),
        Job::SyncRelease { ticket, .. } => {
            let synced = Synced::plain(SyncAction::Upgraded, 1);
            Finished::ReleaseSynced(ticket, Ok(synced))
        }
        job @ (Job::EnsureCrds { .. }
        | Job::EnsureConversions(..)
        | Job::JudgeEdit(..)
        | Job::RunEnabledScript { .. }
        | Job::DeleteRelease { .. }
        | Job::SaveConfig { .. }
        | Job::SettleSections(..)) => unreachable!("no module of this world needs {job:?}"),
    }
}
