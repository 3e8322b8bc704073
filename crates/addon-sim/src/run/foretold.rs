//! Plans and what comes of them: at rest a person has an edit planned, and makes it. The operator must then work on those releases that the
//! preview names, with the values that it names.
//!
//! Only worlds are compared in which nothing but the edit decides: hooks that set values, draws of health and trials decide by
//! what happens on the way. Must never let the preview touch the world: its jobs are done in a copy.

use std::collections::BTreeMap;

use addon_core::operator::effect::Job;
use addon_core::operator::event::Event;
use addon_core::operator::preview::Step;
use serde_json::Value;

use super::Run;
use crate::action::Action;
use crate::checks::{Violation, ensure};
use crate::flat;
use crate::setup::{Deed, HookSpec, ModuleSpec, Setup, Source};
use crate::world::jobs::document;

/// The work on releases since an edit was planned: the values of each that is brought up to date, none for one that is removed.
pub(super) type Deeds = BTreeMap<String, Option<Value>>;

impl Run<'_> {
    /// PL1: what a preview says of an edit is what comes of it.
    pub(super) fn plan_an_edit(&mut self) -> Result<(), Violation> {
        let mut dice = self.world.dice("plan");
        let seen = &self.seen.status;
        let is_at_rest = seen.ready && seen.converge_tasks == 0 && self.life.leads && seen.config_lost.is_empty();
        if !is_at_rest || !is_plain(&self.world.setup) || self.disk_differs() {
            return Ok(());
        }
        // An edit makes no ConfigMap.
        let Some(mut data) = self.world.config.data.clone() else {
            return Ok(());
        };
        let enabled: Vec<ModuleSpec> = self
            .world
            .setup
            .modules
            .iter()
            .filter(|module| self.is_on(module))
            .cloned()
            .collect();
        let modules = if enabled.is_empty() {
            &self.world.setup.modules
        } else {
            &enabled
        };
        let module = dice.pick(modules);
        let (key, text) = if dice.chance(40) {
            (format!("{}Enabled", module.key()), dice.chance(30).to_string())
        } else {
            let key = if dice.chance(30) {
                "global".to_owned()
            } else {
                module.key()
            };
            (key, flat::write(&BTreeMap::from([("k0".to_owned(), 7)])))
        };
        data.insert(key.clone(), text.clone());
        let Some(planned) = self.planned(data)? else {
            return Ok(());
        };
        self.deeds = Some(Deeds::new());
        let text = Some(text);
        self.act(&Action::Edit { key: key.clone(), text })?;
        self.come_to_rest()?;
        let done = self.deeds.take().unwrap_or_default();
        ensure(planned == done, "PL1", || {
            format!("the plan of an edit of '{key}' was {planned:?}, and it came to {done:?}")
        })?;
        self.check_rest()
    }

    fn is_on(&self, module: &ModuleSpec) -> bool {
        let report = self.seen.modules.get(&module.name);
        report.is_some_and(|report| report.enabled)
    }

    /// The work that a preview of these contents of the ConfigMap names; none if the preview has no end.
    fn planned(&self, data: BTreeMap<String, String>) -> Result<Option<Deeds>, Violation> {
        let (mut preview, mut world) = (self.life.preview(), self.world.clone());
        preview.edit(data, None);
        loop {
            let next = preview.go_on();
            let next = next.map_err(|failure| Violation::new("PL1", format!("the preview fails: {failure}")))?;
            let Some(job) = next else { break };
            let finished = world.finish(&job);
            preview.take(Event::JobFinished(finished));
        }
        let passed = preview.end();
        let mut deeds = Deeds::new();
        for step in passed.steps {
            match step {
                Step::Release(release) => {
                    deeds.insert(release.module.to_string(), Some(document(&release.values)));
                }
                Step::Removal(release) => {
                    deeds.insert(release, None);
                }
                Step::Hook { .. } | Step::Crds(..) => {}
            }
        }
        Ok(passed.unfinished.is_empty().then_some(deeds))
    }

    /// Notes work on a release, while a plan is compared.
    pub(super) fn note_deed(&mut self, job: &Job) {
        let Some(deeds) = &mut self.deeds else { return };
        match job {
            Job::SyncRelease { module, values, .. } => drop(deeds.insert(module.to_string(), Some(document(values)))),
            Job::DeleteRelease { release, .. } => drop(deeds.insert(release.clone(), None)),
            _ => {}
        }
    }
}

/// Whether the edit alone decides about releases.
fn is_plain(setup: &Setup) -> bool {
    // These deeds are the same at each run, and so are their patches.
    let is_steady = |deed: &Deed| {
        matches!(
            deed,
            Deed::Set {
                to: Source::Number(_),
                ..
            } | Deed::Flag { .. }
        )
    };
    let is_idle = |hook: &HookSpec| hook.does.iter().all(is_steady);
    let is_plain = |module: &ModuleSpec| {
        !module.returns && module.needs.is_empty() && !module.broken && module.hooks.iter().all(is_idle)
    };
    let is_whole = !setup.alone && !setup.strict && setup.trial.is_none() && setup.sources.is_empty();
    is_whole
        && !setup.modules.is_empty()
        && setup.modules.iter().all(is_plain)
        && setup.global_hooks.iter().all(is_idle)
}
