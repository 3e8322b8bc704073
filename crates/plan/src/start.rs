//! The plan of a start: what an operator would do that does not run yet.
//!
//! A core that has seen nothing goes through its first converge. Its watches begin in earnest, because hooks that are tried need
//! snapshots. Must never start a job that changes anything.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use addon_core::module::Inventory;
use addon_core::operator::Operator;
use addon_core::operator::edit::Edited;
use addon_core::operator::event::Event;
use addon_core::operator::preview::Preview;
use addon_core::operator::query::{SourcesQuery, StatusQuery};
use addon_core::release::Reason;
use clock::Now;
use mailbox::questions::BoxedQuestion;
use mailbox::{Mail, Mailbox};
use masking::secret::known::Known;
use tokio::time::timeout;

use crate::course::Patches;
use crate::document::{Act, End, HookPlan, ModulePlan, Plan, ValuesOf};
use crate::moment::Moment;
use crate::planner::{LONGEST, NoPlan, Writer, noted, outcome};
use crate::world::{NewFiles, World};

/// The longest wait for news while there is nothing to do. After it the plan says why the first converge is not over.
const SILENCE: Duration = Duration::from_secs(20);

/// An operator that has seen no event, and the news for it.
#[derive(Debug)]
pub struct Start {
    pub operator: Operator,
    pub now: Now,
    pub mailbox: Mailbox<Event, BoxedQuestion>,
    /// The modules and hooks on disk.
    pub inventory: Inventory,
    /// The ConfigMap that takes the place of the one in the cluster, if one does.
    pub edited: Option<Edited>,
}

impl Start {
    /// The plan, and the secrets that it may hold.
    pub async fn plan(self, world: &dyn World) -> Result<(Plan, Arc<Known>), NoPlan> {
        let made = timeout(LONGEST, self.made(world)).await;
        made.map_err(|_| NoPlan::Late(LONGEST))?
    }

    async fn made(self, world: &dyn World) -> Result<(Plan, Arc<Known>), NoPlan> {
        let mut rehearsal = Rehearsal {
            preview: Preview::of_start(self.operator, self.now),
            mailbox: self.mailbox,
            edited: self.edited,
        };
        rehearsal.preview.take(Event::InventoryChanged(self.inventory));
        let before = Moment::of(Box::new(rehearsal.preview.copy().clone()));
        let patches = rehearsal.go(world).await?;
        let status = rehearsal.preview.copy().answer(&StatusQuery);
        let passed = rehearsal.preview.end();
        let mut plan = Plan::default();
        let course = noted(&passed, &patches, &mut plan);
        if !status.ready {
            plan.unfinished.extend(status.waiting);
        }
        let sources = passed.copy.answer(&SourcesQuery).unwrap_or_default();
        let sources = sources
            .keys()
            .map(|name| format!("module '{name}' comes from a registry, and only an operator reads its files"));
        plan.left_out.extend(sources);
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
        plan.modules
            .iter_mut()
            .filter(|module| is_new(module))
            .for_each(|module| module.act = Act::SwitchOn);
        Ok((plan, passed.secrets))
    }
}

/// Whether a run of a module changes something, or may do it by a hook whose values are not known.
fn may_change(module: &ModulePlan) -> bool {
    let is_settled = |hook: &HookPlan| hook.values == ValuesOf::Try && hook.patches.is_empty();
    let end = module.release.as_ref().map(|release| release.end);
    module.act != Act::Run
        || module.error.is_some()
        || !module.waits_for.is_empty()
        || !matches!(end, None | Some(End::Unchanged | End::LeftAlone))
        || !module.hooks.iter().all(is_settled)
}

/// Whether a module has no release yet.
fn is_new(module: &ModulePlan) -> bool {
    let reason = module.release.as_ref().map(|release| release.reason.as_str());
    reason == Some(&*Reason::NotInstalled.to_string())
}

/// A core that goes through its start, and its news.
struct Rehearsal {
    preview: Preview,
    mailbox: Mailbox<Event, BoxedQuestion>,
    edited: Option<Edited>,
}

impl Rehearsal {
    /// Goes on until the first converge is over. Returns the patches of the hooks that were tried.
    async fn go(&mut self, world: &dyn World) -> Result<Patches, NoPlan> {
        let mut patches = Patches::new();
        loop {
            let Some(job) = self.preview.go_on().map_err(NoPlan::Failed)? else {
                if self.preview.copy().answer(&StatusQuery).ready {
                    return Ok(patches);
                }
                let Ok(mail) = timeout(SILENCE, self.mailbox.next(pending())).await else {
                    return Ok(patches);
                };
                self.heed(mail);
                continue;
            };
            // The job may ask the core, or wait until it has taken an event.
            let mut done = Box::pin(outcome(world, job, &mut patches));
            let finished = loop {
                tokio::select! {
                    finished = &mut done => break finished,
                    mail = self.mailbox.next(pending()) => self.heed(mail),
                }
            };
            drop(done);
            self.preview.take(Event::JobFinished(finished));
        }
    }

    fn heed(&mut self, mail: Mail<Event, BoxedQuestion>) {
        match mail {
            Mail::Question(question) => question.answer(self.preview.copy()),
            Mail::Configuration(event) => match &self.edited {
                Some(Edited { data, confirms }) => self.preview.edit(data.clone(), confirms.clone()),
                None => self.preview.take(event),
            },
            Mail::Outcome(event) | Mail::Review(event) | Mail::Object(event) => self.preview.take(event),
            Mail::Shutdown | Mail::Timer => {}
        }
    }
}
