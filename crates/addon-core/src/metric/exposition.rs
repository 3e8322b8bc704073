//! The store as the text that Prometheus reads, in one order whatever the order of the operations was.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::name::MetricName;
use super::{Family, Labels, Reading, Store};

/// All metrics with all series. As in the original a metric's help is its name.
pub fn text(store: &Store) -> String {
    text_showing(store, |value| Cow::Borrowed(value))
}

/// The same, with the values of labels as somebody wants to show them.
pub fn text_showing(store: &Store, shown: impl Fn(&str) -> Cow<'_, str>) -> String {
    let mut text = String::new();
    for (name, family) in store.families() {
        let _ = writeln!(text, "# HELP {name} {name}\n# TYPE {name} {}", family.kind());
        let mut lines = Lines {
            text: &mut text,
            shown: &shown,
            name,
            family,
        };
        for (labels, reading) in family.series() {
            lines.series(labels, reading);
        }
    }
    text
}

struct Lines<'a, F> {
    text: &'a mut String,
    shown: &'a F,
    name: &'a MetricName,
    family: &'a Family,
}

impl<F: Fn(&str) -> Cow<'_, str>> Lines<'_, F> {
    fn series(&mut self, labels: &Labels, reading: &Reading) {
        match reading {
            Reading::Number(value) => self.line("", labels, None, &number(*value)),
            Reading::Spread { counts, total, sum } => {
                let mut below = 0;
                let family = self.family;
                for (bound, count) in family.bounds().zip(counts) {
                    below += count;
                    self.line("_bucket", labels, Some(&number(bound)), &below.to_string());
                }
                self.line("_bucket", labels, Some("+Inf"), &total.to_string());
                self.line("_sum", labels, None, &number(*sum));
                self.line("_count", labels, None, &total.to_string());
            }
        }
    }

    fn line(&mut self, suffix: &str, labels: &Labels, bucket: Option<&str>, value: &str) {
        let Self {
            text,
            shown,
            name,
            family,
        } = self;
        let _ = write!(text, "{name}{suffix}");
        let mut before = '{';
        for label in family.labels() {
            let value = labels.get(label).map_or("", String::as_str);
            let _ = write!(text, "{before}{label}=\"{}\"", Escaped(&shown(value)));
            before = ',';
        }
        if let Some(bound) = bucket {
            let _ = write!(text, "{before}le=\"{bound}\"");
        }
        let _ = writeln!(text, "}} {value}");
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

/// From this decimal exponent on a number is shown with it.
const LARGE: i32 = 6;
/// Below this one too.
const SMALL: i32 = -4;

/// The shortest text of the number, written as Go writes it: bounds of buckets are labels, and people select by labels.
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
