//! The effects of jobs on the world. The outcome of a job is computed when it ends, from the world of that moment.

use std::collections::BTreeMap;

use addon_core::failure::{Class, Failure};
use addon_core::hook::config::{HookConfig, HookKind};
use addon_core::module::outline::ValuesFiles;
use addon_core::operator::effect::{Conversions, HookRun, Job};
use addon_core::operator::event::{Finished, HookRan, Reworked, Saved, SavedState, Usage};
use addon_core::operator::provenance::Made;
use addon_core::values::vetted::Vetting;
use names::{HookName, ModuleName, Owner};
use serde::Serialize;
use serde_json::Value;

use super::sections::Write;
use super::{World, asked_of};

/// `global`, or the name of a module.
pub fn owner_name(owner: &Owner) -> String {
    owner.module().map_or_else(|| "global".to_owned(), ToString::to_string)
}

/// A document for a hook, as JSON.
pub fn document(values: &impl Serialize) -> Value {
    serde_json::to_value(values).expect("documents of values are JSON")
}

/// The name of a job. Jobs with the same name share their failures.
pub fn job_name(job: &Job) -> String {
    match job {
        Job::LoadState(_) => "load-state".to_owned(),
        Job::SaveState { .. } => "save-state".to_owned(),
        Job::SaveValuesFiles(..) => "save-values-files".to_owned(),
        Job::SaveGiven(..) => "save-given".to_owned(),
        Job::ReadDirectories(_) => "read-directories".to_owned(),
        Job::ListReleases(_) => "list".to_owned(),
        Job::WatchReleases { .. } => "watch-releases".to_owned(),
        Job::ConfigureHooks(owner, _) => format!("configure/{}", owner_name(owner)),
        Job::PublishWebhooks(..) => "webhooks".to_owned(),
        Job::Vet(..) => "vet".to_owned(),
        Job::JudgeEdit(..) => "judge".to_owned(),
        Job::EnsureCrds { modules, .. } => {
            let names: Vec<_> = modules.iter().map(ToString::to_string).collect();
            format!("crds/{}", names.join("+"))
        }
        Job::EnsureConversions(of, _) => {
            let names: Vec<_> = of.iter().map(|one| one.module.to_string()).collect();
            format!("conversions/{}", names.join("+"))
        }
        Job::StartMonitors { hook, .. } => format!("watch/{}/{}", owner_name(&hook.owner), hook.name),
        Job::RunHook(HookRun { hook, .. }, _) => format!("hook/{}/{}", owner_name(&hook.owner), hook.name),
        Job::RunEnabledScript { module, .. } => format!("script/{module}"),
        Job::SyncRelease { module, .. } => format!("helm/{module}"),
        Job::DeleteRelease { release, .. } => format!("delete/{release}"),
        Job::SaveConfig { .. } => "save-config".to_owned(),
        Job::SettleSections(..) => "settle-sections".to_owned(),
    }
}

/// V9: values that break their schema must not reach helm.
fn vet_for_helm(vetting: Option<&Vetting>) -> Result<(), Failure> {
    let vetted = vetting.map_or(Ok(()), Vetting::for_helm);
    vetted.map_err(|unfit| Failure::of(Class::Invalid, &unfit))
}

/// The write of a section that a job does.
fn write_of(job: &Job) -> Option<Write<'_>> {
    let Job::SaveConfig {
        key,
        text,
        base,
        create,
        on_trial,
        ..
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
    /// The duration of a job, in milliseconds.
    pub fn duration(&mut self, job: &Job, pace: u64) -> u64 {
        let mut dice = self.dice(&format!("duration/{pace}/{}", job_name(job)));
        if !self.healed && self.hangs(job) {
            return dice.between(3_000, 2_400_000);
        }
        let slow = match job {
            Job::RunHook(HookRun { hook, .. }, _) => {
                let specs = self.hooks(&owner_name(&hook.owner));
                specs.iter().any(|spec| spec.slow && spec.name == hook.name.as_str())
            }
            Job::RunEnabledScript { module, .. } => self.files(module.as_str()).is_some_and(|spec| spec.slow_script),
            _ => false,
        };
        match job {
            Job::RunHook(..) if slow => dice.between(3_000, 15_000),
            Job::RunEnabledScript { .. } if slow => dice.between(3_000, if self.healed { 50_000 } else { 75_000 }),
            Job::RunHook(..) | Job::RunEnabledScript { .. } | Job::ConfigureHooks(..) | Job::EnsureCrds { .. } => {
                dice.between(1, 2_000)
            }
            Job::SyncRelease { .. } | Job::DeleteRelease { .. } | Job::EnsureConversions(..) => dice.between(1, 15_000),
            Job::LoadState(_)
            | Job::SaveState { .. }
            | Job::SaveValuesFiles(..)
            | Job::SaveGiven(..)
            | Job::ReadDirectories(_)
            | Job::ListReleases(_)
            | Job::WatchReleases { .. }
            | Job::StartMonitors { .. }
            | Job::PublishWebhooks(..)
            | Job::Vet(..)
            | Job::JudgeEdit(..)
            | Job::SettleSections(..)
            | Job::SaveConfig { .. } => dice.between(1, 400),
        }
    }

    /// Whether the job hangs. A run for a review never does.
    fn hangs(&self, job: &Job) -> bool {
        match job {
            Job::RunHook(run, _) if asked_of(run).is_none() => {
                let specs = self.hooks(&owner_name(&run.hook.owner));
                specs
                    .iter()
                    .any(|spec| spec.hangs && spec.name == run.hook.name.as_str())
            }
            Job::SyncRelease { module, .. } => self.files(module.as_str()).is_some_and(|spec| spec.hangs),
            Job::DeleteRelease { release, .. } => self.files(release).is_some_and(|spec| spec.hangs),
            _ => false,
        }
    }

    /// Does the job, and returns its outcome. If the answer of a write is lost, the outcome is a failure.
    pub fn finish(&mut self, job: &Job) -> Finished {
        let finished = match self.fault_of_files(job) {
            Some(failure) => job.clone().failed(failure),
            None => self.carry_out(job),
        };
        let lost = match &finished {
            Finished::StateSaved(_, Ok(_))
            | Finished::ValuesFilesSaved(_, Ok(()))
            | Finished::GivenSaved(_, Ok(()))
            | Finished::WebhooksPublished(_, Ok(()))
            | Finished::ReleaseSynced(_, Ok(_))
            | Finished::ReleaseDeleted(_, Ok(_))
            | Finished::SectionsSettled(_, Ok(_))
            | Finished::ConfigSaved(_, Ok(Saved::Written { .. })) => {
                self.fault(&format!("lost/{}", job_name(job)), Class::TimedOut)
            }
            _ => Ok(()),
        };
        match lost {
            Ok(()) => finished,
            Err(failure) => finished.failing(failure),
        }
    }

    fn carry_out(&mut self, job: &Job) -> Finished {
        match job.clone() {
            Job::LoadState(ticket) => Finished::StateLoaded(ticket, self.load_state()),
            Job::SaveState {
                last_good,
                made,
                ticket,
            } => Finished::StateSaved(ticket, self.save_state(&last_good, made.as_ref())),
            Job::SaveValuesFiles(files, ticket) => Finished::ValuesFilesSaved(ticket, self.save_values_files(files)),
            Job::SaveGiven(given, ticket) => {
                let saved = self.fault("save-given", Class::Refused);
                let saved = saved.map(|()| self.secret.get_or_insert_default().given = given);
                Finished::GivenSaved(ticket, saved)
            }
            Job::ReadDirectories(ticket) => {
                let read = self.fault("read-directories", Class::Unavailable);
                Finished::DirectoriesRead(ticket, read.map(|()| self.inventory(None).outline()))
            }
            Job::ListReleases(ticket) => Finished::ReleasesListed(ticket, self.list()),
            Job::EnsureCrds {
                modules,
                on_trial,
                ticket,
            } => Finished::CrdsEnsured(ticket, Ok(self.ensure_crds(&modules, on_trial))),
            Job::SettleSections(ruling, ticket) => Finished::SectionsSettled(ticket, self.settle_sections(ruling)),
            Job::EnsureConversions(of, ticket) => {
                Finished::ConversionsEnsured(ticket, Ok(self.ensure_conversions(&of)))
            }
            Job::WatchReleases { ticket, .. } => {
                Finished::ReleasesWatched(ticket, self.fault("watch-releases", Class::Refused))
            }
            Job::ConfigureHooks(owner, ticket) => Finished::HooksConfigured(ticket, self.configure(&owner)),
            Job::StartMonitors { ticket, .. } => {
                Finished::MonitorsStarted(ticket, self.fault(&job_name(job), Class::Unavailable))
            }
            Job::PublishWebhooks(routes, ticket) => {
                let published = self.fault(&job_name(job), Class::Unavailable);
                Finished::WebhooksPublished(ticket, published.map(|()| self.webhooks.publish(&routes)))
            }
            Job::Vet(unvetted, ticket) => Finished::Vetted(ticket, Ok(unvetted.vet())),
            Job::JudgeEdit(edit, ticket) => {
                let judged = self.fault(&job_name(job), Class::Defect);
                Finished::EditJudged(ticket, judged.map(|()| edit.judge()))
            }
            Job::RunHook(run, ticket) => Finished::HookRan(ticket, self.finish_run(&run)),
            Job::RunEnabledScript {
                module, values, ticket, ..
            } => Finished::ScriptAnswered(ticket, self.run_script(module.as_str(), &document(&values))),
            Job::SyncRelease {
                module,
                values,
                asked,
                vetting,
                maintenance,
                config,
                unhealthy,
                ticket,
            } => {
                let (values, asked) = (document(&values), document(&asked));
                let synced = vet_for_helm(vetting.as_deref());
                let synced = synced.and_then(|()| self.sync(module.as_str(), &values, &asked, maintenance, unhealthy));
                if let Ok(synced) = &synced {
                    self.mark_config(module.as_str(), config, synced.action);
                }
                Finished::ReleaseSynced(ticket, synced)
            }
            Job::DeleteRelease { release, ticket } => {
                Finished::ReleaseDeleted(ticket, self.delete(&release).map(|()| Reworked::default()))
            }
            Job::SaveConfig {
                key,
                text,
                base,
                create,
                on_trial,
                ticket,
            } => {
                let write = Write {
                    key: &key,
                    text: &text,
                    base: base.as_ref(),
                    create,
                    on_trial,
                };
                Finished::ConfigSaved(ticket, self.save_config(write))
            }
        }
    }

    fn load_state(&mut self) -> Result<SavedState, Failure> {
        self.fault("load-state", Class::Unavailable)?;
        Ok(self.secret.clone().unwrap_or_default())
    }

    fn save_state(
        &mut self,
        last_good: &BTreeMap<String, String>,
        made: Option<&Made>,
    ) -> Result<Vec<String>, Failure> {
        self.fault("save-state", Class::Refused)?;
        self.keep(last_good, made);
        Ok(Vec::new())
    }

    fn keep(&mut self, last_good: &BTreeMap<String, String>, made: Option<&Made>) {
        let secret = self.secret.get_or_insert_default();
        secret.last_good = Some(last_good.clone());
        secret.made = made.cloned();
    }

    fn save_values_files(&mut self, files: ValuesFiles) -> Result<(), Failure> {
        self.fault("save-values-files", Class::Refused)?;
        self.secret.get_or_insert_default().values_files = Some(files);
        Ok(())
    }

    fn ensure_conversions(&mut self, of: &[Conversions]) -> BTreeMap<ModuleName, Result<(), Failure>> {
        let outcomes = of.iter().map(|one| {
            let outcome = vet_for_helm(one.vetting.as_deref());
            let outcome = outcome.and_then(|()| self.fault(&format!("conversions/{}", one.module), Class::Refused));
            (one.module.clone(), outcome)
        });
        outcomes.collect()
    }

    fn finish_run(&mut self, run: &HookRun) -> Result<HookRan, Failure> {
        if let Some((ask, review)) = asked_of(run) {
            return self.finish_review(run, ask, &review);
        }
        let owner = owner_name(&run.hook.owner);
        let output = self.run_hook(&owner, run.hook.name.as_str(), &document(&run.values))?;
        Ok(HookRan {
            output,
            usage: Usage::default(),
            response: Box::default(),
            read: BTreeMap::new(),
            wrote: Vec::new(),
        })
    }

    /// Cuts the job off at a random point.
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
                unhealthy,
                ..
            } if dice.chance(60) && vet_for_helm(vetting.as_deref()).is_ok() => {
                let (values, asked) = (document(values), document(asked));
                self.cut_off_sync(
                    module.as_str(),
                    &values,
                    &asked,
                    *maintenance,
                    *config,
                    unhealthy.clone(),
                );
            }
            Job::DeleteRelease { release, .. } => self.cut_off_delete(release, &mut dice),
            Job::SaveConfig { .. } => {
                let reach = dice.between(0, 4);
                if let Some(write) = write_of(job).filter(|_| reach > 0) {
                    self.note(write);
                    if reach > 1 {
                        self.write(write);
                    }
                }
            }
            Job::SettleSections(ruling, _) if dice.chance(50) => {
                self.faults.insert("forget-sections".to_owned(), 1);
                drop(self.settle_sections(*ruling));
            }
            Job::PublishWebhooks(routes, _) if dice.chance(50) => self.webhooks.publish(routes),
            Job::SaveState { last_good, made, .. } if dice.chance(50) => self.keep(last_good, made.as_ref()),
            _ => {}
        }
    }

    /// Applies a late write of a replica that does not lead any more. It is refused if the `ConfigMap` was written since.
    pub fn late_write(&mut self, job: &Job, version: u64) {
        if let Some(write) = write_of(job).filter(|_| self.config.version() == version)
            && self
                .config
                .write(write.key, write.text, write.base, write.create)
                .is_some()
        {
            // If the trial is over by then, the section cannot be put back any more.
            self.trial.edited(write.key);
        }
    }

    fn configure(&mut self, owner: &Owner) -> Result<Vec<(HookName, HookConfig)>, Failure> {
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
        Ok(configs)
    }
}
