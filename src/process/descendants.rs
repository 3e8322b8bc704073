//! All processes that descend from us, ended at once: for an end of ours that waits for nobody.
//! Never spares one because it has left the group that it was started in.

use std::collections::BTreeMap;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// Whoever forks while it is looked for is found the next time.
const ROUNDS: usize = 10;

/// What the kernel says of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kin {
    parent: i32,
    group: i32,
}

/// Kills them, and all groups that they lead.
pub(super) fn kill_all() {
    let me = rustix::process::getpid();
    for _ in 0..ROUNDS {
        let found = below(me.as_raw_nonzero().get(), &processes());
        if found.is_empty() {
            return;
        }
        for (pid, kin) in found {
            let Some(pid) = Pid::from_raw(pid) else { continue };
            // One that has ended meanwhile needs no signal.
            if kin.group == pid.as_raw_nonzero().get() {
                let _ = kill_process_group(pid, Signal::KILL);
            }
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// All that run, as far as they can be seen.
fn processes() -> BTreeMap<i32, Kin> {
    let entries = fs_err::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    numbers
        .filter_map(|pid| {
            Some((
                pid,
                Kin::read(&fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?)?,
            ))
        })
        .collect()
}

fn below(ancestor: i32, all: &BTreeMap<i32, Kin>) -> BTreeMap<i32, Kin> {
    let mut found = BTreeMap::new();
    let mut parents = vec![ancestor];
    while let Some(parent) = parents.pop() {
        for (pid, kin) in all.iter().filter(|(_, kin)| kin.parent == parent) {
            if found.insert(*pid, *kin).is_none() {
                parents.push(*pid);
            }
        }
    }
    found
}

impl Kin {
    /// Nothing of one that only waits for its burial. The name of the program may hold anything; what counts comes after it.
    fn read(stat: &str) -> Option<Self> {
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_whitespace();
        let (state, parent, group) = (fields.next()?, fields.next()?, fields.next()?);
        if matches!(state, "Z" | "X" | "x") {
            return None;
        }
        Some(Self {
            parent: parent.parse().ok()?,
            group: group.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_descends_from_us_is_found_whatever_its_group() {
        let kin = |parent, group| Kin { parent, group };
        let all = BTreeMap::from([
            (1, kin(0, 1)),
            (7, kin(1, 7)),
            (8, kin(7, 8)),
            (9, kin(8, 9)),
            (10, kin(1, 8)),
        ]);
        assert_eq!(below(7, &all).into_keys().collect::<Vec<_>>(), [8, 9]);
    }

    #[test]
    fn a_program_may_be_called_anything() {
        let stat = "9 (a) b (c) S 8 9 7 0 -1 4194560 1 1";
        assert_eq!(Kin::read(stat), Some(Kin { parent: 8, group: 9 }));
        assert_eq!(Kin::read("9 (x) Z 8 9 7"), None);
        assert_eq!(Kin::read("nonsense"), None);
    }
}
