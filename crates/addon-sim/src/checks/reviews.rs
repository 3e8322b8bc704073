//! The questions of the API server, and the published webhooks: A1 to A5.
//!
//! A question has a number. The request carries it as its uid, and so does every run for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use addon_core::failure::Class;
use addon_core::operator::effect::{Effect, HookRun, Job, Notice};
use addon_core::operator::event::{Event, Finished, HookRan, ReviewId};
use addon_core::review::reply::{NoAnswer, Reply};
use addon_core::review::routes::Routes;
use names::HookId;
use serde_json::Value;

use super::{SimStep, Violation, ensure};
use crate::life::Seen;
use crate::setup::{Asks, HookSpec, Webhook};
use crate::world::{World, owner_name, review_of};

/// The questions without an answer yet.
#[derive(Debug, Default)]
pub(super) struct Reviews {
    open: BTreeMap<u64, Open>,
    kept: Kept,
}

/// The state of the published webhooks.
#[derive(Debug, Default)]
struct Kept {
    /// Whether the last publication had routes.
    wanted: bool,
    /// Whether a job is publishing.
    running: bool,
    /// The time until which the webhooks have to be compared again after a change, in microseconds of the world.
    due: Option<u64>,
}

/// The delay of a comparison after a change, in microseconds.
const SOON: u64 = 1_000_000;

/// A review that the API server waits for.
#[derive(Debug, Clone)]
struct Open {
    /// The time after which no answer is awaited, in microseconds of the world.
    until: u64,
    /// The modules that were enabled when the API server asked.
    enabled: BTreeSet<String>,
    /// The hooks that have run for the review.
    ran: Vec<String>,
    /// Whether a hook is running for the review.
    running: bool,
    /// Whether the last run of a hook for the review exceeded its time limit.
    timed_out: bool,
}

/// Whether the effect is about a run for the API server.
pub(super) fn is_of_review(effect: &Effect) -> bool {
    match effect {
        Effect::StartJob(Job::JudgeEdit(..)) => true,
        Effect::StartJob(job) => review_of(job).is_some(),
        Effect::Tell(
            Notice::HookStarted { labels, .. }
            | Notice::HookSucceeded { labels, .. }
            | Notice::HookFailed { labels, .. },
        ) => [Asks::Validating, Asks::Mutating, Asks::Converting(1, 2)]
            .iter()
            .any(|asks| asks.key() == labels.cause.key()),
        _ => false,
    }
}

fn is_enabled(seen: &Seen, hook: &HookId) -> bool {
    let Some(module) = hook.owner.module() else { return true };
    seen.modules.get(module.as_str()).is_some_and(|module| module.enabled)
}

impl Reviews {
    /// Notes the facts in the event, before its effects.
    pub(super) fn event(&mut self, step: &SimStep<'_>) {
        match step.event {
            Event::ReviewRequested(ReviewId(number), asked) => {
                let enabled = step.before.modules.values().filter(|module| module.enabled);
                let within = u64::try_from(asked.within.as_micros()).unwrap_or(u64::MAX);
                let open = Open {
                    until: step.clock + within,
                    enabled: enabled.map(|module| module.name.clone()).collect(),
                    ran: Vec::new(),
                    running: false,
                    timed_out: false,
                };
                self.open.insert(*number, open);
            }
            Event::WebhooksTouched if self.kept.wanted => {
                self.kept.due.get_or_insert(step.clock + SOON);
            }
            Event::JobFinished(_) if matches!(step.ended, Some(Job::PublishWebhooks(..))) => {
                self.kept.running = false;
                if let Some(due) = &mut self.kept.due {
                    *due = step.clock + SOON;
                }
            }
            Event::JobFinished(finished) => {
                let number = step.ended.and_then(review_of);
                let Some(open) = number.and_then(|number| self.open.get_mut(&number)) else {
                    return;
                };
                open.running = false;
                let late = |class| matches!(class, Class::TimedOut | Class::Cancelled);
                open.timed_out = finished.failure().is_some_and(|failure| late(failure.class));
            }
            _ => {}
        }
    }

    pub(super) fn effect(&mut self, step: &SimStep<'_>, effect: &Effect) -> Result<(), Violation> {
        match effect {
            Effect::StartJob(job @ Job::RunHook(run, _)) => match review_of(job) {
                Some(number) => self.run(step, number, run),
                None => Ok(()),
            },
            Effect::StartJob(Job::PublishWebhooks(routes, _)) => {
                self.kept = Kept {
                    wanted: !routes.is_empty(),
                    running: true,
                    due: None,
                };
                published_live(step, routes)
            }
            Effect::Reply(ReviewId(number), reply) => {
                let Some(open) = self.open.remove(number) else {
                    let text = format!("review {number} is answered, and nobody waits for that: {reply:?}");
                    return Err(Violation::new("A1", text));
                };
                open.reply(step, *number, reply)
            }
            Effect::Exit => ensure(self.open.is_empty(), "A1", || {
                format!("it ends and leaves without an answer {:?}", self.open.keys())
            }),
            _ => Ok(()),
        }
    }

    /// A2, A3: a hook is started only for an open question, if it was ready when the question came, and with a deadline
    /// in time.
    fn run(&mut self, step: &SimStep<'_>, number: u64, run: &HookRun) -> Result<(), Violation> {
        let hook = &run.hook;
        let Some(open) = self.open.get_mut(&number) else {
            let text = format!("{hook} runs for review {number}, for which nobody waits");
            return Err(Violation::new("A1", text));
        };
        ensure(!open.running, "A1", || format!("two hooks run for review {number}"))?;
        let owner = owner_name(&hook.owner);
        let asked = hook.owner.module().is_none() || open.enabled.contains(&owner);
        ensure(asked && is_enabled(step.after, hook), "A2", || {
            format!("{hook} runs for review {number}, but its module was switched off when that was asked, or is now")
        })?;
        let left = open.until.saturating_sub(step.clock);
        let deadline = u64::try_from(run.deadline.as_micros()).unwrap_or(u64::MAX);
        let own = timeout_of(step.world, run).map_or(u64::MAX, |seconds| seconds * 1_000_000);
        ensure(deadline > 0 && deadline <= left.min(own), "A3", || {
            format!(
                "{hook} may run for {deadline} µs, but its answer is awaited for {left} µs, and it may take {own} µs"
            )
        })?;
        open.running = true;
        open.ran.push(format!("{owner}/{}", hook.name));
        Ok(())
    }

    /// Ends a step: a question whose time is over has an answer, and no question waits while a slot is free.
    pub(super) fn over(&mut self, step: &SimStep<'_>, starts: &[&Job]) -> Result<(), Violation> {
        let mut waits = step.after.status.waiting.iter();
        let put_off = step.life.stopping.is_some() || waits.any(|line| line.starts_with("publish the webhooks"));
        let neglected = self.kept.due.is_some_and(|due| due < step.clock);
        ensure(put_off || self.kept.running || !neglected, "A5", || {
            "somebody has touched the webhooks, and nobody looks after them".to_owned()
        })?;
        let late = self.open.iter().find(|(_, open)| open.until < step.clock);
        ensure(late.is_none(), "A1", || {
            format!("nobody has answered in time, although the operator was awake: {late:?}")
        })?;
        let reviews = step.life.running.values().map(|running| &running.job);
        let running = reviews
            .chain(starts.iter().copied())
            .filter(|job| review_of(job).is_some())
            .count();
        let slots = step.world.setup.review_slots.max(1);
        ensure(running <= slots, "S1", || {
            format!("{running} hooks run for the API server")
        })?;
        let waits = self.open.iter().find(|(_, open)| !open.running);
        // A module whose directory has vanished goes on as it was read.
        let modules = step.life.told.modules.iter().flat_map(|(modules, _)| modules.values());
        let mut hooks = modules
            .flat_map(|module| &module.hooks)
            .chain(&step.world.setup.global_hooks);
        let limited = hooks.any(|hook| hook.limit.is_some() && !hook.webhooks.is_empty());
        ensure(running == slots || waits.is_none() || limited, "A3", || {
            format!("{running} hooks run for the API server, there are {slots} slots, and still {waits:?} waits")
        })
    }

    /// A4: at rest the published webhooks are the wanted ones, and no question waits.
    pub(super) fn at_rest(&self, world: &World, seen: &Seen, stuck: &BTreeSet<String>) -> Result<(), Violation> {
        ensure(self.open.is_empty(), "A1", || {
            format!("at rest nobody has answered {:?}", self.open)
        })?;
        let published = &world.webhooks.published;
        let may = |owner: &str| runs(seen, owner) || stuck.contains(owner);
        for (path, route) in published.admissions() {
            ensure(may(&owner_name(&route.hook.owner)), "A4", || {
                format!("at rest the API server asks {} at {path}", route.hook)
            })?;
        }
        let converted: BTreeSet<&str> = published.conversions().collect();
        let wanted: Vec<_> = webhooks(world).filter(|(owner, _)| runs(seen, owner)).collect();
        for name in &converted {
            let converts = |(owner, webhook): (String, &Webhook)| {
                may(&owner) && matches!(webhook.asks, Asks::Converting(..)) && webhook.name() == *name
            };
            ensure(webhooks(world).any(converts), "A4", || {
                format!("at rest the API server asks for conversions of {name}, which nobody wants")
            })?;
        }
        for (owner, webhook) in wanted {
            let name = webhook.name();
            let asked = match webhook.asks {
                Asks::Converting(..) => converted.contains(name.as_str()),
                Asks::Validating | Asks::Mutating => published
                    .admissions()
                    .any(|(_, route)| route.binding.name.as_str() == name && route.kind.key() == webhook.asks.key()),
            };
            ensure(asked, "A4", || {
                format!("at rest the API server does not ask {name} of {owner}")
            })?;
        }
        Ok(())
    }
}

impl Open {
    /// A2: a hook that ran for the question has answered it, or the reply gives the true reason why no hook did.
    fn reply(&self, step: &SimStep<'_>, number: u64, reply: &Reply) -> Result<(), Violation> {
        let good = match reply {
            Reply::NoAnswer(NoAnswer::Late(..)) => self.timed_out || self.until <= step.clock,
            Reply::NoAnswer(NoAnswer::NotStarted(hook, _)) => !self.running && !is_up(step, hook),
            Reply::NoAnswer(NoAnswer::Unjudged) => false,
            Reply::NoAnswer(NoAnswer::NotReady) => !step.before.status.ready,
            Reply::NoAnswer(NoAnswer::Stopping) => step.life.stopping.is_some(),
            Reply::Review(review) => {
                let review = review.to_value();
                let response = &review["response"];
                response["uid"] == number.to_string().as_str() && self.is_said(step, number, response)
            }
        };
        ensure(good, "A2", || {
            format!("review {number} is answered with {reply:?}: {self:?}")
        })
    }

    /// Whether the response is that of the hook that has just succeeded. No other response may allow a request.
    fn is_said(&self, step: &SimStep<'_>, number: u64, response: &Value) -> bool {
        let ended = step.ended.and_then(review_of) == Some(number);
        let said = |event: &Event| matches!(event, Event::JobFinished(Finished::HookRan(_, Ok(HookRan { output, .. }))) if output.is_empty());
        let ended_well = ended && said(step.event);
        if let Some(allowed) = response["allowed"].as_bool() {
            let by = response["warnings"][0].as_str();
            return allowed == ended_well && (!allowed || by == self.ran.last().map(String::as_str));
        }
        let Some(objects) = response["convertedObjects"].as_array() else {
            return true;
        };
        let by = objects.iter().filter_map(|object| object["by"].as_array());
        let mut by = by.flatten().filter_map(Value::as_str);
        let known = by.all(|by| self.ran.iter().any(|ran| ran == by));
        objects.len() == 2 && known && (ended_well || self.ran.is_empty())
    }
}

/// Whether the hook's module was ready for reviews, before this step and after it.
fn is_up(step: &SimStep<'_>, hook: &HookId) -> bool {
    let owner = owner_name(&hook.owner);
    [step.before, step.after].iter().all(|seen| runs(seen, &owner))
}

/// Whether the owner's hooks are ready for reviews.
fn runs(seen: &Seen, owner: &str) -> bool {
    let module = seen.modules.get(owner);
    owner == "global" || module.is_some_and(|module| module.enabled && module.state == "Ready")
}

/// A4: no webhook is published for a module that is switched off.
fn published_live(step: &SimStep<'_>, routes: &Arc<Routes>) -> Result<(), Violation> {
    let off = routes
        .admissions()
        .map(|(_, route)| &route.hook)
        .find(|hook| !is_enabled(step.after, hook));
    ensure(off.is_none(), "A4", || {
        format!("the API server is told to ask {off:?}, whose module is switched off")
    })
}

fn hooks(world: &World) -> impl Iterator<Item = (String, &HookSpec)> {
    let setup = &world.setup;
    let global = setup.global_hooks.iter().map(|hook| ("global".to_owned(), hook));
    let of_modules = setup.modules.iter().flat_map(|module| {
        let hooks = module.hooks.iter();
        hooks.map(|hook| (module.name.clone(), hook))
    });
    global.chain(of_modules)
}

fn webhooks(world: &World) -> impl Iterator<Item = (String, &Webhook)> {
    hooks(world).flat_map(|(owner, hook)| hook.webhooks.iter().map(move |webhook| (owner.clone(), webhook)))
}

/// The timeout of the binding of a run, in seconds.
fn timeout_of(world: &World, run: &HookRun) -> Option<u64> {
    let owner = owner_name(&run.hook.owner);
    let spec = world
        .hooks(&owner)
        .iter()
        .find(|spec| spec.name == run.hook.name.as_str())?;
    let is_asked = |webhook: &&Webhook| {
        let of_name = match webhook.asks {
            Asks::Converting(..) => webhook.subject == run.labels.binding_name,
            Asks::Validating | Asks::Mutating => webhook.name() == run.labels.binding_name,
        };
        of_name && webhook.asks.key() == run.labels.cause.key()
    };
    spec.webhooks.iter().find(is_asked)?.timeout
}
