//! Runs kubectl as one of the control plane's users.
//!
//! It uses neither the kubeconfig nor the discovery cache of the machine. That cache is keyed by address: it would
//! outlive one control plane and mislead the next one on the same port.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use thiserror::Error;

use crate::process;

#[derive(Debug, Error)]
pub enum KubectlError {
    #[error("cannot run `{line}`")]
    Start { line: String, source: io::Error },
    #[error("`{line}` failed: {said}")]
    Refused { line: String, said: String },
}

/// Runs kubectl.
#[derive(Clone, Debug)]
pub struct Kubectl {
    pub(crate) program: PathBuf,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) cache: PathBuf,
}

impl Kubectl {
    /// Runs kubectl with these arguments and returns its standard output.
    pub fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Result<String, KubectlError> {
        self.run_with(arguments, None)
    }

    /// Runs kubectl with a standard input, as for `apply -f -`, and returns its standard output.
    pub fn feed<A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
        input: &str,
    ) -> Result<String, KubectlError> {
        self.run_with(arguments, Some(input))
    }

    /// Creates an object or changes it to the manifest. The API server merges: if kubectl did it, it would unpack the schemas of all kinds
    /// first, which takes four times as long.
    pub fn apply(&self, manifest: &str) -> Result<String, KubectlError> {
        self.feed(
            ["apply", "--server-side", "--force-conflicts", "--filename=-"],
            manifest,
        )
    }

    /// Lays these fields over an object by a merge patch.
    pub fn merge(&self, kind: &str, name: &str, fields: &Value) -> Result<String, KubectlError> {
        self.run(["patch", kind, name, "--type=merge", "--patch", &fields.to_string()])
    }

    /// A command with kubectl's environment, for a caller that adds arguments and starts it.
    pub fn command(&self) -> Command {
        let mut command = process::command(&self.program);
        command
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBECACHEDIR", &self.cache)
            // Tests start kubectl thousands of times. One thread without garbage collection does the same with a quarter less, and so
            // does a language with few texts: kubectl unpacks all of them when it starts. This one has seven, all of `kubectl config`.
            .envs([("GOGC", "off"), ("GOMAXPROCS", "1"), ("LC_MESSAGES", "fr_FR.UTF-8")])
            .env_remove("LC_ALL");
        command
    }

    fn run_with<A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
        input: Option<&str>,
    ) -> Result<String, KubectlError> {
        let arguments: Vec<OsString> = arguments
            .into_iter()
            .map(|argument| argument.as_ref().to_owned())
            .collect();
        let mut command = self.command();
        command.args(&arguments);
        let line = || process::shown("kubectl", &arguments);
        let output = process::run(command, input.map(str::as_bytes))
            .map_err(|source| KubectlError::Start { line: line(), source })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(KubectlError::Refused { line: line(), said })
    }
}
