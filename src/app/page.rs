//! Opens the page: the listener, and the news that a view may have changed.
//!
//! Must never end the start because the usual port is taken: another program on loopback may use it.

use std::sync::Arc;

use jiff::Timestamp;
use kube_access::reviews::{Right, Standing};
use page::facts;
use page::review::{Ask, Reviewer, Verdict};
use page::server::{self, Access};
use report::Chain;
use settings::page::Page;
use settings::{Settings, Work};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use super::start::{self, StartError};
use super::{Outside, Parts};
use crate::serve::page::{Facts, source};

/// Serves the page, unless settings switch it off.
pub(super) async fn listen(settings: &Settings, parts: &mut Parts, outside: &Outside) -> Result<(), StartError> {
    let Work::Modules(modules) = &settings.work else {
        return Ok(());
    };
    let (address, is_chosen, access) = match modules.page {
        Page::Off => return Ok(()),
        Page::Loopback { address, is_chosen } => (address, is_chosen, Access::Loopback),
        Page::Reviewed(address) => (address, true, Access::Reviewed(Reviewer::new(review(outside)))),
    };
    let listener = match start::bind(address, "the page").await {
        Ok(listener) => listener,
        Err(error) if is_chosen => return Err(error),
        Err(_) => {
            info!(%address, "The page is not served, because its port is taken; --page-listen names another");
            return Ok(());
        }
    };
    let (changes, changed) = watch::channel(());
    parts.spawn("the news for the page", tell(outside.clone(), changes));
    let facts = Facts {
        doors: outside.doors.clone(),
        lookout: Arc::clone(&outside.lookout),
        charts: Arc::clone(&outside.charts),
        recorder: outside.recorder.clone(),
        past: outside.past.clone(),
        meters: Arc::clone(&outside.meters),
        channel: outside.channel.state.subscribe(),
        standing: outside.standing.subscribe(),
        secrets: outside.secrets.clone(),
        started: Timestamp::now().as_second(),
        known: facts::Operator {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            namespace: settings.namespace.clone().unwrap_or_default(),
            pod: settings.pod_name.clone().unwrap_or_default(),
            config_map: modules.config_map.clone(),
            ..facts::Operator::default()
        },
    };
    let stop: CancellationToken = parts.stopping().clone();
    let router = server::router(source(facts, changed), access, stop.clone());
    let ended = listeners::listen_to_one_address(listener, router, stop);
    parts.spawn_graceful("the server of the page", async move {
        if let Err(error) = ended.await {
            error!(%error, "The server of the page ended");
        }
    });
    Ok(())
}

/// The right of clients outside of loopback.
const RIGHT: Right = Right {
    verb: "get",
    group: "addon-operator.io",
    resource: "modules",
};

/// Asks the API server about a token, once the cluster is connected.
fn review(outside: &Outside) -> Box<Ask> {
    let charts = Arc::clone(&outside.charts);
    Box::new(move |token| {
        let cluster = charts.get().map(|charts| charts.cluster.clone());
        Box::pin(async move {
            let cluster = cluster.ok_or("the cluster is not connected yet")?;
            match cluster.standing_of(token, RIGHT).await {
                Ok(Standing::Permitted) => Ok(Verdict::Permitted),
                Ok(Standing::Forbidden) => Ok(Verdict::Forbidden),
                Ok(Standing::Unknown) => Ok(Verdict::Unknown),
                Err(error) => Err(Chain(&error).to_string()),
            }
        })
    })
}

/// Tells of each event of the loop, each change of the role of this replica, and each change of the channel.
async fn tell(outside: Outside, changes: watch::Sender<()>) {
    let (mut stirred, mut standing) = (outside.stirred.subscribe(), outside.standing.subscribe());
    let mut channel = outside.channel.state.subscribe();
    loop {
        tokio::select! {
            Ok(()) = stirred.changed() => {}
            Ok(()) = standing.changed() => {}
            Ok(()) = channel.changed() => {}
            // The loop has ended, and the other parts will end soon.
            else => return std::future::pending().await,
        }
        changes.send_replace(());
    }
}
