//! One metric: its kind, its labels and its series. Used for our own metrics and those of hooks.
//!
//! Must never hold a series twice, and never decide which samples are allowed.

use std::collections::{BTreeMap, BTreeSet};

use super::name::LabelName;
use super::{Buckets, Kind, Labels, Sample};

/// One metric. `W` describes the writer of a series.
#[derive(Debug)]
pub struct Family<W = ()> {
    shape: Shape,
    /// The labels, sorted and without duplicates.
    labels: Vec<LabelName>,
    series: BTreeMap<Values, Series<W>>,
}

/// The kind of a metric, with the bounds of a histogram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// A counter.
    Counter,
    /// A gauge.
    Gauge,
    /// A histogram with the given bounds.
    Histogram(Buckets),
}

/// The label values of a series: one for each label of the metric, in their order, each ended by a NUL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Values(Box<str>);

#[derive(Debug)]
pub(super) struct Series<W> {
    pub(super) writer: W,
    pub(super) reading: Reading,
}

/// The current value of a series.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    /// The value of a counter or a gauge.
    Number(f64),
    /// The distribution of a histogram.
    Spread {
        /// For each bound, the number of values that are at most this bound and greater than the bound before.
        counts: Vec<u64>,
        /// The number of observed values.
        total: u64,
        /// The sum of the values.
        sum: f64,
    },
}

/// A change of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SeriesChange {
    /// Adds this amount to a counter or a gauge.
    By(f64),
    /// Sets a gauge.
    To(f64),
    /// Adds a value to a histogram.
    Of(f64),
}

impl Values {
    /// Joins values. A NUL in a value, which no page can show, is replaced by another character.
    pub fn of<'v>(values: impl Iterator<Item = &'v str> + Clone) -> Self {
        let mut joined = String::with_capacity(values.clone().map(|value| value.len() + 1).sum());
        for value in values {
            if value.contains('\0') {
                joined.push_str(&value.replace('\0', "\u{fffd}"));
            } else {
                joined.push_str(value);
            }
            joined.push('\0');
        }
        Self(joined.into())
    }

    /// The values, one for each label.
    pub fn iter(&self) -> impl Iterator<Item = &str> + Clone {
        self.0.split_terminator('\0')
    }
}

impl<W> Family<W> {
    /// A metric without a series.
    pub fn new(shape: Shape, labels: impl IntoIterator<Item = LabelName>) -> Self {
        let labels: BTreeSet<LabelName> = labels.into_iter().collect();
        Self {
            shape,
            labels: labels.into_iter().collect(),
            series: BTreeMap::new(),
        }
    }

    /// The kind.
    pub fn kind(&self) -> Kind {
        self.shape.kind()
    }

    /// The bounds of a histogram; empty for other kinds.
    pub fn bounds(&self) -> impl Iterator<Item = f64> {
        let buckets = match &self.shape {
            Shape::Counter | Shape::Gauge => None,
            Shape::Histogram(buckets) => Some(buckets.bounds()),
        };
        buckets.into_iter().flatten()
    }

    /// The labels in their order. Every series is shown with all of them.
    pub fn labels(&self) -> &[LabelName] {
        &self.labels
    }

    /// Whether the metric has no series.
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// The series in the order of their values.
    pub fn series(&self) -> impl Iterator<Item = (&Values, &Reading)> {
        self.series.iter().map(|(values, series)| (values, &series.reading))
    }

    /// Removes a series.
    pub fn end(&mut self, values: &Values) {
        self.series.remove(values);
    }

    /// Removes the series for which `stays` is false.
    pub(super) fn retain(&mut self, mut stays: impl FnMut(&W) -> bool) {
        self.series.retain(|_, series| stays(&series.writer));
    }

    /// The values of a series with these labels. A label of the metric that is missing in `labels` gets an empty value.
    /// `None` if `labels` has a label that the metric lacks.
    pub(super) fn values_of(&self, labels: &Labels) -> Option<Values> {
        let known = |name: &LabelName| self.labels.binary_search(name).is_ok();
        let all = labels.keys().all(known);
        all.then(|| {
            Values::of(
                self.labels
                    .iter()
                    .map(|name| labels.get(name).map_or("", String::as_str)),
            )
        })
    }

    /// The series with the given label values.
    pub(super) fn get(&self, values: &Values) -> Option<&Series<W>> {
        self.series.get(values)
    }

    /// Removes and returns the series with the given label values.
    pub(super) fn remove(&mut self, values: &Values) -> Option<Series<W>> {
        self.series.remove(values)
    }

    /// Inserts a series and applies a change to it. Without a reading, the series starts at zero.
    pub(super) fn put(&mut self, values: Values, writer: W, reading: Option<Reading>, step: SeriesChange) {
        let mut reading = reading.unwrap_or_else(|| self.shape.blank());
        reading.take(step, &self.shape);
        self.series.insert(values, Series { writer, reading });
    }

    /// The labels for which a series has a value that is not empty.
    pub(super) fn used_labels(&self) -> BTreeSet<LabelName> {
        let mut used = vec![false; self.labels.len()];
        for values in self.series.keys() {
            for (used, value) in used.iter_mut().zip(values.iter()) {
                *used |= !value.is_empty();
            }
        }
        let named = self.labels.iter().zip(used);
        named.filter(|(_, used)| *used).map(|(name, _)| name.clone()).collect()
    }

    /// Replaces the labels. The new ones must include all labels that a series has a value for.
    pub(super) fn relabel(&mut self, labels: BTreeSet<LabelName>) {
        if labels.iter().eq(&self.labels) {
            return;
        }
        let labels: Vec<LabelName> = labels.into_iter().collect();
        let before = |name: &LabelName| self.labels.binary_search(name).ok();
        let places: Vec<Option<usize>> = labels.iter().map(before).collect();
        let series = std::mem::take(&mut self.series).into_iter().map(|(values, series)| {
            let values: Vec<&str> = values.iter().collect();
            let moved = places.iter().map(|place| place.map_or("", |place| values[place]));
            (Values::of(moved), series)
        });
        self.series = series.collect();
        self.labels = labels;
    }
}

impl Family {
    /// Applies a change to the series with these values, which is created if it does not exist.
    pub fn take(&mut self, values: Values, step: SeriesChange) {
        let shape = &self.shape;
        let begin = || Series {
            writer: (),
            reading: shape.blank(),
        };
        self.series
            .entry(values)
            .or_insert_with(begin)
            .reading
            .take(step, shape);
    }
}

impl Shape {
    /// The shape of a metric whose first sample this is.
    pub(super) fn of(sample: &Sample) -> Self {
        match sample {
            Sample::Add(_) => Self::Counter,
            Sample::Set(_) => Self::Gauge,
            Sample::Observe { value: _, buckets } => Self::Histogram(buckets.clone()),
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Counter => Kind::Counter,
            Self::Gauge => Kind::Gauge,
            Self::Histogram(_) => Kind::Histogram,
        }
    }

    /// The value of a series without samples: zero.
    fn blank(&self) -> Reading {
        match self {
            Self::Counter | Self::Gauge => Reading::Number(0.0),
            Self::Histogram(buckets) => Reading::Spread {
                counts: vec![0; buckets.bounds().len()],
                total: 0,
                sum: 0.0,
            },
        }
    }
}

impl From<&Sample> for SeriesChange {
    fn from(sample: &Sample) -> Self {
        match sample {
            Sample::Add(by) => Self::By(by.get()),
            Sample::Set(to) => Self::To(to.get()),
            Sample::Observe { value, buckets: _ } => Self::Of(value.get()),
        }
    }
}

impl Reading {
    fn take(&mut self, step: SeriesChange, shape: &Shape) {
        match (self, step, shape) {
            (Self::Number(number), SeriesChange::By(by), _) => *number += by,
            (Self::Number(number), SeriesChange::To(to), _) => *number = to,
            (Self::Spread { counts, total, sum }, SeriesChange::Of(value), Shape::Histogram(buckets)) => {
                if let Some(place) = buckets.bounds().position(|bound| value <= bound) {
                    counts[place] += 1;
                }
                *total += 1;
                *sum += value;
            }
            (Self::Number(_) | Self::Spread { .. }, _, _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(name: &str) -> LabelName {
        LabelName::parse(name).unwrap()
    }

    fn values(values: &[&str]) -> Values {
        Values::of(values.iter().copied())
    }

    fn shown<W>(family: &Family<W>) -> Vec<Vec<&str>> {
        family.series().map(|(values, _)| values.iter().collect()).collect()
    }

    #[test]
    fn values_come_out_as_they_went_in() {
        for some in [&[][..], &[""], &["", ""], &["a", "", "b\n"]] {
            assert_eq!(values(some).iter().collect::<Vec<_>>(), some);
        }
        assert_eq!(values(&["a\0b", "c"]).iter().collect::<Vec<_>>(), ["a\u{fffd}b", "c"]);
    }

    #[test]
    fn series_keep_their_values_when_labels_come_and_go() {
        let mut family = Family::new(Shape::Gauge, [label("b"), label("d")]);
        family.take(values(&["1", ""]), SeriesChange::To(1.0));
        family.take(values(&["1", "2"]), SeriesChange::To(2.0));
        family.relabel(["a", "b", "c", "d"].map(label).into());
        assert_eq!(shown(&family), [["", "1", "", ""], ["", "1", "", "2"]]);
        assert_eq!(family.used_labels(), ["b", "d"].map(label).into());
        family.end(&values(&["", "1", "", "2"]));
        let used = family.used_labels();
        family.relabel(used);
        assert_eq!(shown(&family), [["1"]]);
    }

    #[test]
    fn a_step_that_does_not_fit_changes_nothing() {
        let mut family = Family::new(Shape::Counter, []);
        family.take(values(&[]), SeriesChange::By(2.0));
        family.take(values(&[]), SeriesChange::Of(3.0));
        assert_eq!(family.series().next().unwrap().1, &Reading::Number(2.0));
    }
}
