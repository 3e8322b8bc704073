//! The architecture's tables as data: which module may use which. docs/why/layers.md quotes them.
//!
//! A new edge between modules needs an edit of this file, and a reviewer looks at that edit first.

use crate::machines;

/// A module at the root of a crate, and the modules that it may name besides itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) module: &'static str,
    /// Names with spaces between them: `a` allows all of `a`, `a::b` only that part of it.
    pub(crate) uses: &'static str,
}

/// The table of one crate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table {
    pub(crate) title: &'static str,
    /// The folder of the sources that the table divides into layers, with a slash at the end.
    pub(crate) folder: &'static str,
    /// From bottom to top: a row may name only rows above it in this list.
    pub(crate) rows: &'static [Row],
}

pub(crate) const fn row(module: &'static str, uses: &'static str) -> Row {
    Row { module, uses }
}

const ALL_OF_CORE: &str = "failure digest values object metric queue hook module release review";

pub(crate) const CORE: Table = Table {
    title: "The core, `crates/addon-core`",
    folder: "crates/addon-core/src/",
    rows: &[
        row("failure", ""),
        row("digest", ""),
        row("values", "digest failure"),
        row("object", "digest failure"),
        row("metric", "digest failure"),
        row("queue", "failure"),
        row("hook", "failure object metric values"),
        row("module", "digest failure values hook"),
        row("release", "digest failure"),
        row("review", "failure hook object"),
        row("operator", ALL_OF_CORE),
    ],
};

pub(crate) const SHELL: Table = Table {
    title: "The program, `src`",
    folder: "src/",
    rows: &[
        row("heap", ""),
        row("hosts", ""),
        row("dispatch", ""),
        row("serve", ""),
        row("driver", ""),
        row("app", "dispatch serve driver"),
        row("cli", "app"),
        row("main", "heap hosts app cli"),
    ],
};

pub(crate) const TABLES: [Table; 2] = [CORE, SHELL];

impl Row {
    pub(crate) fn may_use(&self, module: &str) -> bool {
        self.uses.split(' ').any(|used| used == module)
    }

    /// The modules that the row allows, as text for people.
    pub(crate) fn allowance(&self) -> String {
        if self.uses.is_empty() {
            "nothing of ours".to_owned()
        } else {
            self.uses.replace(' ', ", ")
        }
    }
}

impl Table {
    pub(crate) fn row(&self, module: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.module == module)
    }

    pub(crate) fn markdown(&self) -> String {
        let lines = self
            .rows
            .iter()
            .map(|row| format!("| {} | {} |", row.module, row.allowance()));
        let lines: Vec<String> = lines.collect();
        format!(
            "{}\n\n| module | may use |\n|---|---|\n{}\n",
            self.title,
            lines.join("\n")
        )
    }
}

/// All tables in the form of docs/why/layers.md.
pub(crate) fn markdown() -> String {
    let mut tables = Vec::new();
    for table in TABLES {
        tables.push(table.markdown());
        if table.folder == CORE.folder {
            tables.extend([machines::MACHINES, machines::WAYS].map(|inside| inside.markdown()));
        }
    }
    tables.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_names_only_rows_above_it() {
        for table in TABLES {
            for (place, row) in table.rows.iter().enumerate() {
                for used in row.uses.split_whitespace() {
                    let root = used.split("::").next();
                    let above = table.rows[..place].iter().any(|lower| Some(lower.module) == root);
                    assert!(above, "{} must not name {used}", row.module);
                }
            }
        }
    }

    #[test]
    fn a_table_becomes_markdown() {
        const TABLE: Table = Table {
            title: "T",
            folder: "",
            rows: &[row("a", ""), row("longer-b", "a b")],
        };
        let wanted = "T\n\n| module | may use |\n|---|---|\n| a | nothing of ours |\n| longer-b | a, b |\n";
        assert_eq!(TABLE.markdown(), wanted);
    }
}
