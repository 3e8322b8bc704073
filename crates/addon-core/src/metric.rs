//! Metrics, our own and those of hooks: the families that hold the series, and the text that Prometheus reads.
//!
//! Metrics of hooks come from the operations in a hook's metrics file, and the store has the rules for these
//! operations. A file is parsed as a whole before any operation is applied. No series is shown twice, so that
//! Prometheus can read every page. Must never drop a sample without a report.

pub mod accept;
pub mod escape;
pub mod exposition;
pub mod family;
pub mod name;
mod parse;
mod spelling;
mod store;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use parse::{BadMetrics, Dropped, OperationPlace, Parsed, Problem, Useless, parse};
pub use spelling::Alike;
pub use store::{Applied, BUDGET, Lost, MAX_LABELS, Refusal, Store};

use name::{Group, LabelName, MetricName};

/// The labels of one series, by name.
pub type Labels = BTreeMap<LabelName, String>;

/// The upper bounds of a histogram without bounds of its own: the defaults of Prometheus clients.
pub const DEFAULT_BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// An operation on a metric that a hook asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// The group of the series. All series of a group are replaced together. A series without a group lasts until it is
    /// written again or expired.
    pub group: Option<Group>,
    /// The action.
    pub change: Change,
}

/// The actions of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// Removes the group's series; without a group, the hook's series without a group.
    Expire,
    /// Adds a sample to a series.
    Write {
        /// The metric.
        name: MetricName,
        /// The labels of the series.
        labels: Labels,
        /// The sample.
        sample: Sample,
    },
}

/// A sample for a series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Sample {
    /// Increases a counter by this amount, which is not negative.
    Add(Finite),
    /// Sets a gauge.
    Set(Finite),
    /// Adds a value to a histogram.
    Observe {
        /// The observed value.
        value: Finite,
        /// The bounds, used if this is the metric's first observation.
        buckets: Buckets,
    },
}

impl Sample {
    /// The kind of metric that takes the sample.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Add(_) => Kind::Counter,
            Self::Set(_) => Kind::Gauge,
            Self::Observe { .. } => Kind::Histogram,
        }
    }
}

/// The kind of a metric, fixed by its first sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A number that only grows.
    Counter,
    /// A number that goes up and down.
    Gauge,
    /// A distribution of values over ranges.
    Histogram,
}

impl Kind {
    /// The kind's name in the text format.
    pub fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A finite number. All numbers of JSON are finite.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Finite(f64);

impl Eq for Finite {}

impl Finite {
    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Finite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The error for an infinite or undefined number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a sample value must be a finite number")]
pub struct NotFinite;

impl TryFrom<f64> for Finite {
    type Error = NotFinite;

    fn try_from(float: f64) -> Result<Self, NotFinite> {
        if float.is_finite() {
            Ok(Self(float))
        } else {
            Err(NotFinite)
        }
    }
}

impl From<Finite> for f64 {
    fn from(finite: Finite) -> Self {
        finite.0
    }
}

/// The upper bounds of a histogram, each larger than the one before it. The bound `+Inf` is not listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Finite>", into = "Vec<Finite>")]
pub struct Buckets(Vec<Finite>);

/// The error for bounds that do not grow.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[error("bucket bounds must grow, but {next} follows {bound}")]
pub struct NotGrowing {
    /// A bound.
    pub bound: f64,
    /// The bound after `bound`, which is not greater.
    pub next: f64,
}

impl Buckets {
    /// The bounds, from the lowest on.
    pub fn bounds(&self) -> impl ExactSizeIterator<Item = f64> {
        self.0.iter().map(|bound| bound.0)
    }
}

impl TryFrom<Vec<Finite>> for Buckets {
    type Error = NotGrowing;

    /// An empty list stands for [`DEFAULT_BUCKETS`].
    fn try_from(bounds: Vec<Finite>) -> Result<Self, NotGrowing> {
        if bounds.is_empty() {
            return Ok(Self(DEFAULT_BUCKETS.map(Finite).to_vec()));
        }
        match bounds.windows(2).find(|pair| pair[0] >= pair[1]) {
            Some(pair) => Err(NotGrowing {
                bound: pair[0].0,
                next: pair[1].0,
            }),
            None => Ok(Self(bounds)),
        }
    }
}

impl From<Buckets> for Vec<Finite> {
    fn from(buckets: Buckets) -> Self {
        buckets.0
    }
}
