//! What all hooks have written so far: every series once, and by whom.
//!
//! One call applies all operations of a run: first the groups that it names end, then it writes. Must never let one hook
//! take more memory than its budget, and never hold a metric without a series.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use super::name::{Group, LabelName, MetricName};
use super::{Buckets, Change, Kind, Labels, Operation, Sample};
use crate::name::{HookId, Owner};

/// What the series of one hook may take, in bytes, roughly counted: some thirty thousand series with three
/// labels. Prometheus itself would be in trouble long before; a hook that makes up labels is stopped here.
pub const BUDGET: usize = 8 << 20;

/// How many labels a metric may have, those of all its series together: each series is shown with all of them.
pub const MAX_LABELS: usize = 64;

/// What a series takes besides its texts.
const SERIES: usize = 128;

/// The suffixes of the lines that a histogram is shown as.
const SUFFIXES: [&str; 3] = ["_bucket", "_sum", "_count"];

/// All series of all hooks.
#[derive(Debug, Default)]
pub struct Store {
    families: BTreeMap<MetricName, Family>,
    spent: BTreeMap<HookId, usize>,
}

/// One metric.
#[derive(Debug)]
pub struct Family {
    shape: Shape,
    /// Every label that one of its series has or had.
    labels: BTreeSet<LabelName>,
    /// By those labels that are not empty: an empty one is none.
    series: BTreeMap<Labels, Series>,
}

/// What all series of a metric have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Shape {
    Counter,
    Gauge,
    Histogram(Buckets),
}

#[derive(Debug)]
struct Series {
    hook: HookId,
    group: Option<Group>,
    reading: Reading,
    cost: usize,
}

/// Where a series stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    /// The value of a counter or a gauge.
    Number(f64),
    /// How a histogram's values were distributed.
    Spread {
        /// How many fell under each bound and above the one before it.
        counts: Vec<u64>,
        /// How many there were.
        total: u64,
        /// What they add up to.
        sum: f64,
    },
}

/// Samples of one metric that could not be taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("metric '{metric}' loses {samples} of the samples of this run: {why}")]
pub struct Lost {
    /// The metric.
    pub metric: MetricName,
    /// How many.
    pub samples: usize,
    /// Why.
    pub why: Refusal,
}

/// Why a sample is not taken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum Refusal {
    /// The metric is something else.
    #[error("it is a {is}, and a {wanted} is wanted")]
    Kind {
        /// What it is.
        is: Kind,
        /// What the operation is for.
        wanted: Kind,
    },
    /// A histogram would be shown under that name.
    #[error("the name is taken by the histogram '{histogram}'")]
    Suffix {
        /// Which.
        histogram: MetricName,
    },
    /// Another metric has a name under which the histogram would be shown.
    #[error("a histogram needs the name '{taken}', which is a metric of its own")]
    SuffixTaken {
        /// The name.
        taken: MetricName,
    },
    /// There are too many labels.
    #[error("its series have more than {MAX_LABELS} labels altogether")]
    Labels,
    /// There are too many series.
    #[error("the series of this hook take {} MiB already", BUDGET >> 20)]
    Budget,
}

impl Store {
    /// Applies what one run of a hook wrote. What is lost does not hinder the rest.
    pub fn apply(&mut self, hook: &HookId, operations: Vec<Operation>) -> Vec<Lost> {
        self.expire(hook, &operations);
        let mut lost: BTreeMap<(MetricName, Refusal), usize> = BTreeMap::new();
        for Operation { group, change } in operations {
            let Change::Write { name, labels, sample } = change else {
                continue;
            };
            let labels = owned(labels, hook);
            if let Err(why) = self.write(hook, group, &name, labels, &sample) {
                *lost.entry((name, why)).or_default() += 1;
            }
        }
        self.tidy();
        let lost = lost.into_iter();
        lost.map(|((metric, why), samples)| Lost { metric, samples, why })
            .collect()
    }

    /// Ends everything that hooks of this owner wrote.
    pub fn forget(&mut self, owner: &Owner) {
        self.retain(|series| series.hook.owner != *owner);
        self.tidy();
    }

    /// The metrics by name.
    pub fn families(&self) -> impl Iterator<Item = (&MetricName, &Family)> {
        self.families.iter()
    }

    /// Ends the groups that are named. Without a group `expire` is about what the hook wrote without one.
    fn expire(&mut self, hook: &HookId, operations: &[Operation]) {
        let named: BTreeSet<&Group> = operations.iter().filter_map(|op| op.group.as_ref()).collect();
        let ungrouped = operations
            .iter()
            .any(|op| op.group.is_none() && op.change == Change::Expire);
        if named.is_empty() && !ungrouped {
            return;
        }
        self.retain(|series| match &series.group {
            Some(group) => !named.contains(group),
            None => !ungrouped || series.hook != *hook,
        });
    }

    fn retain(&mut self, stays: impl Fn(&Series) -> bool) {
        let spent = &mut self.spent;
        for family in self.families.values_mut() {
            family.series.retain(|_, series| {
                let stays = stays(series);
                if !stays {
                    give_back(spent, series);
                }
                stays
            });
        }
    }

    /// A metric without a series is forgotten: the next hook to name it says anew what it is.
    fn tidy(&mut self) {
        self.families.retain(|_, family| !family.series.is_empty());
        self.spent.retain(|_, spent| *spent > 0);
    }

    fn write(
        &mut self,
        hook: &HookId,
        group: Option<Group>,
        name: &MetricName,
        mut labels: Labels,
        sample: &Sample,
    ) -> Result<(), Refusal> {
        self.admit(name, sample.kind())?;
        let names: BTreeSet<LabelName> = labels.keys().cloned().collect();
        labels.retain(|_, value| !value.is_empty());
        let cost = cost(name, &labels, sample);
        let shown = self.families.get(name);
        let present = shown.and_then(|family| family.series.get(&labels));
        let freed = present.map_or(0, |series| if series.hook == *hook { series.cost } else { 0 });
        let spent = self.spent.get(hook).copied().unwrap_or_default();
        if spent - freed + cost > BUDGET {
            return Err(Refusal::Budget);
        }
        let all = match shown {
            Some(family) => family.labels_with(names)?,
            None if names.len() > MAX_LABELS => return Err(Refusal::Labels),
            None => names,
        };
        let family = self.families.entry(name.clone()).or_insert_with(|| Family::of(sample));
        if family.shape.kind() != sample.kind() {
            *family = Family::of(sample);
        }
        family.labels = all;
        let kept = family.series.remove(&labels);
        if let Some(series) = &kept {
            give_back(&mut self.spent, series);
        }
        // In another group the series is another one that merely looks the same, and the last one is shown.
        let kept = kept.filter(|series| series.group == group && series.hook == *hook);
        let mut reading = kept.map_or_else(|| family.shape.blank(), |series| series.reading);
        reading.take(sample, &family.shape);
        *self.spent.entry(hook.clone()).or_default() += cost;
        let series = Series {
            hook: hook.clone(),
            group,
            reading,
            cost,
        };
        family.series.insert(labels, series);
        Ok(())
    }

    /// Whether a metric of this name can be of this kind. One that has just lost its last series may become another.
    fn admit(&self, name: &MetricName, wanted: Kind) -> Result<(), Refusal> {
        let live = |name: &str| self.families.get(name).filter(|family| !family.series.is_empty());
        if let Some(family) = live(name.as_str()) {
            let is = family.kind();
            return if is == wanted {
                Ok(())
            } else {
                Err(Refusal::Kind { is, wanted })
            };
        }
        for suffix in SUFFIXES {
            let Some(stem) = name.as_str().strip_suffix(suffix) else {
                continue;
            };
            if live(stem).is_some_and(|family| family.kind() == Kind::Histogram) {
                let (histogram, _) = self.families.get_key_value(stem).expect("it was found just now");
                return Err(Refusal::Suffix {
                    histogram: histogram.clone(),
                });
            }
        }
        if wanted == Kind::Histogram {
            let shown = SUFFIXES.map(|suffix| format!("{name}{suffix}"));
            if let Some((taken, _)) = shown
                .iter()
                .filter(|shown| live(shown).is_some())
                .find_map(|shown| self.families.get_key_value(shown.as_str()))
            {
                return Err(Refusal::SuffixTaken { taken: taken.clone() });
            }
        }
        Ok(())
    }
}

/// The labels as the store keeps them: whose they are is not for the hook to say.
fn owned(mut labels: Labels, hook: &HookId) -> Labels {
    labels.insert(LabelName::hook(), hook.name.as_str().to_owned());
    if let Some(module) = hook.owner.module() {
        labels.insert(LabelName::module(), module.as_str().to_owned());
    }
    labels
}

/// Roughly what a series takes.
fn cost(name: &MetricName, labels: &Labels, sample: &Sample) -> usize {
    let texts: usize = labels
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 2 * size_of::<String>())
        .sum();
    let counts = match sample {
        Sample::Add(_) | Sample::Set(_) => 0,
        Sample::Observe { buckets, .. } => buckets.bounds().len() * 2 * size_of::<u64>(),
    };
    SERIES + name.as_str().len() + texts + counts
}

fn give_back(spent: &mut BTreeMap<HookId, usize>, series: &Series) {
    if let Some(spent) = spent.get_mut(&series.hook) {
        *spent -= series.cost;
    }
}

impl Family {
    fn of(sample: &Sample) -> Self {
        Self {
            shape: match sample {
                Sample::Add(_) => Shape::Counter,
                Sample::Set(_) => Shape::Gauge,
                Sample::Observe { value: _, buckets } => Shape::Histogram(buckets.clone()),
            },
            labels: BTreeSet::new(),
            series: BTreeMap::new(),
        }
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        self.shape.kind()
    }

    /// The bounds of a histogram; nothing has none.
    pub fn bounds(&self) -> impl Iterator<Item = f64> {
        let buckets = match &self.shape {
            Shape::Counter | Shape::Gauge => None,
            Shape::Histogram(buckets) => Some(buckets.bounds()),
        };
        buckets.into_iter().flatten()
    }

    /// Its labels, all of which every series is shown with.
    pub fn labels(&self) -> impl Iterator<Item = &LabelName> {
        self.labels.iter()
    }

    /// The series by those labels that are not empty.
    pub fn series(&self) -> impl Iterator<Item = (&Labels, &Reading)> {
        self.series.iter().map(|(labels, series)| (labels, &series.reading))
    }

    /// Its labels with these besides. If that is too many, those that no series has any more are let go.
    fn labels_with(&self, names: BTreeSet<LabelName>) -> Result<BTreeSet<LabelName>, Refusal> {
        let all: BTreeSet<LabelName> = self.labels.union(&names).cloned().collect();
        if all.len() <= MAX_LABELS {
            return Ok(all);
        }
        let mut used = names;
        for labels in self.series.keys() {
            used.extend(labels.keys().cloned());
        }
        if used.len() <= MAX_LABELS {
            Ok(used)
        } else {
            Err(Refusal::Labels)
        }
    }
}

impl Shape {
    fn kind(&self) -> Kind {
        match self {
            Self::Counter => Kind::Counter,
            Self::Gauge => Kind::Gauge,
            Self::Histogram(_) => Kind::Histogram,
        }
    }

    /// A series to which nothing has happened.
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

impl Reading {
    fn take(&mut self, sample: &Sample, shape: &Shape) {
        match (self, sample, shape) {
            (Self::Number(number), Sample::Add(by), _) => *number += by.get(),
            (Self::Number(number), Sample::Set(to), _) => *number = to.get(),
            (Self::Spread { counts, total, sum }, Sample::Observe { value, .. }, Shape::Histogram(buckets)) => {
                let value = value.get();
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
mod tests;
