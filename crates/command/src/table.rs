//! Prints columns: as wide as their widest cell, separated by two spaces, without trailing spaces. Must never cut a
//! text.

use std::fmt::Write as _;

use super::paint::{Paint, Tone};

#[derive(Debug)]
pub struct Table<const N: usize> {
    rows: Vec<[(Tone, String); N]>,
}

impl<const N: usize> Table<N> {
    pub fn new(head: [&str; N]) -> Self {
        Self {
            rows: vec![head.map(|cell| (Tone::Neutral, cell.to_owned()))],
        }
    }

    pub fn row(&mut self, cells: [(Tone, String); N]) {
        self.rows.push(cells);
    }

    pub fn show(&self, paint: Paint) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].1.chars().count());
            cells.max().unwrap_or_default()
        };
        let widths: [usize; N] = std::array::from_fn(width);
        let mut text = String::new();
        for row in &self.rows {
            let last = row.iter().rposition(|(_, cell)| !cell.is_empty()).unwrap_or_default();
            for (at, ((tone, cell), width)) in row.iter().zip(widths).enumerate().take(last + 1) {
                text.push_str(&paint.paint(*tone, cell));
                if at < last {
                    let gap = width + 2 - cell.chars().count();
                    text.extend(std::iter::repeat_n(' ', gap));
                }
            }
            text.push('\n');
        }
        text
    }

    /// The table; if it is wider than the terminal, the texts of the last column stand below their rows.
    pub fn fitted(&self, paint: Paint, columns: Option<usize>) -> String {
        let fits = |text: &str, columns| text.lines().all(|line| line.chars().count() <= columns);
        let Some(columns) = columns.filter(|columns| !fits(&self.show(Paint::Plain), *columns)) else {
            return self.show(paint);
        };
        let mut rows = self.rows.clone();
        let moved = rows.iter_mut().skip(1).filter_map(|row| row.last_mut());
        let moved: Vec<String> = moved.map(|(_, text)| std::mem::take(text)).collect();
        let (shown, mut before) = (Self { rows }.show(paint), String::new());
        let mut lines = shown.lines();
        let mut text = format!("{}\n", lines.next().unwrap_or_default());
        for (line, below_it) in lines.zip(moved) {
            let _ = writeln!(text, "{line}");
            if below_it == before && !below_it.is_empty() {
                text.push_str("    as above\n");
            } else {
                text += &below(&below_it, columns);
            }
            before = below_it;
        }
        text
    }
}

/// A text in indented lines that fit into this number of columns, broken between words.
fn below(whole: &str, columns: usize) -> String {
    const INDENT: &str = "    ";
    let (mut text, mut line) = (String::new(), String::new());
    for word in whole.split_whitespace() {
        let length = INDENT.len() + line.chars().count() + 1 + word.chars().count();
        if !line.is_empty() && length > columns {
            let _ = writeln!(text, "{INDENT}{line}");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        let _ = writeln!(text, "{INDENT}{line}");
    }
    text
}
