//! The long-lived tasks ("parts") of the program: each has a name, and none may end by itself. The loop ends first,
//! then all others. Must never limit the time of a stop: the caller does.
//!
//! ```text
//!   shutdown --> the loop ends --> at rest --> stopping --> all other parts end
//!      ^
//!      +-- a signal; a lost or yielded leadership; the end or the panic of any part
//! ```
//!
//! Begin with `Parts`.

pub mod clock;

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use report::last_words;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

/// The exit code of an operator that could not start, or of which a part failed.
pub const FAILED: u8 = 1;
/// The exit code after a bug of ours ended the loop.
const DEFECT: u8 = 70;

const DRIVER: &str = "the main loop";

/// The end of a part of the operator: its name, and whether it panicked.
#[derive(Debug)]
struct Ended {
    name: &'static str,
    panicked: bool,
}

/// All parts, and the tokens that end them: the loop ends first, then the others.
#[derive(Debug)]
pub struct Parts {
    tasks: JoinSet<Ended>,
    shutdown: CancellationToken,
    deposed: CancellationToken,
    yielded: CancellationToken,
    stopping: CancellationToken,
    at_rest: CancellationToken,
}

impl Parts {
    pub fn new(shutdown: CancellationToken) -> Self {
        Self {
            tasks: JoinSet::new(),
            shutdown,
            deposed: CancellationToken::new(),
            yielded: CancellationToken::new(),
            stopping: CancellationToken::new(),
            at_rest: CancellationToken::new(),
        }
    }

    /// Cancelled to make the loop end.
    pub fn shutdown(&self) -> &CancellationToken {
        &self.shutdown
    }

    /// Cancelled when the loop has ended, to make the other parts end.
    pub fn stopping(&self) -> &CancellationToken {
        &self.stopping
    }

    /// Cancelled when this replica no longer leads: running work is ended soon after.
    pub fn deposed(&self) -> &CancellationToken {
        &self.deposed
    }

    /// Cancelled when another version has to lead: a normal stop, after which a new life begins in this process.
    pub fn yielded(&self) -> &CancellationToken {
        &self.yielded
    }

    /// Cancelled when the loop has ended regularly, and no job runs any more.
    pub fn at_rest(&self) -> &CancellationToken {
        &self.at_rest
    }

    /// Starts a part that is dropped when the others stop.
    pub fn spawn(&mut self, name: &'static str, part: impl Future<Output = ()> + Send + 'static) {
        let stopping = self.stopping.clone();
        self.spawn_graceful(name, async move {
            tokio::select! {
                () = stopping.cancelled() => {}
                () = part => {}
            }
        });
    }

    /// Starts a part that ends by itself when the others stop.
    pub fn spawn_graceful(&mut self, name: &'static str, part: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(async move {
            let outcome = AssertUnwindSafe(part).catch_unwind().await;
            if let Err(panic) = &outcome {
                error!(
                    part = name,
                    error = last_words(panic.as_ref()),
                    "A part of the operator panicked, please report it"
                );
            }
            Ended {
                name,
                panicked: outcome.is_err(),
            }
        });
    }

    /// Starts the loop, whose end stops all other parts.
    pub fn spawn_driver(&mut self, driver: impl Future<Output = ()> + Send + 'static) {
        let at_rest = self.at_rest.clone();
        self.spawn_graceful(DRIVER, async move {
            driver.await;
            at_rest.cancel();
        });
    }

    /// Waits for the end of the loop, then for that of the others. Returns the exit code.
    pub async fn run(mut self) -> u8 {
        let mut code = 0;
        while let Some(ended) = self.tasks.join_next().await {
            let Ok(Ended { name, panicked }) = ended else { continue };
            let expected = self.shutdown.is_cancelled() && !panicked;
            if !expected {
                // The action comes before its log record.
                self.shutdown.cancel();
                error!(part = name, "A part of the operator ended by itself, shutting down");
                code = code.max(if panicked && name == DRIVER { DEFECT } else { FAILED });
            }
            if name == DRIVER {
                break;
            }
        }
        self.stop().await;
        info!(code, "Operator is stopped");
        code
    }

    /// Stops the loop and the other parts, and waits for their ends. The caller has to limit the time.
    pub async fn stop(mut self) {
        self.shutdown.cancel();
        self.stopping.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[tokio::test]
    async fn a_stop_that_was_asked_for_ends_well() {
        let shutdown = CancellationToken::new();
        let mut parts = Parts::new(shutdown.clone());
        parts.spawn("another", pending());
        let asked = shutdown.clone();
        parts.spawn_driver(async move { asked.cancelled().await });
        shutdown.cancel();
        assert_eq!(parts.run().await, 0);
    }

    #[tokio::test]
    async fn a_part_that_ends_by_itself_ends_all() {
        let shutdown = CancellationToken::new();
        let mut parts = Parts::new(shutdown.clone());
        parts.spawn("another", async {});
        let asked = shutdown.clone();
        parts.spawn_driver(async move { asked.cancelled().await });
        assert_eq!(parts.run().await, 1);
        assert!(shutdown.is_cancelled());
    }

    #[tokio::test]
    async fn an_end_before_the_loop_has_begun_is_a_stop_like_any_other() {
        let shutdown = CancellationToken::new();
        let mut parts = Parts::new(shutdown.clone());
        let asked = shutdown.clone();
        parts.spawn_graceful("another", async move { asked.cancelled().await });
        parts.stop().await;
        assert!(shutdown.is_cancelled());
    }

    #[tokio::test]
    async fn a_panic_of_the_loop_is_a_defect() {
        let mut parts = Parts::new(CancellationToken::new());
        parts.spawn("another", pending());
        parts.spawn_driver(async { panic!("on purpose") });
        assert_eq!(parts.run().await, DEFECT);
    }
}
