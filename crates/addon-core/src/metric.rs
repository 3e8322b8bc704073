//! Metrics, ours and those of hooks: the families that hold all series, and the text that Prometheus reads.
//!
//! For hooks also the operations that a file asks for, and the store with the rules for them. A file is read whole before any
//! of it counts, and no series is shown twice, so a page is always text that Prometheus reads. Must never drop a sample
//! without saying so.

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

/// The upper bounds of a histogram without its own: the defaults of Prometheus clients.
pub const DEFAULT_BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// One thing that a hook asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// The series that come and go with this one; without a group a series lasts until it is written again.
    pub group: Option<Group>,
    /// The action.
    pub change: Change,
}

/// The actions of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// The group's series end; without a group, those that the hook wrote without one.
    Expire,
    /// One series takes a sample.
    Write {
        /// The metric.
        name: MetricName,
        /// The series of it.
        labels: Labels,
        /// The sample.
        sample: Sample,
    },
}

/// The new sample of a series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Sample {
    /// A counter grows by this much, which is not negative.
    Add(Finite),
    /// A gauge becomes this.
    Set(Finite),
    /// A histogram counts this.
    Observe {
        /// The observed value.
        value: Finite,
        /// The bounds, should this be the metric's first observation.
        buckets: Buckets,
    },
}

impl Sample {
    /// The kind of metric that takes it.
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
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts values by size.
    Histogram,
}

impl Kind {
    /// Its name in the text that Prometheus reads.
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

/// A number that is neither infinite nor undefined, as all numbers of JSON are.
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

/// A float that is no number.
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

/// The upper bounds of a histogram, each larger than the one before it; the one for everything is not listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Finite>", into = "Vec<Finite>")]
pub struct Buckets(Vec<Finite>);

/// Bounds that no histogram can have.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[error("bucket bounds must grow, but {next} follows {bound}")]
pub struct NotGrowing {
    /// A bound.
    pub bound: f64,
    /// The one after it.
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

    /// No bounds at all stand for [`DEFAULT_BUCKETS`].
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
