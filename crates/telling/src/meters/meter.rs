//! The definition of a metric: name, unit, help, labels, type, and the programs that have it. Never its value.

use std::marker::PhantomData;

/// The unit of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// The metric counts objects or occurrences.
    Count,
    Seconds,
    Bytes,
}

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The metric only grows.
    Counter,
    /// The metric goes up and down.
    Gauge,
    /// Counts durations by size.
    Histogram,
    /// A gauge that is computed at each scrape.
    Sampled,
}

/// Connects a marker type to a type of metric.
pub trait Kept {
    /// The type of metric.
    const KIND: Kind;
}

/// Marks counters.
#[derive(Debug)]
pub enum Counter {}
/// Marks gauges.
#[derive(Debug)]
pub enum Gauge {}
/// Marks histograms of durations.
#[derive(Debug)]
pub enum Histogram {}
/// Marks gauges that are computed at each scrape.
#[derive(Debug)]
pub enum Sampled {}

impl Kept for Counter {
    const KIND: Kind = Kind::Counter;
}

impl Kept for Gauge {
    const KIND: Kind = Kind::Gauge;
}

impl Kept for Histogram {
    const KIND: Kind = Kind::Histogram;
}

impl Kept for Sampled {
    const KIND: Kind = Kind::Sampled;
}

/// The programs that have a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Face {
    /// Both programs have the metric.
    Any,
    /// The program with modules.
    Modules,
    /// The program for hooks without modules.
    HooksAlone,
}

impl Face {
    /// Whether the program `face` has a metric with this setting.
    pub fn is_of(self, face: Self) -> bool {
        self == Self::Any || self == face
    }
}

/// The position of the prefix in a metric's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrefixPlace {
    /// The prefix is at the front.
    First,
    /// The form for metrics that the original's vendor collects.
    Telemetry,
}

/// The upper bounds of most histograms according to the contract, in seconds.
pub const BUCKETS: [f64; 14] = [
    0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0,
];

/// A metric with `N` labels.
#[derive(Debug)]
pub struct Meter<K, const N: usize> {
    /// The name without prefix. It need not be unique: each program may have a metric of the same name with other
    /// labels.
    pub name: &'static str,
    /// The unit of the samples.
    pub unit: Unit,
    /// The help text.
    pub help: &'static str,
    /// The names of the metric's labels.
    pub labels: [&'static str; N],
    /// The programs that have the metric.
    pub face: Face,
    place: PrefixPlace,
    bounds: &'static [f64],
    kind: PhantomData<K>,
}

/// A meter without its type parameters, for lists.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The name without prefix.
    pub name: &'static str,
    /// The type of metric.
    pub kind: Kind,
    /// The unit of the samples.
    pub unit: Unit,
    /// The help text.
    pub help: &'static str,
    /// The names of the metric's labels.
    pub labels: &'static [&'static str],
    /// The programs that have the metric.
    pub face: Face,
    /// The position of the prefix in the metric's name.
    pub place: PrefixPlace,
    /// The bounds of a histogram.
    pub bounds: &'static [f64],
}

impl Row {
    /// The metric's name with its prefix.
    pub fn full_name(&self, prefix: &str) -> String {
        let Self { name, place, .. } = self;
        match place {
            PrefixPlace::First => format!("{prefix}{name}"),
            PrefixPlace::Telemetry => format!("d8_telemetry_{prefix}{name}"),
        }
    }
}

impl<K: Kept, const N: usize> Meter<K, N> {
    pub(super) const fn new(name: &'static str, unit: Unit, labels: [&'static str; N], help: &'static str) -> Self {
        Self {
            name,
            unit,
            help,
            labels,
            face: Face::Any,
            place: PrefixPlace::First,
            bounds: &BUCKETS,
            kind: PhantomData,
        }
    }

    pub(super) const fn of_modules(mut self) -> Self {
        self.face = Face::Modules;
        self
    }

    pub(super) const fn of_hooks_alone(mut self) -> Self {
        self.face = Face::HooksAlone;
        self
    }

    pub(super) const fn telemetry(mut self) -> Self {
        self.place = PrefixPlace::Telemetry;
        self
    }

    pub(super) const fn up_to(mut self, bounds: &'static [f64]) -> Self {
        self.bounds = bounds;
        self
    }

    /// The meter without its types.
    pub const fn row(&'static self) -> Row {
        Row {
            name: self.name,
            kind: K::KIND,
            unit: self.unit,
            help: self.help,
            labels: &self.labels,
            face: self.face,
            place: self.place,
            bounds: self.bounds,
        }
    }
}
