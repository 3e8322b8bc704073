//! Reports about all modules: which are enabled, their states, and their dependencies.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use addon_core::operator::query::{ModuleReport, ModulesQuery};
use axum::http::StatusCode;
use listeners::reply::{Format, Reply, document, text};
use releases::answers::charts::Recorded;
use releases::drift::lookout::Lookout;
use releases::drift::lookout::object_healths::ObjectHealth;
use releases::revisions::before::Amendment;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Debug, Unanswered};

/// A module and the version of its chart.
#[derive(Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    report: ModuleReport,
    version: Option<String>,
    release: Option<Release>,
    /// The records of the release that were rewritten, as long as their earlier forms are kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    amended: Vec<Amendment>,
    /// The altered fields that are left to other writers, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left: Vec<String>,
    /// The objects of the release with their health, if one module is asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    objects: Vec<ObjectHealth>,
}

/// A release in the cluster.
#[derive(Debug, Clone, Serialize)]
struct Release {
    revision: u32,
    /// Seconds since 1970.
    deployed: u64,
}

impl Debug {
    pub(super) async fn module_list(&self, format: Format) -> Result<Reply, Unanswered> {
        let mut names = self.enabled().await?;
        names.sort_unstable();
        Ok(document(format, &json!({ "enabledModules": names })))
    }

    /// All modules; with their releases if these are asked for and the API server answers in time.
    pub(super) async fn module_status(&self, format: Format, with_releases: bool) -> Result<Reply, Unanswered> {
        Ok(document(format, &self.shown(with_releases).await?))
    }

    pub(super) async fn module_status_of(&self, name: &str, format: Format) -> Result<Reply, Unanswered> {
        let all = self.shown(true).await?;
        let found = all.into_iter().find(|shown| shown.report.name == name);
        Ok(match found {
            Some(mut shown) => {
                if let Some(lookout) = self.lookout.get() {
                    shown.objects = lookout.objects_of(name).await;
                }
                document(format, &shown)
            }
            None => text(StatusCode::INTERNAL_SERVER_ERROR, "module not found\n"),
        })
    }

    async fn shown(&self, with_releases: bool) -> Result<Vec<Shown>, Unanswered> {
        let mut reports = listeners::ask(&self.doors, ModulesQuery).await?;
        let charts = self.charts.get();
        let (releases, mut amendments) = match charts.filter(|_| with_releases) {
            Some(charts) => {
                charts.tell_hooks(&mut reports).await;
                charts.recorded().await
            }
            None => Recorded::default(),
        };
        let lookout = self.lookout.get();
        let shown = reports.into_iter().map(|report| Shown {
            version: charts.and_then(|charts| charts.versions.of(&report.name)),
            release: releases
                .get(&report.name)
                .map(|&(revision, deployed)| Release { revision, deployed }),
            amended: amendments.remove(&report.name).unwrap_or_default(),
            left: lookout.map(|lookout| lookout.left(&report.name)).unwrap_or_default(),
            objects: Vec::new(),
            report,
        });
        Ok(shown.collect())
    }

    /// The watched objects of each release.
    pub(super) async fn resource_monitors(&self, format: Format) -> Result<Reply, Unanswered> {
        let names = self.enabled().await?.into_iter();
        let mut watched = self.lookout.get().map(Lookout::objects).unwrap_or_default();
        let mut shown = |name: &str| match watched.remove(name) {
            Some(objects) => json!(objects),
            None => json!("No monitor"),
        };
        let monitors: Map<String, Value> = names.map(|name| (name.clone(), shown(&name))).collect();
        Ok(document(format, &monitors))
    }

    /// The order of modules as a graph in the language of Graphviz.
    pub(super) async fn graph(&self, format: Option<&str>) -> Result<Reply, Unanswered> {
        if format.is_some_and(|format| format != "text") {
            return Ok(text(StatusCode::BAD_REQUEST, "the graph has one form: text\n"));
        }
        let graph = graph(&listeners::ask(&self.doors, ModulesQuery).await?);
        Ok(Reply::Graph(graph))
    }

    async fn enabled(&self) -> Result<Vec<String>, Unanswered> {
        let modules = listeners::ask(&self.doors, ModulesQuery).await?;
        Ok(modules
            .into_iter()
            .filter(|module| module.enabled)
            .map(|module| module.name)
            .collect())
    }
}

/// Arrows lead from each order number to its modules, and from the modules to the next number. A dashed arrow leads
/// from a module to one that needs it. Disabled modules are grey.
fn graph(modules: &[ModuleReport]) -> String {
    let mut text = "digraph modules {\n".to_owned();
    let mut groups: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for module in modules {
        groups.entry(module.order).or_default().push(&module.name);
    }
    for order in groups.keys() {
        let _ = writeln!(text, "  \"{order}\" [shape=circle];");
    }
    for module in modules {
        let colour = if module.enabled { "black" } else { "grey" };
        let _ = writeln!(text, "  {:?} [shape=box, color={colour}];", module.name);
    }
    let mut before: &[&str] = &[];
    for (order, names) in &groups {
        for name in before {
            let _ = writeln!(text, "  {name:?} -> \"{order}\";");
        }
        for name in names {
            let _ = writeln!(text, "  \"{order}\" -> {name:?};");
        }
        before = names;
    }
    for module in modules {
        for needed in &module.depends_on {
            let _ = writeln!(text, "  {needed:?} -> {:?} [style=dashed];", module.name);
        }
    }
    text + "}\n"
}

#[cfg(test)]
mod tests {
    use super::super::super::stage;
    use super::*;

    #[test]
    fn the_graph_goes_through_order_numbers_and_needs() {
        let module = |name: &str, order, enabled, needs: &[&str]| ModuleReport {
            order,
            depends_on: needs.iter().map(|&name| name.to_owned()).collect(),
            ..stage::module(name, enabled)
        };
        let modules = [
            module("a", 10, true, &[]),
            module("b", 10, false, &[]),
            module("c", 20, true, &["a"]),
        ];
        let expected = "\
digraph modules {
  \"10\" [shape=circle];
  \"20\" [shape=circle];
  \"a\" [shape=box, color=black];
  \"b\" [shape=box, color=grey];
  \"c\" [shape=box, color=black];
  \"10\" -> \"a\";
  \"10\" -> \"b\";
  \"a\" -> \"20\";
  \"b\" -> \"20\";
  \"20\" -> \"c\";
  \"a\" -> \"c\" [style=dashed];
}
";
        assert_eq!(graph(&modules), expected);
    }
}
