//! The preview: a copy of the operator at one moment, which goes ahead of it.
//!
//! The copy takes an event that has not happened, and the same decisions follow that would follow in earnest. Jobs that change
//! the world succeed at once, and are noted; jobs that only ask are left to the asker. Must never reach the operator that the
//! copy was made from.
//!
//! A hook whose configuration allows it is tried. Any other hook gives no patches, so that its last patches stay: its values are as of
//! its last run.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;
use std::sync::Arc;

use clock::{Now, Tick};
use masking::secret::known::Known;
use names::{HookId, ModuleName, Owner};
use serde_json::{Value, json};

use super::Operator;
use super::edit;
use super::effect::{Effect, Job, Notice};
use super::event::{ConfigRead, Event, Finished, HookRan, Reworked, Saved, Settled, SyncAction, Synced};
use super::explain::Query;
use super::health::{HealthSight, Seen};
use super::provenance::Provenance;
use super::query::StatusQuery;
use super::survey::Survey;
use super::ticket::{AtHead, Ticket};
use crate::failure::{Class, Failure};
use crate::hook::cause::Cause;
use crate::module::Edition;
use crate::release::ConfigTrace;
use crate::release::returned::Unhealthy;
use crate::values::HookDocument;
use crate::values::section::Maintenance;
use crate::values::vetted::Vetting;

/// The number of jobs after which a preview ends, because it would never end.
const MOST_JOBS: usize = 20_000;

/// A copy of the operator, for a preview.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreviewQuery;

impl Query for PreviewQuery {
    type Answer = Preview;

    fn answer(&self, survey: &Survey<'_>) -> Preview {
        Preview {
            now: survey.of.cx.now,
            copy: Box::new(survey.of.clone()),
            open: VecDeque::new(),
            jobs: 0,
            steps: Vec::new(),
            secrets: Arc::default(),
            refused: Vec::new(),
            taken_up: Vec::new(),
            known: survey.of.bindings.iter().map(|(hook, _)| hook.clone()).collect(),
            begins_watches: false,
        }
    }
}

/// The subjects of the running jobs, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunningQuery;

impl Query for RunningQuery {
    type Answer = Vec<String>;

    fn answer(&self, survey: &Survey<'_>) -> Vec<String> {
        survey.of.jobs.subjects()
    }
}

/// The preview of one event.
#[derive(Debug)]
pub struct Preview {
    copy: Box<Operator>,
    now: Now,
    /// Jobs whose outcome has to come from outside.
    open: VecDeque<Job>,
    /// The number of jobs so far.
    jobs: usize,
    steps: Vec<Step>,
    /// The secrets that came into the values on the way.
    secrets: Arc<Known>,
    /// The modules whose new files were refused, each with the reason.
    refused: Vec<(ModuleName, Failure)>,
    /// The files of modules that the copy has taken up since it was asked last.
    taken_up: Vec<(ModuleName, Edition)>,
    /// The hooks that the operator has.
    known: BTreeSet<HookId>,
    /// Whether watches begin in earnest: an operator that has not started has no snapshots.
    begins_watches: bool,
}

/// The end of a preview.
#[derive(Debug)]
pub struct Passed {
    /// The copy in the state to which the events have brought it.
    pub copy: Box<Operator>,
    /// All acts on the way.
    pub steps: Vec<Step>,
    /// The secrets that came into the values.
    pub secrets: Arc<Known>,
    /// The modules whose new files were refused, each with the reason.
    pub refused: Vec<(ModuleName, Failure)>,
    /// The work that has not come to its end: jobs whose outcome never reaches the copy, and a converge that waits for them.
    pub unfinished: Vec<String>,
}

/// An act of the operator that changes the world, in the order in which it begins.
#[derive(Debug, Clone)]
pub enum Step {
    /// The CRDs of a module are created or changed if they differ. A version on trial changes none.
    Crds(ModuleName),
    /// A hook runs.
    Hook {
        /// The hook.
        hook: HookId,
        /// The kind of the binding.
        cause: Cause,
        /// Whether the operator has the hook already. The values of one that it does not have are not known.
        is_known: bool,
    },
    /// A release is brought to the state of its values.
    Release(Box<Release>),
    /// A release is removed.
    Removal(String),
}

/// The wanted state of a release.
#[derive(Debug, Clone)]
pub struct Release {
    /// The module of the chart.
    pub module: ModuleName,
    /// `{"global": …, "fooBar": …}`.
    pub values: HookDocument,
    /// The part of `values` that the ConfigMap holds.
    pub asked: HookDocument,
    /// The check of these values against the schema; `None` if it was done.
    pub vetting: Option<Box<Vetting>>,
    /// Whether people maintain the module's objects.
    pub maintenance: Maintenance,
    /// The trace of the ConfigMap.
    pub config: ConfigTrace,
    /// The revision whose objects do not do their work, if the module returns from it.
    pub unhealthy: Option<Unhealthy>,
}

impl Preview {
    /// The preview of the start of an operator that has seen no event yet. Its watches begin in earnest: they are given to the asker.
    pub fn of_start(operator: Operator, now: Now) -> Self {
        Self {
            now,
            copy: Box::new(operator),
            open: VecDeque::new(),
            jobs: 0,
            steps: Vec::new(),
            secrets: Arc::default(),
            refused: Vec::new(),
            taken_up: Vec::new(),
            known: BTreeSet::new(),
            begins_watches: true,
        }
    }

    /// The copy, in the state to which the events so far have brought it.
    pub fn copy(&self) -> &Operator {
        &self.copy
    }

    /// The copy, and all that has happened to it.
    pub fn end(self) -> Passed {
        let mut unfinished = self.copy.jobs.subjects();
        if self.copy.answer(&StatusQuery).converge_tasks > 0 {
            unfinished.push("the converge".to_owned());
        }
        Passed {
            copy: self.copy,
            steps: self.steps,
            secrets: self.secrets,
            refused: self.refused,
            unfinished,
        }
    }

    /// The sections that other keys of the ConfigMap would change, by owner, with the defaults of their schemas.
    pub fn changed_sections(&self, data: &BTreeMap<String, String>) -> Vec<(Owner, Value)> {
        let values = &self.copy.values;
        let modules: BTreeSet<ModuleName> = self.copy.modules.names().cloned().collect();
        let mut sections = edit::sections(values, &modules, data);
        sections.retain(|(owner, section)| {
            let present = values.config_section(owner);
            let present = present.map_or_else(|| json!({}), |present| (*present).clone());
            values.with_defaults(owner, &present) != *section
        });
        sections
    }

    /// Lets a person edit the ConfigMap: it has these keys from now on, and this confirmation of removals if there is one.
    pub fn edit(&mut self, data: BTreeMap<String, String>, confirms: Option<String>) {
        let present = self.copy.config.provenance();
        // No write of the operator is newer than the edit.
        let read = ConfigRead::Present {
            version: u64::MAX,
            data,
            provenance: Provenance {
                confirms: confirms.or(present.confirms),
                ..present
            },
        };
        self.take(Event::ConfigChanged(read));
    }

    /// Lets the files of modules directories hold these global values.
    pub fn renew_global_values(&mut self, values: Value) -> Result<(), Failure> {
        let renewed = self.copy.renew_global_values(values);
        // Any event lets the copy go on.
        self.take(Event::TimerFired);
        renewed.map_err(|rejected| Failure::of(Class::Invalid, &rejected))
    }

    /// The time at which the copy wants to be woken.
    pub fn due(&self) -> Option<Tick> {
        self.copy.poll_timeout().map(|(due, _)| due)
    }

    /// The secrets that came into the values so far.
    pub fn secrets(&self) -> &Arc<Known> {
        &self.secrets
    }

    /// The files of modules that the copy uses from now on: those that it has taken up since the last call.
    pub fn taken_up(&mut self) -> impl Iterator<Item = (ModuleName, Edition)> {
        mem::take(&mut self.taken_up).into_iter()
    }

    /// Lets time pass. Without it the preview happens at one moment.
    pub fn pass(&mut self, now: Now) {
        self.now = now;
    }

    /// Lets an event happen: a new one, or the outcome of the job that `go_on` returned.
    pub fn take(&mut self, event: Event) {
        self.copy.handle(self.now, event);
    }

    /// Goes on until the outcome of a job has to come from outside. None at the end.
    ///
    /// Fails if the operator would end, or if one act leads to another without an end.
    pub fn go_on(&mut self) -> Result<Option<Job>, Failure> {
        loop {
            let Some(effect) = self.copy.poll_effect() else {
                return Ok(self.open.pop_front());
            };
            match effect {
                Effect::StartJob(job) => self.start(job)?,
                Effect::GiveUp(failure) => return Err(failure),
                Effect::Tell(Notice::SecretsChanged(known)) => self.secrets = known,
                Effect::Tell(Notice::FilesRefused { module, failure }) => self.refused.push((module, failure)),
                Effect::TakeUpFiles(module, edition) => self.taken_up.push((module, edition)),
                // A cancelled job ends by the outcome that it has got already.
                Effect::CancelJob(_)
                | Effect::Tell(_)
                | Effect::Reply(..)
                | Effect::JudgeFiles(..)
                | Effect::StopMonitors(_)
                | Effect::Exit => {}
            }
        }
    }

    fn start(&mut self, job: Job) -> Result<(), Failure> {
        self.jobs += 1;
        if self.jobs > MOST_JOBS {
            let report = format!("the preview was ended after {MOST_JOBS} jobs: each of them leads to another");
            return Err(Failure::new(Class::Defect, report).hint("does a hook change its own values at each run?"));
        }
        match self.outcome(job) {
            Ok(finished) => self.take(Event::JobFinished(finished)),
            Err(job) => self.open.push_back(*job),
        }
        Ok(())
    }

    /// The outcome of a job that changes the world. A job that only asks is given back.
    fn outcome(&mut self, job: Job) -> Result<Finished, Box<Job>> {
        Ok(match job {
            Job::RunHook(run, ticket) => {
                let is_tried = self.copy.bindings.get(&run.hook).is_some_and(|config| config.dry_run);
                self.steps.push(Step::Hook {
                    hook: run.hook.clone(),
                    cause: run.labels.cause,
                    is_known: self.known.contains(&run.hook),
                });
                if is_tried {
                    return Err(Box::new(Job::RunHook(run, ticket)));
                }
                Finished::HookRan(ticket, Ok(HookRan::default()))
            }
            Job::DeleteRelease { release, ticket } => {
                self.steps.push(Step::Removal(release));
                Finished::ReleaseDeleted(ticket, Ok(Reworked::default()))
            }
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
                let release = Release {
                    module,
                    values,
                    asked,
                    vetting,
                    maintenance,
                    config,
                    unhealthy,
                };
                self.synced(release, ticket)
            }
            Job::EnsureCrds { ref modules, .. } => {
                self.steps.extend(modules.iter().cloned().map(Step::Crds));
                return Err(Box::new(job));
            }
            Job::StartMonitors { .. } if self.begins_watches => return Err(Box::new(job)),
            other => return by_rote(other),
        })
    }

    /// The release gets another revision, and its objects do their work at once, so that modules that need it go on.
    fn synced(&mut self, release: Release, ticket: Ticket<AtHead>) -> Finished {
        let revision = self.copy.healths.revision(&release.module).saturating_add(1);
        let sight = HealthSight {
            release: release.module.to_string(),
            revision,
            seen: Seen::Healthy,
        };
        self.steps.push(Step::Release(Box::new(release)));
        self.take(Event::HealthSeen(sight));
        Finished::ReleaseSynced(ticket, Ok(Synced::plain(SyncAction::Upgraded, revision)))
    }
}

/// The outcome of a job whose success says nothing to people. Any other job is given back.
fn by_rote(job: Job) -> Result<Finished, Box<Job>> {
    Ok(match job {
        Job::SaveState { ticket, .. } => Finished::StateSaved(ticket, Ok(Vec::new())),
        Job::SaveValuesFiles(_, ticket) => Finished::ValuesFilesSaved(ticket, Ok(())),
        Job::SaveGiven(_, ticket) => Finished::GivenSaved(ticket, Ok(())),
        Job::SettleSections(_, ticket) => Finished::SectionsSettled(ticket, Ok(Settled::default())),
        Job::WatchReleases { ticket, .. } => Finished::ReleasesWatched(ticket, Ok(())),
        Job::PublishWebhooks(_, ticket) => Finished::WebhooksPublished(ticket, Ok(())),
        Job::StartMonitors { ticket, .. } => Finished::MonitorsStarted(ticket, Ok(())),
        Job::SaveConfig { create, ticket, .. } => {
            let saved = Saved::Written {
                version: 0,
                created: create,
            };
            Finished::ConfigSaved(ticket, Ok(saved))
        }
        // A module without an outcome would be asked for again.
        Job::EnsureConversions(of, ticket) => {
            let done = of.into_iter().map(|one| (one.module, Ok(())));
            Finished::ConversionsEnsured(ticket, Ok(done.collect()))
        }
        Job::LoadState(_)
        | Job::ReadDirectories(_)
        | Job::ListReleases(_)
        | Job::ConfigureHooks(..)
        | Job::Vet(..)
        | Job::JudgeEdit(..)
        | Job::RunEnabledScript { .. }
        | Job::RunHook(..)
        | Job::EnsureCrds { .. }
        | Job::DeleteRelease { .. }
        | Job::SyncRelease { .. } => return Err(Box::new(job)),
    })
}
