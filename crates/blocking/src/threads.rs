//! The threads of the async runtime: those of the event loop, and those for blocking work.

use std::io;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use thiserror::Error;
use tokio::runtime::{Builder, Runtime};

/// The number of blocking threads that are started in advance.
const SPARE_THREADS: usize = 4;
/// The idle time after which a blocking thread ends: longer than any operator runs.
const FOR_EVER: Duration = Duration::from_hours(24 * 365 * 10);

/// Why a program cannot work.
#[derive(Debug, Error)]
pub enum NoThreads {
    /// The runtime cannot start.
    #[error("cannot start the runtime")]
    Runtime(#[source] io::Error),
    /// No process could be started.
    #[error("cannot start the thread that starts processes")]
    Spawner(#[source] io::Error),
}

/// A runtime with some blocking threads started in advance. If the machine refuses more threads later, blocking work
/// still runs on these, one piece after the other.
pub fn runtime() -> Result<Runtime, NoThreads> {
    let runtime = Builder::new_multi_thread()
        .enable_all()
        .thread_keep_alive(FOR_EVER)
        .build()
        .map_err(NoThreads::Runtime)?;
    // Each task waits at the gate, so that the next one gets a new thread.
    let gate = Arc::new(RwLock::new(()));
    let closed = gate.write();
    for _ in 0..SPARE_THREADS {
        let gate = Arc::clone(&gate);
        drop(runtime.spawn_blocking(move || drop(gate.read())));
    }
    drop(closed);
    Ok(runtime)
}
