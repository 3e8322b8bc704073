//! The operator's own metrics: a store that is written by typed meters and rendered as text; and the metrics of hooks.
//!
//! Names, labels and help texts are in one table. Writing a meter with a wrong number of labels, or as the wrong type,
//! does not compile. Must never decide anything, and never store a state that the operator value can report: queues and
//! modules are passed in at each scrape.

pub mod bindings;
pub mod hooks;
mod kept;
pub mod meter;
pub mod minute;
pub mod process;
pub mod queues;
pub mod requests;
pub mod table;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use addon_core::metric::exposition;
use addon_core::metric::family::SeriesChange;
use addon_core::operator::health::Health;
use addon_core::operator::query::{HeldRemoval, ModuleReport, QueueReport};
use addon_core::release::kinds::InUse;
use report::secrets::Secrets;

use self::hooks::HookMetrics;
use self::kept::{Kept, Shown};
use self::meter::{Counter, Face, Gauge, Histogram, Kind, Meter, Sampled};
use self::minute::LastMinute;
use self::queues::QueueActions;
use crate::telemetry::Spools;

/// The state of the loop at the moment of a scrape.
#[derive(Debug, Default)]
pub struct Sample {
    pub queues: Vec<QueueReport>,
    pub modules: Vec<ModuleReport>,
    /// The removals that are held.
    pub held: Vec<HeldRemoval>,
    /// Releases whose configuration is lost.
    pub config_lost: Vec<String>,
    /// Outdated kinds in releases.
    pub outdated: Vec<InUse>,
    /// The objects of modules that are not healthy.
    pub unhealthy: Vec<Unhealthy>,
}

/// An object of a module that is not healthy.
#[derive(Debug, Clone)]
pub struct Unhealthy {
    pub module: String,
    pub kind: String,
    /// Empty for a cluster-wide object.
    pub namespace: String,
    pub name: String,
    /// `RollingOut` or `Failed`.
    pub reason: &'static str,
}

/// The values of all metrics of this program.
pub struct Meters {
    prefix: String,
    face: Face,
    queue_actions: QueueActions,
    kept: BTreeMap<&'static str, Kept>,
    hooks: HookMetrics,
    secrets: Secrets,
    spools: Option<Spools>,
    requests: LastMinute,
}

impl Meters {
    /// The metrics of the program with modules; names begin with `prefix`.
    pub fn new(prefix: &str) -> Self {
        Self::of(prefix, Face::Modules)
    }

    /// The metrics of the program for hooks without modules.
    pub fn of_hooks_alone(prefix: &str) -> Self {
        Self::of(prefix, Face::HooksAlone)
    }

    /// Leaves out the metrics of [`Meters::queue_action`].
    #[must_use]
    pub fn without_queue_actions(mut self) -> Self {
        self.queue_actions = QueueActions::NotCounted;
        self
    }

    /// Masks these secrets on all pages.
    #[must_use]
    pub fn hiding(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    /// Adds the number of lost log records.
    #[must_use]
    pub fn told_by(self, spools: Spools) -> Self {
        Self {
            spools: Some(spools),
            ..self
        }
    }

    fn of(prefix: &str, face: Face) -> Self {
        let rows = table::all().into_iter().filter(|row| row.face.is_of(face));
        let kept = rows.filter(|row| row.kind != Kind::Sampled);
        Self {
            prefix: prefix.to_owned(),
            face,
            queue_actions: QueueActions::Counted,
            kept: kept.map(|row| (row.name, Kept::of(row, prefix))).collect(),
            hooks: HookMetrics::default(),
            secrets: Secrets::default(),
            spools: None,
            requests: LastMinute::default(),
        }
    }

    /// The requests to the API server.
    pub fn requests(&self) -> &LastMinute {
        &self.requests
    }

    /// Adds to a counter. Adding zero creates the series. Ignored if this program does not have the counter.
    pub fn add<const N: usize>(&self, meter: &Meter<Counter, N>, labels: [&str; N], by: f64) {
        if let Some(kept) = self.kept(meter) {
            kept.take(&labels, SeriesChange::By(by));
        }
    }

    /// Sets a gauge, if this program has it.
    pub fn set<const N: usize>(&self, meter: &Meter<Gauge, N>, labels: [&str; N], value: f64) {
        if let Some(kept) = self.kept(meter) {
            kept.take(&labels, SeriesChange::To(value));
        }
    }

    /// Adds to a gauge, if this program has it.
    pub fn raise<const N: usize>(&self, meter: &Meter<Gauge, N>, labels: [&str; N], by: f64) {
        if let Some(kept) = self.kept(meter) {
            kept.take(&labels, SeriesChange::By(by));
        }
    }

    /// Removes a series of a gauge, because its subject is gone.
    pub fn end<const N: usize>(&self, meter: &Meter<Gauge, N>, labels: [&str; N]) {
        if let Some(kept) = self.kept(meter) {
            kept.end(&labels);
        }
    }

    /// Adds a duration to a histogram, if this program has it.
    pub fn observe<const N: usize>(&self, meter: &Meter<Histogram, N>, labels: [&str; N], took: Duration) {
        if let Some(kept) = self.kept(meter) {
            kept.take(&labels, SeriesChange::Of(took.as_secs_f64()));
        }
    }

    fn kept<K, const N: usize>(&self, meter: &Meter<K, N>) -> Option<&Kept> {
        let ours = meter.face.is_of(self.face);
        ours.then(|| self.kept.get(meter.name).expect(LISTED))
    }

    /// Renders all of the operator's own metrics, sorted by name and labels. Without a sample the series from the loop
    /// are left out.
    pub fn render(&self, sample: Option<&Sample>) -> String {
        match self.spools.as_ref().map_or(0, Spools::take_lost) {
            0 => {}
            lost => self.add(&table::LOG_RECORDS_LOST, [], count(lost)),
        }
        let mut page: BTreeMap<String, String> = BTreeMap::new();
        page.extend(self.kept.values().map(Kept::shown));
        let sampled = sample.into_iter().flat_map(|sample| self.sampled(sample));
        for Shown { name, help, family } in sampled.chain(process::shown()) {
            let mut text = String::new();
            exposition::own(&mut text, &name, help, &family);
            page.insert(name, text);
        }
        page.into_values().collect()
    }

    fn sampled(&self, sample: &Sample) -> Vec<Shown> {
        let heads = sample.queues.iter().filter_map(|queue| {
            let head = queue.tasks.first()?;
            Some(([queue.name.as_str(), &head.module, head.kind, &head.hook], 1.0))
        });
        let modules = sample.modules.iter().map(|module| {
            let enabled = if module.enabled { "true" } else { "false" };
            ([module.name.as_str(), enabled, "true"], 1.0)
        });
        let in_maintenance = sample.modules.iter().filter(|module| module.in_maintenance);
        let in_maintenance = in_maintenance.map(|module| ([module.name.as_str(), "NoResourceReconciliation"], 1.0));
        let failing = sample.modules.iter().filter(|module| module.fails);
        let failing = failing.map(|module| ([module.name.as_str()], 1.0));
        let late = sample.modules.iter().filter(|module| module.late);
        let late = late.map(|module| ([module.name.as_str()], 1.0));
        let upgrade_held = sample.modules.iter().filter(|module| module.upgrade_held);
        let upgrade_held = upgrade_held.map(|module| ([module.name.as_str()], 1.0));
        let health = sample.modules.iter().filter(|module| module.health != Health::Unknown);
        let health = health.map(|module| ([module.name.as_str(), module.health.as_str()], 1.0));
        let waiting = sample.modules.iter().filter_map(|module| {
            let need = module.needs.as_deref()?;
            Some(([module.name.as_str(), need], 1.0))
        });
        let held = sample.held.iter().map(|held| ([held.release.as_str()], 1.0));
        let lost = sample.config_lost.iter().map(|release| ([release.as_str()], 1.0));
        let outdated = sample.outdated.iter().map(|used| {
            let (module, kind) = (used.module.as_str(), &used.kind);
            let labels = [module, kind.api_version.as_str(), &kind.kind, used.state.word()];
            (labels, count(used.objects))
        });
        let unhealthy = sample.unhealthy.iter().map(|object| {
            let Unhealthy { module, kind, .. } = object;
            let labels = [module.as_str(), kind, &object.namespace, &object.name, object.reason];
            (labels, 1.0)
        });
        let lengths = sample
            .queues
            .iter()
            .map(|queue| ([queue.name.as_str()], count(queue.tasks.len())));
        [
            self.family(&table::TASKS_QUEUE_LENGTH, lengths),
            self.family(&table::TASKS_QUEUE_HEAD_INFO, heads),
            self.family(&table::TASKS_QUEUE_BY_HOOK, queues::crowds(&sample.queues)),
            self.family(&table::MM_MODULE_INFO, modules),
            self.family(&table::MM_MODULE_MAINTENANCE, in_maintenance),
            self.family(&table::CONFIGURATION_LOST, lost),
            self.family(&table::MODULE_FAILING, failing),
            self.family(&table::health::MODULE_HEALTH, health),
            self.family(&table::MODULE_LATE, late),
            self.family(&table::MODULE_OUTDATED_OBJECTS, outdated),
            self.family(&table::health::MODULE_UPGRADE_HELD, upgrade_held),
            self.family(&table::health::MODULE_WAITS_FOR_NEED, waiting),
            self.family(&table::health::OBJECT_UNHEALTHY, unhealthy),
            self.family(&table::REMOVAL_HELD, held),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// A metric family for one scrape, so that no series outlives its subject.
    fn family<'a, const N: usize>(
        &self,
        meter: &'static Meter<Sampled, N>,
        rows: impl Iterator<Item = ([&'a str; N], f64)>,
    ) -> Option<Shown> {
        let ours = meter.face.is_of(self.face);
        ours.then(|| {
            let kept = Kept::of(&meter.row(), &self.prefix);
            for (labels, value) in rows {
                kept.take(&labels, SeriesChange::To(value));
            }
            kept.into()
        })
    }
}

impl fmt::Debug for Meters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meters")
            .field("prefix", &self.prefix)
            .field("face", &self.face)
            .finish_non_exhaustive()
    }
}

/// The message for a lookup in the table that cannot fail.
const LISTED: &str = "every meter is in the table, a test counts them";

/// A number as a sample value.
pub fn count(n: usize) -> f64 {
    u32::try_from(n).map_or(f64::from(u32::MAX), f64::from)
}

/// A number of bytes as a sample value; exact up to 8 PiB.
#[expect(clippy::cast_precision_loss, reason = "a sample value is a float by definition")]
pub fn bytes(n: u64) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests;
