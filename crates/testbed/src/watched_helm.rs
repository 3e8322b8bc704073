//! A script that stands in for helm: it takes a lock per release and writes a note when another helm works on the same
//! release. It must never keep helm from starting, because a second helm on a release is the fault that a test looks
//! for.

use std::fs::Permissions;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use fs_err as fs;

const SCRIPT: &str = r#"#!/usr/bin/env bash
if [[ $1 == upgrade || $1 == uninstall ]]; then
  exec 9>>"@NOTES@/$2.lock"
  flock --nonblock 9 || echo "@OWNER@ $*" >>"@NOTES@/overlaps"
  echo "@OWNER@ $$" >>"@NOTES@/helm"
fi
exec "@HELM@" "$@"
"#;

/// Helm scripts of several owners that share a folder of notes.
#[derive(Clone, Debug)]
pub struct WatchedHelm {
    helm: PathBuf,
    notes: PathBuf,
}

impl WatchedHelm {
    /// Creates the folder of notes if it is missing.
    pub fn new(helm: impl Into<PathBuf>, notes: impl Into<PathBuf>) -> io::Result<Self> {
        let (helm, notes) = (helm.into(), notes.into());
        fs::create_dir_all(&notes)?;
        Ok(Self { helm, notes })
    }

    /// Writes the script for one owner, which is an operator. Its notes begin with the owner's name.
    pub fn write(&self, script: &Path, owner: &str) -> io::Result<()> {
        let text = SCRIPT
            .replace("@NOTES@", &self.notes.display().to_string())
            .replace("@OWNER@", owner)
            .replace("@HELM@", &self.helm.display().to_string());
        fs::write(script, text)?;
        fs::set_permissions(script, Permissions::from_mode(0o755))
    }

    /// A line for each helm that found another one working on its release: owner and arguments.
    pub fn overlaps(&self) -> io::Result<Vec<String>> {
        self.read("overlaps")
    }

    /// A line for each helm that was started for a write: owner and process id.
    pub fn starts(&self) -> io::Result<Vec<String>> {
        self.read("helm")
    }

    fn read(&self, note: &str) -> io::Result<Vec<String>> {
        match fs::read_to_string(self.notes.join(note)) {
            Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;
    use std::time::Duration;

    use super::*;
    use crate::process::{self, Bond, Bound};
    use crate::wait::wait_until;

    #[test]
    fn a_second_helm_on_a_release_is_noted_and_starts_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        // This helm runs as long as its standard input is open.
        let helm = folder.path().join("helm");
        fs::write(&helm, "#!/bin/sh\nexec cat\n").unwrap();
        fs::set_permissions(&helm, Permissions::from_mode(0o755)).unwrap();
        let watched = WatchedHelm::new(&helm, folder.path().join("notes")).unwrap();
        let script = folder.path().join("watched-helm");
        watched.write(&script, "a").unwrap();
        let command = |arguments: [&str; 3]| {
            let mut command = process::command(&script);
            command.args(arguments);
            command
        };
        let run = |arguments| assert!(process::run(command(arguments), None).unwrap().status.success());

        run(["upgrade", "web", "--install"]);
        let mut first = command(["upgrade", "web", "--install"]);
        first.stdin(Stdio::piped());
        let mut first = Bound::start(first, Bond::Group).unwrap();
        wait_until(Duration::from_mins(1), "the first helm", || {
            watched.starts().map(|starts| (starts.len() == 2).then_some(()))
        })
        .unwrap();
        assert_eq!(watched.starts().unwrap()[1], format!("a {}", first.id()));
        run(["upgrade", "other", "--install"]);
        run(["template", "web", "chart"]);
        assert_eq!(watched.overlaps().unwrap(), Vec::<String>::new());

        run(["uninstall", "web", "--wait"]);
        assert_eq!(watched.overlaps().unwrap(), ["a uninstall web --wait"]);
        drop(first.take_stdin());
        assert!(first.wait().unwrap().success());
        run(["uninstall", "web", "--wait"]);
        assert_eq!(watched.overlaps().unwrap().len(), 1);
    }
}
