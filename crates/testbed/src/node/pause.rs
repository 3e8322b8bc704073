//! The image of the process that keeps the namespaces of a pod while its containers come and go.

use std::io;
use std::path::Path;
use std::thread;

use fs_err as fs;
use serde_json::json;
use thiserror::Error;
use tokio::runtime::Builder;

use crate::process;
use crate::registry::push::{Repository, layer};

/// It waits for ever, and ends when it is asked to. As process 1 it is the parent of orphans, which the kernel reaps.
const SOURCE: &str = "#include <signal.h>\n#include <unistd.h>\n\
    static void end(int signal) { (void)signal; _exit(0); }\n\
    int main(void) { signal(SIGTERM, end); signal(SIGINT, end); signal(SIGCHLD, SIG_IGN); for (;;) pause(); }\n";

#[derive(Debug, Error)]
pub enum PauseError {
    #[error("cannot write the program of the pause image")]
    Write(#[from] io::Error),
    #[error("the registry does not take the pause image")]
    Push,
    #[error("cc cannot build the program of the pause image: {0}")]
    Build(String),
}

/// Builds the image and pushes it to a registry. `registry` is the registry's address here.
pub(crate) fn push(folder: &Path, registry: &str) -> Result<(), PauseError> {
    let (source, program) = (folder.join("pause.c"), folder.join("pause"));
    fs::write(&source, SOURCE)?;
    let mut build = process::command("cc");
    build.args(["-O2", "-static", "-o"]).arg(&program).arg(&source);
    let output = process::run(build, None)?;
    if !output.status.success() {
        return Err(PauseError::Build(
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        ));
    }
    let layers = [layer(&[("pause", &fs::read(&program)?)])];
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let work = || {
        let config = json!({ "Entrypoint": ["/pause"] });
        runtime.block_on(Repository::at(registry, NAME).push(TAG, &config, &layers));
    };
    // A thread of its own: the caller may be inside of another runtime.
    let pushed = thread::scope(|scope| scope.spawn(work).join());
    pushed.map_err(|_| PauseError::Push)
}

const NAME: &str = "pause";
const TAG: &str = "1";

/// The name of the image in the registry at this address.
pub(crate) fn reference(registry: &str) -> String {
    format!("{registry}/{NAME}:{TAG}")
}
