//! The shell of a person in a namespace: runs command lines exactly as they are shown.
//!
//! The environment holds nothing from the machine except the path of its programs.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use fs_err as fs;
use testbed::namespace::Namespace;
use testbed::plane::User;
use testbed::process;

use crate::narrator::{Narrator, check};

/// The result of a command.
pub(crate) struct Said {
    pub(crate) is_success: bool,
    /// Standard output, followed by standard error.
    pub(crate) text: String,
}

pub(crate) struct Shell {
    folder: PathBuf,
    variables: BTreeMap<&'static str, OsString>,
}

impl Shell {
    /// A shell in a folder, for the admin of a namespace. `program` becomes the command `addon-operator`.
    pub(crate) fn open(folder: &Path, namespace: &Namespace<'_>, program: &Path) -> anyhow::Result<Self> {
        let usual = namespace.plane().environment(User::Admin).remove("PATH");
        let mut shell = Self::without_cluster(folder, &usual.unwrap_or_default(), program)?;
        shell.set("KUBECONFIG", namespace.kubeconfig(User::Admin));
        Ok(shell)
    }

    /// A shell in a folder, with the programs of this `PATH` and the command `addon-operator`.
    pub(crate) fn without_cluster(folder: &Path, usual: &OsStr, program: &Path) -> anyhow::Result<Self> {
        let programs = folder.join(PROGRAMS);
        fs::create_dir(&programs)?;
        let program = fs::canonicalize(program)?;
        // Under the second name kubectl finds it as its plugin.
        for name in ["addon-operator", "kubectl-addons"] {
            symlink(&program, programs.join(name))?;
        }
        let mut path = programs.into_os_string();
        path.push(":");
        path.push(usual);
        let variables = BTreeMap::from([("PATH", path), ("HOME", folder.into())]);
        let folder = folder.to_owned();
        Ok(Self { folder, variables })
    }

    /// Sets an environment variable for all commands.
    pub(crate) fn set(&mut self, name: &'static str, value: impl Into<OsString>) {
        self.variables.insert(name, value.into());
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder with the command `addon-operator`.
    pub(crate) fn programs(&self) -> PathBuf {
        self.folder.join(PROGRAMS)
    }

    /// Runs one command line.
    pub(crate) fn run(&self, line: &str) -> anyhow::Result<Said> {
        let mut command = process::command("bash");
        command.args(["-euc", line]).current_dir(&self.folder);
        command.env_clear().envs(&self.variables);
        let output = process::run(command, None).with_context(|| format!("cannot run `{line}`"))?;
        let text = [output.stdout, output.stderr].concat();
        Ok(Said {
            is_success: output.status.success(),
            text: String::from_utf8_lossy(&text).trim_end().to_owned(),
        })
    }

    /// Shows a command, runs it, and fails if the command fails. Returns its output, which is not shown.
    pub(crate) fn type_in(&self, narrator: &Narrator, line: &str) -> anyhow::Result<String> {
        narrator.typed(line);
        let Said { is_success, text } = self.run(line)?;
        check("the command succeeds", is_success, || text.clone())?;
        Ok(text)
    }

    /// Runs a command. An error if it fails, or if its output lacks one of the words.
    pub(crate) fn hear(&self, line: &str, words: &[&str]) -> anyhow::Result<String> {
        let Said { is_success, text } = self.run(line)?;
        let missing = words.iter().find(|word| !text.contains(**word));
        match missing {
            None if is_success => Ok(text),
            None => bail!(text),
            Some(word) => bail!("no '{word}' in\n{text}"),
        }
    }
}

const PROGRAMS: &str = "bin";
