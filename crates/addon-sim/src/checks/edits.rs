//! Edits of the `ConfigMap` that the API server asks about: the answers and their times. E1 to E3.

use std::collections::BTreeMap;

use addon_core::operator::effect::{Effect, Job};
use addon_core::operator::event::{Event, ReviewId};
use addon_core::review::reply::{NoAnswer, Reply};

use super::{SimStep, Violation, ensure};
use crate::world::Wanted;

/// The questions without an answer yet.
#[derive(Debug, Default)]
pub(super) struct Edits(BTreeMap<u64, Open>);

#[derive(Debug)]
struct Open {
    sound: bool,
    /// The time after which no answer is awaited any more, in microseconds of the world.
    until: u64,
    /// Whether the judgement failed.
    failed: bool,
}

impl Edits {
    /// Notes the facts in the event, before its effects. True if the event was a question about an edit.
    pub(super) fn event(&mut self, step: &SimStep<'_>) -> bool {
        match step.event {
            Event::ReviewRequested(_, asked) => {
                let Some(Wanted { number, sound }) = Wanted::of_question(asked) else {
                    return false;
                };
                let within = u64::try_from(asked.within.as_micros()).unwrap_or(u64::MAX);
                let open = Open {
                    sound,
                    until: step.clock + within,
                    failed: false,
                };
                self.0.insert(number, open);
                true
            }
            Event::JobFinished(finished) => {
                let number = step.ended.and_then(Wanted::of_job).map(|wanted| wanted.number);
                if let Some(open) = number.and_then(|number| self.0.get_mut(&number)) {
                    open.failed = finished.failure().is_some();
                }
                false
            }
            _ => false,
        }
    }

    /// Checks an effect. True if it was about an edit.
    pub(super) fn effect(&mut self, step: &SimStep<'_>, effect: &Effect) -> Result<bool, Violation> {
        match effect {
            Effect::StartJob(job @ Job::JudgeEdit(..)) => {
                let number = Wanted::of_job(job).map(|wanted| wanted.number);
                let awaited = number.is_some_and(|number| self.0.contains_key(&number));
                ensure(awaited, "E1", || "an edit is judged for which nobody waits".to_owned()).map(|()| true)
            }
            Effect::Reply(ReviewId(number), reply) => {
                let Some(open) = self.0.remove(number) else {
                    return Ok(false);
                };
                open.reply(step, *number, reply).map(|()| true)
            }
            Effect::Exit => {
                let left = || format!("it ends and leaves edits without an answer: {:?}", self.0);
                ensure(self.0.is_empty(), "E1", left).map(|()| false)
            }
            _ => Ok(false),
        }
    }

    /// Checks at the end of a step that no question is too late, and that none waits while no edit is judged.
    pub(super) fn over(&self, step: &SimStep<'_>, starts: &[&Job]) -> Result<(), Violation> {
        let late = self.0.iter().find(|(_, open)| open.until < step.clock);
        ensure(late.is_none() || step.life.stopping.is_some(), "E1", || {
            format!("nobody has answered an edit in time: {late:?}")
        })?;
        let running = step.life.running.values().map(|running| &running.job);
        let running = running.chain(starts.iter().copied());
        let running = running.filter(|job| matches!(job, Job::JudgeEdit(..))).count();
        ensure(running <= 1, "E3", || format!("{running} edits are judged at once"))?;
        let stopping = step.life.stopping.is_some();
        ensure(running == 1 || self.0.is_empty() || stopping, "E3", || {
            format!("no edit is judged, and these wait: {:?}", self.0)
        })
    }
}

impl Open {
    /// E2: a sound edit is never refused, an unsound one is never allowed, and a missing answer has a reason.
    fn reply(&self, step: &SimStep<'_>, number: u64, reply: &Reply) -> Result<(), Violation> {
        let good = match reply {
            Reply::NoAnswer(NoAnswer::Unjudged) => self.failed || self.until <= step.clock,
            Reply::NoAnswer(NoAnswer::NotReady) => !step.before.status.ready,
            Reply::NoAnswer(NoAnswer::Stopping) => step.life.stopping.is_some(),
            Reply::NoAnswer(NoAnswer::Late(..) | NoAnswer::NotStarted(..)) => false,
            Reply::Review(review) => {
                let response = &review.to_value()["response"];
                let message = response["status"]["message"].as_str().unwrap_or_default();
                // The edit is sound in itself, but would remove too many modules by what it leaves out.
                let omits = message.contains("with this edit nothing switches on these ");
                let allowed = self.sound && !omits;
                response["uid"] == number.to_string().as_str() && response["allowed"] == allowed
            }
        };
        ensure(good, "E2", || {
            format!("edit {number} is answered with {reply:?}: {self:?}")
        })
    }
}
