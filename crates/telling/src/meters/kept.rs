//! A metric in memory: a family of the core, behind a lock of its own.
//!
//! Tasks write at the same time, and a scrape reads beside them. Each lock is held for one step or for the text of one
//! metric, never across an await.

use std::sync::{Mutex, MutexGuard, PoisonError};

use addon_core::metric::family::{Family, SeriesChange, Shape, Values};
use addon_core::metric::name::LabelName;
use addon_core::metric::{Buckets, Finite, exposition};

use super::meter::{Kind, Row};

/// A metric of the table.
#[derive(Debug)]
pub(super) struct Kept {
    name: String,
    help: &'static str,
    /// The position of each of the meter's values in the order of the family's labels.
    order: Vec<usize>,
    family: Mutex<Family>,
}

/// A metric with its series, ready for output.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) name: String,
    pub(super) help: &'static str,
    pub(super) family: Family,
}

impl Kept {
    /// The metric for a row of the table, without a series.
    pub(super) fn of(row: &Row, prefix: &str) -> Self {
        let mut order: Vec<usize> = (0..row.labels.len()).collect();
        order.sort_by_key(|place| row.labels[*place]);
        let labels = row.labels.iter().map(|name| LabelName::parse(name).expect(WELL_FORMED));
        Self {
            name: row.full_name(prefix),
            help: row.help,
            order,
            family: Mutex::new(Family::new(shape(row), labels)),
        }
    }

    /// Changes the series with these values, which are in the order of the row.
    pub(super) fn take(&self, values: &[&str], step: SeriesChange) {
        let values = self.ordered(values);
        self.family().take(values, step);
    }

    /// Removes the series with these values, if it exists.
    pub(super) fn end(&self, values: &[&str]) {
        let values = self.ordered(values);
        self.family().end(&values);
    }

    /// The name and the text of the metric.
    pub(super) fn shown(&self) -> (String, String) {
        let mut text = String::new();
        exposition::own(&mut text, &self.name, self.help, &self.family());
        (self.name.clone(), text)
    }

    fn ordered(&self, values: &[&str]) -> Values {
        Values::of(self.order.iter().map(|place| values[*place]))
    }

    fn family(&self) -> MutexGuard<'_, Family> {
        // A panic cannot leave the family inconsistent, because the change is the last step.
        self.family.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<Kept> for Shown {
    fn from(kept: Kept) -> Self {
        Self {
            name: kept.name,
            help: kept.help,
            family: kept.family.into_inner().unwrap_or_else(PoisonError::into_inner),
        }
    }
}

fn shape(row: &Row) -> Shape {
    match row.kind {
        Kind::Counter => Shape::Counter,
        Kind::Gauge | Kind::Sampled => Shape::Gauge,
        Kind::Histogram => {
            let bounds = row.bounds.iter().map(|bound| Finite::try_from(*bound));
            let bounds: Vec<Finite> = bounds.collect::<Result<_, _>>().expect(WELL_FORMED);
            Shape::Histogram(Buckets::try_from(bounds).expect(WELL_FORMED))
        }
    }
}

/// The message for creating a metric of the table, which cannot fail.
const WELL_FORMED: &str = "labels and bounds of the table are well-formed";
