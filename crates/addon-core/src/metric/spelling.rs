//! Names that are one name for a scraper that does not read UTF-8: `a-b` and `a.b` are both `a_b` there.
//!
//! Must never refuse a name: the clash is only reported.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use super::Kind;
use super::escape::{Escaping, is_plain_metric};
use super::exposition::{by_precedence, lines_of};
use super::name::{LabelName, MetricName};

/// The limit of reported pairs: a hook that makes up names must fill neither the log nor the memory.
const TOLD: usize = 1000;

/// Two names that are escaped to the same one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum Alike {
    /// Of metrics.
    #[error(
        "metrics '{one}' and '{other}' are both '{shown}' for a scraper that does not accept names in UTF-8: it gets the series of \
         both if they are of one kind, and none twice"
    )]
    Metrics {
        /// The metric that was there.
        one: MetricName,
        /// The metric that begins.
        other: MetricName,
        /// The name of both.
        shown: String,
    },
    /// Of lines, where one is a histogram.
    #[error(
        "lines of the metrics '{one}' and '{other}' are both '{line}' for a scraper that does not accept names in UTF-8: it gets one of \
         the two metrics"
    )]
    Lines {
        /// The metric that was there.
        one: MetricName,
        /// The metric that begins.
        other: MetricName,
        /// The name that the lines begin with.
        line: String,
    },
    /// Of labels of a metric.
    #[error(
        "labels '{one}' and '{other}' of metric '{metric}' are both '{shown}' for a scraper that does not accept names in UTF-8: it \
         gets the first of the two values that is not empty"
    )]
    Labels {
        /// The metric.
        metric: MetricName,
        /// The label whose value counts first.
        one: LabelName,
        /// The other label.
        other: LabelName,
        /// The name of both.
        shown: String,
    },
}

/// The existing metrics by the names of their lines, and the reported pairs.
#[derive(Debug, Default)]
pub(super) struct Spellings {
    /// Without the metrics whose names need no escaping.
    escaped: BTreeMap<String, BTreeSet<MetricName>>,
    told: BTreeSet<Alike>,
}

impl Spellings {
    /// A metric begins. `there` knows the metric whose name needs no escaping and which has such lines.
    pub(super) fn begin(
        &mut self,
        name: &MetricName,
        kind: Kind,
        there: impl Fn(&str) -> Option<MetricName>,
    ) -> Option<Alike> {
        let shown = Escaping::default().metric(name.as_str());
        let plain = is_plain_metric(name.as_str());
        let mut met = None;
        for line in lines_of(&shown, kind) {
            let escaped = self.escaped.get(&line).and_then(BTreeSet::first).cloned();
            let one = if plain { escaped } else { there(&line).or(escaped) };
            met = met.or_else(|| Some((one?, line.clone())));
            if !plain {
                self.escaped.entry(line).or_default().insert(name.clone());
            }
        }
        let (one, line) = met?;
        let other = name.clone();
        let alike = if Escaping::default().metric(one.as_str()) == shown {
            let shown = shown.into_owned();
            Alike::Metrics { one, other, shown }
        } else {
            Alike::Lines { one, other, line }
        };
        self.tell(alike)
    }

    /// A metric has ended, of whatever kind it was.
    pub(super) fn end(&mut self, name: &MetricName) {
        if is_plain_metric(name.as_str()) {
            return;
        }
        let shown = Escaping::default().metric(name.as_str());
        for line in lines_of(&shown, Kind::Histogram) {
            if let Some(names) = self.escaped.get_mut(&line) {
                names.remove(name);
                if names.is_empty() {
                    self.escaped.remove(&line);
                }
            }
        }
    }

    /// A metric has these labels from now on.
    pub(super) fn labelled(&mut self, metric: &MetricName, labels: &BTreeSet<LabelName>) -> Vec<Alike> {
        let mut first: BTreeMap<String, &LabelName> = BTreeMap::new();
        let mut alike = Vec::new();
        for name in by_precedence(labels) {
            let shown = Escaping::default().label(name.as_str()).into_owned();
            if let Some(one) = first.get(&shown) {
                alike.extend(self.tell(Alike::Labels {
                    metric: metric.clone(),
                    one: LabelName::clone(one),
                    other: name.clone(),
                    shown,
                }));
            } else {
                first.insert(shown, name);
            }
        }
        alike
    }

    /// The pair, unless it is reported already.
    fn tell(&mut self, alike: Alike) -> Option<Alike> {
        let new = self.told.len() < TOLD && self.told.insert(alike.clone());
        new.then_some(alike)
    }
}
