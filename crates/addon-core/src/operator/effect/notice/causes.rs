//! The reasons in notices about held removals, rewritten records of helm, work that waits because of a loop, and old
//! values.
//!
//! Must never decide whether a removal is held.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use names::{HookId, ModuleName};

use super::Notice;
use crate::operator::effect::JobId;
use crate::operator::event::Reworked;

/// A change of a module's health that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthNews {
    /// The module.
    pub module: ModuleName,
    /// The sentence about the object that does not work; `None` if all objects work again.
    pub unhealthy: Option<String>,
}

/// The reason for which the brake holds a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldFor {
    /// A modules directory could not be read or is empty, and the module may belong there.
    Directories,
    /// The directories now have a module of that name, but the operator has not taken it over.
    Changed,
    /// Too many removals would come within ten minutes. A person has to confirm them.
    Confirmation {
        /// The number of removals, including the removals of the last ten minutes.
        goes: usize,
        /// The number of releases that are ours.
        of: usize,
    },
}

impl fmt::Display for HeldFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directories => f.write_str("a modules directory is empty or could not be read completely"),
            Self::Changed => f.write_str("the modules directories changed since they were read"),
            Self::Confirmation { goes, of } => {
                write!(
                    f,
                    "{goes} of our {of} releases would go within ten minutes, and nobody said so"
                )
            }
        }
    }
}
/// The reason for which a record of helm was rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordCause {
    /// It named objects by kinds that are no longer served.
    Unserved,
    /// It was damaged.
    Damaged,
}

impl Reworked {
    /// The notices of the changes to the records of a release.
    pub fn notices(self, release: &str) -> impl Iterator<Item = Notice> {
        let Self { amended, repaired } = self;
        let all = [(RecordCause::Unserved, amended), (RecordCause::Damaged, repaired)];
        all.into_iter()
            .filter(|(_, subjects)| !subjects.is_empty())
            .map(move |(cause, subjects)| Notice::RecordRewritten {
                release: release.to_owned(),
                cause,
                subjects,
            })
    }
}

/// The values of a global hook's last good run, which serve while the hook gives no new values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StandIn {
    /// The hook fails or does not end, and modules run with the old values.
    Serves {
        /// The hook.
        hook: HookId,
        /// The time at which the hook gave these values.
        as_of: Timestamp,
        /// The error of the hook's last run; `None` if the hook has not ended.
        error: Option<String>,
    },
    /// The hook's run has left the queue of the modules, and goes on in the hook's own queue.
    Moves {
        /// The hook.
        hook: HookId,
        /// The run.
        job: JobId,
    },
    /// The hook has succeeded.
    Ends {
        /// The hook.
        hook: HookId,
    },
}

/// The work that waits, because a program causes it again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Slowed {
    /// A hook causes its own next run, or the next run of its module.
    Hook {
        /// The hook that does the deed, and whose run waits.
        hook: HookId,
        /// The deed that causes the run, as the end of the sentence "the hook ...".
        deed: String,
        /// How often in a row the hook has done the deed.
        times: u32,
        /// The time until the run, unless a change by others comes first.
        next_in: Duration,
    },
    /// Programs switch a module to and fro, so that it keeps its state.
    Switch {
        /// The module.
        module: ModuleName,
        /// The state that the module keeps.
        enabled: bool,
        /// The source of the verdict that has to wait.
        by: String,
        /// The number of switches within ten minutes.
        times: usize,
        /// The time until the next switch, unless a person edits the flag in the ConfigMap.
        next_in: Duration,
    },
}

impl fmt::Display for Slowed {
    /// The sentence for people, about the work, the end of its wait, and the cause.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |left: &Duration| left.as_millis().div_ceil(1000);
        match self {
            Self::Hook {
                hook,
                deed,
                times,
                next_in,
            } => write!(
                f,
                "the next run of hook '{}', in {}s or at a change by others: it {deed}, {times} times in a row",
                hook.name,
                seconds(next_in)
            ),
            Self::Switch {
                module,
                enabled,
                by,
                times,
                next_in,
            } => write!(
                f,
                "module '{module}' was switched {times} times within 10 minutes, the last time by {by}: it stays {} for {}s, or \
                 until a person edits {} in the ConfigMap",
                if *enabled { "on" } else { "off" },
                seconds(next_in),
                module.enabled_key()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_names_the_end_of_the_wait() {
        let switch = |left| Slowed::Switch {
            module: ModuleName::parse("one").unwrap(),
            enabled: true,
            by: "a global hook".to_owned(),
            times: 3,
            next_in: Duration::from_millis(left),
        };
        let expected = "module 'one' was switched 3 times within 10 minutes, the last time by a global hook: it stays on for 2s, \
                        or until a person edits oneEnabled in the ConfigMap";
        assert_eq!(switch(1001).to_string(), expected);
        assert_eq!(switch(2000).to_string(), expected);
    }
}
