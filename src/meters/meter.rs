//! The description of a metric: name, unit, help, labels, kind, and the programs that have it. Never its value.

use std::marker::PhantomData;

/// The unit of the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Things or occurrences.
    Count,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
}

/// How a meter is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts durations by size.
    Histogram,
    /// A gauge that is taken anew at each scrape.
    Sampled,
}

/// Ties a marker type to the way its meters are kept.
pub trait Kept {
    /// The way.
    const KIND: Kind;
}

/// Marks meters that only grow.
#[derive(Debug)]
pub enum Counter {}
/// Marks meters that go up and down.
#[derive(Debug)]
pub enum Gauge {}
/// Marks meters that count durations by size.
#[derive(Debug)]
pub enum Histogram {}
/// Marks gauges that are taken anew at each scrape.
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

/// Which of the two programs that we are has a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Face {
    /// Both.
    Any,
    /// The one with modules.
    Modules,
    /// The one that serves hooks alone.
    HooksAlone,
}

impl Face {
    /// Whether a metric of this kind is shown where `face` is ours.
    pub fn is_of(self, face: Self) -> bool {
        self == Self::Any || self == face
    }
}

/// Where the prefix goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrefixPlace {
    /// In front.
    First,
    /// With the prefix of metrics that the original's vendor collects.
    Telemetry,
}

/// The upper bounds that the contract gives to most histograms of ours, in seconds.
pub const BUCKETS: [f64; 14] = [
    0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0,
];

/// One metric with `N` labels.
#[derive(Debug)]
pub struct Meter<K, const N: usize> {
    /// The name without prefix. Not unique: both programs may have one of that name, with other labels.
    pub name: &'static str,
    /// The unit of the samples.
    pub unit: Unit,
    /// One sentence for people.
    pub help: &'static str,
    /// The names of its labels.
    pub labels: [&'static str; N],
    /// The programs that have it.
    pub face: Face,
    place: PrefixPlace,
    bounds: &'static [f64],
    kind: PhantomData<K>,
}

/// A meter without its types, for lists.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The name without prefix.
    pub name: &'static str,
    /// How it is kept.
    pub kind: Kind,
    /// The unit of the samples.
    pub unit: Unit,
    /// One sentence for people.
    pub help: &'static str,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// The programs that have it.
    pub face: Face,
    /// Where the prefix goes.
    pub place: PrefixPlace,
    /// The bounds of a histogram.
    pub bounds: &'static [f64],
}

impl Row {
    /// The whole name.
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
