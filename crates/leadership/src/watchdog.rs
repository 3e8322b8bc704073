//! The thread that ends this process as the last resort: it knows until when the process may run.
//!
//! A leader that steps down has ended everything before. This thread is for a process that was frozen or is blocked.
//! Must never wait for anything but the time.

use std::io;
use std::thread;
use std::time::Duration;

use child::warrant::{OVERDUE, Warrant};
use telling::telemetry::Spools;

/// How long before the end of the lease the watchdog thread ends the process.
pub(super) const MARGIN: Duration = Duration::from_secs(1);
/// The time limit for writing the last log records.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// Starts the watchdog thread. It runs until the process ends.
pub(super) fn start(warrant: Warrant, spools: Spools) -> io::Result<()> {
    let watch = move || {
        if warrant.outlast().is_err() {
            child::end_everything(OVERDUE, || {
                spools.complain(
                    "error: the lease has run out and another replica may lead, so everything was ended at once",
                );
                spools.flush(LAST_WORDS);
            });
        }
    };
    thread::Builder::new().name("watchdog".to_owned()).spawn(watch)?;
    Ok(())
}
