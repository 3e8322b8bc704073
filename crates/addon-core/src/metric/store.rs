//! The rules for the metrics of hooks: a group is replaced with each run that names it, a budget limits each hook, and a
//! series has one writer.
//!
//! One call applies all operations of a run: first the groups that it names are removed, then its samples are written.
//! Must never let a hook take more memory than its budget, and never hold a metric without a series.

use std::collections::{BTreeMap, BTreeSet};

use names::{HookId, Owner};
use thiserror::Error;

use super::family::{Family, SeriesChange, Shape};
use super::name::{Group, LabelName, MetricName};
use super::spelling::{Alike, Spellings};
use super::{Change, Kind, Labels, Operation, Sample};

/// The memory budget for the series of one hook in bytes, roughly counted: about thirty thousand series with three
/// labels. Prometheus itself would have trouble long before that. The budget stops a hook that generates labels.
pub const BUDGET: usize = 8 << 20;

/// The largest number of labels that all series of a metric may have together. Each series is shown with all of them.
pub const MAX_LABELS: usize = 64;

/// The memory of a series without its texts, in bytes.
const SERIES: usize = 128;

/// The suffixes of a histogram's lines.
const SUFFIXES: [&str; 3] = ["_bucket", "_sum", "_count"];

/// All series of all hooks.
#[derive(Debug, Default)]
pub struct Store {
    families: BTreeMap<MetricName, Family<Origin>>,
    spent: BTreeMap<HookId, usize>,
    spellings: Spellings,
}

/// The hook and group that wrote a series, and the cost of the series.
#[derive(Debug)]
pub(super) struct Origin {
    hook: HookId,
    group: Option<Group>,
    cost: usize,
}

/// The outcome of the operations of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// Samples that were refused.
    pub lost: Vec<Lost>,
    /// Pairs of names that are equal for some scrapers. Each pair is reported once.
    pub alike: Vec<Alike>,
}

/// Refused samples of one metric.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("metric '{metric}' loses {samples} of the samples of this run: {why}")]
pub struct Lost {
    /// The metric.
    pub metric: MetricName,
    /// The number of refused samples.
    pub samples: usize,
    /// The reason for which the samples were refused.
    pub why: Refusal,
}

/// The reason for which a sample is refused.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum Refusal {
    /// The metric is of another kind.
    #[error("it is a {is}, and a {wanted} is wanted")]
    Kind {
        /// The kind of the metric.
        is: Kind,
        /// The kind that the operation needs.
        wanted: Kind,
    },
    /// A histogram already shows lines with the metric's name.
    #[error("the name is taken by the histogram '{histogram}'")]
    Suffix {
        /// The histogram.
        histogram: MetricName,
    },
    /// Another metric has the name of one of the histogram's lines.
    #[error("a histogram needs the name '{taken}', which is a metric of its own")]
    SuffixTaken {
        /// The name of the other metric.
        taken: MetricName,
    },
    /// The metric would have too many labels.
    #[error("its series have more than {MAX_LABELS} labels altogether")]
    Labels,
    /// The hook has used up its budget.
    #[error("the series of this hook take {} MiB already", BUDGET >> 20)]
    Budget,
}

impl Store {
    /// Applies the operations of one run of a hook. A refused sample does not stop the rest.
    pub fn apply(&mut self, hook: &HookId, operations: Vec<Operation>) -> Applied {
        self.expire(hook, &operations);
        let mut alike = Vec::new();
        let mut lost: BTreeMap<(MetricName, Refusal), usize> = BTreeMap::new();
        for Operation { group, change } in operations {
            let Change::Write { name, labels, sample } = change else {
                continue;
            };
            let labels = owned(labels, hook);
            match self.write(hook, group, &name, labels, &sample) {
                Ok(found) => alike.extend(found),
                Err(why) => *lost.entry((name, why)).or_default() += 1,
            }
        }
        self.tidy();
        let lost = lost.into_iter();
        let lost = lost.map(|((metric, why), samples)| Lost { metric, samples, why });
        Applied {
            lost: lost.collect(),
            alike,
        }
    }

    /// Removes all series of the owner's hooks.
    pub fn forget(&mut self, owner: &Owner) {
        self.retain(|origin| origin.hook.owner != *owner);
        self.tidy();
    }

    pub(super) fn families(&self) -> impl Iterator<Item = (&MetricName, &Family<Origin>)> {
        self.families.iter()
    }

    /// Removes the groups that the operations name. `expire` without a group removes the hook's series without a group.
    fn expire(&mut self, hook: &HookId, operations: &[Operation]) {
        let named: BTreeSet<&Group> = operations.iter().filter_map(|op| op.group.as_ref()).collect();
        let ungrouped = operations
            .iter()
            .any(|op| op.group.is_none() && op.change == Change::Expire);
        if named.is_empty() && !ungrouped {
            return;
        }
        self.retain(|origin| match &origin.group {
            Some(group) => !named.contains(group),
            None => !ungrouped || origin.hook != *hook,
        });
    }

    fn retain(&mut self, stays: impl Fn(&Origin) -> bool) {
        let spent = &mut self.spent;
        for family in self.families.values_mut() {
            family.retain(|origin| {
                let stays = stays(origin);
                if !stays {
                    give_back(spent, origin);
                }
                stays
            });
        }
    }

    /// Removes metrics without series. The next hook that uses the name sets the kind anew.
    fn tidy(&mut self) {
        let spellings = &mut self.spellings;
        self.families.retain(|name, family| {
            if family.is_empty() {
                spellings.end(name);
            }
            !family.is_empty()
        });
        self.spent.retain(|_, spent| *spent > 0);
    }

    fn write(
        &mut self,
        hook: &HookId,
        group: Option<Group>,
        name: &MetricName,
        mut labels: Labels,
        sample: &Sample,
    ) -> Result<Vec<Alike>, Refusal> {
        self.admit(name, sample.kind())?;
        let names: BTreeSet<LabelName> = labels.keys().cloned().collect();
        labels.retain(|_, value| !value.is_empty());
        let cost = cost(name, &labels, sample);
        let shown = self.families.get(name);
        let present = shown.and_then(|family| family.get(&family.values_of(&labels)?));
        let freed = present.map_or(0, |series| {
            if series.writer.hook == *hook {
                series.writer.cost
            } else {
                0
            }
        });
        let spent = self.spent.get(hook).copied().unwrap_or_default();
        if spent - freed + cost > BUDGET {
            return Err(Refusal::Budget);
        }
        let all = match shown {
            Some(family) => labels_with(family, names)?,
            None if names.len() > MAX_LABELS => return Err(Refusal::Labels),
            None => names,
        };
        let alike = self.shape(name, sample, all);
        let family = self.families.get_mut(name).expect("it has its shape just now");
        let values = family.values_of(&labels).expect("it has these labels just now");
        let kept = family.remove(&values);
        if let Some(series) = &kept {
            give_back(&mut self.spent, &series.writer);
        }
        // The value of a series with the same labels in another group or of another hook does not count: the new series
        // replaces that series.
        let kept = kept.filter(|series| series.writer.group == group && series.writer.hook == *hook);
        *self.spent.entry(hook.clone()).or_default() += cost;
        let origin = Origin {
            hook: hook.clone(),
            group,
            cost,
        };
        family.put(
            values,
            origin,
            kept.map(|series| series.reading),
            SeriesChange::from(sample),
        );
        Ok(alike)
    }

    /// Creates the metric for this sample if necessary, and adds these labels to it.
    fn shape(&mut self, name: &MetricName, sample: &Sample, labels: BTreeSet<LabelName>) -> Vec<Alike> {
        let mut alike = Vec::new();
        let before = self.families.get(name).map(Family::kind);
        if before != Some(sample.kind()) {
            let families = &self.families;
            self.spellings.end(name);
            let met = self
                .spellings
                .begin(name, sample.kind(), |line| with_lines(families, line));
            alike.extend(met);
            self.families.insert(name.clone(), Family::new(Shape::of(sample), []));
        }
        let family = self.families.get_mut(name).expect("it began just now or before");
        if !labels.iter().eq(family.labels()) {
            alike.extend(self.spellings.labelled(name, &labels));
            family.relabel(labels);
        }
        alike
    }

    /// Checks whether a metric of this name can have this kind. A metric that has just lost its last series may change
    /// its kind.
    fn admit(&self, name: &MetricName, wanted: Kind) -> Result<(), Refusal> {
        let live = |name: &str| self.families.get(name).filter(|family| !family.is_empty());
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

/// The metric that has lines of this name: the metric of this name, or a histogram one of whose lines has this name.
fn with_lines(families: &BTreeMap<MetricName, Family<Origin>>, line: &str) -> Option<MetricName> {
    let stems = SUFFIXES.iter().filter_map(|suffix| line.strip_suffix(suffix));
    let mut histograms = stems
        .filter_map(|stem| families.get_key_value(stem))
        .filter(|(_, family)| family.kind() == Kind::Histogram);
    let named = families.get_key_value(line).or_else(|| histograms.next());
    named.map(|(name, _)| name.clone())
}

/// Adds the labels that name the hook and its module. A hook cannot set these labels itself.
fn owned(mut labels: Labels, hook: &HookId) -> Labels {
    labels.insert(LabelName::hook(), hook.name.as_str().to_owned());
    if let Some(module) = hook.owner.module() {
        labels.insert(LabelName::module(), module.as_str().to_owned());
    }
    labels
}

/// The memory of a series in bytes, roughly.
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

fn give_back(spent: &mut BTreeMap<HookId, usize>, origin: &Origin) {
    if let Some(spent) = spent.get_mut(&origin.hook) {
        *spent -= origin.cost;
    }
}

/// The labels of a metric together with `names`. If there are too many, labels that no series uses any more are
/// dropped.
fn labels_with(family: &Family<Origin>, names: BTreeSet<LabelName>) -> Result<BTreeSet<LabelName>, Refusal> {
    let mut all = names.clone();
    all.extend(family.labels().iter().cloned());
    if all.len() <= MAX_LABELS {
        return Ok(all);
    }
    let mut used = names;
    used.extend(family.used_labels());
    if used.len() <= MAX_LABELS {
        Ok(used)
    } else {
        Err(Refusal::Labels)
    }
}

#[cfg(test)]
mod tests;
