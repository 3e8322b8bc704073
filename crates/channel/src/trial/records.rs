//! The records that all replicas share, as they were last read.
//!
//! A record that could not be read must never count as absent.

use std::time::Duration;

use channel_core::trial::record::{Remembered, Report, Trial};
use channel_core::trial::sight::Known;
use kube_access::Cluster;
use report::Chain;
use tokio::time::Instant;
use tracing::warn;

use saved_state::trial::channel_records;
use saved_state::trial::{Kept, Records};

/// The pause between two reads.
const PAUSE: Duration = Duration::from_mins(1);
/// The pause during a trial.
const PAUSE_ON_TRIAL: Duration = Duration::from_secs(3);

#[derive(Debug, Default)]
pub(super) struct Shelf {
    records: Option<Records>,
    /// The time at which the present `records` were requested from the API server.
    as_of: Option<Instant>,
    /// Whether the records may have changed since that request.
    is_doubted: bool,
    /// The last logged reason why a record cannot be used.
    told: Option<String>,
}

impl Shelf {
    pub(super) fn is_due(&self, is_watchful: bool) -> bool {
        let pause = if is_watchful { PAUSE_ON_TRIAL } else { PAUSE };
        self.is_doubted || self.as_of.is_none_or(|as_of| as_of.elapsed() >= pause)
    }

    /// Makes the next read happen as soon as possible.
    pub(super) fn doubt(&mut self) {
        self.is_doubted = true;
    }

    /// Reads the records; returns whether the read succeeded. After a failure the earlier records stay.
    pub(super) async fn read(&mut self, cluster: &Cluster) -> bool {
        let asked = Instant::now();
        match channel_records(cluster).await {
            Ok(records) => {
                let problem = problem(&records);
                self.tell(problem);
                (self.records, self.as_of, self.is_doubted) = (Some(records), Some(asked), false);
                true
            }
            Err(error) => {
                let text = Chain(&error).to_string();
                self.tell(Some(text));
                false
            }
        }
    }

    /// The time at which the records were requested.
    pub(super) fn as_of(&self) -> Option<Instant> {
        self.as_of
    }

    pub(super) fn trial(&self) -> Option<&Trial> {
        match &self.records.as_ref()?.trial {
            Kept::Is(trial) => Some(trial),
            Kept::Absent | Kept::Unreadable(_) => None,
        }
    }

    pub(super) fn known_trial(&self) -> Known<Trial> {
        known(self.records.as_ref().map(|records| &records.trial))
    }

    pub(super) fn known_report(&self) -> Known<Report> {
        known(self.records.as_ref().map(|records| &records.report))
    }

    /// The results of earlier trials; none while they are not known.
    pub(super) fn remembered(&self) -> Option<&Remembered> {
        static NOTHING: std::sync::LazyLock<Remembered> = std::sync::LazyLock::new(Remembered::default);
        match &self.records.as_ref()?.remembered {
            Kept::Is(remembered) => Some(remembered),
            Kept::Absent => Some(&NOTHING),
            Kept::Unreadable(_) => None,
        }
    }

    fn tell(&mut self, problem: Option<String>) {
        if let Some(error) = problem.as_ref().filter(|problem| self.told.as_ref() != Some(*problem)) {
            warn!(
                error,
                "Cannot read the records of trials; no version is tried until they can be read"
            );
        }
        self.told = problem;
    }
}

fn problem(records: &Records) -> Option<String> {
    let Records {
        trial,
        report,
        remembered,
    } = records;
    let of_trial = unreadable(trial).or_else(|| unreadable(report));
    of_trial.or_else(|| unreadable(remembered))
}

fn unreadable<T>(kept: &Kept<T>) -> Option<String> {
    match kept {
        Kept::Unreadable(why) => Some(why.clone()),
        Kept::Absent | Kept::Is(_) => None,
    }
}

fn known<T: Clone>(kept: Option<&Kept<T>>) -> Known<T> {
    match kept {
        Some(Kept::Is(record)) => Known::There(record.clone()),
        Some(Kept::Absent) => Known::Absent,
        Some(Kept::Unreadable(_)) | None => Known::Unknown,
    }
}
