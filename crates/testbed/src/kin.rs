//! The processes of a command, also those that outlive the process that started them. cargo, for example, does not pass
//! a signal on to the test binary that it runs.
//!
//! A variable in the environment marks these processes. Children of a marked process belong to the command even without
//! the mark. Must never signal any other process.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fs_err as fs;

use crate::environment::RUN;
use crate::process;
use crate::wait::wait_until;

/// The time that processes have to end after SIGTERM. The test of a node needs a few seconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// The processes of a command.
#[derive(Debug)]
pub struct Kin {
    /// The mark as an environment shows it.
    mark: Vec<u8>,
}

/// A process that runs.
struct Member {
    parent: u32,
    name: String,
}

impl Kin {
    /// Marks a command that is started next. `folder` must not be the folder of another command.
    pub fn mark(command: &mut Command, folder: &Path) -> Self {
        command.env(RUN, folder);
        let folder = folder.as_os_str().as_encoded_bytes();
        Self {
            mark: [RUN.as_bytes(), b"=", folder].concat(),
        }
    }

    /// Ends the processes that still run, politely at first, and returns their names.
    pub fn end(&self) -> BTreeSet<String> {
        let (mut names, mut asked) = (BTreeSet::new(), BTreeSet::new());
        let all_ended = wait_until(PATIENCE, "the processes of the command to end", || {
            let members = self.members();
            // If the parent of a process belongs to us, too, the process gets the signal only after the parent's end.
            let orphans = members
                .iter()
                .filter(|(_, member)| !members.contains_key(&member.parent));
            for (id, member) in orphans {
                names.insert(member.name.clone());
                if asked.insert(*id) {
                    process::signal(*id, libc::SIGTERM);
                }
            }
            if members.is_empty() {
                Ok(Some(()))
            } else {
                Err("some still run")
            }
        });
        if all_ended.is_err() {
            for (id, member) in self.members() {
                names.insert(member.name);
                process::signal(id, libc::SIGKILL);
            }
        }
        names
    }

    /// The marked processes that run, with their descendants.
    fn members(&self) -> BTreeMap<u32, Member> {
        let processes = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
        let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut others: BTreeMap<u32, Member> = ids.filter_map(|id| Some((id, member(id)?))).collect();
        let is_marked = |id: &u32| {
            let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == self.mark)
        };
        let mut found: BTreeMap<u32, Member> = others.extract_if(.., |id, _| is_marked(id)).collect();
        loop {
            let children: Vec<_> = others
                .extract_if(.., |_, other| found.contains_key(&other.parent))
                .collect();
            if children.is_empty() {
                return found;
            }
            found.extend(children);
        }
    }
}

/// A process from its `stat`; `None` if it has ended.
fn member(id: u32) -> Option<Member> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (name, rest) = text.split_once('(')?.1.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let name = name.to_owned();
    (!matches!(state, "Z" | "X")).then_some(Member { parent, name })
}
