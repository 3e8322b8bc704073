//! The threads of the event loop, and those for work that may wait.

use std::io;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

/// Threads that are always reserved for work with files.
const SPARE_THREADS: usize = 4;
/// Longer than any operator runs.
const FOR_EVER: Duration = Duration::from_hours(24 * 365 * 10);

/// Work that may wait needs threads, also when the machine has none to give: then the spare ones do it, one after the other.
pub(super) fn runtime() -> io::Result<Runtime> {
    let runtime = Builder::new_multi_thread()
        .enable_all()
        .thread_keep_alive(FOR_EVER)
        .build()?;
    // Each is started because those before it are busy with a closed gate.
    let gate = Arc::new(RwLock::new(()));
    let closed = gate.write();
    for _ in 0..SPARE_THREADS {
        let gate = Arc::clone(&gate);
        drop(runtime.spawn_blocking(move || drop(gate.read())));
    }
    drop(closed);
    Ok(runtime)
}
