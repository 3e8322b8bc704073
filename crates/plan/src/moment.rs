//! The state of the operator before a change, or after it.

use std::collections::BTreeMap;

use addon_core::operator::Operator;
use addon_core::operator::query::{HeldRemoval, ModuleReport, ModulesQuery, Secrets, StatusQuery, ValuesQuery};
use names::ModuleName;
use serde_json::Value;

use crate::document::Refused;
use crate::fields::{self, Field, Shown};

/// The state of the operator before a change, or after it.
pub(crate) struct Moment {
    operator: Box<Operator>,
    pub(crate) modules: BTreeMap<String, ModuleReport>,
    problems: BTreeMap<String, String>,
    held: Vec<HeldRemoval>,
}

impl Moment {
    pub(crate) fn of(operator: Box<Operator>) -> Self {
        let status = operator.answer(&StatusQuery);
        let reports = operator.answer(&ModulesQuery).into_iter();
        Self {
            operator,
            modules: reports.map(|report| (report.name.clone(), report)).collect(),
            problems: status.config_problems,
            held: status.held,
        }
    }

    /// Whether there is a module of this name, and it is on.
    pub(crate) fn has_on(&self, name: &str) -> bool {
        self.modules.get(name).is_some_and(|report| report.enabled)
    }

    /// The effective values of a module, or the global ones; then the same with masked secrets.
    fn section(&self, module: Option<&ModuleName>) -> [Value; 2] {
        [Secrets::Shown, Secrets::Masked].map(|secrets| {
            let query = ValuesQuery {
                module: module.cloned(),
                with_global: false,
                secrets,
            };
            self.operator.answer(&query).unwrap_or_default()
        })
    }

    /// The modules that wait or fail now, and did not so before.
    pub(crate) fn waiting(&self, before: &Self) -> Vec<String> {
        let is_news = |report: &&ModuleReport| {
            let was = before.modules.get(&report.name);
            let told = |report: &ModuleReport| (report.enabled, report.waits_for.clone(), report.error.clone());
            report.enabled && was.map(told) != Some(told(report))
        };
        self.modules
            .values()
            .filter(is_news)
            .map(|report| report.name.clone())
            .collect()
    }

    /// The modules that are on now, and are not only off but done with at the later moment.
    pub(crate) fn switched_off<'a>(&'a self, later: &'a Self) -> impl Iterator<Item = &'a String> {
        let is_done = |report: &&ModuleReport| !report.enabled && report.decided && report.state == "Disabled";
        let done = later.modules.values().filter(is_done).map(|report| &report.name);
        done.filter(|name| self.has_on(name))
    }

    /// The modules that are on and need one of these that are gone.
    pub(crate) fn in_need_of(&self, gone: &[String]) -> Vec<String> {
        let stay = self
            .modules
            .values()
            .filter(|report| report.enabled && !gone.contains(&report.name));
        let told = stay.filter_map(|report| {
            let need = report.depends_on.iter().find(|need| gone.contains(need))?;
            Some(format!(
                "module '{}' needs '{need}', which is gone, and would wait",
                report.name
            ))
        });
        told.collect()
    }

    /// The values of a module, or the global ones, that this moment has and the moment before had not.
    pub(crate) fn changed_values(&self, before: &Self, module: Option<&ModuleName>) -> Vec<Field> {
        let ([was, masked_was], [is, masked_is]) = (before.section(module), self.section(module));
        let side = |whole, masked| Shown { whole, masked };
        fields::changed_between(side(&was, &masked_was), side(&is, &masked_is))
    }

    /// The keys of the ConfigMap that are not applied at this moment, and had no such problem before.
    pub(crate) fn refused(&self, before: &Self) -> Vec<Refused> {
        let is_news = |(key, reason): &(&String, &String)| before.problems.get(*key) != Some(*reason);
        let tell = |(key, reason): (&String, &String)| Refused {
            name: key.clone(),
            reason: reason.clone(),
        };
        self.problems.iter().filter(is_news).map(tell).collect()
    }

    /// The removals that are held at this moment, and were not before.
    pub(crate) fn held(&self, before: &Self) -> Vec<Refused> {
        let is_news = |held: &&HeldRemoval| before.held.iter().all(|known| known.release != held.release);
        let tell = |held: &HeldRemoval| Refused {
            name: held.release.clone(),
            reason: held.reason.clone(),
        };
        self.held.iter().filter(is_news).map(tell).collect()
    }
}
