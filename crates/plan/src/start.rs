//! The plan of a start: what an operator would do that does not run yet.
//!
//! A core that has seen nothing goes through its first converge. Its watches begin in earnest, because hooks that are tried need
//! snapshots. Must never start a job that changes anything.

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
use mailbox::questions::BoxedQuestion;
use mailbox::{Mail, Mailbox};
use names::{HookId, Owner};
use parts::clock::Clock;
use report::secrets::Secrets;
use tokio::time::{Instant, sleep_until, timeout};

use crate::course::Patches;
use crate::document::{Act, End, HookPlan, ModulePlan, Plan, ValuesOf};
use crate::moment::Moment;
use crate::planner::{LONGEST, NoPlan, noted, outcome};
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
            unwatched: Vec::new(),
        };
        rehearsal.preview.take(Event::InventoryChanged(self.inventory));
        // Files from registries are read by an operator alone.
        rehearsal.preview.take(Event::CopiesRead);
        let before = Moment::of(Box::new(rehearsal.preview.copy().clone()));
        let patches = rehearsal.go(world).await?;
        let status = rehearsal.preview.copy().answer(&StatusQuery);
        if status.not_started {
            return Err(NoPlan::NotBegun(status.waiting));
        }
        let passed = rehearsal.preview.end();
        let mut plan = Plan::default();
        let course = noted(&passed, &patches, &mut plan);
        if !status.ready {
            plan.unfinished.extend(status.waiting);
        }
        plan.left_out.extend(rehearsal.unwatched);
        let sources = passed.copy.answer(&SourcesQuery).unwrap_or_default();
        let of_source = |name| format!("module '{name}' comes from a registry, and only an operator reads its files");
        plan.left_out.extend(sources.keys().map(of_source));
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
    /// The hooks whose watches cannot begin, in words.
    unwatched: Vec<String>,
}

impl Rehearsal {
    /// Goes on until the first converge is over. Returns the patches of the hooks that were tried.
    async fn go(&mut self, world: &dyn World) -> Result<Patches, NoPlan> {
        let mut patches = Patches::new();
        let mut silent_at = Instant::now() + SILENCE;
        let mut known = Arc::default();
        loop {
            let next = self.preview.go_on().map_err(NoPlan::Failed)?;
            if !Arc::ptr_eq(&known, self.preview.secrets()) {
                known = Arc::clone(self.preview.secrets());
                self.secrets.learn(Arc::clone(&known));
            }
            let Some(job) = next else {
                if self.preview.copy().answer(&StatusQuery).ready || Instant::now() >= silent_at {
                    return Ok(patches);
                }
                let due = self.preview.due().map(|due| self.clock.instant(due));
                let mail = self
                    .mailbox
                    .next(sleep_until(due.map_or(silent_at, |due| due.min(silent_at))))
                    .await;
                self.heed(mail);
                continue;
            };
            let watches_of = match &job {
                Job::StartMonitors { hook, .. } => Some(hook.clone()),
                _ => None,
            };
            // The job may ask the core, or wait until it has taken an event.
            let mut done = Box::pin(outcome(world, job, &mut patches));
            let finished = loop {
                tokio::select! {
                    finished = &mut done => break finished,
                    mail = self.mailbox.next(std::future::pending()) => self.heed(mail),
                }
            };
            drop(done);
            let finished = self.without_crds(watches_of, finished);
            // Work that only fails again and again is no progress.
            if finished.failure().is_none() {
                silent_at = Instant::now() + SILENCE;
            }
            self.take(Event::JobFinished(finished));
        }
    }

    /// Lets the watches of a module's hook succeed that cannot begin: the module may bring their kind itself.
    fn without_crds(&mut self, hook: Option<HookId>, finished: Finished) -> Finished {
        match (hook, finished) {
            (Some(hook), Finished::MonitorsStarted(ticket, Err(failure))) if hook.owner != Owner::Global => {
                let name = &hook.name;
                self.unwatched.push(format!(
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
