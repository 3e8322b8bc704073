//! The control groups of nodes: one in each hierarchy of the machine, with all pods of the node below.
//!
//! A group belongs to the folder of a control plane, and its name tells the folder. If no process owns the folder, the
//! owner of the group is dead. Only empty groups can be removed, and the kernel checks that.

use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::folder;

const ROOT: &str = "/sys/fs/cgroup";
/// The weight of a node among the machine's processes, in the files of both versions and in their units: four times that of one
/// process or session. All pods of a node share it: with the weight of one they starved beside a few tests, and with that of twenty
/// the tests starved beside them.
const WEIGHTS: [(&str, &str); 2] = [("cpu.shares", "4096"), ("cpu.weight", "400")];
const PREFIX: &str = "addon-operator-testbed";

/// The name of a node's group, as a path below the root of each hierarchy.
pub(super) fn name(plane: &Path, node: &str) -> String {
    format!("/{PREFIX}{}+{node}", plane.display().to_string().replace('/', "+"))
}

/// The folder of the control plane that the group with this name belongs to.
fn owner(name: &str) -> Option<PathBuf> {
    let (plane, _) = name.strip_prefix(PREFIX)?.rsplit_once('+')?;
    Some(PathBuf::from(plane.replace('+', "/")))
}

/// The folders of all hierarchies: each controller has its own with version 1, all share one with version 2.
fn hierarchies() -> Vec<PathBuf> {
    let root = Path::new(ROOT);
    if root.join("cgroup.controllers").exists() {
        return vec![root.to_owned()];
    }
    let entries = fs::read_dir(root).into_iter().flatten().filter_map(Result::ok);
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).collect()
}

/// Makes the group in all hierarchies.
pub(super) fn make(group: &str) -> io::Result<()> {
    for hierarchy in hierarchies() {
        let folder = hierarchy.join(group.trim_start_matches('/'));
        fs::create_dir_all(&folder)?;
        // With version 2 a group offers its children only the controllers that it is told to.
        for parent in [&hierarchy, &folder] {
            let control = parent.join("cgroup.subtree_control");
            let offered = fs::read_to_string(parent.join("cgroup.controllers")).unwrap_or_default();
            for controller in offered.split_whitespace() {
                fs::write(&control, format!("+{controller}"))?;
            }
        }
        for (file, weight) in WEIGHTS {
            let file = folder.join(file);
            if file.exists() {
                fs::write(file, weight)?;
            }
        }
    }
    Ok(())
}

/// Removes the groups of all control planes whose owner is gone. A group in which a process still ends stays until the
/// next call.
pub(crate) fn sweep() {
    for hierarchy in hierarchies() {
        let entries = fs::read_dir(&hierarchy).into_iter().flatten().filter_map(Result::ok);
        let abandoned = entries.filter(|entry| {
            let owner = owner(&entry.file_name().to_string_lossy());
            owner.is_some_and(|folder| !folder::is_owned(&folder))
        });
        for group in abandoned {
            remove(&group.path());
        }
    }
}

/// Removes a group and all groups below it.
fn remove(group: &Path) {
    let entries = fs::read_dir(group).into_iter().flatten().filter_map(Result::ok);
    for below in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        remove(&below.path());
    }
    // The files of a group vanish with it. A group with a process stays.
    let _ = fs::remove_dir(group);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_group_tells_its_owner() {
        let name = name(Path::new("/tmp/testbed-0/plane-x"), "one");
        assert_eq!(name, "/addon-operator-testbed+tmp+testbed-0+plane-x+one");
        assert_eq!(
            owner(name.trim_start_matches('/')),
            Some(PathBuf::from("/tmp/testbed-0/plane-x"))
        );
        assert_eq!(owner("kubepods"), None);
    }
}
