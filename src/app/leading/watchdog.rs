//! The thread that ends us when all else has failed: it knows until when we may run.
//!
//! A leader that steps down has ended everything before; this is for one that was frozen, or that can do nothing any more.
//! Must never wait for anything but the time.

use std::io;
use std::thread;
use std::time::Duration;

use crate::process;
use crate::process::warrant::Warrant;
use crate::telemetry::Spools;

/// The exit code of a process that ends itself because another replica may lead.
const OVERDUE: u8 = 75;
/// How long before the lease runs out everything is ended.
pub(super) const MARGIN: Duration = Duration::from_secs(1);
/// How long the last log records may take to be written.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// Watches until no process remains to be ended.
pub(super) fn start(warrant: Warrant, spools: Spools) -> io::Result<()> {
    let watch = move || {
        if warrant.outlast().is_err() {
            process::end_everything(OVERDUE, || {
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
