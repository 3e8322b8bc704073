//! A look into pods that are real processes: what they said, and commands in them.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;

use fs_err as fs;
use thiserror::Error;

use super::{ControlPlane, pods};
use crate::kubectl::KubectlError;
use crate::process;

#[derive(Debug, Error)]
pub enum InsideError {
    #[error("cannot find the pod")]
    Pod(#[from] KubectlError),
    #[error("container {container} of pod {pod} has not run yet")]
    NotYet { pod: String, container: String },
    #[error("cannot look into the pod")]
    Read(#[from] io::Error),
    #[error("`{line}` failed with {code}: {said}")]
    Failed { line: String, code: u8, said: String },
}

impl ControlPlane {
    /// What the container of a pod said in its last run, on both of its outputs.
    pub fn pod_log(&self, namespace: &str, pod: &str, container: &str) -> Result<String, InsideError> {
        let folder = self.pod_folder(namespace, pod)?.join("logs").join(container);
        let runs = numbered(&folder).into_iter().max();
        let (_, file) = runs.ok_or_else(|| not_yet(pod, container))?;
        Ok(String::from_utf8_lossy(&fs::read(file)?).into_owned())
    }

    /// Runs a command in a container, as its user, and returns what it wrote to standard output.
    pub fn pod_exec<A: AsRef<OsStr>>(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        words: impl IntoIterator<Item = A>,
    ) -> Result<String, InsideError> {
        let folder = self.pod_folder(namespace, pod)?.join("containers").join(container);
        let (_, run) = numbered(&folder)
            .into_iter()
            .max()
            .ok_or_else(|| not_yet(pod, container))?;
        let first = fs::read_to_string(run.join("process"))?;
        let words: Vec<OsString> = words.into_iter().map(|word| word.as_ref().to_owned()).collect();
        let mut command = process::command(pods::agent()?);
        command.args(["pod-init", "--within", first.trim()]);
        command.arg(run.join("spec.json")).arg("--").args(&words).env_clear();
        let output = process::run(command, None)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(InsideError::Failed {
            line: process::shown(pod, &words),
            code: process::exit_code(output.status),
            said: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        })
    }

    fn pod_folder(&self, namespace: &str, pod: &str) -> Result<PathBuf, InsideError> {
        let asked = [
            "get",
            "pod",
            pod,
            "--namespace",
            namespace,
            "--output=jsonpath={.metadata.uid}",
        ];
        Ok(self.path.join("node/pods").join(self.kubectl(asked)?.trim()))
    }
}

fn not_yet(pod: &str, container: &str) -> InsideError {
    InsideError::NotYet {
        pod: pod.to_owned(),
        container: container.to_owned(),
    }
}

/// What is in the folder, by the number that its name begins with.
fn numbered(folder: &std::path::Path) -> Vec<(u32, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let numbered = entries.filter_map(|entry| Some((entry.path().file_stem()?.to_str()?.parse().ok()?, entry.path())));
    numbered.collect()
}
