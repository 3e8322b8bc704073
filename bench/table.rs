//! Collects many measurements of one quantity into a table row: median, smallest, largest and the aim.

use std::fmt::Write;

/// All measurements of one quantity.
#[derive(Debug)]
pub(crate) struct Row {
    name: &'static str,
    unit: &'static str,
    aim: Option<f64>,
    values: Vec<f64>,
}

impl Row {
    pub(crate) fn new(name: &'static str, unit: &'static str) -> Self {
        Self {
            name,
            unit,
            aim: None,
            values: Vec::new(),
        }
    }

    /// Sets the aim: the quantity should not exceed this limit.
    pub(crate) fn aiming_at(mut self, limit: f64) -> Self {
        self.aim = Some(limit);
        self
    }

    pub(crate) fn add(&mut self, value: f64) {
        self.values.push(value);
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    fn cells(&self) -> [String; 4] {
        let sorted = self.sorted();
        let (Some(least), Some(most)) = (sorted.first(), sorted.last()) else {
            return [
                self.name.to_owned(),
                "not measured".to_owned(),
                String::new(),
                String::new(),
            ];
        };
        let middle = f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        let shown = |value: f64| format!("{} {}", short(value), self.unit).trim_end().to_owned();
        let aim = self.aim.map(|limit| {
            let verdict = if middle <= limit { "met" } else { "missed" };
            format!("≤ {} ({verdict})", shown(limit))
        });
        let span = format!("{} – {}", short(*least), short(*most));
        [self.name.to_owned(), shown(middle), span, aim.unwrap_or_default()]
    }
}

/// Three digits: measurements on a shared machine differ in the fourth.
fn short(value: f64) -> String {
    if value >= 100.0 || value.fract() == 0.0 {
        format!("{value:.0}")
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// A Markdown table that is also readable as plain text.
pub(crate) fn markdown(rows: &[Row]) -> String {
    let heads = ["figure", "median", "min – max", "aim"].map(str::to_owned);
    let lines: Vec<[String; 4]> = [heads].into_iter().chain(rows.iter().map(Row::cells)).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths = [0, 1, 2, 3].map(width);
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        for (cell, width) in line.iter().zip(widths) {
            let _ = write!(text, "| {cell:width$} ");
        }
        text.push_str("|\n");
        if number == 0 {
            for width in widths {
                let _ = write!(text, "|{}", "-".repeat(width + 2));
            }
            text.push_str("|\n");
        }
    }
    text
}
