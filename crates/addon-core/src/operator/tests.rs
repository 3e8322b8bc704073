//! Whole lives of an operator in a few lines each: which effects it asks for, in which order. Random histories are left
//! to the simulator.

mod alone;
mod brake;
mod converge;
mod conversions;
mod crds;
mod deadlines;
mod drift;
mod edits;
mod explain;
mod fare;
mod health;
mod loops;
mod lost;
mod maintenance;
mod monitors;
mod needs;
mod patches;
mod patience;
mod rates;
mod removal;
mod renewal;
mod reviews;
mod saving;
mod schedules;
mod schemas;
mod scripts;
mod sources;
mod stand_ins;
mod standing;
mod supplying;
mod synchronization;
mod trial;
mod vetting;
mod warmth;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use names::ModuleName;
use names::{HookId, HookName, MonitorId, Owner};
use serde_json::{Value, json};
use values_schema::schema::Schemas;

use super::effect::{FilesVerdict, Job, Notice};
use super::event::{
    Asked, ConfigRead, Finished, HookRan, ObjectChange, ObjectWritten, ReleaseSummary, ReviewId, Reworked, Saved,
    SavedState, ScriptAnswer, SyncAction, Synced,
};
use super::policy::{Leadership, Mode};
use super::provenance::{Made, Provenance, digest};
use super::query::{
    ChannelQuery, ConfigValuesQuery, ModulesQuery, MonitorsQuery, NoSuchModule, PulseQuery, QueuesQuery,
    ReleaseValuesQuery, Secrets, StatusQuery, ValuesQuery,
};
use super::*;
use crate::failure::Class;
use crate::failure::Failure;
use crate::hook::config::{HookConfig, HookKind, WatchEvent};
use crate::hook::context::BindingContext;
use crate::hook::output::HookOutput;
use crate::module::outline::{Outline, ValuesFiles};
use crate::module::{Inventory, Module, Origin};
use crate::object::{ObjectName, ObjectView};
use crate::release::ConfigTrace;
use crate::review::reply::Reply;
use crate::review::response::HookResponse;
use crate::values::Given;
use crate::values::patch::{Patch, PatchFile};
use crate::values::trial_sections::TrialSections;

/// A world in which every job ends at once, with the outcome that the test wants.
struct World {
    operator: Operator,
    tick: Tick,
    /// The amount by which the wall clock was set.
    set: jiff::SignedDuration,
    inventory: Inventory,
    hooks: BTreeMap<(String, String), String>,
    releases: Vec<ReleaseSummary>,
    data: BTreeMap<String, String>,
    version: u64,
    /// The jobs that ran, as texts.
    log: Vec<String>,
    /// The owners whose hooks were asked for their configuration: `OWNER --config`.
    asked: Vec<String>,
    notices: Vec<Notice>,
    /// The replies to the API server.
    replies: Vec<(ReviewId, Reply)>,
    /// The answers of hooks to the API server, by the texts of their jobs.
    responses: BTreeMap<String, HookResponse>,
    /// The jobs that fail, by their texts, and how many times.
    failing: BTreeMap<String, usize>,
    /// Whether jobs fail because the API server is away.
    is_away: bool,
    /// The jobs that stay open, by their texts.
    open: BTreeSet<String>,
    pending: Vec<Job>,
    patches: BTreeMap<String, (Patch, Patch)>,
    /// The values that hooks set to another number in each run, by the texts of their jobs.
    counting: BTreeMap<String, &'static str>,
    /// The objects that hooks write in each run, by the texts of their jobs.
    wrote: BTreeMap<String, Vec<ObjectWritten>>,
    last_good: Option<BTreeMap<String, String>>,
    made: Option<Made>,
    provenance: Provenance,
    /// The traces of the ConfigMap on releases.
    traces: BTreeMap<ModuleName, ConfigTrace>,
    /// Keys for which the state Secret has no room.
    unkept: Vec<String>,
    /// The outlines of values files in the state Secret.
    values_files: Option<ValuesFiles>,
    /// The values that global hooks gave, as the state Secret holds them.
    given: BTreeMap<HookName, Given>,
    /// The contents of the directories for a second reading, if they differ from the inventory.
    lies: Option<Outline>,
    /// The sections that hooks saved on trial, as the state Secret holds them.
    trial_sections: TrialSections,
    /// Modules whose CRDs exist in another form.
    other_crds: BTreeSet<ModuleName>,
    /// Monitors that are watching, by `OWNER/HOOK BINDING`, with the number of changes that each has reported.
    monitors: BTreeMap<String, (MonitorId, u64)>,
    /// Monitors that were stopped.
    stopped: Vec<String>,
    /// Releases whose health is told by hand. All others are healthy at once.
    ill: BTreeSet<String>,
    /// The revisions that syncs make, if they are not the first.
    revisions: BTreeMap<String, u32>,
    /// Releases whose health was not told since their last sync.
    untold: Vec<String>,
}

fn name(text: &str) -> ModuleName {
    ModuleName::parse(text).unwrap()
}

fn module(order: u32, text: &str) -> Module {
    Module {
        enabled: Some(true),
        has_chart: true,
        ..Module::without_files(name(text), order)
    }
}

impl World {
    fn new(modules: Vec<Module>) -> Self {
        let inventory = Inventory {
            global_values: json!({}),
            global_schemas: Schemas::default(),
            has_global_hooks: false,
            modules,
            values_files: BTreeMap::new(),
            complete: true,
        };
        Self {
            operator: Operator::new(1, Policy::default()),
            tick: Tick::ZERO,
            set: jiff::SignedDuration::ZERO,
            inventory,
            hooks: BTreeMap::new(),
            releases: Vec::new(),
            data: BTreeMap::new(),
            version: 1,
            log: Vec::new(),
            asked: Vec::new(),
            notices: Vec::new(),
            replies: Vec::new(),
            responses: BTreeMap::new(),
            failing: BTreeMap::new(),
            is_away: false,
            open: BTreeSet::new(),
            pending: Vec::new(),
            patches: BTreeMap::new(),
            counting: BTreeMap::new(),
            wrote: BTreeMap::new(),
            last_good: None,
            made: None,
            provenance: Provenance::default(),
            traces: BTreeMap::new(),
            unkept: Vec::new(),
            values_files: None,
            given: BTreeMap::new(),
            lies: None,
            trial_sections: TrialSections::default(),
            other_crds: BTreeSet::new(),
            monitors: BTreeMap::new(),
            stopped: Vec::new(),
            ill: BTreeSet::new(),
            revisions: BTreeMap::new(),
            untold: Vec::new(),
        }
    }

    /// A world with hooks and no modules.
    fn alone() -> Self {
        let mut world = Self::new(Vec::new());
        let policy = Policy {
            mode: Mode::Hooks,
            ..Policy::default()
        };
        world.operator = Operator::new(1, policy);
        world
    }

    /// Adds a hook whose configuration has no version.
    fn old_hook(mut self, owner: &str, hook: &str, config: &str) -> Self {
        self = self.hook(owner, hook, "");
        self.hooks
            .insert((owner.to_owned(), hook.to_owned()), config.to_owned());
        self
    }

    /// Adds a hook of a module, or a global hook if `owner` is empty.
    fn hook(mut self, owner: &str, hook: &str, config: &str) -> Self {
        self.hooks.insert(
            (owner.to_owned(), hook.to_owned()),
            format!("configVersion: v1\n{config}"),
        );
        if owner.is_empty() {
            self.inventory.has_global_hooks = true;
        }
        for module in &mut self.inventory.modules {
            module.has_hooks |= module.name.as_str() == owner;
        }
        self
    }

    fn patching(mut self, words: &str, values: &Value, config: &Value) -> Self {
        self.patches.insert(
            words.to_owned(),
            (patch(values, PatchFile::Values), patch(config, PatchFile::Config)),
        );
        self
    }

    fn now(&self) -> Now {
        let wall = jiff::Timestamp::from_second(1_800_000_000).unwrap() + (self.tick - Tick::ZERO) + self.set;
        Now { tick: self.tick, wall }
    }

    fn handle(&mut self, event: Event) {
        self.tick = self.tick + Duration::from_millis(1);
        self.operator.handle(self.now(), event);
        self.drain();
        self.tell_healths();
    }

    fn start(mut self) -> Self {
        self.handle(Event::InventoryChanged(self.inventory.clone()));
        self.edit(&[]);
        self
    }

    /// Starts as a standby, with this number of slots for hooks.
    fn standby(mut self, hook_slots: usize) -> Self {
        let policy = Policy {
            leadership: Leadership::Elected,
            hook_slots,
            watches_releases: true,
            ..Policy::default()
        };
        self.operator = Operator::new(1, policy);
        self.handle(Event::LedByAnother);
        self.start()
    }

    fn edit(&mut self, edits: &[(&str, Option<&str>)]) {
        for (key, text) in edits {
            match text {
                Some(text) => self.data.insert((*key).to_owned(), (*text).to_owned()),
                None => self.data.remove(*key),
            };
        }
        self.version += 1;
        let read = ConfigRead::Present {
            version: self.version,
            data: self.data.clone(),
            provenance: self.provenance.clone(),
        };
        self.handle(Event::ConfigChanged(read));
    }

    fn drain(&mut self) {
        while let Some(effect) = self.operator.poll_effect() {
            match effect {
                Effect::StartJob(job) => self.pending.push(job),
                Effect::Tell(notice) => self.notices.push(notice),
                Effect::CancelJob(id) => self.log.push(format!("cancel {id}")),
                Effect::Reply(id, reply) => self.replies.push((id, reply)),
                Effect::StopMonitors(ids) => {
                    let known = std::mem::take(&mut self.monitors);
                    let (gone, kept) = known.into_iter().partition(|(_, (id, _))| ids.contains(id));
                    self.monitors = kept;
                    let gone: BTreeMap<_, _> = gone;
                    self.stopped.extend(gone.into_keys());
                }
                Effect::TakeUpFiles(module, edition) => self.log.push(format!("files of {module} {}", edition.0)),
                Effect::JudgeFiles(module, edition, verdict) => {
                    let word = match verdict {
                        FilesVerdict::Good => "Good",
                        FilesVerdict::Bad(_) => "Bad",
                    };
                    self.log.push(format!("judged {module} {} {word}", edition.0));
                }
                Effect::Exit => self.log.push("exit".to_owned()),
                Effect::GiveUp(failure) => self.log.push(format!("gives up: {failure}")),
            }
        }
        if let Some(at) = self.pending.iter().position(|job| !self.open.contains(&known_as(job))) {
            let job = self.pending.remove(at);
            let finished = self.carry_out(&job);
            self.handle(Event::JobFinished(finished));
        }
    }

    fn carry_out(&mut self, job: &Job) -> Finished {
        let (words, known_as) = (words(job), known_as(job));
        if let Job::ConfigureHooks(..) = job {
            self.asked.push(known_as.clone());
        }
        if let Some(left) = self.failing.get_mut(&known_as).filter(|left| **left > 0) {
            *left -= 1;
            self.log.push(format!("{known_as} fails"));
            let is_request = known_as.is_empty();
            let class = match (self.is_away, is_request) {
                (true, _) => Class::Unavailable,
                (false, true) => Class::Refused,
                (false, false) => Class::HookFailed,
            };
            return job.failed(Failure::new(class, "no").hint("try another"));
        }
        if !words.is_empty() {
            self.log.push(format!("{words}{}", told(job)));
        }
        match job.clone() {
            Job::PublishWebhooks(_, ticket) => Finished::WebhooksPublished(ticket, Ok(())),
            Job::Vet(unvetted, ticket) => Finished::Vetted(ticket, Ok(unvetted.vet())),
            Job::JudgeEdit(edit, ticket) => Finished::EditJudged(ticket, Ok(edit.judge())),
            Job::LoadState(ticket) => {
                let state = SavedState {
                    last_good: self.last_good.clone(),
                    made: self.made.clone(),
                    values_files: self.values_files.clone(),
                    trial_sections: self.trial_sections.clone(),
                    given: self.given.clone(),
                };
                Finished::StateLoaded(ticket, Ok(state))
            }
            Job::SaveState {
                last_good,
                made,
                ticket,
            } => {
                self.last_good = Some(last_good);
                self.made = made;
                Finished::StateSaved(ticket, Ok(self.unkept.clone()))
            }
            Job::SaveValuesFiles(files, ticket) => {
                self.values_files = Some(files);
                Finished::ValuesFilesSaved(ticket, Ok(()))
            }
            Job::SaveGiven(given, ticket) => {
                self.given = given;
                Finished::GivenSaved(ticket, Ok(()))
            }
            Job::ReadDirectories(ticket) => {
                let outline = self.lies.clone().unwrap_or_else(|| self.inventory.outline());
                Finished::DirectoriesRead(ticket, Ok(outline))
            }
            Job::ListReleases(ticket) => Finished::ReleasesListed(ticket, Ok(self.releases.clone())),
            Job::EnsureCrds {
                modules,
                on_trial,
                ticket,
            } => Finished::CrdsEnsured(ticket, Ok(self.crds(&modules, on_trial))),
            Job::WatchReleases { ticket, .. } => Finished::ReleasesWatched(ticket, Ok(())),
            Job::EnsureConversions(of, ticket) => Finished::ConversionsEnsured(ticket, Ok(self.conversions(&of))),
            Job::ConfigureHooks(owner, ticket) => Finished::HooksConfigured(ticket, Ok(self.configs(&owner))),
            Job::StartMonitors { hook, monitors, ticket } => {
                for start in monitors {
                    let name = format!("{} {}", hook_words(&hook), start.binding.name);
                    self.monitors.entry(name).or_insert((start.id, 0));
                }
                Finished::MonitorsStarted(ticket, Ok(()))
            }
            Job::RunHook(run, ticket) => {
                let (mut values, config) = self.patches.get(&words).cloned().unwrap_or_default();
                if let Some(path) = self.counting.get(&words) {
                    let number = self.tick.as_micros();
                    values = patch(
                        &json!([{"op": "add", "path": path, "value": number}]),
                        PatchFile::Values,
                    );
                }
                let ran = HookRan {
                    output: HookOutput { config, values },
                    usage: event::Usage::default(),
                    response: Box::new(self.responses.get(&words).cloned().unwrap_or_default()),
                    read: self.read(&run),
                    wrote: self.wrote.get(&words).cloned().unwrap_or_default(),
                };
                Finished::HookRan(ticket, Ok(ran))
            }
            Job::RunEnabledScript { .. } => {
                let yes = ScriptAnswer {
                    enabled: true,
                    ..Default::default()
                };
                answered(job, yes)
            }
            Job::SyncRelease {
                vetting: Some(vetting), ..
            } if vetting.for_helm().is_err() => job.failed(Failure::new(Class::Invalid, "unfit for helm")),
            Job::SyncRelease {
                module, config, ticket, ..
            } => {
                let revision = self.revisions.get(module.as_str()).copied().unwrap_or(1);
                let synced = Synced {
                    remarks: vec![format!("a webhook of {module}")],
                    ..Synced::plain(SyncAction::Upgraded, revision)
                };
                self.untold.push(module.to_string());
                self.traces.insert(module, config);
                Finished::ReleaseSynced(ticket, Ok(synced))
            }
            Job::DeleteRelease { release, ticket } => {
                self.traces.remove(release.as_str());
                Finished::ReleaseDeleted(ticket, Ok(Reworked::default()))
            }
            Job::SettleSections(ruling, ticket) => Finished::SectionsSettled(ticket, Ok(self.settle(ruling))),
            Job::SaveConfig {
                key,
                text,
                create,
                on_trial,
                ..
            } => {
                self.note(&key, &text, on_trial);
                let as_made = create || self.provenance.is_as_made(&self.data);
                self.data.insert(key, text);
                self.version += 1;
                if as_made {
                    self.provenance.made_with = Some(digest(&self.data));
                }
                let written = Saved::Written {
                    version: self.version,
                    created: create,
                };
                saved(job, written)
            }
        }
    }

    /// The last changes that the snapshots of a run include.
    fn read(&self, run: &effect::HookRun) -> BTreeMap<MonitorId, u64> {
        let monitors = self.monitors.values().copied();
        let wanted: BTreeSet<_> = run.snapshots.values().collect();
        monitors.filter(|(id, _)| wanted.contains(id)).collect()
    }

    /// Changes an object of a binding and reports it to the operator.
    fn change(&mut self, monitor: &str, event: WatchEvent, object: &str) {
        let change = self.change_unheard(monitor, event, object);
        self.handle(Event::ObjectChanged(change));
    }

    /// Changes an object of a binding. The report is returned and not sent yet.
    fn change_unheard(&mut self, monitor: &str, event: WatchEvent, object: &str) -> ObjectChange {
        let (id, seq) = self.monitors.get_mut(monitor).expect("a monitor of that name");
        *seq += 1;
        ObjectChange {
            monitor: *id,
            seq: *seq,
            event,
            name: ObjectName {
                name: object.to_owned(),
                ..ObjectName::default()
            },
            view: ObjectView::default(),
            version: 0,
            release: None,
            by_tool: false,
        }
    }

    /// The tasks of a queue as the report shows them.
    fn tasks(&self, queue: &str) -> Vec<String> {
        let queues = self.operator.answer(&QueuesQuery);
        let of_queue = queues.into_iter().filter(|report| report.name == queue);
        of_queue
            .flat_map(|report| report.tasks)
            .map(|task| task.description)
            .collect()
    }

    fn waits_for(&self, module: &str) -> String {
        let modules = self.operator.answer(&ModulesQuery);
        let report = modules.into_iter().find(|report| report.name == module);
        report.map(|report| report.waits_for).unwrap()
    }

    fn status(&self) -> query::Status {
        self.operator.answer(&StatusQuery)
    }

    fn configs(&self, owner: &Owner) -> Vec<(HookName, HookConfig)> {
        let whose = owner.module().map(ToString::to_string).unwrap_or_default();
        let of_owner = self.hooks.iter().filter(|((owner, _), _)| *owner == whose);
        of_owner
            .map(|((_, hook), text)| {
                (
                    HookName::parse(hook).unwrap(),
                    HookConfig::parse(text, self.kind(owner)).unwrap(),
                )
            })
            .collect()
    }

    fn kind(&self, owner: &Owner) -> HookKind {
        match self.operator.cx.policy.mode {
            Mode::Addons => HookKind::from(owner),
            Mode::Hooks => HookKind::Standalone,
        }
    }

    /// Lets time pass until the operator wants to be woken.
    fn sleep(&mut self) {
        let (at, _) = self.operator.poll_timeout().expect("something to wait for");
        self.tick = at;
        self.operator.handle(self.now(), Event::TimerFired);
        self.drain();
    }

    fn close(&mut self, words_wanted: &str) {
        self.open.remove(words_wanted);
        self.drain();
    }

    fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    fn state(&self, module: &str) -> String {
        let modules = self.operator.answer(&ModulesQuery);
        modules
            .into_iter()
            .find(|report| report.name == module)
            .map(|report| report.state)
            .unwrap()
    }
}

fn patch(value: &Value, file: PatchFile) -> Patch {
    Patch::parse(&value.to_string(), file).unwrap()
}

/// The outcome of the write of a section.
fn saved(job: &Job, saved: Saved) -> Finished {
    let Job::SaveConfig { ticket, .. } = job else {
        panic!("{job:?}")
    };
    Finished::ConfigSaved(ticket.clone(), Ok(saved))
}

/// The answer of an enabled script.
fn answered(job: &Job, answer: ScriptAnswer) -> Finished {
    let Job::RunEnabledScript { ticket, .. } = job else {
        panic!("{job:?}")
    };
    Finished::ScriptAnswered(ticket.clone(), Ok(answer))
}

/// The text of a job; empty for chores and for the configuration of hooks.
fn words(job: &Job) -> String {
    match job {
        Job::LoadState(_)
        | Job::SaveState { .. }
        | Job::SaveValuesFiles(..)
        | Job::SaveGiven(..)
        | Job::ReadDirectories(_)
        | Job::ListReleases(_)
        | Job::ConfigureHooks(..) => String::new(),
        Job::SettleSections(ruling, _) => format!("settle {ruling:?}"),
        Job::EnsureCrds { modules, .. } => {
            let names: Vec<_> = modules.iter().map(ToString::to_string).collect();
            format!("crds of {}", names.join(", "))
        }
        Job::EnsureConversions(of, _) => {
            let names: Vec<_> = of.iter().map(|one| one.module.to_string()).collect();
            format!("conversions of {}", names.join(", "))
        }
        // A publication of no routes is not worth a line.
        Job::PublishWebhooks(routes, _) if routes.is_empty() => String::new(),
        Job::PublishWebhooks(..) => "publish".to_owned(),
        Job::WatchReleases { .. } => "watch releases".to_owned(),
        Job::Vet(unvetted, _) => {
            let keys: Vec<_> = unvetted.owners().into_iter().map(Owner::values_key).collect();
            format!("vet {}", keys.join(", "))
        }
        Job::JudgeEdit(..) => "judge".to_owned(),
        Job::StartMonitors { hook, .. } => format!("{} watch", hook_words(hook)),
        Job::RunHook(run, _) => format!("{} {}", hook_words(&run.hook), run.labels.cause),
        Job::RunEnabledScript { module, .. } => format!("{module} enabled?"),
        Job::SyncRelease {
            module,
            unhealthy: Some(unhealthy),
            ..
        } => format!("{module} sync away from {}", unhealthy.revision),
        Job::SyncRelease { module, .. } => format!("{module} sync"),
        Job::DeleteRelease { release, .. } => format!("{release} delete"),
        Job::SaveConfig { key, .. } => format!("save {key}"),
    }
}

/// The texts by which a test can make a job fail or keep it open.
fn known_as(job: &Job) -> String {
    match job {
        Job::ConfigureHooks(Owner::Global, _) => "--config".to_owned(),
        Job::ConfigureHooks(Owner::Module(module), _) => format!("{module} --config"),
        job => words(job),
    }
}

fn hook_words(hook: &HookId) -> String {
    let whose = hook.owner.module().map(|name| format!("{name}/"));
    format!("{}{}", whose.unwrap_or_default(), hook.name)
}

/// The objects in the contexts of a hook's run, as a text.
fn told(job: &Job) -> String {
    let Job::RunHook(run, _) = job else {
        return String::new();
    };
    let contexts = run.contexts.iter().filter_map(|context| {
        let group = context.group().map(|group| format!(" of {group}")).unwrap_or_default();
        match context {
            BindingContext::Synchronization(told) => Some(format!(" [{} all{group}]", told.binding)),
            BindingContext::Event { told, event, name, .. } => {
                Some(format!(" [{} {event:?} {}{group}]", told.binding, name.name))
            }
            _ => None,
        }
    });
    contexts.collect()
}
