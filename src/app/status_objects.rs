//! Composes the status objects from what the core, the lookout and the channel know.
//!
//! It asks at most once a second, and only after an event. Must never hold up the loop, and never write while another replica leads.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use addon_core::operator::query::{ModuleReport, ModulesQuery, SourcesQuery, Status, StatusQuery};
use channel_core::view::{Answerer, ChannelState, View};
use jiff::Timestamp;
use kube_access::Cluster;
use leadership::standing::{ActingRole, Told};
use listeners::{Loop, Unanswered};
use parts::Parts;
use releases::answers::charts::Charts;
use releases::drift::lookout::Lookout;
use report::secrets::Secrets;
use settings::Settings;
use status_objects::module::{Facts, ModuleSheet, Objects};
use status_objects::operator::{Channel, Modules, OperatorSheet};
use status_objects::sheet::{Key, Kind, Sheet, Sheets};
use status_objects::writer;
use tokio::sync::watch;
use tokio::time::sleep;

use super::shared::Outside;

/// The time after an event in which others may follow. It keeps the composition out of the way of what the event has set off.
const LAG: Duration = Duration::from_millis(200);
/// The shortest time between two compositions.
const PAUSE: Duration = Duration::from_secs(1);
/// The name of the object of the operator.
const OPERATOR: &str = "operator";

/// Starts the writer of status objects.
pub(super) fn start(settings: &Settings, cluster: &Cluster, outside: &Outside, parts: &mut Parts) {
    let (composed, sheets) = watch::channel(Sheets::default());
    let composer = Composer {
        doors: outside.doors.clone(),
        lookout: Arc::clone(&outside.lookout),
        charts: Arc::clone(&outside.charts),
        channel: outside.channel.state.subscribe(),
        standing: outside.standing.subscribe(),
        secrets: outside.secrets.clone(),
        leader: settings.pod_name.clone().unwrap_or_default(),
    };
    parts.spawn(
        "the composer of status objects",
        composer.run(outside.stirred.subscribe(), composed),
    );
    parts.spawn("the writer of status objects", writer::run(cluster.clone(), sheets));
}

struct Composer {
    doors: Loop,
    lookout: Arc<OnceLock<Lookout>>,
    charts: Arc<OnceLock<Charts>>,
    channel: watch::Receiver<ChannelState>,
    standing: Told,
    secrets: Secrets,
    /// The name of this pod.
    leader: String,
}

impl Composer {
    async fn run(mut self, mut stirred: watch::Receiver<()>, composed: watch::Sender<Sheets>) {
        loop {
            tokio::select! {
                changed = stirred.changed() => if changed.is_err() {
                    // The loop has ended, and the other parts will end soon.
                    return pending().await;
                },
                // Outside of a cluster no part follows a channel, and none tells of it.
                Ok(()) = self.channel.changed() => {}
            }
            sleep(LAG).await;
            stirred.mark_unchanged();
            if *self.standing.borrow() == ActingRole::Leads {
                match self.compose(Timestamp::now()).await {
                    Ok(sheets) => drop(composed.send_if_modified(|last| replace(last, sheets))),
                    // The news is still to be told.
                    Err(_) => stirred.mark_changed(),
                }
            }
            sleep(PAUSE).await;
        }
    }

    async fn compose(&self, now: Timestamp) -> Result<Sheets, Unanswered> {
        let status = listeners::ask(&self.doors, StatusQuery).await?;
        let reports = listeners::ask(&self.doors, ModulesQuery).await?;
        let mut facts = self.facts().await?;
        let mut modules = Modules::default();
        let mut all = BTreeMap::new();
        for report in reports {
            let facts = facts.remove(&report.name).unwrap_or_default();
            let (name, report) = (report.name.clone(), self.masked(report));
            let sheet = ModuleSheet::of(&report, self.completed(&name, facts), now);
            modules.count(&sheet);
            all.insert(key(Kind::Module, &name), Sheet::Module(Box::new(sheet)));
        }
        all.insert(
            key(Kind::Operator, OPERATOR),
            Sheet::Operator(Box::new(self.operator(&status, modules, now))),
        );
        Ok(Sheets {
            all,
            are_complete: status.ready,
        })
    }

    /// The releases and the sources of modules.
    async fn facts(&self) -> Result<BTreeMap<String, Facts>, Unanswered> {
        let mut all: BTreeMap<String, Facts> = BTreeMap::new();
        if let Some(lookout) = self.lookout.get() {
            for (name, census) in lookout.census().await {
                let facts = all.entry(name).or_default();
                facts.revision = Some(census.revision);
                facts.objects = Some(Objects {
                    total: census.objects,
                    unhealthy: census.unhealthy,
                });
            }
        }
        let sources = listeners::ask(&self.doors, SourcesQuery).await?.unwrap_or_default();
        for (name, named) in sources {
            all.entry(name.to_string()).or_default().source =
                Some(format!("{} {}", named.source.repository, named.source.version));
        }
        Ok(all)
    }

    fn completed(&self, module: &str, mut facts: Facts) -> Facts {
        facts.version = self.charts.get().and_then(|charts| charts.versions.of(module));
        let left = self
            .lookout
            .get()
            .map(|lookout| lookout.left(module))
            .unwrap_or_default();
        facts.drift = left
            .iter()
            .map(|sentence| self.secrets.masked(sentence).into_owned())
            .collect();
        facts
    }

    /// The report without secrets.
    fn masked(&self, mut report: ModuleReport) -> ModuleReport {
        let texts = report.error.iter_mut().chain(report.unhealthy.iter_mut());
        for text in texts.chain([&mut report.waits_for]).chain(&mut report.hints) {
            *text = self.secrets.masked(text).into_owned();
        }
        report
    }

    fn operator(&self, status: &Status, modules: Modules, now: Timestamp) -> OperatorSheet {
        let sheet = OperatorSheet {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            leader: self.leader.clone(),
            channel: self.channel(now),
            modules,
            ..OperatorSheet::default()
        };
        let waits = self.secrets.masked(&status.waiting.join("; ")).into_owned();
        sheet.in_state(status.ready, status.converge_tasks > 0, &waits)
    }

    fn channel(&self, now: Timestamp) -> Option<Channel> {
        let state = self.channel.borrow();
        if !matches!(*state, ChannelState::On(_)) {
            return None;
        }
        let view = View::of(&state, Answerer::Leader, now);
        Some(Channel {
            state: view.state.to_string(),
            image: view.running.image,
            message: view
                .stage
                .or(view.why)
                .map(|text| self.secrets.masked(&text).into_owned()),
        })
    }
}

/// Replaces the sheets. True if they differ.
fn replace(last: &mut Sheets, sheets: Sheets) -> bool {
    let is_new = *last != sheets;
    *last = sheets;
    is_new
}

fn key(kind: Kind, name: &str) -> Key {
    Key {
        kind,
        name: name.to_owned(),
    }
}
