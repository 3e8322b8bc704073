//! What jobs do to the world. The outcome of each is worked out when it ends, from the world as it is then.

use std::collections::BTreeMap;

use addon_core::failure::{Class, Failure};
use addon_core::hook::config::{HookConfig, HookKind};
use addon_core::module::outline::ValuesFiles;
use addon_core::name::{HookName, Owner};
use addon_core::operator::effect::{Conversions, HookRun, Job};
use addon_core::operator::event::{Done, Saved, Usage};
use addon_core::operator::provenance::Made;
use addon_core::values::vetted::Vetting;
use serde::Serialize;
use serde_json::Value;

use super::sections::Write;
use super::{World, asked_of};

/// `global`, or the name of a module.
pub fn owner_name(owner: &Owner) -> String {
    owner.module().map_or_else(|| "global".to_owned(), ToString::to_string)
}

/// A document that the operator handed out, as JSON.
pub fn document(values: &impl Serialize) -> Value {
    serde_json::to_value(values).expect("documents of values are JSON")
}

/// A name for jobs that take their chances alike.
pub fn job_name(job: &Job) -> String {
    match job {
        Job::LoadState => "load-state".to_owned(),
        Job::SaveState { .. } => "save-state".to_owned(),
        Job::SaveValuesFiles(_) => "save-values-files".to_owned(),
        Job::ReadDirectories => "read-directories".to_owned(),
        Job::ListReleases => "list".to_owned(),
        Job::WatchReleases { .. } => "watch-releases".to_owned(),
        Job::ConfigureHooks(owner) => format!("configure/{}", owner_name(owner)),
        Job::PublishWebhooks(_) => "webhooks".to_owned(),
        Job::Vet(_) => "vet".to_owned(),
        Job::JudgeEdit(_) => "judge".to_owned(),
        Job::EnsureCrds { modules, .. } => {
            let names: Vec<_> = modules.iter().map(ToString::to_string).collect();
            format!("crds/{}", names.join("+"))
        }
        Job::EnsureConversions(of) => {
            let names: Vec<_> = of.iter().map(|one| one.module.to_string()).collect();
            format!("conversions/{}", names.join("+"))
        }
        Job::StartMonitors { hook, .. } => format!("watch/{}/{}", owner_name(&hook.owner), hook.name),
        Job::RunHook(HookRun { hook, .. }) => format!("hook/{}/{}", owner_name(&hook.owner), hook.name),
        Job::RunEnabledScript { module, .. } => format!("script/{module}"),
        Job::SyncRelease { module, .. } => format!("helm/{module}"),
        Job::DeleteRelease { release } => format!("delete/{release}"),
        Job::SaveConfig { .. } => "save-config".to_owned(),
        Job::SettleSections(_) => "settle-sections".to_owned(),
    }
}

/// Nothing of values that break their schema gets to helm.
fn vet_for_helm(vetting: Option<&Vetting>) -> Result<(), Failure> {
    let vetted = vetting.map_or(Ok(()), Vetting::for_helm);
    vetted.map_err(|unfit| Failure::of(Class::Invalid, &unfit))
}

/// The write of a section, as a job has it.
fn write_of(job: &Job) -> Option<Write<'_>> {
    let Job::SaveConfig {
        key,
        text,
        base,
        create,
        on_trial,
    } = job
    else {
        return None;
    };
    Some(Write {
        key,
        text,
        base: base.as_ref(),
        create: *create,
        on_trial: *on_trial,
    })
}

impl World {
    /// How many milliseconds a job takes.
    pub fn duration(&mut self, job: &Job, pace: u64) -> u64 {
        let mut dice = self.dice(&format!("duration/{pace}/{}", job_name(job)));
        if !self.healed && self.hangs(job) {
            return dice.between(3_000, 2_400_000);
        }
        let slow = match job {
            Job::RunHook(HookRun { hook, .. }) => {
                let specs = self.hooks(&owner_name(&hook.owner));
                specs.iter().any(|spec| spec.slow && spec.name == hook.name.as_str())
            }
            Job::RunEnabledScript { module, .. } => self.module(module.as_str()).is_some_and(|spec| spec.slow_script),
            _ => false,
        };
        match job {
            Job::RunHook(_) if slow => dice.between(3_000, 15_000),
            Job::RunEnabledScript { .. } if slow => dice.between(3_000, if self.healed { 50_000 } else { 75_000 }),
            Job::RunHook(_) | Job::RunEnabledScript { .. } | Job::ConfigureHooks(_) | Job::EnsureCrds { .. } => {
                dice.between(1, 2_000)
            }
            Job::SyncRelease { .. } | Job::DeleteRelease { .. } | Job::EnsureConversions(_) => dice.between(1, 15_000),
            Job::LoadState
            | Job::SaveState { .. }
            | Job::SaveValuesFiles(_)
            | Job::ReadDirectories
            | Job::ListReleases
            | Job::WatchReleases { .. }
            | Job::StartMonitors { .. }
            | Job::PublishWebhooks(_)
            | Job::Vet(_)
            | Job::JudgeEdit(_)
            | Job::SettleSections(_)
            | Job::SaveConfig { .. } => dice.between(1, 400),
        }
    }

    /// A review is answered in time, whatever else its hook does.
    fn hangs(&self, job: &Job) -> bool {
        match job {
            Job::RunHook(run) if asked_of(run).is_none() => {
                let specs = self.hooks(&owner_name(&run.hook.owner));
                specs
                    .iter()
                    .any(|spec| spec.hangs && spec.name == run.hook.name.as_str())
            }
            Job::SyncRelease { module, .. } => self.module(module.as_str()).is_some_and(|spec| spec.hangs),
            Job::DeleteRelease { release } => self.module(release).is_some_and(|spec| spec.hangs),
            _ => false,
        }
    }

    /// Does the job and says how it went, unless it was a write whose answer is lost.
    pub fn finish(&mut self, job: &Job) -> Result<Done, Failure> {
        let done = self.carry_out(job)?;
        match done {
            Done::StateSaved(_)
            | Done::ValuesFilesSaved
            | Done::WebhooksPublished
            | Done::ReleaseSynced(_)
            | Done::ReleaseDeleted
            | Done::SectionsSettled(_)
            | Done::ConfigSaved(Saved::Written { .. }) => {
                self.fault(&format!("lost/{}", job_name(job)), Class::TimedOut)?;
            }
            _ => {}
        }
        Ok(done)
    }

    fn carry_out(&mut self, job: &Job) -> Result<Done, Failure> {
        match job {
            Job::LoadState => self.load_state(),
            Job::SaveState { last_good, made } => self.save_state(last_good, made.as_ref()),
            Job::SaveValuesFiles(files) => self.save_values_files(files),
            Job::ReadDirectories => self
                .fault("read-directories", Class::Unavailable)
                .map(|()| Done::DirectoriesRead(self.inventory(None).outline())),
            Job::ListReleases => self.list().map(Done::ReleasesListed),
            Job::EnsureCrds { modules, on_trial } => Ok(self.ensure_crds(modules, *on_trial)),
            Job::SettleSections(ruling) => self.settle_sections(*ruling),
            Job::EnsureConversions(of) => Ok(self.ensure_conversions(of)),
            Job::WatchReleases { .. } => self
                .fault("watch-releases", Class::Refused)
                .map(|()| Done::ReleasesWatched),
            Job::ConfigureHooks(owner) => self.configure(owner),
            Job::StartMonitors { .. } => {
                self.fault(&job_name(job), Class::Unavailable)?;
                Ok(Done::MonitorsStarted)
            }
            Job::PublishWebhooks(routes) => {
                self.fault(&job_name(job), Class::Unavailable)?;
                self.webhooks.publish(routes);
                Ok(Done::WebhooksPublished)
            }
            Job::Vet(unvetted) => Ok(Done::Vetted(unvetted.clone().vet())),
            Job::JudgeEdit(edit) => {
                self.fault(&job_name(job), Class::Defect)?;
                Ok(Done::EditJudged(edit.judge()))
            }
            Job::RunHook(run) => match asked_of(run) {
                Some((ask, review)) => self.finish_review(run, ask, &review),
                None => self.finish_hook(run),
            },
            Job::RunEnabledScript { module, values, .. } => self
                .run_script(module.as_str(), &document(values))
                .map(Done::ScriptAnswered),
            Job::SyncRelease {
                module,
                values,
                asked,
                vetting,
                maintenance,
                config,
            } => {
                vet_for_helm(vetting.as_deref())?;
                let synced = self.sync(module.as_str(), (&document(values), &document(asked)), *maintenance)?;
                self.mark_config(module.as_str(), *config, synced.action);
                Ok(Done::ReleaseSynced(synced))
            }
            Job::DeleteRelease { release } => self.delete(release),
            Job::SaveConfig { .. } => match write_of(job) {
                Some(write) => self.save_config(write),
                None => Err(Failure::defect("a save without a write")),
            },
        }
    }

    fn load_state(&mut self) -> Result<Done, Failure> {
        self.fault("load-state", Class::Unavailable)?;
        Ok(Done::StateLoaded(self.secret.clone().unwrap_or_default()))
    }

    fn save_state(&mut self, last_good: &BTreeMap<String, String>, made: Option<&Made>) -> Result<Done, Failure> {
        self.fault("save-state", Class::Refused)?;
        self.keep(last_good, made);
        Ok(Done::StateSaved(Vec::new()))
    }

    fn keep(&mut self, last_good: &BTreeMap<String, String>, made: Option<&Made>) {
        let secret = self.secret.get_or_insert_default();
        secret.last_good = Some(last_good.clone());
        secret.made = made.cloned();
    }

    fn save_values_files(&mut self, files: &ValuesFiles) -> Result<Done, Failure> {
        self.fault("save-values-files", Class::Refused)?;
        self.secret.get_or_insert_default().values_files = Some(files.clone());
        Ok(Done::ValuesFilesSaved)
    }

    fn ensure_conversions(&mut self, of: &[Conversions]) -> Done {
        let outcomes = of.iter().map(|one| {
            let outcome = vet_for_helm(one.vetting.as_deref());
            let outcome = outcome.and_then(|()| self.fault(&format!("conversions/{}", one.module), Class::Refused));
            (one.module.clone(), outcome)
        });
        Done::ConversionsEnsured(outcomes.collect())
    }

    fn finish_hook(&mut self, run: &HookRun) -> Result<Done, Failure> {
        let owner = owner_name(&run.hook.owner);
        let output = self.run_hook(&owner, run.hook.name.as_str(), &document(&run.values))?;
        Ok(Done::HookRan {
            output,
            usage: Usage::default(),
            response: Box::default(),
            read: BTreeMap::new(),
        })
    }

    /// The job is cut off at some point that chance decides.
    pub fn cut_off(&mut self, job: &Job) {
        let mut dice = self.dice(&format!("cut/{}", job_name(job)));
        match job {
            Job::SyncRelease {
                module,
                values,
                asked,
                vetting,
                maintenance,
                config,
            } if dice.chance(60) && vet_for_helm(vetting.as_deref()).is_ok() => {
                let documents = (&document(values), &document(asked));
                self.cut_off_sync(module.as_str(), documents, (*maintenance, *config));
            }
            Job::DeleteRelease { release } => self.cut_off_delete(release, &mut dice),
            Job::SaveConfig { .. } => {
                let reach = dice.between(0, 4);
                if let Some(write) = write_of(job).filter(|_| reach > 0) {
                    self.note(write);
                    if reach > 1 {
                        self.write(write);
                    }
                }
            }
            Job::SettleSections(ruling) if dice.chance(50) => {
                self.faults.insert("forget-sections".to_owned(), 1);
                drop(self.settle_sections(*ruling));
            }
            Job::PublishWebhooks(routes) if dice.chance(50) => self.webhooks.publish(routes),
            Job::SaveState { last_good, made } if dice.chance(50) => self.keep(last_good, made.as_ref()),
            _ => {}
        }
    }

    /// The write of one that leads no more arrives. It is refused if anybody has written since it was begun.
    pub fn late_write(&mut self, job: &Job, version: u64) {
        if let Some(write) = write_of(job).filter(|_| self.config.version() == version)
            && self
                .config
                .write(write.key, write.text, write.base, write.create)
                .is_some()
        {
            // If the trial is over by then, nobody can take it back.
            self.trial.edited(write.key);
        }
    }

    fn configure(&mut self, owner: &Owner) -> Result<Done, Failure> {
        let name = owner_name(owner);
        self.fault(&format!("configure/{name}"), Class::HookFailed)?;
        let mut configs = Vec::new();
        for hook in self.hooks(&name) {
            let kind = if self.setup.alone {
                HookKind::Standalone
            } else {
                HookKind::from(owner)
            };
            let parsed = HookConfig::parse(&hook.config_text(), kind);
            let config = parsed.map_err(|error| Failure::new(Class::Invalid, error.to_string()))?;
            configs.push((
                HookName::parse(&hook.name).expect("names of simulated hooks are sound"),
                config,
            ));
        }
        Ok(Done::HooksConfigured(configs))
    }
}
