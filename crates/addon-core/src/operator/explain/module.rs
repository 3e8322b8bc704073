//! What holds up one module, in pieces that people and programs can follow.

use super::super::Operator;
use super::super::modules::{Turn, Unit};
use super::super::query::FailingTask;
use super::super::task::{Lane, Task};
use crate::name::{ModuleName, QueueName};
use crate::queue::{Entry, State};

impl Operator {
    /// The tasks of a module that failed and are tried again, in whichever queue.
    pub(super) fn failing(&self, module: &ModuleName) -> Vec<FailingTask> {
        let entries = self.queues.lanes().flat_map(|(lane, tasks)| {
            let queue = match lane {
                Lane::Named(name) => name.clone(),
                Lane::Global | Lane::Module(_) | Lane::Release(_) => QueueName::main(),
            };
            tasks.iter().map(move |entry| (queue.clone(), entry))
        });
        let failing = entries.filter(|(_, entry)| entry.failures > 0 && entry.task.module() == Some(module));
        let report = |(queue, entry): (QueueName, &Entry<Task>)| FailingTask {
            queue: queue.to_string(),
            task: entry.task.kind(self.policy.mode),
            hook: entry.task.hook().map(|hook| hook.name.to_string()).unwrap_or_default(),
            failures: entry.failures,
            error: entry.error.clone().unwrap_or_default(),
            retry_in: match entry.state() {
                State::Backoff(until) => Some(
                    (until - self.now.tick)
                        .as_millis()
                        .div_ceil(1000)
                        .try_into()
                        .unwrap_or(u64::MAX),
                ),
                State::Running | State::Ready | State::Parked | State::Held(_) => None,
            },
        };
        failing.map(report).collect()
    }

    /// The modules whose turn has to be over before its own comes.
    pub(super) fn modules_awaited(&self, unit: &Unit) -> Vec<String> {
        match unit.turn {
            Turn::Waiting => self.pending_before(unit),
            Turn::Out | Turn::Running | Turn::Passed | Turn::Failed | Turn::Held(_) => Vec::new(),
        }
    }

    /// What is wrong with its keys of the ConfigMap, by key; what was last good is in force.
    pub(super) fn config_problems(&self, module: &ModuleName) -> Vec<String> {
        let problems = &self.config.problems;
        let keys = [module.values_key(), module.enabled_key(), module.maintenance_key()];
        keys.iter().filter_map(|key| problems.get(key).cloned()).collect()
    }
}
