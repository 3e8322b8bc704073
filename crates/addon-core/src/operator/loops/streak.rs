//! How often in a row a hook repeated a deed because of that deed, and how long the hook's next run waits for that
//! reason.

use std::collections::VecDeque;
use std::time::Duration;

use clock::Tick;

use crate::digest::Digest;

/// The number of repetitions within [`WINDOW`] from which on the next run waits.
const MANY: usize = 6;
/// The time in which the repetitions count as fast. Slower repetitions do no harm.
const WINDOW: Duration = Duration::from_mins(1);
/// The first wait. Each further repetition doubles it.
const FIRST_WAIT: Duration = Duration::from_secs(5);
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// The repetitions of one deed.
#[derive(Debug, Clone)]
pub(super) struct Streak {
    /// The deed, as the end of the sentence "the hook ...".
    pub(super) text: String,
    /// The number of repetitions, the first deed included.
    pub(super) times: u32,
    /// The number of the hook's run that did the deed last.
    pub(super) run: u64,
    /// The time of the last deed.
    last: Tick,
    /// The way in which the repetitions follow from each other; `None` before the first repetition.
    way: Option<Again>,
    /// The digest of the last operation on an object.
    content: Option<Digest>,
    /// The times of the last deeds, at most [`MANY`].
    recent: VecDeque<Tick>,
    /// The number of waits in a row; 0 while the runs do not wait.
    waits: u32,
}

/// Whether a deed repeats the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    /// The run followed from the hook's own deeds.
    Yes,
    /// The run followed from a change by others.
    No,
    /// The run followed from a change of the same object by others. It is a contest if the hook writes the same contents again.
    IfSame,
}

impl Streak {
    /// A deed that repeats no other one.
    pub(super) fn first(text: String, run: u64, content: Option<Digest>, now: Tick) -> Self {
        Self {
            text,
            times: 1,
            run,
            last: now,
            way: None,
            content,
            recent: VecDeque::from([now]),
            waits: 0,
        }
    }

    /// The streak after this deed has been done again in the given run.
    pub(super) fn then(mut self, run: u64, again: Again, content: Option<Digest>, now: Tick) -> Self {
        let is_same_way = self.way.is_none_or(|way| way == again);
        let is_again = match again {
            Again::Yes => self.run + 1 == run,
            Again::No => false,
            Again::IfSame => self.is_recent(run) && content.is_some() && content == self.content,
        };
        let is_late = self.waits > 0 && now - self.last > self.wait() + WINDOW;
        if !is_again || !is_same_way || is_late {
            return Self::first(self.text, run, content, now);
        }
        self.recent.push_back(now);
        while self.recent.len() > MANY {
            self.recent.pop_front();
        }
        let is_fast = self.recent.len() == MANY && self.recent.front().is_some_and(|first| now - *first <= WINDOW);
        if self.waits > 0 || is_fast {
            self.waits = self.waits.saturating_add(1);
        }
        self.times = self.times.saturating_add(1);
        self.run = run;
        self.way = Some(again);
        self.last = now;
        self.content = content;
        self
    }

    /// Whether the deed was done in one of the hook's last two runs. In a contest, the hook's own write brings a run between two
    /// changes by others, and that run finds nothing to do.
    pub(super) fn is_recent(&self, run: u64) -> bool {
        self.run + 2 >= run
    }

    /// Whether others undo the deed again and again.
    pub(super) fn is_contest(&self) -> bool {
        self.way == Some(Again::IfSame)
    }

    /// The time before which the hook does not repeat the deed; `None` if it need not wait.
    pub(super) fn until(&self) -> Option<Tick> {
        (self.waits > 0).then(|| self.last + self.wait())
    }

    fn wait(&self) -> Duration {
        match self.waits {
            0 => Duration::ZERO,
            waits => (FIRST_WAIT * (1 << (waits - 1).min(6))).min(LONGEST_WAIT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(second: u64) -> Tick {
        Tick::from_micros(second * 1_000_000)
    }

    /// The waits in seconds after deeds at these times, each caused by the one before.
    fn waits(times: &[u64]) -> Vec<u64> {
        let mut streak = Streak::first(String::new(), 1, None, second(times[0]));
        let later = times[1..].iter().zip(2..).map(|(at, run)| {
            streak = streak.clone().then(run, Again::Yes, None, second(*at));
            streak.until().map_or(0, |until| (until - second(*at)).as_secs())
        });
        later.collect()
    }

    #[test]
    fn the_sixth_deed_within_a_minute_makes_the_next_one_wait() {
        assert_eq!(waits(&[0, 1, 2, 3, 4, 5]), [0, 0, 0, 0, 5]);
        assert_eq!(
            waits(&[0, 1, 2, 3, 4, 5, 10, 20, 40, 80, 160, 320, 620, 920]),
            [0, 0, 0, 0, 5, 10, 20, 40, 80, 160, 300, 300, 300]
        );
    }

    #[test]
    fn slow_repetitions_wait_for_nothing() {
        assert_eq!(waits(&[0, 15, 30, 45, 60, 75, 90]), [0; 6]);
    }

    #[test]
    fn a_calm_minute_after_a_wait_ends_the_streak() {
        assert_eq!(waits(&[0, 1, 2, 3, 4, 5, 71, 72]), [0, 0, 0, 0, 5, 0, 0]);
    }

    #[test]
    fn another_cause_or_a_run_without_the_deed_ends_the_streak() {
        let mut streak = Streak::first(String::new(), 1, None, second(0));
        for run in 2..=6 {
            streak = streak.then(run, Again::Yes, None, second(run));
        }
        assert_eq!((streak.times, streak.until()), (6, Some(second(11))));
        assert_eq!(streak.clone().then(7, Again::No, None, second(7)).until(), None);
        assert_eq!(streak.then(8, Again::Yes, None, second(7)).times, 1);
    }

    #[test]
    fn a_contest_is_one_while_the_contents_stay_the_same() {
        let (one, other) = (Digest::of_bytes(b"1"), Digest::of_bytes(b"2"));
        let first = Streak::first(String::new(), 1, Some(one), second(0));
        let same = first.clone().then(2, Again::IfSame, Some(one), second(1));
        assert_eq!(same.times, 2);
        assert_eq!(first.then(2, Again::IfSame, Some(other), second(1)).times, 1);
    }
}
