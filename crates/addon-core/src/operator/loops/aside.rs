//! Requests that wait until a hook may repeat its deed: runs of hooks and modules, and converges.
//!
//! Must never keep a request that a change by others has made pointless.

use clock::Tick;
use names::{HookId, ModuleName};

use super::{Aside, Loops, Request, Wait};
use crate::operator::query::Waiting;
use crate::operator::task::HookTask;

/// Requests that wait.
impl Loops {
    /// Puts a request aside until this time. The other requests of the hook are looked at again then, too.
    pub(in crate::operator) fn put_aside(&mut self, hook: &HookId, until: Tick, request: Request) {
        let requests = Vec::new();
        let aside = self.aside.entry(hook.clone()).or_insert(Aside { until, requests });
        aside.until = aside.until.min(until);
        aside.requests.push(request);
    }

    /// Notes that people are told of the hook's wait until this time. False if they have been told of the same wait
    /// before.
    pub(in crate::operator) fn tells_of(&mut self, hook: &HookId, until: Tick) -> bool {
        let record = self.records.get_mut(hook);
        record.is_some_and(|record| record.told.replace(until) != Some(until))
    }

    /// Takes the requests that wait for this hook, because a change by others ends the wait.
    pub(in crate::operator) fn end_wait(&mut self, hook: &HookId) -> Vec<Request> {
        self.aside.remove(hook).map(|aside| aside.requests).unwrap_or_default()
    }

    /// Takes the requests whose time has come.
    pub(in crate::operator) fn due(&mut self, now: Tick) -> Vec<Request> {
        let due = self.aside.extract_if(.., |_, aside| aside.until <= now);
        due.flat_map(|(_, aside)| aside.requests).collect()
    }

    /// Drops the waiting runs of hooks that match.
    pub(in crate::operator) fn drop_hooks(&mut self, matches: impl Fn(&HookTask) -> bool) {
        self.drop_requests(|request| matches!(request, Request::Hook(_, task) if matches(task)));
    }

    pub(super) fn drop_requests(&mut self, matches: impl Fn(&Request) -> bool) {
        self.aside.retain(|_, aside| {
            aside.requests.retain(|request| !matches(request));
            !aside.requests.is_empty()
        });
    }

    /// The time of the next request.
    pub(in crate::operator) fn timeout(&self) -> Option<(Tick, Waiting)> {
        let (hook, aside) = self.aside.iter().min_by_key(|(_, aside)| aside.until)?;
        Some((aside.until, Waiting::Loop { hook: hook.clone() }))
    }

    /// The hooks whose requests wait and concern this module, each with its wait.
    pub(in crate::operator) fn waits_of(&self, module: &ModuleName, now: Tick) -> Vec<(HookId, Wait)> {
        let concerns = |hook: &HookId, request: &Request| match request {
            Request::Run(name, ..) => name == module,
            Request::Hook(..) => hook.owner.module() == Some(module),
            Request::Converge(..) => false,
        };
        let aside = self.aside.iter();
        let of_module = aside.filter(|(hook, aside)| aside.requests.iter().any(|request| concerns(hook, request)));
        let waits = of_module.filter_map(|(hook, _)| Some((hook.clone(), self.wait_of(hook, now)?)));
        waits.collect()
    }
}
