//! How often hooks may run: a bucket of tokens for each hook, full at the start.
//!
//! A hook with `settings` never runs more often than they allow. The runs of a hook without `settings` are only spread
//! out, and only while nothing else waits for them.

use std::collections::BTreeMap;
use std::time::Duration;

use clock::Tick;
use names::HookId;

use super::Lanes;
use crate::hook::config::RateLimit;
use crate::operator::bindings::Bindings;
use crate::operator::cx::Cx;
use crate::operator::jobs::Jobs;
use crate::operator::query::Waiting;
use crate::operator::task::{Lane, Slot};

/// The pace of a hook without `settings` while its objects change all the time. A run that starts a moment later gets
/// all changes until then, so that fewer processes handle the same changes. The first few runs start at once, so that
/// changes that follow from each other are not delayed.
const PACE: RateLimit = RateLimit {
    min_interval: Duration::from_millis(40),
    burst: 8,
};

/// The token buckets of hooks, and the lanes that wait for a token.
#[derive(Debug, Clone, Default)]
pub(super) struct Rates {
    /// The time at which the bucket of a hook with `settings` will be full again.
    full: BTreeMap<HookId, Tick>,
    /// The same for [`PACE`] and the other hooks.
    paced: BTreeMap<HookId, Tick>,
    /// The lanes whose heads wait for a token, with their hooks.
    waiting: BTreeMap<Lane, (HookId, Limit)>,
}

/// The limit of a hook's runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    /// The `settings` of the hook.
    Settings,
    /// [`PACE`].
    Pace,
}

/// Whether a hook may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::operator) enum Admission {
    /// Yes.
    Now,
    /// The hook may not start: there is no free slot.
    NoSlot,
    /// The hook may not start: it has run too often. Its lane waits until the next run is allowed.
    Later,
}

impl RateLimit {
    /// The earliest time of the next run, from the time at which the bucket will be full again.
    fn earliest(self, full: Tick) -> Tick {
        let saved = self.min_interval.saturating_mul(self.burst.max(1) - 1);
        let micros = u64::try_from(saved.as_micros()).unwrap_or(u64::MAX);
        Tick::from_micros(full.as_micros().saturating_sub(micros))
    }
}

impl Rates {
    fn full(&self, hook: &HookId) -> Tick {
        self.full.get(hook).copied().unwrap_or_default()
    }

    /// Takes a token for a run.
    fn take(&mut self, hook: &HookId, limit: RateLimit, now: Tick) {
        let full = self.full(hook).max(now) + limit.min_interval;
        self.full.insert(hook.clone(), full);
    }

    /// Takes a token of the pace for a run. Runs that did not wait for a token leave no debt: no run waits longer than
    /// the interval.
    fn take_pace(&mut self, hook: &HookId, now: Tick) {
        let empty = now + PACE.min_interval * PACE.burst;
        let full = self.paced.get(hook).copied().unwrap_or_default();
        let full = (full.max(now) + PACE.min_interval).min(empty);
        self.paced.insert(hook.clone(), full);
    }

    /// The hook for whose token the head of a lane waits.
    fn waits(&self, lane: &Lane) -> Option<&HookId> {
        self.waiting.get(lane).map(|(hook, _)| hook)
    }
}

impl Lanes {
    /// The next time at which a waiting head may advance, and the reason of its wait.
    pub(in crate::operator) fn timeout(&self, cx: &Cx) -> Option<(Tick, Waiting)> {
        let (at, lane) = self.next_wake()?;
        let head = self.head(lane)?;
        let waiting = match self.rates.waits(lane) {
            Some(hook) => Waiting::RateLimit { hook: hook.clone() },
            None => Waiting::Backoff {
                task: head.task.describe(&lane.queue(), cx.policy.mode),
                failures: head.failures,
            },
        };
        Some((at, waiting))
    }

    /// Whether the hook may start at the head of a lane. If it has run too often, the lane is made to wait.
    pub(in crate::operator) fn admit(
        &mut self,
        cx: &Cx,
        jobs: &Jobs,
        bindings: &Bindings,
        lane: &Lane,
        hook: &HookId,
    ) -> Admission {
        let earliest = self.rate_allows_from(bindings, hook);
        if earliest > cx.now.tick {
            self.hold_head(cx, lane, (hook.clone(), Limit::Settings), earliest);
            return Admission::Later;
        }
        if self.finds_slot(cx, jobs, lane, Slot::Hook) {
            Admission::Now
        } else {
            Admission::NoSlot
        }
    }

    /// The time from which on the rate limit allows another run of the hook.
    pub(in crate::operator) fn rate_allows_from(&self, bindings: &Bindings, hook: &HookId) -> Tick {
        let limit = bindings.rate_limit(hook);
        limit.map_or(Tick::ZERO, |limit| limit.earliest(self.rates.full(hook)))
    }

    /// Takes a token for a run outside of the lanes.
    pub(in crate::operator) fn take_rate(&mut self, cx: &Cx, bindings: &Bindings, hook: &HookId) {
        if let Some(limit) = bindings.rate_limit(hook) {
            self.rates.take(hook, limit, cx.now.tick);
        }
    }

    /// Makes the lane wait until the pace allows another run of the hook. False if the pace allows a run now. The
    /// caller has checked that the run at the head reports changes, and that no other run waits behind it.
    pub(in crate::operator) fn spreads_out(
        &mut self,
        cx: &Cx,
        bindings: &Bindings,
        lane: &Lane,
        hook: &HookId,
    ) -> bool {
        let full = self.rates.paced.get(hook).copied().unwrap_or_default();
        let earliest = PACE.earliest(full);
        let waits = earliest > cx.now.tick && bindings.rate_limit(hook).is_none();
        if waits {
            self.hold_head(cx, lane, (hook.clone(), Limit::Pace), earliest);
        }
        waits
    }

    fn hold_head(&mut self, cx: &Cx, lane: &Lane, waiting: (HookId, Limit), until: Tick) {
        self.rates.waiting.insert(lane.clone(), waiting);
        self.queues.hold(lane, until, cx.now.tick);
    }

    /// Takes a token for a run at the head of a lane.
    pub(in crate::operator) fn take_token(&mut self, cx: &Cx, bindings: &Bindings, lane: &Lane, hook: &HookId) {
        self.rates.waiting.remove(lane);
        match bindings.rate_limit(hook) {
            Some(limit) => self.rates.take(hook, limit, cx.now.tick),
            None => self.rates.take_pace(hook, cx.now.tick),
        }
    }

    /// The text about the limit that the head of a lane waits for.
    pub(in crate::operator) fn describe_rate_limit(&self, cx: &Cx, lane: &Lane) -> String {
        let told = |hook: &HookId| cx.policy.mode.told(hook).to_string();
        match self.rates.waiting.get(lane) {
            Some((hook, Limit::Settings)) => format!("the rate limit of {}", told(hook)),
            Some((hook, Limit::Pace)) => format!("more changes for {}", told(hook)),
            None => "a rate limit".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use names::{HookName, Owner};

    use super::*;

    #[test]
    fn a_burst_comes_at_once_and_then_one_run_an_interval() {
        let hook = HookId {
            owner: Owner::Global,
            name: HookName::parse("h.sh").unwrap(),
        };
        let limit = RateLimit {
            min_interval: Duration::from_secs(10),
            burst: 3,
        };
        let mut rates = Rates::default();
        let second = |second: u64| Tick::from_micros(second * 1_000_000);
        let mut now = second(5);
        let mut began = Vec::new();
        for _ in 0..5 {
            now = limit.earliest(rates.full(&hook)).max(now);
            rates.take(&hook, limit, now);
            began.push(now);
        }
        assert_eq!(began, [5, 5, 5, 15, 25].map(second));
        assert_eq!(
            limit.earliest(rates.full(&hook)).max(second(500)),
            second(500),
            "saved up"
        );
    }

    #[test]
    fn no_burst_is_a_burst_of_one() {
        let limit = RateLimit {
            min_interval: Duration::from_secs(1),
            burst: 0,
        };
        assert_eq!(limit.earliest(Tick::from_micros(7)), Tick::from_micros(7));
    }
}
