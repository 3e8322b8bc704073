//! B1: who stands by does nothing that anybody else could notice. B2: who is deposed ends what runs, and decides nothing
//! more.

use addon_core::name::Owner;
use addon_core::operator::effect::{Effect, Job};
use addon_core::operator::event::Event;
use addon_core::review::reply::Reply;

use super::{Step, Violation, ensure};

pub(super) fn check(step: &Step<'_>) -> Result<(), Violation> {
    if !step.life.leads {
        let acts = step.effects.iter().find(|effect| !is_quiet(effect));
        ensure(acts.is_none(), "B1", || format!("who stands by does {acts:?}"))?;
    }
    if !step.life.deposed {
        return Ok(());
    }
    let starts = step
        .effects
        .iter()
        .find(|effect| matches!(effect, Effect::StartJob(..)));
    ensure(starts.is_none(), "B2", || format!("who leads no more does {starts:?}"))?;
    if !matches!(step.event, Event::Deposed) {
        return Ok(());
    }
    let is_ended = |id| {
        step.effects
            .iter()
            .any(|effect| matches!(effect, Effect::CancelJob(other) if other == id))
    };
    let running = step.life.running.iter().filter(|(_, running)| !running.cancelled);
    let left = running.map(|(id, _)| id).find(|id| !is_ended(*id));
    ensure(left.is_none(), "B2", || {
        format!("job {left:?} goes on, although another one leads")
    })
}

/// To read what lies on our own disk, to watch, and to say that nobody can be asked here.
fn is_quiet(effect: &Effect) -> bool {
    match effect {
        Effect::StartJob(_, Job::ConfigureHooks(owner)) => *owner == Owner::Global,
        Effect::StartJob(_, Job::StartMonitors { hook, .. }) => hook.owner == Owner::Global,
        Effect::StartJob(..) => false,
        Effect::Reply(_, reply) => matches!(reply, Reply::NoAnswer(_)),
        Effect::Tell(_) | Effect::CancelJob(_) | Effect::StopMonitors(_) | Effect::Exit | Effect::GiveUp(_) => true,
    }
}
