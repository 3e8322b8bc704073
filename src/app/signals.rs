//! SIGTERM and SIGINT, received as long as the process runs, through all its lives.

use std::io;
use std::thread;

use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// A signal by name and number.
type Signal = (&'static str, u8);

const TERMINATE: Signal = ("SIGTERM", 15);
const INTERRUPT: Signal = ("SIGINT", 2);

/// The signals received so far, at most two.
#[derive(Debug, Clone)]
pub(super) struct Signals(watch::Receiver<Vec<Signal>>);

impl Signals {
    /// Starts to receive signals, on a thread of its own.
    pub(super) fn listen() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let (mut terminate, mut interrupt) = {
            let _context = runtime.enter();
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
        };
        let (sender, received) = watch::channel(Vec::new());
        let hear = async move {
            while sender.borrow().len() < 2 {
                let next = tokio::select! {
                    _ = terminate.recv() => TERMINATE,
                    _ = interrupt.recv() => INTERRUPT,
                };
                sender.send_modify(|received| received.push(next));
            }
            sender.closed().await;
        };
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || runtime.block_on(hear))?;
        Ok(Self(received))
    }

    /// Whether a stop was asked for.
    pub(super) fn ask_for_stop(&self) -> bool {
        !self.0.borrow().is_empty()
    }

    /// Waits for the first signal, and returns its name.
    pub(super) async fn first(&self) -> &'static str {
        self.nth(0).await.0
    }

    /// Waits for the second signal and returns its number. The first one cancels `shutdown`.
    pub(super) async fn second(&self, shutdown: &CancellationToken) -> u8 {
        let (name, _) = self.nth(0).await;
        // The action comes before its log record.
        shutdown.cancel();
        info!(
            signal = name,
            "Signal is received, stopping; a second signal ends the process at once"
        );
        let (name, number) = self.nth(1).await;
        warn!(signal = name, "Second signal is received, ending at once");
        number
    }

    async fn nth(&self, place: usize) -> Signal {
        let mut received = self.0.clone();
        match received.wait_for(|received| received.len() > place).await {
            Ok(received) => received[place],
            Err(_) => std::future::pending().await,
        }
    }
}
