//! What the audience reads: one line per step, and what is waited for. Everything is said in plain text; colour and the
//! moving line only where there is a terminal to show them.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;

/// Why the tour stops.
#[derive(Debug, Error)]
pub(crate) enum Stop {
    /// A claim that did not come true.
    #[error("{claim}")]
    Unproven { claim: String, seen: String },
    #[error("interrupted")]
    Interrupted,
}

/// Somebody pressed Ctrl-C.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interruption(Arc<AtomicBool>);

impl Interruption {
    pub(crate) fn raise(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub(crate) fn check(&self) -> Result<(), Stop> {
        if self.0.load(Ordering::SeqCst) {
            Err(Stop::Interrupted)
        } else {
            Ok(())
        }
    }

    /// Returns when it is raised.
    pub(crate) fn wait(&self) {
        while self.check().is_ok() {
            thread::sleep(PAUSE);
        }
    }
}

/// How often something that is waited for is looked at.
const PAUSE: Duration = Duration::from_millis(50);

/// How often a log file learns that something is still waited for.
const NEWS: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Narrator {
    out: io::Stdout,
    terminal: bool,
    patience: Duration,
    interruption: Interruption,
    started: Instant,
}

impl Narrator {
    pub(crate) fn new(patience: Duration, interruption: Interruption) -> Self {
        Self {
            out: io::stdout(),
            terminal: io::stdout().is_terminal(),
            patience,
            interruption,
            started: Instant::now(),
        }
    }

    /// Whether somebody sits there.
    pub(crate) fn has_audience(&self) -> bool {
        self.terminal
    }

    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    pub(crate) fn interruption(&self) -> &Interruption {
        &self.interruption
    }

    pub(crate) fn chapter(&self, title: &str) {
        self.line(&format!("\n{}", self.paint(BOLD, title)));
    }

    /// What happens, in one or two lines.
    pub(crate) fn say(&self, text: impl Display) {
        for line in text.to_string().lines() {
            self.line(&format!("    {line}"));
        }
    }

    /// A command, as a person types it.
    pub(crate) fn typed(&self, command: &str) {
        self.say(format_args!("{} {command}", self.paint(BOLD, "$")));
    }

    /// A claim that was checked, with its evidence.
    pub(crate) fn ok(&self, text: impl Display) {
        self.line(&format!("{} {text}", self.paint(GREEN, " ok")));
    }

    pub(crate) fn failed(&self, text: impl Display) {
        self.line(&format!("{} {text}", self.paint(RED, "FAILED")));
    }

    /// The last word, if there was no other.
    pub(crate) fn all_is_well(&self) {
        let all = seconds(self.started.elapsed());
        self.chapter(&format!("All of it was as it should be, in {all}."));
    }

    /// Looks again and again until `check` succeeds. Its error is what was seen instead; `dead` tells of an end of the
    /// operator, after which waiting is vain.
    pub(crate) fn wait<T>(
        &self,
        claim: &str,
        dead: impl FnMut() -> bool,
        check: impl FnMut() -> anyhow::Result<T>,
    ) -> Result<T, Stop> {
        self.wait_beyond(Duration::ZERO, claim, dead, check)
    }

    /// The same for something that takes this long by design, and is waited for so much longer.
    pub(crate) fn wait_beyond<T>(
        &self,
        design: Duration,
        claim: &str,
        mut dead: impl FnMut() -> bool,
        mut check: impl FnMut() -> anyhow::Result<T>,
    ) -> Result<T, Stop> {
        let patience = self.patience + design;
        let started = Instant::now();
        let mut told = None;
        loop {
            self.interruption.check()?;
            // Asked before the check: what was done just before the end counts.
            let ended = dead();
            let waited = started.elapsed();
            let seen = match check() {
                Ok(value) => {
                    self.clear();
                    return Ok(value);
                }
                Err(error) => format!("{error:#}"),
            };
            if ended || waited >= patience {
                self.clear();
                let end = if ended { ", and the operator has ended" } else { "" };
                let seen = format!("waited {} s; seen: {seen}{end}", waited.as_secs());
                let claim = claim.to_owned();
                return Err(Stop::Unproven { claim, seen });
            }
            told = self.progress(claim, waited, told);
            thread::sleep(PAUSE);
        }
    }

    /// Tells that it still waits: each second on a terminal, now and then in a log.
    fn progress(&self, claim: &str, waited: Duration, told: Option<Duration>) -> Option<Duration> {
        let pause = if self.terminal { Duration::from_secs(1) } else { NEWS };
        // A log needs no line about a short wait; a terminal shows at once what is waited for.
        let due = told.map_or(if self.terminal { Duration::ZERO } else { NEWS }, |told| told + pause);
        if waited < due {
            return told;
        }
        if self.terminal {
            self.raw(&format!("\r\x1b[2K    … {claim} ({} s)", waited.as_secs()));
        } else {
            self.line(&format!("    … still waiting after {} s: {claim}", waited.as_secs()));
        }
        Some(waited)
    }

    fn clear(&self) {
        if self.terminal {
            self.raw("\r\x1b[2K");
        }
    }

    fn paint(&self, colour: &str, text: &str) -> String {
        if self.terminal {
            format!("\x1b[{colour}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    fn line(&self, text: &str) {
        self.raw(&format!("{text}\n"));
    }

    fn raw(&self, text: &str) {
        // Nobody listening is no reason to leave processes behind.
        let mut out = self.out.lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

const BOLD: &str = "1";
const GREEN: &str = "32";
const RED: &str = "31";

/// A claim about what does not change any more.
pub(crate) fn check(claim: &str, holds: bool, seen: impl FnOnce() -> String) -> anyhow::Result<()> {
    if holds {
        return Ok(());
    }
    let (claim, seen) = (claim.to_owned(), seen());
    Err(Stop::Unproven { claim, seen }.into())
}

/// Seconds with one decimal.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f32())
}
