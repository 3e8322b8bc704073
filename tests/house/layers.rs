//! The architecture's tables as data: which module may use which. docs/why/layers.md quotes them.
//!
//! A new edge between modules needs an edit of this file, and a reviewer looks at that edit first.

use crate::machines;

/// A module at the root of a crate, and the modules that it may name besides itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) module: &'static str,
    /// Names with spaces between them: `a` allows all of `a`, `a::b` only that part of it; `core` stands for the crate
    /// `addon_core`, the name of a language for its crate.
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

const ALL_OF_CORE: &str = "name time failure digest artifact values object metric queue hook module release review crontab helm-yaml masking values-schema";
const LAYERS_TO_0: &str = "core blocking report secrets settings telemetry traces";
const LAYERS_TO_1: &str = "core blocking report secrets settings telemetry traces process certificates mailbox meters helm-yaml values-schema";
const LAYERS_TO_2: &str = "core blocking report secrets settings telemetry traces process certificates mailbox meters records disk helm cluster registry gojq helm-yaml masking";
const LAYERS_TO_4: &str = "core blocking report secrets settings telemetry traces process certificates signatures mailbox meters records notices disk helm cluster registry package jobs serve driver gojq helm-yaml signing values-schema";

pub(crate) const CORE: Table = Table {
    title: "The core, `crates/addon-core`",
    folder: "crates/addon-core/src/",
    rows: &[
        row("name", ""),
        row("time", ""),
        row("failure", ""),
        row("footing", ""),
        row("digest", "helm-yaml"),
        row("artifact", "name time digest footing helm-yaml"),
        row("leadership", "time artifact"),
        row("values", "name digest failure artifact helm-yaml masking values-schema"),
        row("object", "name digest failure helm-yaml"),
        row("metric", "name digest failure"),
        row("queue", "name time failure"),
        row("hook", "name time failure object metric values crontab gojq helm-yaml"),
        row("module", "name digest failure values hook helm-yaml values-schema"),
        row("release", "name time digest failure"),
        row("review", "name failure hook object"),
        row("operator", ALL_OF_CORE),
    ],
};

pub(crate) const SHELL: Table = Table {
    title: "The shell, `src`",
    folder: "src/",
    rows: &[
        row("blocking", ""),
        row("hosts", ""),
        row("report", "core"),
        row("secrets", "core masking"),
        row("settings", "core"),
        row("telemetry", "core report secrets settings"),
        row("traces", "settings"),
        row("process", LAYERS_TO_0),
        row("certificates", LAYERS_TO_0),
        row("signatures", "core"),
        row("mailbox", LAYERS_TO_0),
        row("meters", LAYERS_TO_0),
        row("records", "core report secrets helm-yaml masking"),
        row("notices", "core secrets meters"),
        row("disk", LAYERS_TO_1),
        row("helm", LAYERS_TO_1),
        row("cluster", LAYERS_TO_1),
        row("registry", LAYERS_TO_1),
        row("package", "core blocking registry signatures signing"),
        row("jobs", LAYERS_TO_2),
        row("serve", LAYERS_TO_2),
        row("driver", "core report mailbox notices jobs cluster::monitor"),
        row("app", LAYERS_TO_4),
        row("cli", "report settings app"),
        row("main", "hosts report settings telemetry app cli"),
    ],
};

pub(crate) const IMAGE: Table = Table {
    title: "The assembler of the image, `crates/image`",
    folder: "crates/image/src/",
    rows: &[
        row("place", ""),
        row("tree", "place"),
        row("definition", "place"),
        row("layer", "tree"),
        row("debian", "place tree definition layer"),
        row("layout", "tree layer"),
        row("manifest", "place tree layer"),
        row("papers", "debian layer"),
        row("crates", "papers"),
        row("glibc", ""),
        row(
            "assembly",
            "place tree definition debian layer layout manifest papers core",
        ),
        row("push", "layer layout signing"),
        row(
            "main",
            "place definition debian layer layout papers crates glibc assembly push signing",
        ),
    ],
};

pub(crate) const GOJQ: Table = Table {
    title: "The language of filters, `crates/gojq`",
    folder: "crates/gojq/src/",
    rows: &[
        row("error", ""),
        row("pattern", ""),
        row("number", ""),
        row("lexer", "error"),
        row("lower", ""),
        row("grammar", "error lexer lower"),
        row("prelude", "error grammar"),
        row("value", "number"),
        row("limits", "value"),
        row("budget", "limits value"),
        row("engine", "value budget"),
        row("natives", "number pattern prelude value budget engine"),
        row("filter", "error grammar prelude value limits budget engine natives"),
    ],
};

pub(crate) const CRONTAB: Table = Table {
    title: "Crontabs, `crates/crontab`",
    folder: "crates/crontab/src/",
    rows: &[row("duration", ""), row("schedule", "duration")],
};

pub(crate) const HELM_YAML: Table = Table {
    title: "YAML as Helm reads it, `crates/helm-yaml`",
    folder: "crates/helm-yaml/src/",
    rows: &[row("number", ""), row("yaml", "number")],
};

pub(crate) const MASKING: Table = Table {
    title: "Masks for secrets, `crates/masking`",
    folder: "crates/masking/src/",
    rows: &[row("secret", "helm-yaml")],
};

pub(crate) const VALUES_SCHEMA: Table = Table {
    title: "Schemas of values, `crates/values-schema`",
    folder: "crates/values-schema/src/",
    rows: &[row("schema", "gojq helm-yaml masking")],
};

/// Crates of ours that a module of another crate may name.
pub(crate) const CRATES: [(&str, &str); 7] = [
    ("addon_core", "core"),
    ("gojq", "gojq"),
    ("crontab", "crontab"),
    ("helm_yaml", "helm-yaml"),
    ("masking", "masking"),
    ("signing", "signing"),
    ("values_schema", "values-schema"),
];

pub(crate) const TABLES: [Table; 8] = [GOJQ, CRONTAB, HELM_YAML, MASKING, VALUES_SCHEMA, CORE, SHELL, IMAGE];

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
                    let is_crate = CRATES.iter().any(|(_, name)| *name == used);
                    assert!(above || is_crate, "{} must not name {used}", row.module);
                }
            }
        }
    }

    #[test]
    fn a_table_becomes_markdown() {
        const TABLE: Table = Table {
            title: "T",
            folder: "",
            rows: &[row("a", ""), row("longer-b", "a core")],
        };
        let wanted = "T\n\n| module | may use |\n|---|---|\n| a | nothing of ours |\n| longer-b | a, core |\n";
        assert_eq!(TABLE.markdown(), wanted);
    }
}
