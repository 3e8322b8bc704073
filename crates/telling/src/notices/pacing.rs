//! The pace of announcements: the first of its kind is written at once, repetitions at most once a minute.
//!
//! Repetitions within the minute are counted, and then written with the last text. It never waits itself.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::announcements::Announcement;

/// The pause between two Events with the same subject and reason.
const PAUSE: Duration = Duration::from_mins(1);
/// A subject without news for this long is forgotten, because the API server deletes its Events after that time, too.
const MEMORY: Duration = Duration::from_hours(1);

/// Recent and waiting announcements.
#[derive(Debug, Default)]
pub struct Pacing {
    slots: BTreeMap<(String, &'static str), Slot>,
}

#[derive(Debug, Default)]
struct Slot {
    told: Option<Instant>,
    waiting: Option<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    announcement: Announcement,
    times: u32,
    last: Timestamp,
}

/// An announcement that may be written now.
#[derive(Debug, PartialEq, Eq)]
pub struct Due {
    pub announcement: Announcement,
    /// The number of occurrences since the announcement's last Event.
    pub times: u32,
    /// The time of the announcement's last occurrence.
    pub last: Timestamp,
    /// Whether the announcement is the first of its kind in this process.
    pub first: bool,
}

impl Pacing {
    /// Takes an announcement. It replaces a waiting one of the same kind.
    pub fn take(&mut self, announcement: Announcement, at: Timestamp) {
        let key = (announcement.subject.clone(), announcement.reason);
        let slot = self.slots.entry(key).or_default();
        let again = slot
            .waiting
            .as_ref()
            .filter(|waiting| waiting.announcement == announcement)
            .map_or(0, |waiting| waiting.times);
        slot.waiting = Some(Waiting {
            announcement,
            times: again.saturating_add(1),
            last: at,
        });
    }

    /// The next announcement that may be written now, in the order of occurrence.
    pub fn due(&mut self, now: Instant) -> Option<Due> {
        let open = |slot: &&mut Slot| slot.opens(now).is_some_and(|at| at <= now);
        let ready = self.slots.values_mut().filter(open);
        let slot = ready.min_by_key(|slot| slot.waiting.as_ref().map(|waiting| waiting.last))?;
        let Waiting {
            announcement,
            times,
            last,
        } = slot.waiting.take()?;
        let first = slot.told.replace(now).is_none();
        Some(Due {
            announcement,
            times,
            last,
            first,
        })
    }

    /// The time at which the next announcement may be written. Also forgets old subjects.
    pub fn next(&mut self, now: Instant) -> Option<Instant> {
        self.slots
            .retain(|_, slot| slot.waiting.is_some() || slot.told.is_some_and(|told| now < told + MEMORY));
        self.slots.values().filter_map(|slot| slot.opens(now)).min()
    }
}

impl Slot {
    /// The time at which a waiting announcement may be written, if there is one.
    fn opens(&self, now: Instant) -> Option<Instant> {
        self.waiting.as_ref()?;
        Some(self.told.map_or(now, |told| told + PAUSE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notices::announcements::{About, Weight};

    fn word(reason: &'static str, note: &str) -> Announcement {
        Announcement {
            about: About::ConfigMap,
            subject: "one".into(),
            reason,
            action: "Run",
            weight: Weight::Warning,
            note: note.to_owned(),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// The announcements that may be written now: note, count, and whether it is the first of its kind.
    fn told(pacing: &mut Pacing, now: Instant) -> Vec<(String, u32, bool)> {
        std::iter::from_fn(|| pacing.due(now))
            .map(|due| (due.announcement.note, due.times, due.first))
            .collect()
    }

    #[test]
    fn the_first_word_goes_out_at_once_and_the_next_a_minute_later() {
        let (mut pacing, began) = (Pacing::default(), Instant::now());
        assert_eq!(pacing.next(began), None);
        pacing.take(word("ModuleFailed", "a"), at(1));
        assert_eq!(pacing.next(began), Some(began));
        assert_eq!(told(&mut pacing, began), [("a".to_owned(), 1, true)]);
        for second in 2..30 {
            pacing.take(word("ModuleFailed", "a"), at(second));
        }
        let soon = began + Duration::from_secs(59);
        assert_eq!(told(&mut pacing, soon), []);
        assert_eq!(pacing.next(soon), Some(began + PAUSE));
        assert_eq!(told(&mut pacing, began + PAUSE), [("a".to_owned(), 28, false)]);
        assert_eq!(pacing.next(began + PAUSE), None);
    }

    #[test]
    fn of_words_that_change_the_last_is_told() {
        let (mut pacing, began) = (Pacing::default(), Instant::now());
        for (second, note) in ["a", "b", "b"].into_iter().enumerate() {
            pacing.take(word("ModuleFailed", note), at(second.try_into().unwrap()));
        }
        assert_eq!(told(&mut pacing, began), [("b".to_owned(), 2, true)]);
    }

    #[test]
    fn reasons_do_not_wait_for_each_other_and_keep_their_order() {
        let (mut pacing, began) = (Pacing::default(), Instant::now());
        pacing.take(word("ModuleReady", "ready"), at(2));
        pacing.take(word("ModuleFailed", "failed"), at(1));
        let expected = [("failed".to_owned(), 1, true), ("ready".to_owned(), 1, true)];
        assert_eq!(told(&mut pacing, began), expected);
    }

    #[test]
    fn what_is_long_over_is_forgotten() {
        let (mut pacing, began) = (Pacing::default(), Instant::now());
        pacing.take(word("ModuleReady", "ready"), at(1));
        told(&mut pacing, began);
        pacing.next(began + MEMORY);
        assert!(pacing.slots.is_empty());
    }
}
