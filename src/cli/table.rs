//! Prints columns: as wide as their widest cell, separated by two spaces, without trailing spaces.

use super::paint::{Paint, Tone};

pub(super) struct Table<const N: usize> {
    rows: Vec<[(Tone, String); N]>,
}

impl<const N: usize> Table<N> {
    pub(super) fn new(head: [&str; N]) -> Self {
        Self {
            rows: vec![head.map(|cell| (Tone::Neutral, cell.to_owned()))],
        }
    }

    pub(super) fn row(&mut self, cells: [(Tone, String); N]) {
        self.rows.push(cells);
    }

    pub(super) fn show(&self, paint: Paint) -> String {
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
}
