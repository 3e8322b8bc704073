//! Answers that are kept for a moment, so that all clients share one composition.
//!
//! An answer is made anew after a change, at most once a second, and in any case after a quarter of a minute, because times in it
//! go on. Must never keep more than a few answers.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex as Turn, watch};
use tokio::time::Instant;

/// The time for which an answer counts as fresh whatever happens.
const FRESH: Duration = Duration::from_secs(1);
/// The time for which an answer counts as fresh if nothing happens.
const VALID: Duration = Duration::from_secs(15);
/// The largest number of answers.
const MOST: usize = 16;

/// Answers of one kind by their names.
#[derive(Debug)]
pub(crate) struct Kept<T> {
    changed: watch::Receiver<()>,
    slots: Mutex<VecDeque<(String, Slot<T>)>>,
}

type Slot<T> = Arc<Turn<Option<Made<T>>>>;

#[derive(Debug)]
struct Made<T> {
    at: Instant,
    /// Tells whether something has changed since the answer was made.
    changed: watch::Receiver<()>,
    answer: T,
}

impl<T> Made<T> {
    fn is_good(&self) -> bool {
        let limit = match self.changed.has_changed() {
            Ok(true) => FRESH,
            Ok(false) | Err(_) => VALID,
        };
        self.at.elapsed() < limit
    }
}

impl<T: Clone> Kept<T> {
    pub(crate) fn new(changed: watch::Receiver<()>) -> Self {
        let slots = Mutex::default();
        Self { changed, slots }
    }

    /// The kept answer with this name, or the one that `make` makes. Clients that come meanwhile wait for it. An error is not kept.
    pub(crate) async fn get<E>(&self, name: &str, make: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let slot = self.slot(name);
        let mut made = slot.lock().await;
        if let Some(made) = made.as_ref().filter(|made| made.is_good()) {
            return Ok(made.answer.clone());
        }
        let mut changed = self.changed.clone();
        changed.mark_unchanged();
        let at = Instant::now();
        let answer = make.await?;
        *made = Some(Made {
            at,
            changed,
            answer: answer.clone(),
        });
        Ok(answer)
    }

    fn slot(&self, name: &str) -> Slot<T> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, slot)) = slots.iter().find(|(other, _)| other == name) {
            return Arc::clone(slot);
        }
        if slots.len() >= MOST {
            slots.pop_front();
        }
        let slot = Slot::default();
        slots.push_back((name.to_owned(), Arc::clone(&slot)));
        slot
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_made_anew_after_a_change_but_not_for_each_client() {
        let (changes, changed) = watch::channel(());
        let kept = Kept::new(changed);
        let made = Mutex::new(0);
        let get = || {
            kept.get("one", async {
                let mut made = made.lock().unwrap();
                *made += 1;
                Ok::<u32, Infallible>(*made)
            })
        };
        assert_eq!((get().await.unwrap(), get().await.unwrap()), (1, 1));
        advance(FRESH * 3).await;
        assert_eq!(get().await.unwrap(), 1, "nothing has changed");
        changes.send_replace(());
        assert_eq!(get().await.unwrap(), 2);
        changes.send_replace(());
        assert_eq!(get().await.unwrap(), 2, "a second has not passed");
        advance(FRESH).await;
        assert_eq!(get().await.unwrap(), 3);
        advance(VALID).await;
        assert_eq!(get().await.unwrap(), 4, "times go on");
    }

    #[tokio::test]
    async fn few_answers_are_kept() {
        let (_changes, changed) = watch::channel(());
        let kept = Kept::new(changed);
        for number in 0..100 {
            let made = kept
                .get(&number.to_string(), async { Ok::<_, Infallible>(number) })
                .await;
            assert_eq!(made.unwrap(), number);
        }
        assert_eq!(kept.slots.lock().unwrap().len(), MOST);
        let failed = kept.get("bad", async { Err::<i32, _>("no") }).await;
        assert_eq!(failed, Err("no"));
    }
}
