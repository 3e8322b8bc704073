//! The plan on the terminal: a table for people, or data.
//!
//! Must never show a value.

use std::fmt::Write as _;

use command::paint::{Paint, Tone};
use command::table::Table;
use helm_yaml::yaml;
use serde::Serialize;

use crate::outline::Left;
use crate::taking::Taken;

#[derive(Debug, Serialize)]
pub struct Plan {
    pub taken: Vec<Taken>,
    /// The releases that are not taken over.
    pub left: Vec<Left>,
    /// The releases that need no hand-over.
    pub needless: Vec<Left>,
}

impl Plan {
    /// The plan as a table.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if !self.taken.is_empty() {
            let head = ["MODULE", "FROM", "RELEASE", "CHART", "VALUES", "NOTES"];
            let mut table = Table::new(head);
            for taken in &self.taken {
                let cells = [
                    taken.directory.clone(),
                    taken.from.to_string(),
                    format!("{}/{}", taken.namespace, taken.release),
                    format!("{} {}", taken.chart, taken.version),
                    taken.values.to_string(),
                    notes(taken),
                ];
                table.row(cells.map(|cell| (Tone::Neutral, plain(&cell))));
            }
            text.push_str(&table.show(Paint::Plain));
        }
        for (title, list) in [("Not taken over:", &self.left), ("Nothing to do:", &self.needless)] {
            if list.is_empty() {
                continue;
            }
            if !text.is_empty() {
                text.push('\n');
            }
            let _ = writeln!(text, "{title}");
            for Left {
                namespace,
                name,
                reason,
            } in list
            {
                let _ = writeln!(text, "  {}/{}: {}", plain(namespace), plain(name), plain(reason));
            }
        }
        if text.is_empty() {
            text.push_str("There are no releases.\n");
        }
        text
    }

    /// The plan as JSON.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// The plan as YAML.
    pub fn yaml(&self) -> String {
        let plan = serde_json::to_value(self).unwrap_or_default();
        yaml::to_string(&plan)
    }
}

fn notes(taken: &Taken) -> String {
    let mut notes = Vec::new();
    if taken.keeps_release {
        notes.push("keeps its release".to_owned());
    }
    if !taken.hooks.is_empty() {
        notes.push(format!("runs {}", taken.hooks.join(", ")));
    }
    if !taken.secrets.is_empty() {
        notes.push(format!("needs secrets: {}", taken.secrets.join(", ")));
    }
    notes.extend(
        taken
            .differences
            .iter()
            .map(|difference| format!("changes: {difference}")),
    );
    notes.extend(taken.remarks.iter().cloned());
    notes.join("; ")
}

/// The text on one line, without characters that a terminal or Markdown would obey.
pub(crate) fn plain(text: &str) -> String {
    let shown = text.chars().map(|c| match c {
        c if c.is_control() => ' ',
        '<' => '‹',
        '>' => '›',
        c => c,
    });
    shown.collect()
}
