//! Names that are equal for a scraper that does not read UTF-8: `a-b` and `a.b` are both shown as `a_b`.
//!
//! Must never refuse a name: the clash is only reported.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use super::Kind;
use super::escape::{Escaping, is_plain_metric};
use super::exposition::{by_precedence, lines_of};
use super::name::{LabelName, MetricName};

/// The limit of reported pairs: a hook that generates names must fill neither the log nor the memory.
const TOLD: usize = 1000;

/// Two names that are escaped to the same name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum Alike {
    /// Two metrics.
    #[error(
        "metrics '{one}' and '{other}' are both '{shown}' for a scraper that does not accept names in UTF-8: it gets the series of \
         both if they are of one kind, and none twice"
    )]
    Metrics {
        /// The metric that existed before the new metric.
        one: MetricName,
        /// The new metric.
        other: MetricName,
        /// The name that both metrics have after escaping.
        shown: String,
    },
    /// The lines of two metrics, one of which is a histogram.
    #[error(
        "lines of the metrics '{one}' and '{other}' are both '{line}' for a scraper that does not accept names in UTF-8: it gets one of \
         the two metrics"
    )]
    Lines {
        /// The metric that existed before the new metric.
        one: MetricName,
        /// The new metric.
        other: MetricName,
        /// The name at the beginning of the lines that both metrics have.
        line: String,
    },
    /// Two labels of a metric.
    #[error(
        "labels '{one}' and '{other}' of metric '{metric}' are both '{shown}' for a scraper that does not accept names in UTF-8: it \
         gets the first of the two values that is not empty"
    )]
    Labels {
        /// The metric.
        metric: MetricName,
        /// The label whose value takes precedence.
        one: LabelName,
        /// The label whose value is shown only if the value of `one` is empty.
        other: LabelName,
        /// The name that both labels have after escaping.
        shown: String,
    },
}

/// The existing metrics by the names of their lines, and the pairs that were reported.
#[derive(Debug, Default)]
pub(super) struct Spellings {
    /// The metrics by the names of their lines. Metrics whose names need no escaping are left out.
    escaped: BTreeMap<String, BTreeSet<MetricName>>,
    told: BTreeSet<Alike>,
}

impl Spellings {
    /// Adds a new metric. `there` finds, by the name of a line, an existing metric whose name needs no escaping.
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

    /// Removes a metric of any kind.
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

    /// Takes the labels of a metric, and returns the pairs that are equal after escaping.
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

    /// The pair, unless it was reported before.
    fn tell(&mut self, alike: Alike) -> Option<Alike> {
        let new = self.told.len() < TOLD && self.told.insert(alike.clone());
        new.then_some(alike)
    }
}
