//! How often hooks may run: a bucket of tokens for each hook that has `settings`, full at the start.

use std::collections::BTreeMap;

use super::Lanes;
use crate::hook::config::RateLimit;
use crate::name::HookId;
use crate::operator::bindings::Bindings;
use crate::operator::cx::Cx;
use crate::operator::jobs::Jobs;
use crate::operator::query::Waiting;
use crate::operator::task::Lane;
use crate::time::Tick;

/// The token buckets of hooks, and the lanes that wait for a token.
#[derive(Debug, Default)]
pub(super) struct Rates {
    /// The time at which the bucket of a hook will be full again.
    full: BTreeMap<HookId, Tick>,
    /// The lanes whose heads wait for a token, with their hooks.
    waiting: BTreeMap<Lane, HookId>,
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

    /// The hook for whose token the head of a lane waits.
    fn waits(&self, lane: &Lane) -> Option<&HookId> {
        self.waiting.get(lane)
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
            self.rates.waiting.insert(lane.clone(), hook.clone());
            self.queues.hold(lane, earliest, cx.now.tick);
            return Admission::Later;
        }
        if jobs.hook_slot(&cx.policy) {
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

    /// Takes a token for a run at the head of a lane.
    pub(in crate::operator) fn take_token(&mut self, cx: &Cx, bindings: &Bindings, lane: &Lane, hook: &HookId) {
        self.rates.waiting.remove(lane);
        self.take_rate(cx, bindings, hook);
    }

    /// The text about the rate limit that the head of a lane waits for.
    pub(in crate::operator) fn describe_rate_limit(&self, cx: &Cx, lane: &Lane) -> String {
        let hook = self.rates.waits(lane).map(|hook| cx.policy.mode.told(hook).to_string());
        format!("the rate limit of {}", hook.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::name::{HookName, Owner};

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
