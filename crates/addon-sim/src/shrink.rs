//! Makes a failing case smaller: fewer actions and a smaller world, with the same broken invariant.

use std::time::{Duration, Instant};

use crate::run::{Case, run};
use crate::setup::{Deed, HookSpec, Setup, Source};

/// Tries until nothing can be left out, or the time is over.
pub fn shrink(case: &Case, invariant: &str, budget: Duration) -> Case {
    let until = Instant::now() + budget;
    let fails = |case: &Case| {
        run(case, false)
            .violation
            .is_some_and(|violation| violation.invariant == invariant)
    };
    let mut best = case.clone();
    loop {
        let before = best.clone();
        best = fewer_actions(best, &fails, until);
        best = smaller_world(best, &fails, until);
        if best == before || Instant::now() > until {
            return best;
        }
    }
}

/// Removes stretches of the history, first all of it, then stretches of half the length, and so on.
fn fewer_actions(mut best: Case, fails: &impl Fn(&Case) -> bool, until: Instant) -> Case {
    let mut length = best.actions.len().max(1);
    while length > 0 && Instant::now() < until {
        let mut start = 0;
        while start < best.actions.len() && Instant::now() < until {
            let end = (start + length).min(best.actions.len());
            let mut shorter = best.clone();
            let gone: u64 = shorter.actions.drain(start..end).map(|timed| timed.after).sum();
            let mut kept_pace = shorter.clone();
            if let Some(next) = kept_pace.actions.get_mut(start) {
                next.after += gone;
            }
            if fails(&shorter) {
                best = shorter;
            } else if kept_pace != shorter && fails(&kept_pace) {
                best = kept_pace;
            } else {
                start += length;
            }
        }
        length /= 2;
    }
    best
}

fn smaller_world(mut best: Case, fails: &impl Fn(&Case) -> bool, until: Instant) -> Case {
    let mut index = 0;
    while Instant::now() < until {
        let candidates = smaller(&best.setup);
        let Some(setup) = candidates.into_iter().nth(index) else {
            return best;
        };
        let smaller = Case { setup, ..best.clone() };
        if fails(&smaller) {
            best = smaller;
        } else {
            index += 1;
        }
    }
    best
}

/// Worlds with one part less.
fn smaller(setup: &Setup) -> Vec<Setup> {
    let mut smaller = Vec::new();
    let mut propose = |change: &dyn Fn(&mut Setup)| {
        let mut candidate = setup.clone();
        change(&mut candidate);
        if candidate != *setup {
            smaller.push(candidate);
        }
    };
    for index in 0..setup.modules.len() {
        propose(&|setup| drop(setup.modules.remove(index)));
    }
    for index in 0..setup.global_hooks.len() {
        propose(&|setup| drop(setup.global_hooks.remove(index)));
        fewer_deeds(&setup.global_hooks[index], &mut |hook| {
            propose(&|setup| setup.global_hooks[index] = hook.clone());
        });
    }
    for index in 0..setup.releases.len() {
        propose(&|setup| drop(setup.releases.remove(index)));
    }
    for index in 0..setup.sources.len() {
        propose(&|setup| drop(setup.sources.remove(index)));
    }
    for key in setup.config.iter().flat_map(|data| data.keys()) {
        propose(&|setup| {
            setup.config.as_mut().map(|data| data.remove(key));
        });
    }
    for fault in setup.faults.keys() {
        propose(&|setup| {
            setup.faults.remove(fault);
        });
    }
    propose(&|setup| setup.strict = false);
    propose(&|setup| setup.ignore = None);
    propose(&|setup| setup.global.clear());
    for (index, module) in setup.modules.iter().enumerate() {
        for hook in 0..module.hooks.len() {
            propose(&|setup| drop(setup.modules[index].hooks.remove(hook)));
            fewer_deeds(&module.hooks[hook], &mut |spec| {
                propose(&|setup| setup.modules[index].hooks[hook] = spec.clone());
            });
        }
        propose(&|setup| setup.modules[index].needs.clear());
        propose(&|setup| setup.modules[index].script = None);
        propose(&|setup| setup.modules[index].values.clear());
        propose(&|setup| setup.modules[index].broken = false);
        // Without a schema no hook can break it.
        propose(&|setup| {
            setup.modules[index].schema = None;
            setup.modules[index].hooks.iter_mut().for_each(|hook| hook.breaks = 0);
        });
        propose(&|setup| setup.modules[index].shares = None);
    }
    smaller
}

/// If the hook's deeds depend on values: whether a change of these values runs the hook again. Otherwise the final state
/// would not be determined.
fn is_sound(hook: &HookSpec) -> bool {
    let fixed = |deed: &Deed| {
        matches!(
            deed,
            Deed::Set {
                to: Source::Number(_),
                ..
            } | Deed::Flag { .. }
        )
    };
    let bound = !hook.stages.is_empty() || !hook.schedules.is_empty() || !hook.webhooks.is_empty();
    bound && (hook.follows() || hook.does.iter().all(fixed))
}

/// Hooks with one part less.
fn fewer_deeds(hook: &HookSpec, propose: &mut dyn FnMut(HookSpec)) {
    let mut propose = |less: HookSpec| {
        if is_sound(&less) {
            propose(less);
        }
    };
    for index in 0..hook.does.len() {
        let mut less = hook.clone();
        less.does.remove(index);
        propose(less);
    }
    for stage in hook.stages.keys() {
        let mut less = hook.clone();
        less.stages.remove(stage);
        propose(less);
    }
    for index in 0..hook.schedules.len() {
        let mut less = hook.clone();
        less.schedules.remove(index);
        propose(less);
    }
    for index in 0..hook.webhooks.len() {
        let mut less = hook.clone();
        less.webhooks.remove(index);
        propose(less);
    }
    propose(HookSpec {
        fails: 0,
        trespasses: 0,
        breaks: 0,
        slow: false,
        hangs: false,
        ..hook.clone()
    });
}
