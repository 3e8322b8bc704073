//! The progress of a build, for a person: a bar on a terminal, and a line each ten seconds elsewhere.
//!
//! The expected time of a part is that of its last build on this machine, which the cache remembers, else it comes from
//! a table. This time is only shown: no decision may depend on it.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fs_err as fs;
use indicatif::{ProgressBar, ProgressStyle};

use crate::part::Part;

/// The interval of the lines: short enough for a person who waits, long enough for a log file.
const NEWS: Duration = Duration::from_secs(10);

/// The file of the cache with a line for each part: its name, and the seconds that its last build took.
const TIMES: &str = "seconds";

/// The durations of the builds on this machine.
#[derive(Clone, Debug)]
pub(crate) struct Times(PathBuf);

impl Times {
    pub(crate) fn of(cache: &Path) -> Self {
        Self(cache.join(TIMES))
    }

    /// The expected duration of a build.
    pub(crate) fn expected(&self, part: Part) -> Duration {
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        let known = text.lines().rev().find_map(|line| {
            let (name, seconds) = line.split_once(' ')?;
            (name == part.name()).then(|| seconds.parse().ok()).flatten()
        });
        Duration::from_secs(known.unwrap_or_else(|| usual(part)))
    }

    /// Remembers the duration of a build. A cache that cannot be written to forgets it.
    pub(crate) fn remember(&self, part: Part, took: Duration) {
        let line = format!("{} {}\n", part.name(), took.as_secs());
        let file = fs::OpenOptions::new().create(true).append(true).open(&self.0);
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}

/// Seconds on two processors, on which cargo builds at the same time.
fn usual(part: Part) -> u64 {
    match part {
        Part::KubeScheduler | Part::KubeProxy | Part::Kwok => 9,
        Part::Helm3 | Part::Helm4 => 13,
        Part::Kubectl | Part::Kubelet => 20,
        Part::Registry => 45,
        Part::KubeControllerManager => 60,
        Part::Etcd => 70,
        Part::Cosign => 130,
        Part::KubeApiserver => 240,
    }
}

/// The progress of one part.
#[derive(Debug)]
pub(crate) struct Progress {
    what: String,
    started: Instant,
    expected: Duration,
    shown: Shown,
}

#[derive(Debug)]
enum Shown {
    Bar(ProgressBar),
    /// The time of the next line.
    Lines(Duration),
}

impl Progress {
    /// Begins to show the progress. `what` is the beginning of each line, as in `building etcd 3.6.16`.
    pub(crate) fn begin(what: String, expected: Duration) -> Self {
        let shown = if io::stderr().is_terminal() {
            let bar = ProgressBar::new(expected.as_secs().max(1));
            let style = ProgressStyle::with_template("testbed: {msg} {wide_bar} {elapsed} of about {len} s");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_message(what.clone());
            Shown::Bar(bar)
        } else {
            say(&format!("{what}, about {} s", expected.as_secs()));
            Shown::Lines(NEWS)
        };
        Self {
            what,
            started: Instant::now(),
            expected,
            shown,
        }
    }

    /// Shows the progress of this moment. Called many times a second.
    pub(crate) fn look(&mut self) {
        let elapsed = self.started.elapsed();
        match &mut self.shown {
            // A bar that is full before the end would say that nothing is left to do.
            Shown::Bar(bar) => bar.set_position(elapsed.min(self.expected).as_secs()),
            Shown::Lines(next) if elapsed >= *next => {
                *next += NEWS;
                let (now, expected) = (elapsed.as_secs(), self.expected.as_secs());
                say(&format!("still {} ({now} s of about {expected} s)", self.what));
            }
            Shown::Lines(_) => {}
        }
    }

    /// Ends the progress, and returns the time that it took.
    pub(crate) fn end(self) -> Duration {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
        self.started.elapsed()
    }
}

/// Prints a line to standard error. The output of a test is captured only for `eprintln`, so this reaches the person
/// from a test too.
pub(crate) fn say(line: &str) {
    // A closed standard error is no reason to stop.
    let _ = writeln!(io::stderr(), "testbed: {line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_build_on_this_machine_counts_more_than_the_table() {
        let cache = tempfile::tempdir().unwrap();
        let times = Times::of(cache.path());
        assert_eq!(times.expected(Part::Etcd).as_secs(), 70);
        for seconds in [80, 25] {
            times.remember(Part::Etcd, Duration::from_secs(seconds));
        }
        assert_eq!(times.expected(Part::Etcd).as_secs(), 25);
        assert_eq!(
            times.expected(Part::Kubectl).as_secs(),
            20,
            "of another part nothing is known"
        );
    }
}
