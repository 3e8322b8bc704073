//! Waits for orphans, which is the duty of the first process of a container.
//! Never touches a child that a run waits for: its end and its resource usage belong to that run. It is called on the
//! thread that forks, so no child can be between its birth and the list.

use super::sys::{self, Pid};

/// Waits for every ended child of ours that is not `known`.
pub(super) fn reap_orphans(known: impl Fn(Pid) -> bool) {
    for pid in zombies_of(std::process::id()) {
        if !known(pid) {
            match sys::reap(pid) {
                Ok(_) => tracing::debug!(pid = pid.number(), "an orphan was waited for"),
                Err(error) => tracing::debug!(pid = pid.number(), %error, "an orphan could not be waited for"),
            }
        }
    }
}

/// The ended children of a process, as the process table shows them. Without a process table there are none to see.
fn zombies_of(parent: u32) -> Vec<Pid> {
    let Ok(table) = fs_err::read_dir("/proc") else {
        return Vec::new();
    };
    table
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|number| {
            fs_err::read_to_string(format!("/proc/{number}/stat")).is_ok_and(|stat| is_zombie_of(&stat, parent))
        })
        .filter_map(Pid::new)
        .collect()
}

/// Reads `number (name) state parent …`; the name may contain anything, also blanks and brackets.
fn is_zombie_of(stat: &str, parent: u32) -> bool {
    let Some((_, rest)) = stat.rsplit_once(')') else {
        return false;
    };
    let mut fields = rest.split_ascii_whitespace();
    fields.next() == Some("Z") && fields.next().and_then(|field| field.parse().ok()) == Some(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_table_is_read_past_strange_names() {
        let rows = [
            ("17 (sleep) Z 1 17 17 0", 1, true),
            ("17 (sleep) S 1 17 17 0", 1, false),
            ("17 (sleep) Z 2 17 17 0", 1, false),
            ("17 (a) Z 9) Z 1 17 17 0", 1, true),
            ("", 1, false),
        ];
        for (stat, parent, expected) in rows {
            assert_eq!(is_zombie_of(stat, parent), expected, "{stat}");
        }
    }
}
