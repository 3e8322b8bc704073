//! kubectl against one control plane, as one of its users.
//!
//! It takes nothing from the caller's machine: neither a kubeconfig nor a discovery cache, which is keyed by address
//! and so would survive one control plane and mislead the next on the same port.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::process::Command;

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
    /// Runs it and returns what it wrote to standard output.
    pub fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Result<String, KubectlError> {
        self.run_with(arguments, None)
    }

    /// The same with a standard input, as for `apply -f -`.
    pub fn feed<A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
        input: &str,
    ) -> Result<String, KubectlError> {
        self.run_with(arguments, Some(input))
    }

    /// A command to be completed and run by the caller.
    pub fn command(&self) -> Command {
        let mut command = process::command(&self.program);
        command
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBECACHEDIR", &self.cache);
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
