//! The ways of modules that come from registries: a source is named or taken out, and files prove themselves or fail.
//!
//! Must never remove a module because its files cannot be fetched.

use channel_core::reference::Repository;
use channel_core::source::ModuleSources;
use names::{ModuleName, Owner};

use crate::failure::{Class, Failure};
use crate::module::{Edition, Module};
use crate::operator::Operator;
use crate::operator::effect::{Effect, FilesVerdict};
use crate::operator::supply::Works;
use crate::operator::task::Reason;
use crate::values::section::{ConfigDocument, Entry};

/// The order number of a module whose files have not come yet and whose source gives no order number.
const ORDER: u32 = 1;

impl Operator {
    /// Takes the sources from the ConfigMap that is applied from now on. Must come before its sections are applied.
    pub(super) fn take_sources(&mut self, document: &ConfigDocument) {
        let sources = match &document.module_sources {
            Entry::Absent => &ModuleSources::new(),
            Entry::Good(sources) => sources,
            Entry::Bad => return,
        };
        let are_unknown = self.config.are_sources_unknown();
        let is_mended = self.supply.note_unknown(are_unknown);
        if are_unknown {
            let reason = "the sources of modules cannot be read";
            self.lanes.drop_purges(&mut self.cx, reason, |_| true);
        }
        if !self.startup.has_begun() {
            self.confirm_ends(sources);
        }
        let named = self.supply.name(sources);
        let is_news = is_mended || !(named.new.is_empty() && named.gone.is_empty());
        for (name, order, repository) in named.new {
            self.source_came(name, order.unwrap_or(ORDER), &repository);
        }
        for name in named.gone {
            self.source_went(&name);
        }
        if is_news && self.startup.has_begun() {
            self.verdicts.grow_stale(Reason::ConfigChanged);
            self.request_converge(Reason::ConfigChanged, true);
        }
    }

    /// Confirms the removal of releases whose sources were taken out while no operator ran.
    fn confirm_ends(&mut self, now: &ModuleSources) {
        let before = self.config.sources_before();
        let is_gone = |name: &&ModuleName| !now.contains_key(*name) && !self.modules.contains(name);
        let gone = before.keys().filter(is_gone).map(ToString::to_string);
        let gone = gone.collect();
        self.removal.brake_mut().confirm_at_once(gone);
    }

    fn source_came(&mut self, name: ModuleName, order: u32, repository: &Repository) {
        self.removal.brake_mut().let_be(name.as_str());
        if self.modules.contains(&name) {
            return;
        }
        let report = format!("no files have come from {repository} yet");
        let module = Module {
            broken: Some(Failure::new(Class::Unavailable, report)),
            ..Module::without_files(name.clone(), order)
        };
        let owner = Owner::Module(name.clone());
        // Without schemas nothing is refused.
        let _ = self
            .values
            .renew_files(&owner, module.schemas.clone(), module.values.clone());
        self.modules.add(module);
        let reason = "their release has a module again";
        let is_its = |release: &str| release == name.as_str();
        self.lanes.drop_purges(&mut self.cx, reason, is_its);
        self.supply.begin_empty(name);
    }

    fn source_went(&mut self, name: &ModuleName) {
        let has_directory = self.directories.rereading().knew(name);
        if self.supply.end(name, has_directory) {
            self.modules.remove(name);
            self.removal.brake_mut().confirm_at_once([name.to_string()].into());
        }
    }

    /// The modules that have no files that they may use, each with the reason.
    pub(super) fn lacking_files(&self) -> Vec<(ModuleName, Failure)> {
        let lack = |name: &ModuleName| Some((name.clone(), self.supply.lack(name)?));
        self.modules.names().filter_map(lack).collect()
    }

    /// Judges files with which a run of the module has succeeded.
    pub(super) fn settle_files(&mut self, name: &ModuleName) {
        let works = Works {
            script_fails: self.verdicts.script_failure(name).is_some(),
            health: self.healths.of(name, self.cx.now.tick),
            sentence: self.healths.sentence(name),
        };
        let judged = self.supply.settle(name, &works);
        self.judge_files(name, judged);
    }

    /// Reports the judgement on files that came from a source.
    pub(super) fn judge_files(&mut self, name: &ModuleName, judged: Option<(Edition, FilesVerdict)>) {
        if let Some((edition, verdict)) = judged {
            self.cx.effect(Effect::JudgeFiles(name.clone(), edition, verdict));
        }
    }
}
