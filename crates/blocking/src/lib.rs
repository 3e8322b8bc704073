//! Blocking work with files, or with long texts. Must never run on a thread of the event loop: the lease, the probes
//! and all hooks would have to wait for it. The runtime has threads for it from the start.

pub mod threads;

use std::panic::resume_unwind;

use tokio::task::spawn_blocking;

/// Runs `work` on a blocking thread; a panic in it is passed on. Dropping the future does not stop the work.
pub async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime is shutting down, and drops this future too.
            Err(_) => std::future::pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::panic::AssertUnwindSafe;
    use std::thread;

    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn work_runs_on_another_thread_and_its_panic_comes_here() {
        let here = thread::current().id();
        let there = run(|| thread::current().id()).await;
        assert_ne!(here, there);
        let failed = AssertUnwindSafe(run(|| panic!("out of paper"))).catch_unwind().await;
        let panic = failed.unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"out of paper"));
    }
}
