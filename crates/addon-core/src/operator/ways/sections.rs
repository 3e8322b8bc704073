//! The way of a section of the ConfigMap: it is applied now or once the run of its module has ended, and the affected
//! modules run.

use std::collections::{BTreeMap, BTreeSet};

use names::{ModuleName, Owner};

use crate::operator::Operator;
use crate::operator::config::news::{News, filled, flag, is_filled, maintenance, values};
use crate::operator::config::{self, channel};
use crate::operator::effect::Notice;
use crate::operator::task::{Lane, Reason};
use crate::values::section::{Entry, Section};
use serde_json::Value;

impl Operator {
    /// Applies these texts, except the texts of sections that have to wait.
    pub(super) fn put_in_force(&mut self, good: BTreeMap<String, String>) {
        let (old, new) = self.config.replace(good);
        self.take_sources(&new);
        let mut news = News::default();
        if !self.commits.hold(&Owner::Global) {
            news.global = filled(&old.global) != filled(&new.global);
            self.set_section(&Owner::Global, &new.global);
        }
        let names: Vec<ModuleName> = self.modules.names().cloned().collect();
        for name in names {
            let (before, after) = (old.sections.get(&name), new.sections.get(&name));
            if flag(before) != flag(after) {
                news.flags.insert(name.clone());
            }
            if maintenance(before) != maintenance(after) {
                news.maintenance.insert(name.clone());
            }
            if self.commits.hold(&Owner::Module(name.clone())) {
                continue;
            }
            let differs = self.section_read(&name, after);
            if values(before) == values(after) {
                news.late |= differs && self.certainty().is_asked_late(&name);
            } else {
                news.sections.insert(name);
            }
        }
        channel::tell(&mut self.cx, &old.channel, &new.channel);
        config::tell_unknown(&mut self.cx, &self.modules, &old, &new);
        self.follow(news);
    }

    fn set_section(&mut self, owner: &Owner, entry: &Entry<Value>) -> bool {
        self.config.set_section(&mut self.cx, &mut self.values, owner, entry)
    }

    /// Applies the readings of a section that were held back during its save.
    pub(super) fn end_hold(&mut self, owner: &Owner) -> News {
        let mut news = News::default();
        match owner {
            Owner::Global => {
                let entry = self.config.global_section().clone();
                news.global = self.set_section(owner, &entry);
            }
            Owner::Module(name) => {
                let section = self.config.section(name).cloned();
                if self.section_read(name, section.as_ref()) {
                    news.sections.insert(name.clone());
                }
            }
        }
        news
    }

    /// Applies a module's section, now or once its run has ended. True if its values differ from the applied ones.
    fn section_read(&mut self, name: &ModuleName, section: Option<&Section>) -> bool {
        let owner = Owner::Module(name.clone());
        let entry = section.map(Section::layer).unwrap_or_default();
        let later = self.certainty().must_wait(name, &entry).then(|| entry.clone());
        // A section of an earlier reading that still waits is outdated.
        let earlier = self.config.leave_for_later(name, later.clone());
        if later.is_some() {
            let now = self.values.config_section(&owner);
            return earlier != later && filled(&entry) != now.as_deref().filter(|section| is_filled(section));
        }
        self.set_section(&owner, &entry)
    }

    /// Reports the changes, and runs the modules that they concern.
    pub(super) fn follow(&mut self, news: News) {
        let keys = news.keys();
        if keys.is_empty() && !news.late {
            return;
        }
        if !keys.is_empty() {
            self.cx.tell(Notice::ConfigApplied { keys });
        }
        let concerns_scripts = news.late || self.concerns_scripts(&news);
        let touched = news.sections.into_iter().chain(news.maintenance).collect();
        if concerns_scripts {
            self.reassess(Reason::ConfigChanged, touched);
        } else {
            self.run_touched(touched);
        }
        if news.global && self.converge.has_begun() {
            self.request_converge(Reason::ConfigChanged, true);
        } else if news.global {
            // A hook may have failed at the start because of a value that is now mended.
            self.lanes.retry(&Lane::Global);
        }
    }

    /// Whether the changes may change a verdict. The script of a module sees the global values, the module's own values,
    /// and the names of the enabled modules.
    fn concerns_scripts(&self, news: &News) -> bool {
        let has_script = |name: &ModuleName| {
            let unit = self.modules.get(name);
            unit.is_some_and(|unit| unit.found().has_enabled_script)
        };
        news.global || !news.flags.is_empty() || news.sections.iter().any(has_script)
    }

    /// Applies the waiting section of a module, if the run or removal that it waited for was dropped.
    pub(super) fn apply_what_nothing_holds(&mut self, name: &ModuleName) {
        let later = self.config.later(name);
        if later.is_some_and(|entry| !self.certainty().must_wait(name, entry)) {
            self.apply_deferred(name);
        }
    }

    /// Applies the waiting section of a module. True if the section needs a new round of verdicts.
    pub(super) fn apply_deferred(&mut self, name: &ModuleName) -> bool {
        let entry = self.config.leave_for_later(name, None);
        let late = entry.is_some_and(|entry| self.set_section(&name.clone().into(), &entry))
            && self.certainty().is_asked_late(name);
        if late {
            self.reassess(Reason::ConfigChanged, BTreeSet::new());
        }
        late
    }

    /// Drops the runs and removals that have not begun. The converge decides about them anew.
    pub(super) fn drop_waiting_runs(&mut self) {
        let (modules, count) = self.lanes.drop_waiting_runs(&self.cx);
        for module in modules {
            self.apply_what_nothing_holds(&module);
        }
        if count > 0 {
            let reason = "a converge starts over";
            self.cx.tell(Notice::TasksDropped {
                queue: Lane::Global.queue(),
                count,
                reason,
            });
        }
    }
}
