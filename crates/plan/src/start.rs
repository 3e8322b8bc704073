//! The plan of a start: what an operator would do that does not run yet.
//!
//! A core that has seen nothing goes through its first converge. Its watches begin in earnest, because hooks that are tried need
//! snapshots. Must never start a job that changes anything.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use addon_core::module::Inventory;
use addon_core::operator::Operator;
use addon_core::operator::edit::Edited;
use addon_core::operator::effect::Job;
use addon_core::operator::event::{Event, Finished};
use addon_core::operator::preview::Preview;
use addon_core::operator::query::{SourcesQuery, StatusQuery};
use addon_core::release::Reason;
use futures::FutureExt as _;
use mailbox::questions::BoxedQuestion;
use mailbox::{Mail, Mailbox};
use names::{HookId, ModuleName, Owner};
use parts::clock::Clock;
use report::secrets::Secrets;
use tokio::time::{Instant, sleep_until, timeout};

use crate::document::{Act, End, HookPlan, ModulePlan, Plan, ValuesOf};
use crate::moment::Moment;
use crate::outcome::Foresight;
use crate::planner::{LONGEST, NoPlan, noted};
use crate::supply::Supply;
use crate::world::{NewFiles, World};
use crate::writer::Writer;

/// The longest time without a job that succeeds. After it the plan says why the first converge is not over.
const SILENCE: Duration = Duration::from_secs(20);

/// An operator that has seen no event, and the news for it.
#[derive(Debug)]
pub struct Start {
    pub operator: Operator,
    pub clock: Clock,
    pub mailbox: Mailbox<Event, BoxedQuestion>,
    /// The modules and hooks on disk.
    pub inventory: Inventory,
    /// The ConfigMap that takes the place of the one in the cluster, if one does.
    pub edited: Option<Edited>,
    /// Learns the secrets of the values, so that no text shows them.
    pub secrets: Secrets,
    /// Brings the files of modules from registries.
    pub supply: Arc<dyn Supply>,
}

impl Start {
    /// The plan. It may hold secrets that `secrets` knows.
    pub async fn plan(self, world: &dyn World) -> Result<Plan, NoPlan> {
        let made = timeout(LONGEST, self.made(world)).await;
        made.map_err(|_| NoPlan::Late(LONGEST))?
    }

    async fn made(self, world: &dyn World) -> Result<Plan, NoPlan> {
        let mut rehearsal = Rehearsal {
            preview: Preview::of_start(self.operator, self.clock.now()),
            clock: self.clock,
            mailbox: self.mailbox,
            edited: self.edited,
            secrets: self.secrets,
            supply: self.supply,
            asked: BTreeSet::new(),
            left_out: Vec::new(),
        };
        rehearsal.preview.take(Event::InventoryChanged(self.inventory));
        let before = Moment::of(Box::new(rehearsal.preview.copy().clone()));
        let foresight = rehearsal.go(world).await?;
        let status = rehearsal.preview.copy().answer(&StatusQuery);
        if status.not_started {
            return Err(NoPlan::NotBegun(status.waiting));
        }
        let passed = rehearsal.preview.end();
        let mut plan = Plan::default();
        let course = noted(&passed, foresight, &mut plan);
        if !status.ready {
            plan.unfinished.extend(status.waiting);
        }
        plan.left_out.extend(rehearsal.left_out);
        let (after, files) = (Moment::of(passed.copy), NewFiles::default());
        let writer = Writer {
            world,
            files: &files,
            before: &before,
            after: &after,
            is_start: true,
        };
        writer.write(&mut plan, course).await?;
        // A start runs every module, also one for which nothing changes.
        plan.modules.retain(may_change);
        plan.hooks.retain(|hook| !is_settled(hook));
        plan.modules
            .iter_mut()
            .filter(|module| is_new(module))
            .for_each(|module| module.act = Act::SwitchOn);
        Ok(plan)
    }
}

/// Whether a module has no release yet.
fn is_new(module: &ModulePlan) -> bool {
    let reason = module.release.as_ref().map(|release| release.reason.as_str());
    reason == Some(&*Reason::NotInstalled.to_string())
}

/// Whether a run of a module changes something, or may do it by a hook whose values are not known.
fn may_change(module: &ModulePlan) -> bool {
    let end = module.release.as_ref().map(|release| release.end);
    module.act == Act::Remove
        || module.error.is_some()
        || !module.crds.is_empty()
        || !module.waits_for.is_empty()
        || !matches!(end, None | Some(End::Unchanged | End::LeftAlone))
        || !module.hooks.iter().all(is_settled)
}

/// Whether a hook was tried, and asks for no object.
fn is_settled(hook: &HookPlan) -> bool {
    hook.values == ValuesOf::Try && hook.patches.is_empty()
}

/// A core that goes through its start, and its news.
struct Rehearsal {
    preview: Preview,
    clock: Clock,
    mailbox: Mailbox<Event, BoxedQuestion>,
    edited: Option<Edited>,
    secrets: Secrets,
    supply: Arc<dyn Supply>,
    /// The modules whose registries were asked.
    asked: BTreeSet<ModuleName>,
    /// The hooks whose watches cannot begin, and the modules without files, in words.
    left_out: Vec<String>,
}

impl Rehearsal {
    /// Goes on until the first converge is over, and the modules from registries have run.
    async fn go(&mut self, world: &dyn World) -> Result<Foresight, NoPlan> {
        let mut foresight = Foresight::default();
        let mut silent_at = Instant::now() + SILENCE;
        let mut known = Arc::default();
        loop {
            let next = self.preview.go_on().map_err(NoPlan::Failed)?;
            for (module, edition) in self.preview.taken_up() {
                self.supply.take_up(&module, edition);
            }
            if !Arc::ptr_eq(&known, self.preview.secrets()) {
                known = Arc::clone(self.preview.secrets());
                self.secrets.learn(Arc::clone(&known));
            }
            let Some(job) = next else {
                let is_ready = self.preview.copy().answer(&StatusQuery).ready;
                if is_ready && self.ask_registries().await {
                    silent_at = Instant::now() + SILENCE;
                } else if is_ready || Instant::now() >= silent_at {
                    return Ok(foresight);
                } else {
                    self.wait(silent_at).await;
                }
                continue;
            };
            let watches_of = match &job {
                Job::StartMonitors { hook, .. } => Some(hook.clone()),
                _ => None,
            };
            // The job may ask the core, or wait until it has taken an event.
            let finished = self.meanwhile(foresight.outcome(world, job)).await;
            let finished = self.without_crds(watches_of, finished);
            // Work that only fails again and again is no progress.
            if finished.failure().is_none() {
                silent_at = Instant::now() + SILENCE;
            }
            self.take(Event::JobFinished(finished));
        }
    }

    /// Takes the next event, or lets time pass until the copy wants to be woken.
    async fn wait(&mut self, until: Instant) {
        let due = self.preview.due().map(|due| self.clock.instant(due));
        let mail = self.mailbox.next(sleep_until(due.map_or(until, |due| due.min(until))));
        let mail = mail.await;
        self.heed(mail);
    }

    /// The outcome of `done`. Until it is there, the core takes events and answers.
    async fn meanwhile<T>(&mut self, done: impl Future<Output = T>) -> T {
        let mut done = pin!(done);
        let done = loop {
            tokio::select! {
                mail = self.mailbox.next(std::future::pending()) => self.heed(mail),
                done = &mut done => break done,
            }
        };
        // Events that came before the end are taken before it.
        while let Some(mail) = self.mailbox.next(std::future::pending()).now_or_never() {
            self.heed(mail);
        }
        done
    }

    /// Waits for the registries of sources that were not asked yet. False if there are none.
    async fn ask_registries(&mut self) -> bool {
        let sources = self.preview.copy().answer(&SourcesQuery).unwrap_or_default();
        let new: BTreeSet<ModuleName> = sources.into_keys().filter(|name| !self.asked.contains(name)).collect();
        if new.is_empty() {
            return false;
        }
        let supply = Arc::clone(&self.supply);
        let lacks = self.meanwhile(supply.settled(&new)).await;
        let told = lacks
            .into_iter()
            .map(|(module, reason)| format!("module '{module}' comes from a registry, and {reason}"));
        self.left_out.extend(told);
        self.asked.extend(new);
        true
    }

    /// Lets the watches of a module's hook succeed that cannot begin: the module may bring their kind itself.
    fn without_crds(&mut self, hook: Option<HookId>, finished: Finished) -> Finished {
        match (hook, finished) {
            (Some(hook), Finished::MonitorsStarted(ticket, Err(failure))) if hook.owner != Owner::Global => {
                let name = &hook.name;
                self.left_out.push(format!(
                    "hook '{name}' sees no objects, because its watches cannot begin: {failure}"
                ));
                Finished::MonitorsStarted(ticket, Ok(()))
            }
            (_, finished) => finished,
        }
    }

    fn take(&mut self, event: Event) {
        self.preview.pass(self.clock.now());
        self.preview.take(event);
    }

    fn heed(&mut self, mail: Mail<Event, BoxedQuestion>) {
        match (mail, &self.edited) {
            (Mail::Question(question), _) => question.answer(self.preview.copy()),
            (Mail::Configuration(_), Some(Edited { data, confirms })) => {
                self.preview.pass(self.clock.now());
                self.preview.edit(data.clone(), confirms.clone());
            }
            (Mail::Configuration(event) | Mail::Outcome(event) | Mail::Review(event) | Mail::Object(event), _) => {
                self.take(event);
            }
            (Mail::Timer, _) => self.take(Event::TimerFired),
            (Mail::Shutdown, _) => {}
        }
    }
}
