//! The lives of the operator in one process. A leader that is deposed ends its life as if it had been killed; one that
//! yields to another version ends as if it had been asked to stop. After both, a new life begins in the same process.
//!
//! Nothing of one life must remain in the next, or while another replica may lead.

use blocking::threads::{self, NoThreads};
use child::Spawner;
use child::warrant::Warrant;
use parts::Parts;
use settings::{Environment, Settings};
use tokio::time::{Duration, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use super::signals::Signals;
use super::start::StartError;
use super::{FAILED, Log, operate};

/// How long the end of a life waits for tasks that still run.
const BURIAL: Duration = Duration::from_secs(1);
/// How long a stop may take; after this time Kubernetes kills the process.
const STOP_WITHIN: Duration = Duration::from_secs(30);

/// The end of one life of the process.
enum End {
    /// The process ends with the given exit code.
    Code(u8),
    /// Another replica leads, or has to lead. The next life begins as if it were the first.
    Followed,
}

/// Why a life was ended while something still ran.
enum Cut {
    /// Another replica was about to lead.
    Replaced,
    /// The stop took too long.
    TooLate,
}

/// The outcome of one life.
struct Ended {
    how: End,
    cut: Option<Cut>,
}

/// Runs one life after another, until one ends the process.
pub(super) fn live(settings: &Settings, environment: &Environment, log: &Log) -> Result<u8, StartError> {
    let signals = Signals::listen().map_err(StartError::Signals)?;
    if let Err(error) = child::prepare_this_process() {
        warn!(%error, "This process may write core files, or may not find orphans of the programs that it runs");
    }
    child::end_runs_of_the_dead();
    loop {
        if let End::Code(code) = live_once(settings, environment, log, &signals)? {
            return Ok(code);
        }
    }
}

fn live_once(settings: &Settings, environment: &Environment, log: &Log, signals: &Signals) -> Result<End, StartError> {
    let runtime = threads::runtime()?;
    let warrant = Warrant::default();
    let spawner = Spawner::new().map_err(NoThreads::Spawner)?.under(warrant.clone());
    let spawner = spawner.hiding(log.secrets.clone());
    let ended = runtime.block_on(one_life(settings, environment, log.clone(), spawner.clone(), signals));
    // The remaining tasks have had their time to end, or a second signal cut that time short. Dropping them kills their
    // children.
    runtime.shutdown_timeout(BURIAL);
    // This ends the children's descendants, in any process group or session.
    spawner.end_all_runs(BURIAL);
    warrant.lay_down();
    // Logged after the action, so that the log cannot delay it.
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

/// Runs one life. The first signal starts a deadline; a second signal, or another leader, ends everything at once.
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
        sleep(leadership::farewell(settings)).await;
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
