//! The text that Prometheus reads, in an order that is independent of the order of samples.
//!
//! Must never write a series twice or a metric in two places, even if escaping makes two names equal.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::escape::{Escaping, is_plain_label, is_plain_metric};
use super::family::{Family, Reading, Values};
use super::name::{LabelName, MetricName};
use super::store::Origin;
use super::{Kind, Store};

/// All metrics of hooks, for a scraper without a preference for names.
pub fn text(store: &Store) -> String {
    page(store, Escaping::default(), |value| Cow::Borrowed(value))
}

/// All metrics of hooks with their series. As in the original, a metric's help text is its name. `masked` gives the value
/// of a label without secrets.
pub fn page(store: &Store, escaping: Escaping, masked: impl Fn(&str) -> Cow<'_, str>) -> String {
    let mut text = String::new();
    for Shared { shown, kind, members } in shared(store, escaping) {
        heading(&mut text, &shown, members[0].0.as_str(), kind);
        let mut seen = BTreeSet::new();
        let alone = members.len() == 1;
        for (_, family) in members {
            let mut lines = Lines::of(&shown, family, escaping, &masked);
            lines.may_repeat |= !alone;
            lines.write(&mut text, family, &mut seen);
        }
    }
    text
}

/// Adds one of our own metrics, whose name needs no escaping. A metric without series adds nothing.
pub fn own(text: &mut String, name: &str, help: &str, family: &Family) {
    if family.is_empty() {
        return;
    }
    heading(text, name, help, family.kind());
    let lines = Lines::of(name, family, Escaping::AllowUtf8, &|value| Cow::Borrowed(value));
    lines.write(text, family, &mut BTreeSet::new());
}

/// The labels in their order of precedence, which counts if two labels are shown under one name: labels that need no
/// escaping come first.
pub(super) fn by_precedence<'a>(labels: impl IntoIterator<Item = &'a LabelName>) -> Vec<&'a LabelName> {
    let mut labels: Vec<_> = labels.into_iter().collect();
    labels.sort_by_key(|name| !is_plain_label(name.as_str()));
    labels
}

/// The metrics that are shown under one name.
struct Shared<'a> {
    shown: Cow<'a, str>,
    kind: Kind,
    members: Vec<(&'a MetricName, &'a Family<Origin>)>,
}

/// Groups the metrics by the name under which they are shown. A name belongs to the first metric that has it, and
/// metrics that need no escaping come first. Other metrics of its kind join the group. Metrics whose lines would mix with
/// the lines of the group are left out.
fn shared(store: &Store, escaping: Escaping) -> Vec<Shared<'_>> {
    let (plain, others): (Vec<_>, Vec<_>) = store.families().partition(|(name, _)| is_plain_metric(name.as_str()));
    let distinct = escaping == Escaping::AllowUtf8 || others.is_empty();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut shared: Vec<Shared<'_>> = Vec::new();
    for (name, family) in plain.into_iter().chain(others) {
        let (shown, kind) = (escaping.metric(name.as_str()), family.kind());
        if !distinct {
            let place = places.get(shown.as_ref()).copied();
            let same = place.filter(|place| shared[*place].shown == shown && shared[*place].kind == kind);
            if let Some(place) = same {
                shared[place].members.push((name, family));
                continue;
            }
            let lines = lines_of(&shown, kind);
            if lines.iter().any(|line| places.contains_key(line)) {
                continue;
            }
            places.extend(lines.into_iter().map(|line| (line, shared.len())));
        }
        shared.push(Shared {
            shown,
            kind,
            members: vec![(name, family)],
        });
    }
    shared.sort_by_key(|one| one.members[0].0);
    shared
}

/// The names at the beginning of a metric's lines. The metric's own name is among them.
pub(super) fn lines_of(shown: &str, kind: Kind) -> Vec<String> {
    let suffixes = match kind {
        Kind::Counter | Kind::Gauge => &[""][..],
        Kind::Histogram => &["", "_bucket", "_sum", "_count"],
    };
    suffixes.iter().map(|suffix| format!("{shown}{suffix}")).collect()
}

fn heading(text: &mut String, name: &str, help: &str, kind: Kind) {
    let help = help.replace('\\', "\\\\").replace('\n', "\\n");
    let _ = if is_plain_metric(name) {
        writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}")
    } else {
        let name = Escaped(name);
        writeln!(text, "# HELP \"{name}\" {help}\n# TYPE \"{name}\" {kind}")
    };
}

/// A series as a scraper sees it: labels have no order, and an empty label counts as absent.
type Sense = BTreeSet<(String, String)>;

fn sense(labels: &[(&str, &str)]) -> Sense {
    let said = labels.iter().filter(|(_, value)| !value.is_empty());
    said.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// Writes the series of one metric.
struct Lines<'a, M> {
    name: &'a str,
    /// The labels as they are shown, each with the indexes of the values that it may show.
    labels: Vec<(String, Vec<usize>)>,
    masked: &'a M,
    /// Whether two series may look the same. If they do, only the first one is shown.
    may_repeat: bool,
}

impl<'a, M: Fn(&str) -> Cow<'_, str>> Lines<'a, M> {
    fn of<W>(name: &'a str, family: &Family<W>, escaping: Escaping, masked: &'a M) -> Self {
        let mut labels: Vec<(String, Vec<usize>)> = Vec::new();
        for (place, label) in family.labels().iter().enumerate() {
            let shown = match escaping.label(label.as_str()) {
                shown if is_plain_label(&shown) => shown.into_owned(),
                shown => format!("\"{}\"", Escaped(&shown)),
            };
            match labels.iter_mut().find(|(name, _)| *name == shown) {
                Some((_, places)) if is_plain_label(label.as_str()) => places.insert(0, place),
                Some((_, places)) => places.push(place),
                None => labels.push((shown, vec![place])),
            }
        }
        let may_repeat = labels.len() < family.labels().len();
        Self {
            name,
            labels,
            masked,
            may_repeat,
        }
    }

    fn write<W>(&self, text: &mut String, family: &Family<W>, seen: &mut BTreeSet<Sense>) {
        for (values, reading) in family.series() {
            let labels = self.labels_of(values);
            if self.may_repeat && !seen.insert(sense(&labels)) {
                continue;
            }
            let labels = self.between_braces(&labels);
            match reading {
                Reading::Number(value) => self.line(text, "", &labels, &number(*value)),
                Reading::Spread { counts, total, sum } => {
                    let mut below = 0;
                    let comma = if labels.is_empty() { "" } else { "," };
                    for (bound, count) in family.bounds().zip(counts) {
                        below += count;
                        let labels = format!("{labels}{comma}le=\"{}\"", number(bound));
                        self.line(text, "_bucket", &labels, &below.to_string());
                    }
                    let all = format!("{labels}{comma}le=\"+Inf\"");
                    self.line(text, "_bucket", &all, &total.to_string());
                    self.line(text, "_sum", &labels, &number(*sum));
                    self.line(text, "_count", &labels, &total.to_string());
                }
            }
        }
    }

    /// The labels of a series with their values. If several labels are shown as one, the first value that is not empty counts.
    fn labels_of<'s>(&'s self, values: &'s Values) -> Vec<(&'s str, &'s str)> {
        let values: Vec<&str> = values.iter().collect();
        let labels = self.labels.iter().map(|(name, places)| {
            let given = places.iter().map(|place| values[*place]);
            let value = given.into_iter().find(|value| !value.is_empty());
            (name.as_str(), value.unwrap_or_default())
        });
        labels.collect()
    }

    fn between_braces(&self, labels: &[(&str, &str)]) -> String {
        let mut text = String::new();
        for (name, value) in labels {
            let comma = if text.is_empty() { "" } else { "," };
            let _ = write!(text, "{comma}{name}=\"{}\"", Escaped(&(self.masked)(value)));
        }
        text
    }

    fn line(&self, text: &mut String, suffix: &str, labels: &str, value: &str) {
        let name = self.name;
        let _ = match (is_plain_metric(name), labels.is_empty()) {
            (true, true) => writeln!(text, "{name}{suffix} {value}"),
            (true, false) => writeln!(text, "{name}{suffix}{{{labels}}} {value}"),
            (false, true) => writeln!(text, "{{\"{}{suffix}\"}} {value}", Escaped(name)),
            (false, false) => writeln!(text, "{{\"{}{suffix}\",{labels}}} {value}", Escaped(name)),
        };
    }
}

struct Escaped<'a>(&'a str);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for part in self.0.split_inclusive(['\\', '"', '\n']) {
            let (plain, special) = match part.char_indices().next_back() {
                Some((at, special @ ('\\' | '"' | '\n'))) => (&part[..at], Some(special)),
                _ => (part, None),
            };
            f.write_str(plain)?;
            match special {
                Some('\n') => f.write_str("\\n")?,
                Some(special) => write!(f, "\\{special}")?,
                None => {}
            }
        }
        Ok(())
    }
}

/// The decimal exponent from which on a number is shown with an exponent.
const LARGE: i32 = 6;
/// The decimal exponent below which a number is shown with an exponent.
const SMALL: i32 = -4;

/// The shortest text of a number, as Go prints it. Bounds of buckets are labels, so queries depend on their texts.
pub fn number(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').expect("this form has an exponent");
    let exponent: i32 = exponent.parse().expect("an exponent is a small whole number");
    if (SMALL..LARGE).contains(&exponent) {
        value.to_string()
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{digits}e{sign}{:02}", exponent.abs())
    }
}

#[cfg(test)]
mod tests;
