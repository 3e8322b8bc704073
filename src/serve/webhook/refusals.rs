//! Requests that are refused before a hook is asked: all are counted, and some are logged, since a refused client may
//! come back at once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tracing::warn;

use super::Reviews;
use crate::meters::{Meters, table};

/// How often it is told.
const TELL_EVERY: Duration = Duration::from_mins(1);

/// Why nobody is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// No hook answers there.
    UnknownPath,
    /// The body did not come.
    Slow,
    /// It did not come as was said.
    Broken,
    /// It is longer than any that is read.
    TooLarge,
    /// It would take too much memory once it is read.
    TooManyParts,
    /// Bodies that are on their way have all the memory that there is for them.
    NoRoom,
}

impl Reason {
    fn label(self) -> &'static str {
        match self {
            Self::UnknownPath => "unknown_path",
            Self::Slow => "slow",
            Self::Broken => "broken",
            Self::TooLarge => "too_large",
            Self::TooManyParts => "too_many_parts",
            Self::NoRoom => "no_room",
        }
    }
}

pub(super) struct Refusals {
    reviews: Reviews,
    meters: Arc<Meters>,
    told: Mutex<Option<Instant>>,
}

impl Refusals {
    pub(super) fn new(reviews: Reviews, meters: Arc<Meters>) -> Self {
        Self {
            reviews,
            meters,
            told: Mutex::default(),
        }
    }

    pub(super) fn count(&self, reason: Reason) {
        let (reviews, reason) = (self.reviews.label(), reason.label());
        self.meters
            .add(&table::cluster::REVIEWS_REFUSED, [reviews, reason], 1.0);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
            *told = Some(Instant::now());
            warn!(
                reviews,
                reason, "Requests for reviews are refused before a hook is asked; this record may stand for several"
            );
        }
    }
}
