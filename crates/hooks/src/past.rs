//! The last run of each hook, for people who look: its time, its end, and the last lines of its output.
//!
//! Must never hold much: a few short lines for each of the hooks that ran last.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use names::{HookId, Owner};
use report::secrets::Secrets;

use crate::records::record::End;

/// The largest number of lines of a run.
const LINES: usize = 5;
/// The longest line, in characters.
const LONGEST: usize = 200;
/// The number of bytes of a line in which secrets are looked for. A secret at the end of the shown part is shorter.
const BEGINNING: usize = 4096;
/// The largest number of hooks.
const MOST: usize = 500;

/// The last run of a hook.
#[derive(Debug, Clone, PartialEq)]
pub struct LastRun {
    /// The binding for which it ran.
    pub binding: String,
    /// The time of its beginning.
    pub began: Timestamp,
    /// The time that the program took.
    pub took: Duration,
    /// The end of the program.
    pub end: End,
    /// The failure, if the run failed.
    pub failure: Option<String>,
    /// Its last lines, cut.
    pub output: Vec<String>,
}

/// The last run of each hook. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct LastRuns(Arc<Mutex<BTreeMap<HookId, LastRun>>>);

impl LastRuns {
    /// The last run of each of an owner's hooks.
    pub fn of(&self, owner: &Owner) -> Vec<(HookId, LastRun)> {
        let runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = runs.iter().filter(|(hook, _)| hook.owner == *owner);
        own.map(|(hook, run)| (hook.clone(), run.clone())).collect()
    }

    /// Keeps a run in place of the hook's last one.
    pub(crate) fn keep(&self, hook: HookId, run: LastRun) {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        runs.insert(hook, run);
        if runs.len() > MOST
            && let Some(oldest) = runs
                .iter()
                .min_by_key(|(_, run)| run.began)
                .map(|(hook, _)| hook.clone())
        {
            runs.remove(&oldest);
        }
    }
}

/// The last lines of a run that goes on. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
    /// A receiver of lines that passes them on to another one.
    pub(crate) fn beside(&self, mut sink: impl FnMut(&str) + Send + 'static) -> impl FnMut(&str) + Send + 'static {
        let tail = self.clone();
        move |line: &str| {
            tail.push(line);
            sink(line);
        }
    }

    /// Takes the beginning of a line as it is: a program may print faster than secrets can be looked for.
    fn push(&self, line: &str) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= LINES {
            lines.pop_front();
        }
        lines.push_back(line[..line.floor_char_boundary(BEGINNING)].to_owned());
    }

    /// The lines, the newest last, cut and without secrets.
    pub(crate) fn lines(&self, secrets: &Secrets) -> Vec<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(|line| cut(line, secrets)).collect()
    }
}

/// The beginning of a text without the secrets of this moment. Later ones may be others.
pub(crate) fn cut(text: &str, secrets: &Secrets) -> String {
    secrets.masked(text).chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use names::{HookName, ModuleName};

    use super::*;

    fn hook(module: &str, number: usize) -> HookId {
        HookId {
            owner: Owner::Module(ModuleName::parse(module).unwrap()),
            name: HookName::parse(&format!("hooks/{number}.sh")).unwrap(),
        }
    }

    fn run(began: usize) -> LastRun {
        LastRun {
            binding: "onStartup".to_owned(),
            began: Timestamp::from_second(i64::try_from(began).unwrap()).unwrap(),
            took: Duration::from_millis(3),
            end: End::ExitCode(0),
            failure: None,
            output: Vec::new(),
        }
    }

    #[test]
    fn the_hooks_that_ran_last_are_kept() {
        let runs = LastRuns::default();
        runs.keep(hook("other", 0), run(1));
        for number in 1..=MOST {
            runs.keep(hook("web", number), run(number + 1));
        }
        runs.keep(hook("web", 7), run(9_000));
        let kept = runs.of(&hook("web", 0).owner);
        assert_eq!(kept.len(), MOST);
        assert!(kept.contains(&(hook("web", 7), run(9_000))));
        assert_eq!(runs.of(&hook("other", 0).owner), []);
    }

    #[test]
    fn the_last_lines_are_kept_and_cut() {
        let (tail, passed) = (Tail::default(), Arc::new(Mutex::new(0)));
        let counted = Arc::clone(&passed);
        let mut sink = tail.beside(move |_| *counted.lock().unwrap() += 1);
        for number in 0..=LINES {
            sink(&format!("{number}{}", "é".repeat(2 * LONGEST)));
        }
        assert_eq!(*passed.lock().unwrap(), LINES + 1);
        let lines = tail.lines(&Secrets::default());
        assert_eq!((lines.len(), lines[0].chars().count()), (LINES, LONGEST));
        assert!(lines[0].starts_with("1é") && lines[4].starts_with("5é"));
    }
}
