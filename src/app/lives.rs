//! The lives of the operator in one process: a leader that is deposed ends as if it had been killed, one that yields to
//! another version ends as if it had been asked to, and both begin anew.
//!
//! Must never let anything of one life reach into the next, nor into the time when another one may lead.

use tokio::time::{Duration, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use super::parts::Parts;
use super::signals::Signals;
use super::start::{self, StartError};
use super::{FAILED, Log, leading, operate};
use crate::process::warrant::Warrant;
use crate::process::{self, Spawner};
use crate::settings::{Environment, Settings};

/// How long the end of a life waits for its remaining tasks.
const BURIAL: Duration = Duration::from_secs(1);
/// How long the whole stop may take; Kubernetes grants as much before it kills.
const STOP_WITHIN: Duration = Duration::from_secs(30);

/// How a life ends.
enum End {
    /// With the whole process.
    Code(u8),
    /// Because another replica leads, or must lead. Nothing of this life is left, and the next begins as if it were the
    /// first.
    Followed,
}

/// Why something still ran when a life had to be over.
enum Cut {
    /// Another one was about to lead.
    Replaced,
    /// A stop took too long.
    TooLate,
}

/// The outcome of one life.
struct Ended {
    how: End,
    cut: Option<Cut>,
}

/// One life after another, until one ends with the whole process.
pub(super) fn live(settings: &Settings, environment: &Environment, log: &Log) -> Result<u8, StartError> {
    let signals = Signals::listen().map_err(StartError::Signals)?;
    if let Err(error) = process::prepare_this_process() {
        warn!(%error, "This process may write core files, or may not find orphans of the programs that it runs");
    }
    process::end_runs_of_the_dead();
    loop {
        if let End::Code(code) = live_once(settings, environment, log, &signals)? {
            return Ok(code);
        }
    }
}

fn live_once(settings: &Settings, environment: &Environment, log: &Log, signals: &Signals) -> Result<End, StartError> {
    let runtime = start::runtime()?;
    let warrant = Warrant::default();
    let spawner = Spawner::new().map_err(StartError::Spawner)?.under(warrant.clone());
    let spawner = spawner.hiding(log.secrets.clone());
    let ended = runtime.block_on(one_life(settings, environment, log.clone(), spawner.clone(), signals));
    // Tasks that still run have had their time, or a second signal took it away. With their tasks all children go down.
    runtime.shutdown_timeout(BURIAL);
    // And with these their descendants, in any group or session.
    spawner.end_all_runs(BURIAL);
    warrant.lay_down();
    // Logged late: the act comes before its report.
    match ended.cut {
        Some(Cut::Replaced) => warn!("Some work did not end in time, it was aborted before another replica leads"),
        Some(Cut::TooLate) => {
            error!(
                seconds = STOP_WITHIN.as_secs(),
                "Operator did not stop in time, ending it"
            );
        }
        None => {}
    }
    Ok(ended.how)
}

/// From the first signal on there is a deadline; a second one ends everything at once, and so does another leader.
async fn one_life(
    settings: &Settings,
    environment: &Environment,
    log: Log,
    spawner: Spawner,
    signals: &Signals,
) -> Ended {
    let shutdown = CancellationToken::new();
    let parts = Parts::new(shutdown.clone());
    let (deposed, yielded) = (parts.deposed().clone(), parts.yielded().clone());
    let too_late = async {
        shutdown.cancelled().await;
        sleep(STOP_WITHIN).await;
    };
    let replaced = async {
        deposed.cancelled().await;
        sleep(leading::farewell(settings)).await;
    };
    let mut cut = None;
    let code = tokio::select! {
        code = operate(settings, environment, log, spawner, parts) => code,
        number = signals.second(&shutdown) => 128_u8.saturating_add(number),
        () = replaced => {
            cut = Some(Cut::Replaced);
            0
        }
        () = too_late => {
            cut = Some(Cut::TooLate);
            FAILED
        }
    };
    let is_followed = deposed.is_cancelled() || yielded.is_cancelled();
    let how = if is_followed && !signals.ask_for_stop() {
        End::Followed
    } else {
        End::Code(code)
    };
    Ended { how, cut }
}
