//! The output of the tour: one line per step, and a progress line during waits. The text is plain; colour and the
//! progress line appear only on a terminal. Chapters that are played beside others are printed when it is their turn.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;

/// The reason for which the tour stops.
#[derive(Debug, Error)]
pub(crate) enum Stop {
    /// A claim that did not come true.
    #[error("{claim}")]
    Unproven { claim: String, seen: String },
    #[error("interrupted")]
    Interrupted,
}

/// The flag that Ctrl-C sets.
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

    /// Returns when the flag is set.
    pub(crate) fn wait(&self) {
        while self.check().is_ok() {
            thread::sleep(PAUSE);
        }
    }
}

/// The pause between two checks of a condition.
const PAUSE: Duration = Duration::from_millis(50);

/// The interval at which a log file gets a line about a wait that goes on.
const NEWS: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Narrator {
    /// The lines that are kept until it is this narrator's turn; none once it is.
    kept: Arc<Mutex<Option<String>>>,
    terminal: bool,
    patience: Duration,
    interruption: Interruption,
    started: Instant,
}

impl Narrator {
    pub(crate) fn new(patience: Duration, interruption: Interruption) -> Self {
        Self {
            kept: Arc::default(),
            terminal: io::stdout().is_terminal(),
            patience,
            interruption,
            started: Instant::now(),
        }
    }

    /// A narrator of chapters that are played beside those of this one. Its lines are kept until its turn.
    pub(crate) fn backstage(&self) -> Self {
        Self {
            kept: Arc::new(Mutex::new(Some(String::new()))),
            terminal: self.terminal,
            patience: self.patience,
            interruption: self.interruption.clone(),
            started: self.started,
        }
    }

    /// Prints the kept lines, and from now on each line at once.
    pub(crate) fn take_turn(&self) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        print(&kept.take().unwrap_or_default());
    }

    /// Returns when it is this narrator's turn.
    pub(crate) fn wait_for_turn(&self) -> Result<(), Stop> {
        while self.is_backstage() {
            self.interruption.check()?;
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    fn is_backstage(&self) -> bool {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Whether the output is a terminal, and so a person may be reading.
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

    /// Prints what happens next, in one or two lines.
    pub(crate) fn say(&self, text: impl Display) {
        for line in text.to_string().lines() {
            self.line(&format!("    {line}"));
        }
    }

    /// Prints a command as a person would type it.
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

    /// Prints the last line of a tour without a failure.
    pub(crate) fn all_is_well(&self) {
        let all = seconds(self.started.elapsed());
        self.chapter(&format!("All of it was as it should be, in {all}."));
    }

    /// Repeats `check` until it succeeds. The error of `check` describes the state while it does not. `dead` reports
    /// that the operator has ended, after which waiting is useless.
    pub(crate) fn wait<T>(
        &self,
        claim: &str,
        dead: impl FnMut() -> bool,
        check: impl FnMut() -> anyhow::Result<T>,
    ) -> Result<T, Stop> {
        self.wait_beyond(Duration::ZERO, claim, dead, check)
    }

    /// Like `wait`, for a condition that by design takes about as long as `design`: the patience is longer by that
    /// time.
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
            // Asked before the check, so that the check still sees what the operator did just before its end.
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

    /// Reports that a wait goes on: each second on a terminal, seldom in a log file.
    fn progress(&self, claim: &str, waited: Duration, told: Option<Duration>) -> Option<Duration> {
        let pause = if self.terminal { Duration::from_secs(1) } else { NEWS };
        // A short wait gets no line in a log file. A terminal shows at once what the tour waits for.
        let due = told.map_or(if self.terminal { Duration::ZERO } else { NEWS }, |told| told + pause);
        if waited < due || self.is_backstage() {
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
        if self.terminal && !self.is_backstage() {
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
        match self.kept.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(kept) => kept.push_str(text),
            None => print(text),
        }
    }
}

fn print(text: &str) {
    // A closed output must not abort the tour: processes would be left behind.
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

const BOLD: &str = "1";
const GREEN: &str = "32";
const RED: &str = "31";

/// Checks a claim once, where the state cannot change any more.
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
