//! The holder name of a process without a pod, and the check whether the process with a given name has ended.
//!
//! A name is `HOST_PLACE_PID_START`. The place distinguishes machines, boots and containers; the start distinguishes
//! processes that had the same id. A process that is not visible from here must never count as ended.

use std::path::Path;

use addon_core::digest::Digest;
use channel_core::leadership::lease::Holder;

const HOST: &str = "/proc/sys/kernel/hostname";
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
const SPACE: &str = "/proc/self/ns/pid";
/// The length of the place: enough letters of a digest to distinguish places.
const PLACE: usize = 12;

/// Identifies the namespace in which our process ids are valid; `None` if the machine does not report it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PidNamespace(Option<String>);

impl PidNamespace {
    pub(super) fn here() -> Self {
        let place = || {
            let boot = fs_err::read_to_string(BOOT).ok()?;
            let space = fs_err::read_link(SPACE).ok()?;
            let digest = Digest::of_bytes(format!("{} {}", boot.trim(), space.display()).as_bytes());
            Some(digest.to_string().chars().take(PLACE).collect())
        };
        Self(place())
    }

    /// The name of this process. If the place is unknown, a random part makes the name unique.
    pub(super) fn name(&self, pod: Option<&str>, chance: u64) -> String {
        let host = || fs_err::read_to_string(HOST).map(|host| host.trim().to_owned());
        let host = pod.map_or_else(|| host().unwrap_or_default(), str::to_owned);
        let pid = std::process::id();
        match (&self.0, Life::of(Path::new("/proc/self/stat"))) {
            (Some(place), Some(Life { start, .. })) => format!("{host}_{place}_{pid}_{start}"),
            (_, _) => format!("{host}_{chance:016x}"),
        }
    }

    /// Whether the holder with this name has certainly ended.
    pub(super) fn judge(&self, holder: &str) -> Holder {
        let mut parts = holder.rsplitn(4, '_');
        let (start, pid, place) = (parts.next(), parts.next(), parts.next());
        let number = |text: Option<&str>| text.and_then(|text| text.parse::<u64>().ok());
        let (Some(start), Some(pid), true) = (
            number(start),
            number(pid),
            place.is_some() && place == self.0.as_deref(),
        ) else {
            return Holder::Unknown;
        };
        let path = format!("/proc/{pid}/stat");
        match Life::of(Path::new(&path)) {
            Some(life) if life.start == start && life.runs => Holder::Unknown,
            Some(_) => Holder::Gone,
            None if Path::new("/proc/self/stat").exists() && !Path::new(&path).exists() => Holder::Gone,
            None => Holder::Unknown,
        }
    }
}

/// The kernel's status of a process.
#[derive(Debug, PartialEq, Eq)]
struct Life {
    /// The start time, counted from the boot of the machine.
    start: u64,
    /// Whether the process has not ended. A zombie has ended.
    runs: bool,
}

impl Life {
    fn of(stat: &Path) -> Option<Self> {
        Self::read(&fs_err::read_to_string(stat).ok()?)
    }

    /// Parses the kernel's status. The program's name may contain any character, so the fields are counted after it.
    fn read(stat: &str) -> Option<Self> {
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let (state, threads, start) = (fields.first()?, fields.get(17)?, fields.get(19)?);
        // The main thread may end before the other threads of the process.
        let ended = matches!(*state, "Z" | "X" | "x") && threads.parse::<u32>().ok()? <= 1;
        Some(Self {
            start: start.parse().ok()?,
            runs: !ended,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_runs_is_not_gone() {
        let place = PidNamespace::here();
        let me = place.name(Some("pod"), 0);
        assert!(me.starts_with("pod_") && me.split('_').count() == 4, "{me}");
        assert_eq!(place.judge(&me), Holder::Unknown);
        assert_eq!(place.name(Some("pod"), 1), me, "as long as it lives");
    }

    #[test]
    fn a_process_that_has_ended_is_gone() {
        let place = PidNamespace::here();
        let me = place.name(Some("a_pod"), 0);
        let (front, start) = me.rsplit_once('_').unwrap();
        let (front, _) = front.rsplit_once('_').unwrap();
        // No kernel gives a process this id.
        assert_eq!(place.judge(&format!("{front}_4194999_{start}")), Holder::Gone);
        let pid = std::process::id();
        assert_eq!(
            place.judge(&format!("{front}_{pid}_1")),
            Holder::Gone,
            "the number of another"
        );
    }

    #[test]
    fn what_cannot_be_seen_from_here_may_live() {
        let place = PidNamespace::here();
        for holder in [
            "",
            "operator-0.10-0-0-7.ns.pod",
            "host_elsewhere_4194999_1",
            "a_b_c",
            "_1_1",
        ] {
            assert_eq!(place.judge(holder), Holder::Unknown, "{holder}");
        }
        let blind = PidNamespace(None);
        assert_eq!(blind.judge("host__4194999_1"), Holder::Unknown);
        assert_eq!(blind.name(Some("pod"), 7), "pod_0000000000000007");
    }

    #[test]
    fn a_program_may_be_called_anything() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 1 0 0 0 0 0 0 20 0 9 0 1234 1 1";
        assert_eq!(
            Life::read(stat),
            Some(Life {
                start: 1234,
                runs: true
            })
        );
        let ended = "7 (x) Z 1 7 7 0 -1 4194560 1 1 0 0 0 0 0 0 20 0 1 0 1234 1 1";
        assert_eq!(
            Life::read(ended),
            Some(Life {
                start: 1234,
                runs: false
            })
        );
        let first_thread_ended = "7 (x) Z 1 7 7 0 -1 4194560 1 1 0 0 0 0 0 0 20 0 3 0 1234 1 1";
        assert_eq!(
            Life::read(first_thread_ended),
            Some(Life {
                start: 1234,
                runs: true
            })
        );
        assert_eq!(Life::read("nonsense"), None);
    }
}
