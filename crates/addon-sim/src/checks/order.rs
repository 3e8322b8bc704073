//! The order of jobs: M3, the order of a stage's hooks, modules after those that they depend on, and lower numbers first.

mod healths;
mod passed;

use std::collections::{BTreeMap, BTreeSet};

use addon_core::operator::effect::{Effect, HookRun, Job, Notice};
use addon_core::operator::event::{Event, Finished};
use names::{HookId, Owner};

use self::healths::Healths;
use super::{SimStep, Violation, ensure};
use crate::model;
use crate::setup::{HookSpec, ModuleSpec, Setup};
use crate::world::owner_name;

/// The progress of modules and hooks in this life.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Hooks that have been configured, by owner.
    configured: BTreeMap<String, Vec<HookSpec>>,
    /// Hooks of an owner's stage that succeeded in this pass.
    passed: BTreeMap<(String, &'static str), BTreeSet<String>>,
    synced: BTreeSet<String>,
    ready: BTreeSet<String>,
    tried: BTreeSet<String>,
    failed: BTreeSet<String>,
    /// Modules whose runs hang and have not succeeded since.
    late: BTreeSet<String>,
    begun: BTreeSet<String>,
    /// Modules that were held when a module with a higher number began: the converge went on without them.
    left_behind: BTreeSet<String>,
    /// Modules whose CRDs were handled, with success (`ensured`) or not (`looked_after`).
    looked_after: BTreeSet<String>,
    ensured: BTreeSet<String>,
    /// Modules whose conversion webhooks were handled, with success or not.
    converted: BTreeSet<String>,
    pub(super) healths: Healths,
}

/// The hooks of a stage in their order.
fn in_order(hooks: &[HookSpec], stage: &str) -> Vec<String> {
    let mut hooks: Vec<_> = hooks
        .iter()
        .filter_map(|hook| Some((*hook.stages.get(stage)?, hook.name.clone())))
        .collect();
    hooks.sort();
    hooks.into_iter().map(|(_, name)| name).collect()
}

/// Whether a converge began anew after the module's run in the same step: the states after the step belong to the new converge.
fn is_overtaken(step: &SimStep<'_>, begun: &Notice) -> bool {
    let is_begun = |effect: &&Effect| matches!(effect, Effect::Tell(notice) if std::ptr::eq(notice, begun));
    let mut later = step.effects.iter().skip_while(|effect| !is_begun(effect));
    later.any(|effect| matches!(effect, Effect::Tell(Notice::ConvergeStarted { .. })))
}

impl Order {
    /// Notes the facts in the event, before its effects.
    pub(super) fn event(&mut self, step: &SimStep<'_>) {
        if let (Event::JobFinished(Finished::CrdsEnsured(_, Ok(failed))), Some(Job::EnsureCrds { modules, .. })) =
            (step.event, step.ended)
        {
            let names = |well: bool| modules.iter().filter(move |name| !well || !failed.contains_key(*name));
            self.looked_after.extend(names(false).map(ToString::to_string));
            self.ensured.extend(names(true).map(ToString::to_string));
        }
        if let Event::JobFinished(Finished::ConversionsEnsured(_, Ok(outcomes))) = step.event {
            self.converted.extend(outcomes.keys().map(ToString::to_string));
        }
        // The webhooks of a module that people maintain, or gave back since, are not published.
        let told = &step.life.told;
        let modules = told.modules.iter().flat_map(|(modules, _)| modules.keys());
        self.converted
            .extend(modules.filter(|name| told.in_maintenance(name)).cloned());
    }

    /// Notes the configurations of hooks. They count from now on, whenever the hooks were asked.
    fn configured(&mut self, step: &SimStep<'_>, owner: &Owner, bindings: &[(HookId, usize)]) {
        let owner = owner_name(owner);
        let known = |spec: &&HookSpec| bindings.iter().any(|(hook, _)| hook.name.as_str() == spec.name);
        let hooks = match step.life.told.knows(&owner) {
            Some(module) => &module.hooks,
            None => &step.world.setup.global_hooks,
        };
        self.configured
            .insert(owner, hooks.iter().filter(known).cloned().collect());
    }

    pub(super) fn effect(&mut self, step: &SimStep<'_>, effect: &Effect) -> Result<(), Violation> {
        self.event(step);
        self.pass_over(step);
        match effect {
            Effect::StartJob(job) if job.is_aside() => Ok(()),
            Effect::StartJob(Job::RunHook(run, _)) => self.hook(step, run),
            Effect::StartJob(Job::SyncRelease { module, .. }) => self.sync(step, module.as_str()),
            Effect::StartJob(Job::ConfigureHooks(owner, _)) => match owner.module() {
                Some(module) => self.first_job(step, module.as_str()),
                None => Ok(()),
            },
            Effect::StartJob(Job::DeleteRelease { release, .. }) if step.life.told.knows(release).is_some() => {
                self.require(step, release, "beforeDeleteHelm", "D2")
            }
            Effect::Tell(notice) => self.notice(step, notice),
            _ => Ok(()),
        }
    }

    fn hooks(&self, owner: &str) -> &[HookSpec] {
        self.configured.get(owner).map(Vec::as_slice).unwrap_or_default()
    }

    /// Checks that all hooks of the stage succeeded in this pass.
    fn require(
        &self,
        step: &SimStep<'_>,
        owner: &str,
        stage: &'static str,
        invariant: &'static str,
    ) -> Result<(), Violation> {
        let has_hooks = step
            .life
            .told
            .knows(owner)
            .is_none_or(|module| !module.hooks.is_empty());
        ensure(!has_hooks || self.configured.contains_key(owner), invariant, || {
            format!("{owner} goes on before its hooks said what they bind to")
        })?;
        let none = BTreeSet::new();
        let passed = self.passed.get(&(owner.to_owned(), stage)).unwrap_or(&none);
        let missing = in_order(self.hooks(owner), stage)
            .into_iter()
            .find(|hook| !passed.contains(hook));
        ensure(missing.is_none(), invariant, || {
            format!("{owner} goes on before {missing:?} succeeded at {stage}")
        })
    }

    fn hook(&mut self, step: &SimStep<'_>, run: &HookRun) -> Result<(), Violation> {
        let owner = owner_name(&run.hook.owner);
        let (name, stage) = (run.hook.name.as_str(), run.labels.cause.key());
        ensure(!run.contexts.is_empty(), "H3", || {
            format!("{} runs without a context", run.hook)
        })?;
        if matches!(stage, "schedule" | "kubernetes") {
            let binds = |hook: &HookSpec| match stage {
                "schedule" => !hook.schedules.is_empty(),
                _ => !hook.watches.is_empty(),
            };
            let known = self.hooks(&owner).iter().any(|hook| hook.name == name && binds(hook));
            ensure(known, "M3", || {
                format!("{} runs for a {stage} that it has not", run.hook)
            })?;
            if owner != "global" {
                self.require(step, &owner, "onStartup", "M3")?;
            }
            return Ok(());
        }
        if stage == "onStartup" && owner != "global" {
            self.first_job(step, &owner)?;
        }
        let list = in_order(self.hooks(&owner), stage);
        let Some(index) = list.iter().position(|hook| hook == name) else {
            return Err(Violation::new(
                "M3",
                format!("{} runs at {stage}, to which it is not bound", run.hook),
            ));
        };
        let synced = stage != "afterHelm"
            || self.synced.contains(&owner)
            || step.life.told.knows(&owner).is_none_or(|module| !module.chart);
        ensure(synced, "M3", || {
            format!("{} runs after the release, which has not been synced", run.hook)
        })?;
        let passed = self.passed.entry((owner, stage)).or_default();
        if index == 0 {
            passed.clear();
        }
        let missing = list[..index].iter().find(|hook| !passed.contains(*hook));
        ensure(missing.is_none(), "M3", || {
            format!("{} runs at {stage} before {missing:?}", run.hook)
        })
    }

    fn sync(&mut self, step: &SimStep<'_>, module: &str) -> Result<(), Violation> {
        self.first_job(step, module)?;
        self.require(step, module, "onStartup", "M3")?;
        self.require(step, module, "beforeHelm", "M3")?;
        self.passed.remove(&(module.to_owned(), "beforeHelm"));
        self.passed.remove(&(module.to_owned(), "afterHelm"));
        self.synced.remove(module);
        let Some(spec) = step.life.told.knows(module) else {
            return Ok(());
        };
        ensure(!spec.crds || self.ensured.contains(module), "C1", || {
            format!("{module} is released, and its CRDs are not there")
        })?;
        let lacking = spec.needs.iter().find(|need| !self.ready.contains(*need));
        ensure(lacking.is_none(), "D1", || {
            format!("{module} runs before {lacking:?}, which it needs, was ready")
        })?;
        self.healths.installs(step, spec)?;
        // U2 looks at modules that wait for files of a source.
        let waits = step.life.told.lacks_files(module);
        ensure(!spec.broken || waits, "D1", || {
            format!("{module} runs, and its directory is unusable")
        })?;
        let lacks = step.life.told.without_values().contains(module);
        ensure(!lacks, "F1", || {
            format!("{module} is released without the values that a file held which is lost")
        })
    }

    /// O1: in the first converge lower numbers come first.
    fn first_job(&mut self, step: &SimStep<'_>, module: &str) -> Result<(), Violation> {
        let enabled = |name: &str| step.after.modules.get(name).is_some_and(|module| module.enabled);
        if !enabled(module) || !self.begun.insert(module.to_owned()) || step.before.status.ready {
            return Ok(());
        }
        if !step.world.setup.global_hooks.is_empty() {
            self.require(step, "global", "onStartup", "G1")?;
            self.require(step, "global", "beforeAll", "G1")?;
        }
        let Some((modules, _)) = &step.life.told.modules else {
            return Ok(());
        };
        let setup = Setup {
            modules: modules.values().cloned().collect(),
            ..Setup::default()
        };
        let all: BTreeSet<String> = modules.keys().filter(|name| enabled(name)).cloned().collect();
        let stuck = model::stuck(&setup, &all);
        let own = model::level(&setup, module);
        let told = &step.life.told;
        let lost = |name: &String| step.is_held_back(name) || told.without_values().contains(name);
        let can_run = |name: &String| enabled(name) && !stuck.contains(name) && !lost(name);
        let mut with_crds = modules.values().filter(|spec| spec.crds && !spec.broken);
        let unseen = with_crds.find(|spec| can_run(&spec.name) && !self.looked_after.contains(&spec.name));
        ensure(unseen.is_none(), "C2", || {
            let name = unseen.map(|spec| &spec.name);
            format!("{module} begins before anybody looked after the CRDs of {name:?}")
        })?;
        // A chart whose values do not fit its schema is not rendered for its webhooks, even if a hook may mend them later.
        let fit = |spec: &ModuleSpec| spec.schema.as_ref().is_none_or(|schema| schema.for_helm.is_none());
        let mut converting = modules
            .values()
            .filter(|spec| spec.chart && spec.conversions && !spec.broken);
        let bare = converting.find(|spec| {
            let name = &spec.name;
            let ours = can_run(name) && fit(spec) && !step.life.told.in_maintenance(name);
            ours && !self.converted.contains(name)
        });
        ensure(bare.is_none(), "C4", || {
            let name = bare.map(|spec| &spec.name);
            format!("{module} begins before anybody looked after the conversions of {name:?}")
        })?;
        if step.world.setup.strict {
            let behind = |name: &&String| model::level(&setup, name) < own && !stuck.contains(*name);
            let waited = all.iter().filter(behind).find(|name| !self.ready.contains(*name));
            ensure(waited.is_none(), "O2", || {
                format!("{module} begins before {waited:?} was ready, although that was to be waited for")
            })?;
        }
        let lower: Vec<&String> = all.iter().filter(|name| model::level(&setup, name) < own).collect();
        let is_held = |name: &&&String| lost(name) || self.is_held(step, modules, name);
        let held: Vec<String> = lower.iter().filter(is_held).map(ToString::to_string).collect();
        self.left_behind.extend(held);
        let passed =
            |name: &String| stuck.contains(name) || self.tried.contains(name) || self.left_behind.contains(name);
        let early = lower.into_iter().find(|name| !passed(name));
        ensure(early.is_none(), "O1", || {
            format!("{module} begins before {early:?}, which has a lower number, was tried")
        })
    }

    /// Whether a module that this module depends on, directly or not, failed, hangs, is off or is not healthy. The
    /// converge goes on without this module then.
    fn is_held(&self, step: &SimStep<'_>, modules: &BTreeMap<String, ModuleSpec>, name: &str) -> bool {
        let mut needs = vec![name];
        let mut seen = BTreeSet::new();
        while let Some(next) = needs.pop() {
            if seen.insert(next) {
                let of_next = modules.get(next).into_iter().flat_map(|module| &module.needs);
                needs.extend(of_next.map(String::as_str));
            }
        }
        seen.remove(name);
        let is_off = |need: &str| step.after.modules.get(need).is_none_or(|module| !module.enabled);
        let lacks = |need: &str| !self.ready.contains(need) || self.failed.contains(need) || self.late.contains(need);
        seen.into_iter()
            .any(|need| lacks(need) || is_off(need) || self.healths.is_awaited(need))
    }

    /// Forgets a removed module, because its next life begins with nothing.
    fn forget(&mut self, name: &str) {
        self.passed.retain(|(owner, _), _| owner != name);
        self.configured.remove(name);
        self.ensured.remove(name);
        self.synced.remove(name);
        self.ready.remove(name);
        self.begun.remove(name);
        self.tried.remove(name);
        self.left_behind.remove(name);
        self.late.remove(name);
        self.healths.forget(name);
    }

    fn ready(&mut self, step: &SimStep<'_>, name: &str) -> Result<(), Violation> {
        self.require(step, name, "onStartup", "M3")?;
        self.require(step, name, "afterHelm", "M3")?;
        let chart = step.life.told.knows(name).is_some_and(|spec| spec.chart);
        ensure(!chart || self.synced.contains(name), "M3", || {
            format!("{name} is ready without a release")
        })?;
        if !chart {
            self.require(step, name, "beforeHelm", "M3")?;
            self.passed.remove(&(name.to_owned(), "beforeHelm"));
        }
        self.passed.remove(&(name.to_owned(), "afterHelm"));
        self.synced.remove(name);
        self.late.remove(name);
        self.ready.insert(name.to_owned());
        self.tried.insert(name.to_owned());
        Ok(())
    }

    fn notice(&mut self, step: &SimStep<'_>, notice: &Notice) -> Result<(), Violation> {
        match notice {
            Notice::HooksConfigured { owner, bindings } => self.configured(step, owner, bindings),
            // A standby may have asked the module's hooks before.
            Notice::TaskWaited {
                module: Some(module),
                binding,
                ..
            } if binding == "ModuleRun" => {
                if is_overtaken(step, notice) {
                    self.begun.insert(module.to_string());
                }
                self.first_job(step, module.as_str())?;
            }
            Notice::HookSucceeded { hook, labels, .. } => {
                let passed = self
                    .passed
                    .entry((owner_name(&hook.owner), labels.cause.key()))
                    .or_default();
                passed.insert(hook.name.to_string());
            }
            Notice::HookFailed {
                hook,
                labels,
                failure,
                allowed,
                ..
            } => {
                if let (Some(module), "kubernetes", false) = (hook.owner.module(), labels.cause.key(), *allowed) {
                    self.tried.insert(module.to_string());
                    self.failed.insert(module.to_string());
                }
                self.passing(hook, labels, failure, *allowed)?;
            }
            Notice::HelmFinished { module, .. } => {
                self.healths.released(step, module.as_str());
                self.synced.insert(module.to_string());
            }
            Notice::ModuleFailed { module, .. } => {
                self.tried.insert(module.to_string());
                self.failed.insert(module.to_string());
            }
            Notice::ModuleLate { module, .. } => {
                self.tried.insert(module.to_string());
                self.late.insert(module.to_string());
            }
            Notice::ModuleReady { module, .. } => self.ready(step, module.as_str())?,
            Notice::ModuleDeleted { module } => {
                let name = module.as_str();
                self.require(step, name, "afterDeleteHelm", "D2")?;
                self.forget(name);
            }
            _ => {}
        }
        Ok(())
    }
}
