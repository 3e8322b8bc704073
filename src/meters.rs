//! Our own metrics: a store that is written by name and scraped as text.
//!
//! Names, labels and help live in one table; a meter that is written with the wrong number of labels, or as the
//! wrong kind, does not compile. Must never decide anything, and never hold what the operator can be asked for:
//! queues and modules are handed in at each scrape.

pub mod process;
pub mod table;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use addon_core::operator::query::{ModuleReport, QueueReport};
use prometheus::core::Collector;
use prometheus::proto::MetricFamily;
use prometheus::{CounterVec, GaugeVec, HistogramOpts, HistogramVec, Opts, TextEncoder};

use self::table::{Counter, Gauge, Histogram, Kind, Meter, Sampled};

/// What a scrape answers with.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The upper bounds that the contract gives to every histogram of ours, in seconds.
const BUCKETS: [f64; 14] = [
    0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0,
];

/// What the loop knew at the moment of a scrape.
#[derive(Debug, Default)]
pub struct Sample {
    /// All queues.
    pub queues: Vec<QueueReport>,
    /// All modules.
    pub modules: Vec<ModuleReport>,
}

/// The values of every meter in the table.
pub struct Meters {
    prefix: String,
    counters: BTreeMap<&'static str, CounterVec>,
    gauges: BTreeMap<&'static str, GaugeVec>,
    histograms: BTreeMap<&'static str, HistogramVec>,
}

impl Meters {
    /// A store whose names begin with `prefix`.
    pub fn new(prefix: &str) -> Self {
        let mut meters = Self {
            prefix: prefix.to_owned(),
            counters: BTreeMap::new(),
            gauges: BTreeMap::new(),
            histograms: BTreeMap::new(),
        };
        for row in &table::ALL {
            let opts = Opts::new(format!("{prefix}{}", row.name), row.help);
            match row.kind {
                Kind::Counter => {
                    meters
                        .counters
                        .insert(row.name, CounterVec::new(opts, row.labels).expect(WELL_FORMED));
                }
                Kind::Gauge => {
                    meters
                        .gauges
                        .insert(row.name, GaugeVec::new(opts, row.labels).expect(WELL_FORMED));
                }
                Kind::Histogram => {
                    let opts = HistogramOpts::from(opts).buckets(BUCKETS.to_vec());
                    meters
                        .histograms
                        .insert(row.name, HistogramVec::new(opts, row.labels).expect(WELL_FORMED));
                }
                Kind::Sampled => {}
            }
        }
        meters
    }

    /// Adds to a counter; adding nothing makes its series exist.
    pub fn add<const N: usize>(&self, meter: &Meter<Counter, N>, labels: [&str; N], by: f64) {
        self.counters
            .get(meter.name)
            .expect(LISTED)
            .with_label_values(&labels)
            .inc_by(by);
    }

    /// Sets a gauge.
    pub fn set<const N: usize>(&self, meter: &Meter<Gauge, N>, labels: [&str; N], value: f64) {
        self.gauges
            .get(meter.name)
            .expect(LISTED)
            .with_label_values(&labels)
            .set(value);
    }

    /// Puts a duration into a histogram.
    pub fn observe<const N: usize>(&self, meter: &Meter<Histogram, N>, labels: [&str; N], took: Duration) {
        self.histograms
            .get(meter.name)
            .expect(LISTED)
            .with_label_values(&labels)
            .observe(took.as_secs_f64());
    }

    /// Everything as text, in the order of the names. Without a sample the series that come from the loop are absent.
    pub fn render(&self, sample: Option<&Sample>) -> String {
        let mut families: Vec<MetricFamily> = Vec::new();
        families.extend(self.counters.values().flat_map(Collector::collect));
        families.extend(self.gauges.values().flat_map(Collector::collect));
        families.extend(self.histograms.values().flat_map(Collector::collect));
        if let Some(sample) = sample {
            families.extend(self.sampled(sample));
        }
        families.extend(process::families());
        families.retain(|family| !family.get_metric().is_empty());
        families.sort_by(|a, b| a.name().cmp(b.name()));
        TextEncoder::new()
            .encode_to_string(&families)
            .expect("families without a name or series were left out")
    }

    fn sampled(&self, sample: &Sample) -> Vec<MetricFamily> {
        let heads = sample.queues.iter().filter_map(|queue| {
            let head = queue.tasks.first()?;
            Some(([queue.name.as_str(), &head.module, head.kind, &head.hook], 1.0))
        });
        let modules = sample.modules.iter().map(|module| {
            let enabled = if module.enabled { "true" } else { "false" };
            ([module.name.as_str(), enabled, "true"], 1.0)
        });
        let lengths = sample
            .queues
            .iter()
            .map(|queue| ([queue.name.as_str()], count(queue.tasks.len())));
        [
            self.family(&table::TASKS_QUEUE_LENGTH, lengths),
            self.family(&table::TASKS_QUEUE_HEAD_INFO, heads),
            self.family(&table::MM_MODULE_INFO, modules),
        ]
        .concat()
    }

    /// A family made for one scrape, so that no series outlives what it is about.
    fn family<'a, const N: usize>(
        &self,
        meter: &Meter<Sampled, N>,
        rows: impl Iterator<Item = ([&'a str; N], f64)>,
    ) -> Vec<MetricFamily> {
        let opts = Opts::new(format!("{}{}", self.prefix, meter.name), meter.help);
        let vec = GaugeVec::new(opts, &meter.labels).expect(WELL_FORMED);
        for (labels, value) in rows {
            vec.with_label_values(&labels).set(value);
        }
        vec.collect()
    }
}

impl fmt::Debug for Meters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meters")
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

/// Why a family of the table can always be made. The prefix is checked where settings are.
const WELL_FORMED: &str = "names and labels of the table are well-formed, and so is the prefix";
/// Why a meter is always found.
const LISTED: &str = "every meter is in the table, a test counts them";

/// A number of things as a sample value.
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
