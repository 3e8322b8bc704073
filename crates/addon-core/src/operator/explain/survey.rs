//! What a report about all modules needs of the whole, worked out once: the plan of their order, the tasks that fail, and the wait
//! of the converge.
//!
//! One survey is of one moment, and must never be kept for another.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use crate::module::graph;
use crate::name::{ModuleName, QueueName};
use crate::operator::Operator;
use crate::operator::query::FailingTask;
use crate::operator::task::{Lane, Task};
use crate::queue::{Entry, State};

/// The whole, as far as somebody has asked for it.
#[derive(Debug)]
pub(in crate::operator) struct Survey<'a> {
    of: &'a Operator,
    groups: OnceCell<Vec<Vec<ModuleName>>>,
    failing: OnceCell<BTreeMap<ModuleName, Vec<FailingTask>>>,
    converge: OnceCell<Option<String>>,
}

impl<'a> Survey<'a> {
    /// Of this moment.
    pub(in crate::operator) fn of(of: &'a Operator) -> Self {
        Self {
            of,
            groups: OnceCell::new(),
            failing: OnceCell::new(),
            converge: OnceCell::new(),
        }
    }

    /// The modules whose turn comes before that of this one and is not over.
    pub(super) fn pending_before(&self, module: &ModuleName) -> Vec<String> {
        let strict = self.of.cx.policy.strict_order;
        let groups = self.groups.get_or_init(|| graph::plan(&self.of.nodes()).groups);
        let before = groups.iter().take_while(|group| !group.contains(module));
        let pending = |name: &&ModuleName| {
            let other = self.of.modules.get(*name);
            other.is_some_and(|other| !other.turn.is_over(strict))
        };
        before.flatten().filter(pending).map(ToString::to_string).collect()
    }

    /// The converge under way and its wait, in words.
    pub(super) fn converge(&self) -> Option<String> {
        let waits = || Some(format!("the converge under way: {}", self.of.converge_waits()?));
        self.converge.get_or_init(waits).clone()
    }

    /// The tasks of a module that failed and are tried again, in whichever queue.
    pub(super) fn failing(&self, module: &ModuleName) -> Vec<FailingTask> {
        let failing = self.failing.get_or_init(|| self.all_failing());
        failing.get(module).cloned().unwrap_or_default()
    }

    fn all_failing(&self) -> BTreeMap<ModuleName, Vec<FailingTask>> {
        let mut all: BTreeMap<ModuleName, Vec<FailingTask>> = BTreeMap::new();
        for (lane, tasks) in self.of.lanes.all() {
            for entry in tasks.iter().filter(|entry| entry.failures > 0) {
                if let Some(module) = entry.task.module() {
                    all.entry(module.clone()).or_default().push(self.report(lane, entry));
                }
            }
        }
        all
    }

    fn report(&self, lane: &Lane, entry: &Entry<Task>) -> FailingTask {
        let queue = match lane {
            Lane::Named(name) => name.clone(),
            Lane::Global | Lane::Module(_) | Lane::Release(_) => QueueName::main(),
        };
        FailingTask {
            queue: queue.to_string(),
            task: entry.task.kind(self.of.cx.policy.mode),
            hook: entry.task.hook().map(|hook| hook.name.to_string()).unwrap_or_default(),
            failures: entry.failures,
            error: entry.error.clone().unwrap_or_default(),
            retry_in: match entry.state() {
                State::Backoff(until) => Some(self.of.seconds_to(until)),
                State::Running | State::Ready | State::Parked | State::Held(_) => None,
            },
        }
    }
}
