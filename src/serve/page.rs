//! The facts of the page, from the questions that the debug socket asks, too.
//!
//! Every text is masked here. Must never hand over a secret, and never ask the API server for the overview.

mod detail;
mod records;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use addon_core::operator::query::{
    ConvergesQuery, FailingTask, HeldBy, HeldRemoval, ModuleReport, ModulesQuery, PastConverge, QueueReport,
    QueuesQuery, SlotReport, SlotsQuery, SourcesQuery, Status, StatusQuery,
};
use channel_core::view::{Answerer, ChannelState, Step, View};
use hooks::past::LastRuns;
use hooks::records::Recorder;
use jiff::Timestamp;
use leadership::standing::{ActingRole, Told};
use listeners::{Loop, Unanswered};
use page::facts::{self, Failing, Fleet, Machinery};
use page::server::{Answer, Role, Source, Unavailable};
use releases::answers::charts::Charts;
use releases::drift::lookout::Lookout;
use releases::drift::lookout::object_healths::Census;
use report::secrets::Secrets;
use serde::Serialize;
use serde::de::DeserializeOwned;
use telling::meters::{Meters, process};
use tokio::sync::watch;

/// The precision of a time that is computed from elapsed seconds. A finer one would differ from answer to answer.
const BLUR: i64 = 10;

/// The sources of the facts.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The channels to the loop.
    pub doors: Loop,
    /// The lookout for releases, once the cluster is connected.
    pub lookout: Arc<OnceLock<Lookout>>,
    /// The source of charts and releases, once the cluster is connected.
    pub charts: Arc<OnceLock<Charts>>,
    /// The records of hook runs.
    pub recorder: Recorder,
    /// The last run of each hook.
    pub past: LastRuns,
    /// The metrics of the program.
    pub meters: Arc<Meters>,
    /// The state of the channel.
    pub channel: watch::Receiver<ChannelState>,
    /// The role of this replica.
    pub standing: Told,
    /// The secrets to mask.
    pub secrets: Secrets,
    /// The time of the start, in seconds since 1970.
    pub started: i64,
    /// The facts that are known without a question.
    pub known: facts::Operator,
}

/// The source of facts for the page, which is told of changes by `changed`.
pub fn source(facts: Facts, changed: watch::Receiver<()>) -> Source {
    let known = facts.known.clone();
    let of = || facts.clone();
    let (of_fleet, of_module, of_events, of_comparison) = (of(), of(), of(), of());
    let (of_machinery, of_role) = (of(), facts);
    Source {
        fleet: Box::new(move || answered(of_fleet.clone(), Facts::fleet)),
        module: Box::new(move |name| {
            let facts = of_module.clone();
            Box::pin(async move { facts.detail(&name).await.map_err(unanswered) })
        }),
        events: Box::new(move |name| Box::pin(of_events.clone().events(name))),
        comparison: Box::new(move |name, from, to| Box::pin(of_comparison.clone().comparison(name, from, to))),
        machinery: Box::new(move || answered(of_machinery.clone(), Facts::machinery)),
        role: Box::new(move || of_role.role()),
        known,
        changed,
    }
}

fn answered<T: 'static, F>(facts: Facts, ask: impl FnOnce(Facts) -> F) -> Answer<T>
where
    F: Future<Output = Result<T, Unanswered>> + Send + 'static,
{
    let asked = ask(facts);
    Box::pin(async move { asked.await.map_err(unanswered) })
}

fn unanswered(unanswered: Unanswered) -> Unavailable {
    Unavailable::Unanswered(unanswered.to_string())
}

impl Facts {
    async fn fleet(self) -> Result<Fleet, Unanswered> {
        let status = listeners::ask(&self.doors, StatusQuery).await?;
        let reports = listeners::ask(&self.doors, ModulesQuery).await?;
        let sources = listeners::ask(&self.doors, SourcesQuery).await?.unwrap_or_default();
        let mut census = match self.lookout.get() {
            Some(lookout) => lookout.census().await,
            None => BTreeMap::new(),
        };
        let now = Timestamp::now().as_second();
        let mut modules = Vec::with_capacity(reports.len());
        for report in reports {
            let counted = census.remove(&report.name);
            let mut module = module(report, counted, now);
            module.version = self.charts.get().and_then(|charts| charts.versions.of(&module.name));
            module.drift = self
                .lookout
                .get()
                .map(|lookout| lookout.left(&module.name))
                .unwrap_or_default();
            modules.push(module);
        }
        for (name, named) in sources {
            if let Some(module) = modules.iter_mut().find(|module| module.name == name.as_str()) {
                module.source = Some(format!("{} {}", named.source.repository, named.source.version));
            }
        }
        let operator = operator(status, self.known.clone());
        Ok(self.masked(Fleet { operator, modules }))
    }

    async fn machinery(self) -> Result<Machinery, Unanswered> {
        let queues = listeners::ask(&self.doors, QueuesQuery).await?;
        let converges = listeners::ask(&self.doors, ConvergesQuery).await?;
        let (busy, idle): (Vec<_>, Vec<_>) = queues.iter().partition(|queue| !queue.tasks.is_empty());
        let now = Timestamp::now();
        let view = View::of(&self.channel.borrow(), Answerer::Leader, now);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a number of bytes"
        )]
        let memory = process::resident_bytes().map(|bytes| bytes as u64);
        let slots = listeners::ask(&self.doors, SlotsQuery).await?;
        let machinery = Machinery {
            slots: slots.into_iter().map(slots_of).collect(),
            requests_per_second: Some(self.meters.requests().per_second()),
            queues: busy.into_iter().map(queue).collect(),
            idle_queues: idle.len(),
            converges: converges.into_iter().rev().map(converge).collect(),
            channel: lines(&view.text(now)),
            trial: view
                .trial
                .map(|trial| trial.steps.iter().map(trial_step).collect())
                .unwrap_or_default(),
            memory,
            started: Some(self.started),
        };
        Ok(self.masked(machinery))
    }

    fn role(&self) -> Role {
        match &*self.standing.borrow() {
            ActingRole::Leads => Role::Leads,
            ActingRole::Standby(leader) => Role::Standby(leader.name.clone()),
            ActingRole::Seeks { trouble } => {
                let reason = trouble
                    .clone()
                    .unwrap_or_else(|| "This replica asks for the lease.".to_owned());
                Role::Seeks(self.secrets.masked(&reason).into_owned())
            }
        }
    }

    fn charts(&self) -> Result<&Charts, Unavailable> {
        let charts = self.charts.get();
        charts.ok_or_else(|| Unavailable::Unanswered("the operator is not connected with the cluster yet".to_owned()))
    }

    /// The facts with masked secrets, whatever field they are in.
    fn masked<T: Serialize + DeserializeOwned>(&self, facts: T) -> T {
        let mut document = serde_json::to_value(facts).expect("facts are plain data with text keys");
        self.secrets.mask(&mut document);
        serde_json::from_value(document).expect("masking replaces texts by texts")
    }
}

fn trial_step(step: &Step) -> facts::TrialStep {
    facts::TrialStep {
        text: step.text.to_owned(),
        is: step.is.to_owned(),
    }
}

fn slots_of(report: SlotReport) -> facts::Slots {
    facts::Slots {
        kind: report.kind.to_owned(),
        number: report.number,
        jobs: report.jobs,
    }
}

fn converge(past: PastConverge) -> facts::Converge {
    facts::Converge {
        reason: past.reason,
        ended: past.ended.as_second(),
        took: u64::try_from(past.took.as_millis()).unwrap_or(u64::MAX),
        failing: past.failing,
    }
}

fn operator(status: Status, known: facts::Operator) -> facts::Operator {
    let held = status.held.into_iter().map(
        |HeldRemoval {
             release,
             sign,
             reason,
             by,
         }| facts::HeldRemoval {
            release,
            sign: sign.to_owned(),
            reason,
            confirmable: by == HeldBy::Brake,
        },
    );
    facts::Operator {
        ready: status.ready,
        converge_tasks: status.converge_tasks,
        waiting: status.waiting,
        config_problems: status.config_problems,
        config_lost: status.config_lost,
        unkept: status.unkept,
        old_values: status.old_values,
        held: held.collect(),
        held_by_trial: status.held_by_trial,
        ..known
    }
}

fn module(report: ModuleReport, census: Option<Census>, now: i64) -> facts::Module {
    let since = |seconds: u64| Some((now - i64::try_from(seconds).ok()?).div_euclid(BLUR) * BLUR);
    facts::Module {
        name: report.name,
        order: report.order,
        enabled: report.enabled,
        decided: report.decided,
        enabled_by: report.enabled_by,
        state: report.state,
        health: report.health.as_str().to_owned(),
        unhealthy: report.unhealthy,
        unhealthy_since: report.unhealthy_for.and_then(since),
        fails: report.fails,
        failures: report.failures,
        error: report.error,
        hints: report.hints,
        remarks: report.remarks,
        waits_for: report.waits_for,
        late: report.late,
        depends_on: report.depends_on,
        after: report.after,
        failing: report.failing.into_iter().map(|task| failing(task, now)).collect(),
        upgrade_held: report.upgrade_held,
        in_maintenance: report.in_maintenance,
        config_problems: report.config_problems,
        version: None,
        source: None,
        revision: census.map(|census| census.revision),
        objects: census.map(|census| census.objects),
        ailing: census.map(|census| census.unhealthy),
        drift: Vec::new(),
    }
}

fn failing(task: FailingTask, now: i64) -> Failing {
    let FailingTask {
        queue,
        task,
        hook,
        failures,
        error,
        retry_in,
    } = task;
    Failing {
        queue,
        task: task.to_owned(),
        hook,
        failures,
        error,
        next_try: retry_in.and_then(|seconds| now.checked_add(seconds.try_into().ok()?)),
    }
}

fn queue(report: &QueueReport) -> facts::Queue {
    facts::Queue {
        name: report.name.clone(),
        status: report.status.clone(),
        length: report.tasks.len(),
        head: report
            .tasks
            .first()
            .map(|task| task.description.clone())
            .unwrap_or_default(),
    }
}

/// The lines of a report as names and texts. A line without a name continues the one before.
fn lines(report: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for line in report.lines() {
        match (line.split_once(':'), all.last_mut()) {
            (None, Some((_, text))) => *text = format!("{text}\n{}", line.trim()),
            (Some(_), Some((_, text))) if line.starts_with(' ') => *text = format!("{text}\n{}", line.trim()),
            (Some((name, text)), _) => all.push((name.to_owned(), text.trim().to_owned())),
            (None, None) => all.push((String::new(), line.trim().to_owned())),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_split_into_names_and_texts() {
        let report = "state:      waits\nwaits for:  one: a\n            two: b\nhint: do it\n";
        let rows: Vec<_> = lines(report);
        let rows: Vec<(&str, &str)> = rows.iter().map(|(name, text)| (&**name, &**text)).collect();
        assert_eq!(
            rows,
            [("state", "waits"), ("waits for", "one: a\ntwo: b"), ("hint", "do it")]
        );
    }
}
