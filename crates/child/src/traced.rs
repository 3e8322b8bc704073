//! The span of a program's run: its name and its exit. Never shows its arguments or input.

use tokio_util::sync::CancellationToken;
use traces::Ending;

use super::{Exit, Finished, ProcessError, Spawn, Spawner};

impl Spawner {
    /// Runs the program to its end. If it has to be ended early, its whole group is ended.
    pub async fn run(&self, spawn: Spawn, cancel: &CancellationToken) -> Result<Finished, ProcessError> {
        let program = spawn.program.clone();
        let told = || vec![("program", program.display().to_string())];
        traces::step("process", told, Box::pin(self.run_to_the_end(spawn, cancel)), ending).await
    }
}

fn ending(done: &Result<Finished, ProcessError>) -> Ending {
    match done {
        Ok(finished) if finished.exit == Exit::Code(0) => Ending::Well,
        Ok(finished) => Ending::Badly(finished.exit.to_string()),
        Err(ProcessError::TimedOut { .. }) => Ending::Badly("timed out".to_owned()),
        Err(ProcessError::Cancelled { .. }) => Ending::Badly("cancelled".to_owned()),
        Err(_) => Ending::Badly("not started or lost".to_owned()),
    }
}
