//! How long unfinished revisions have been unchanged. The clocks of two machines may differ, so only the operator's own
//! observations count, on a clock that cannot be set.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use addon_core::release::Status;

use super::Revision;

/// The releases whose newest revision is unfinished, each with the time of its first observation.
#[derive(Debug, Default)]
pub struct Vigil(BTreeMap<String, (Seen, Instant)>);

/// Distinguishes two writes of a revision.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    revision: u32,
    status: Status,
    written: u64,
    version: String,
}

impl Vigil {
    /// Takes over the newest revision of a release. Returns how long it has been unfinished and unchanged.
    pub fn see(&mut self, release: &str, newest: Option<&Revision>, now: Instant) -> Duration {
        let Some(revision) = newest.filter(|revision| revision.newest.status.is_unfinished()) else {
            self.0.remove(release);
            return Duration::ZERO;
        };
        let seen = Seen {
            revision: revision.newest.revision,
            status: revision.newest.status,
            written: revision.written,
            version: revision.version.clone(),
        };
        match self.0.get(release) {
            Some((known, since)) if *known == seen => now.saturating_duration_since(*since),
            Some(_) | None => {
                self.0.insert(release.to_owned(), (seen, now));
                Duration::ZERO
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use addon_core::release::Newest;
    use addon_core::release::records::Tag;

    use super::*;

    fn revision(status: Status, written: u64, version: &str) -> Revision {
        Revision {
            release: "one".to_owned(),
            newest: Newest {
                revision: 3,
                status,
                ours: true,
                inputs: None,
                unmanaged: false,
                checksum: None,
                begun: None,
                held: None,
                confirmed: None,
                good: None,
                returned: None,
            },
            objects: None,
            asked: None,
            config: None,
            refused: None,
            allowed: Vec::new(),
            remarks: Vec::new(),
            is_handed_over: false,
            written,
            version: version.to_owned(),
            is_doubtful: false,
            tag: Tag::default(),
            secret: String::new(),
        }
    }

    #[test]
    fn what_is_written_again_is_watched_anew_whatever_time_it_claims() {
        let (mut vigil, begin) = (Vigil::default(), Instant::now());
        let mut see = |revision: Revision, seconds| {
            let now = begin + Duration::from_secs(seconds);
            vigil.see("one", Some(&revision), now).as_secs()
        };
        let pending = Status::PendingUpgrade;
        assert_eq!(
            see(revision(pending, 0, "7"), 0),
            0,
            "its writer's clock may be an hour behind ours"
        );
        assert_eq!(see(revision(pending, 0, "7"), 600), 600);
        assert_eq!(see(revision(pending, u64::MAX, "8"), 600), 0, "or ahead");
        assert_eq!(see(revision(pending, u64::MAX, "8"), 1800), 1200);
        assert_eq!(see(revision(Status::Deployed, 0, "9"), 1800), 0);
        assert_eq!(see(revision(pending, 0, "7"), 1800), 0);
    }
}
