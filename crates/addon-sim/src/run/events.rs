//! Turns future events into events of the operator.

use std::time::Duration;

use addon_core::failure::{Class, Failure};
use addon_core::module::Origin;
use addon_core::operator::effect::{Job, JobId};
use addon_core::operator::event::{Asked, ConfigRead, Event, Finished, ReviewId, Saved, TrialStage};
use addon_core::operator::policy::OnTrial;
use channel_core::trial::record::Ruling;

use super::{Due, Run};
use crate::action::{Action, Misreading};
use crate::checks::{Violation, check_edits_kept};
use crate::setup::{Deed, HookSpec};
use crate::told::Flags;
use crate::world::{EDITS, asked_of, document, found, owner_name, wanted_edit};

impl Run<'_> {
    /// Makes the operator a standby for a while, perhaps with the knowledge that another replica leads. Then it is elected.
    pub(super) fn stand_by(&mut self) {
        let mut dice = self.world.dice("lease");
        let most = *dice.pick(&[500, 500, 30_000, 200_000]);
        let until = dice.between(0, most);
        if dice.chance(80) {
            let since = dice.between(0, until);
            self.plan(since, Due::StandsBy);
        }
        self.plan(until, Due::Leads);
    }

    pub(super) fn happen(&mut self, due: Due) -> Result<(), Violation> {
        match due {
            Due::Inventory(misreading) => self.directories_read(misreading.as_ref()),
            Due::ModuleRead(name) => self.module_read(&name),
            Due::FirstRead => {
                self.world.config.news.clear();
                let read = self.world.config.read();
                self.config_read(read)
            }
            Due::News if self.world.config.news.is_empty() => Ok(()),
            Due::News => {
                let read = self.world.config.news.remove(0);
                self.config_read(read)
            }
            Due::Again => match self.last_read.clone().filter(|_| self.life.told.modules.is_some()) {
                Some(read) => self.config_read(read),
                None => Ok(()),
            },
            Due::Writes(id) => self.act_early(id),
            Due::Reads(id) => {
                self.read_snapshots(id);
                Ok(())
            }
            Due::Change(monitor) => match self.life.monitors.arrive(monitor) {
                Some(change) => self.tell(&Event::ObjectChanged(change), None),
                None => Ok(()),
            },
            Due::Ends(id) => self.job_ends(id),
            Due::Asks { which, within } => self.ask(which, within),
            Due::Sight(release) => self.look_at_release(release),
            Due::Health(sight) => self.see_health(sight),
            Due::TriesAgain(release) => {
                self.note(format!("a person lets {release} be tried again"));
                self.world.try_again(&release);
                Ok(())
            }
            Due::Relapse(release) => self.relapse(release),
            Due::Wants(action) => self.want(&action),
            Due::Touched => self.tell(&Event::WebhooksTouched, None),
            Due::Acts(action) => self.act(&action),
            Due::Confirms(names) => self.tell(&Event::PurgeConfirmed(names), None),
            // The debug socket refuses the confirmation if nothing is lost.
            Due::LossConfirmed if self.seen.status.config_lost.is_empty() => Ok(()),
            Due::LossConfirmed => {
                self.life.told.loss_confirmed();
                self.tell(&Event::LossConfirmed, None)
            }
            Due::Late(job, version) => {
                self.world.late_write(&job, version);
                self.spread_news(0);
                Ok(())
            }
            Due::Trial => self.tell_of_trial(),
            Due::StandsBy => self.tell(&Event::LedByAnother, None),
            Due::Leads => {
                self.life.leads = true;
                self.tell(&Event::Elected, None)
            }
            Due::Deposed if !self.life.leads => Ok(()),
            Due::Deposed => {
                self.life.deposed = true;
                self.life.stopping.get_or_insert(self.clock);
                self.tell(&Event::Deposed, None)
            }
            Due::Follower(deed) => self.follow(&deed),
            Due::Stop => {
                self.life.stopping.get_or_insert(self.clock);
                self.tell(&Event::ShutdownRequested, None)
            }
        }
    }

    fn tell_of_trial(&mut self) -> Result<(), Violation> {
        let Some(stage) = self.world.trial.stage else {
            return Ok(());
        };
        if stage == TrialStage::Ended(Ruling::Passed) {
            self.life.on_trial = OnTrial::No;
        }
        self.tell(&Event::TrialSeen(stage), None)
    }

    fn directories_read(&mut self, misreading: Option<&Misreading>) -> Result<(), Violation> {
        let inventory = self.world.inventory(misreading);
        let seen = inventory.modules.iter().map(|module| module.name.to_string()).collect();
        let gone = self.world.is_common_file_gone();
        let modules = self.world.modules_on_disk();
        self.life.told.inventory(modules, &seen, inventory.complete, gone);
        self.tell(&Event::InventoryChanged(inventory), None)
    }

    /// Reads the directory of one module again. Only the leader does that.
    fn module_read(&mut self, name: &str) -> Result<(), Violation> {
        let mut modules = self.world.modules_on_disk().into_iter();
        let Some(spec) = modules.find(|spec| spec.name == name).filter(|_| self.life.leads) else {
            return Ok(());
        };
        let module = Box::new(found(&spec));
        let edition = self.life.told.module_read(spec, Origin::Directory);
        self.tell(&Event::ModuleRead(edition, Origin::Directory, module), None)
    }

    fn config_read(&mut self, read: ConfigRead) -> Result<(), Violation> {
        self.last_read = Some(read.clone());
        self.checks.own_echo(&self.life, &read);
        self.life.told.read(&read);
        self.tell(&Event::ConfigChanged(read), None)
    }

    /// Reports every state of the `ConfigMap` once, each after its delay.
    pub(super) fn spread_news(&mut self, before: usize) {
        if self.world.setup.alone {
            return;
        }
        let due = self
            .future
            .values()
            .filter(|due| matches!(due, Due::News))
            .count()
            .max(before);
        for _ in due..self.world.config.news.len() {
            let delay = self
                .world
                .dice("watch")
                .between(self.watch_delay / 2, self.watch_delay + 1);
            self.plan(delay, Due::News);
        }
    }

    /// Reports every write of the webhooks, our own included.
    pub(super) fn spread_touch(&mut self) {
        if self.world.webhooks.was_touched() {
            let delay = self.world.dice("touch").between(0, 300);
            self.plan(delay, Due::Touched);
        }
    }

    /// Reports a change of an object by every monitor that sees it, mostly soon.
    pub(super) fn spread_change(&mut self, kind: &str, name: &str) {
        let objects = self.world.objects.get(kind);
        let version = objects.and_then(|objects| objects.get(name)).copied();
        for monitor in self.life.monitors.see(kind, name, version) {
            let mut dice = self.world.dice("object");
            let most = if dice.chance(80) { 30 } else { 3_000 };
            let delay = dice.between(0, most);
            self.plan(delay, Due::Change(monitor));
        }
    }

    /// Carries out a job before its end is reported, if the job is of a kind whose effect can be seen early.
    fn act_early(&mut self, id: JobId) -> Result<(), Violation> {
        let Some(running) = self.life.running.get(&id).filter(|running| !running.cancelled) else {
            return Ok(());
        };
        let job = running.job.clone();
        let key = match &job {
            Job::SaveConfig { key, .. } => key.as_str(),
            _ => "",
        };
        let beside = self.life.told.kept_beside(key);
        let before = beside.or(self.world.config.text(key)).cloned();
        let finished = self.world.finish(&job);
        if let Finished::ConfigSaved(_, Ok(Saved::Written { .. })) = &finished {
            check_edits_kept(key, before.as_deref(), self.world.config.text(key).map(String::as_str))?;
        }
        if let (Job::StartMonitors { hook, monitors, .. }, None) = (&job, finished.failure()) {
            self.life.monitors.start(hook, monitors, &self.world.objects);
        }
        if let Some(running) = self.life.running.get_mut(&id) {
            running.finished = Some(finished);
        }
        self.spread_news(0);
        Ok(())
    }

    /// Starts the process of a hook, which reads its snapshots now.
    fn read_snapshots(&mut self, id: JobId) {
        if let Some(running) = self.life.running.get_mut(&id)
            && let Job::RunHook(run, _) = &running.job
            && running.read.is_none()
        {
            running.read = Some(self.life.monitors.read(run.snapshots.values()));
        }
    }

    fn ask(&mut self, which: u64, within: u64) -> Result<(), Violation> {
        self.asked += 1;
        let question = self.world.webhooks.question(which);
        let asked = Asked {
            path: question.path(),
            request: question.request(self.asked, &mut self.world.dice("review")),
            within: Duration::from_secs(within),
        };
        self.tell(&Event::ReviewRequested(ReviewId(self.asked), asked), None)
    }

    /// Asks about an edit of the current `ConfigMap`.
    fn want(&mut self, action: &Action) -> Result<(), Violation> {
        let Action::Want { key, text, within } = action else {
            return Ok(());
        };
        self.asked += 1;
        let before = self.world.config.data.as_ref();
        let asked = Asked {
            path: EDITS.to_owned(),
            request: wanted_edit(self.asked, before, key, text),
            within: Duration::from_secs(*within),
        };
        self.tell(&Event::ReviewRequested(ReviewId(self.asked), asked), None)
    }

    fn job_ends(&mut self, id: JobId) -> Result<(), Violation> {
        self.read_snapshots(id);
        let Some(running) = self.life.running.remove(&id) else {
            return Ok(());
        };
        let job = running.job;
        let misdeed = match &job {
            Job::RunHook(run, _) if asked_of(run).is_none() => self
                .world
                .next_misdeed(&owner_name(&run.hook.owner), run.hook.name.as_str()),
            _ => None,
        };
        let mut finished = match running.finished {
            Some(finished) => finished,
            None if running.cancelled => {
                self.cut_off(&job);
                job.failed(Failure::new(Class::Cancelled, "it was asked to end"))
            }
            None if running.late => {
                self.world.cut_off(&job);
                job.failed(Failure::new(Class::TimedOut, "it took too long"))
            }
            None => self.world.finish(&job),
        };
        if let (Finished::HookRan(_, Ok(ran)), Some(seen)) = (&mut finished, running.read) {
            ran.read = seen;
        }
        self.spread_news(0);
        self.spread_touch();
        self.spread_sights();
        self.hear(&job, &finished, misdeed.is_some());
        self.checks.misdeed = misdeed.filter(|_| finished.failure().is_none());
        self.tell(&Event::JobFinished(finished), Some(&job))
    }

    /// Notes what the operator learns from the end of a job.
    fn hear(&mut self, job: &Job, finished: &Finished, misdeed: bool) {
        if let Finished::ReleasesWatched(_, Ok(())) = finished {
            self.begin_lookout();
        }
        if let Finished::ReleasesListed(_, Ok(list)) = finished {
            let ours = list.iter().filter(|release| release.ours);
            let traces = ours.filter_map(|release| Some((release.name.clone(), release.config?)));
            self.life.traces = traces.collect();
            self.life.listed = list
                .iter()
                .map(|release| (release.name.clone(), release.ours))
                .collect();
        }
        let told = &mut self.life.told;
        match (job, finished) {
            (Job::RunEnabledScript { module, .. }, Finished::ScriptAnswered(ticket, result)) => match result {
                Ok(answer) => told.script_answered(module.as_str(), ticket.id(), answer.enabled),
                Err(_) => told.script_failed(module.as_str()),
            },
            (_, Finished::StateLoaded(_, Ok(state))) => told.state(state),
            (_, Finished::ValuesFilesSaved(_, Ok(()))) => told.values_files_saved(),
            (_, Finished::SectionsSettled(_, Ok(settled))) => {
                if let Some(read) = &settled.read {
                    told.read(read);
                }
            }
            (Job::SaveConfig { key, text, .. }, Finished::ConfigSaved(ticket, Ok(saved))) => match saved {
                Saved::Written { version, created } => told.wrote(key, text, *version, *created),
                Saved::Conflict(read) => told.save_missed(ticket.id(), read),
            },
            (Job::RunHook(run, _), Finished::HookRan(_, Ok(_)))
                if !misdeed && run.hook.owner.module().is_none() && asked_of(run).is_none() =>
            {
                let values = document(&run.values);
                let mut specs = self.world.hooks("global").iter();
                if let Some(spec) = specs.find(|spec| spec.name == run.hook.name.as_str()) {
                    told.hook_said(&run.hook, &run.labels, flags(spec, &values));
                }
            }
            _ => {}
        }
    }
}

fn flags(spec: &HookSpec, values: &serde_json::Value) -> Flags {
    let even = |key: &str| values["global"][key].as_i64().unwrap_or_default() % 2 == 0;
    let flag = |deed: &Deed| match deed {
        Deed::Flag { module, on } => Some((module.clone(), *on)),
        Deed::FlagFrom { module, key } => Some((module.clone(), Some(even(key)))),
        Deed::Set { .. } | Deed::SetConfig { .. } | Deed::Tick { .. } => None,
    };
    spec.does.iter().filter_map(flag).collect()
}
