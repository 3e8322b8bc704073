//! The desk of the person who types the commands of the tour: a folder with files, and a shell.

use std::time::Instant;

use anyhow::Context;
use fs_err as fs;
use serde_json::Value;
use testbed::files;

use super::Tour;
use crate::cluster::{self, Releases, shown};
use crate::life::Program;
use crate::narrator::check;
use crate::shell::Shell;
use crate::stage::{File, Stage};

/// Makes the folder. Commands in it ask the operator of the stage, and are the admin's in its namespace.
pub(super) fn open(stage: &Stage<'_>, program: &Program) -> anyhow::Result<Shell> {
    let folder = stage.folder().join("desk");
    fs::create_dir(&folder)?;
    let mut shell = Shell::open(&folder, stage.namespace(), &program.path)?;
    shell.set("DEBUG_UNIX_SOCKET", stage.socket());
    Ok(shell)
}

impl Tour<'_> {
    pub(super) fn put(&self, files: &[File]) -> anyhow::Result<()> {
        for File { path, text } in files {
            files::put(self.shell.folder(), path, text)?;
        }
        Ok(())
    }

    /// Runs a command, shows it, and fails if it fails. Its output is not shown.
    pub(super) fn type_in(&self, line: &str) -> anyhow::Result<String> {
        self.shell.type_in(self.narrator, line)
    }

    /// Runs a command, and shows it with its output.
    pub(super) fn show(&self, line: &str) -> anyhow::Result<String> {
        let text = self.type_in(line)?;
        self.narrator.say(&text);
        Ok(text)
    }

    /// Changes keys of the operator's ConfigMap by a command that is shown. Returns the time of the change.
    pub(super) fn patch(&self, data: &str) -> anyhow::Result<Instant> {
        let config = cluster::CONFIG;
        self.type_in(&format!(
            r#"kubectl patch configmap {config} --type merge --patch '{{"data": {data}}}'"#
        ))?;
        Ok(Instant::now())
    }

    /// An object of any kind in any namespace; null if there is none.
    pub(super) fn look_up(&self, namespace: &str, kind: &str, name: &str) -> anyhow::Result<Value> {
        let (within, json) = (format!("--namespace={namespace}"), "--output=json");
        let plane = self.stage.plane();
        let text = plane.kubectl(["get", kind, name, &within, "--ignore-not-found", json])?;
        if text.trim().is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&text).context("kubectl prints JSON")
    }

    /// The host and port of the registry.
    pub(super) fn registry(&self) -> anyhow::Result<&str> {
        let registry = self.stage.plane().registry();
        registry.context("the control plane has a registry")
    }

    /// Checks that all releases but the named one are as before.
    pub(super) fn check_others(&self, before: &Releases, name: &str) -> anyhow::Result<()> {
        let (mut wanted, mut now) = (before.clone(), self.releases()?);
        wanted.remove(name);
        now.remove(name);
        check("no other release is touched", now == wanted, || shown(&now))
    }
}
