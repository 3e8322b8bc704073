//! The facts of the page, from the questions that the debug socket asks, too.
//!
//! Every text is masked here. Must never hand over a secret, and never ask the API server for the overview.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use addon_core::operator::query::{
    ConfigValuesQuery, ConvergesQuery, FailingTask, HeldBy, HeldRemoval, ModuleReport, ModulesQuery, PastConverge,
    PatchesQuery, QueueReport, QueuesQuery, Secrets as Wanted, SourcesQuery, Status, StatusQuery, ValuesQuery,
};
use channel_core::view::{Answerer, ChannelState, View};
use hooks::answers::snapshots;
use hooks::records::{Entry, Recorder};
use jiff::Timestamp;
use leadership::standing::{ActingRole, Told};
use listeners::{Loop, Unanswered};
use names::{ModuleName, Owner};
use page::facts::{self, Detail, Failing, Fleet, Machinery};
use page::server::{Answer, Role, Source, Unavailable};
use releases::answers::charts::Charts;
use releases::answers::history;
use releases::drift::lookout::Lookout;
use releases::drift::lookout::object_healths::{Census, ObjectHealth};
use report::secrets::Secrets;
use serde::Serialize;
use serde::de::DeserializeOwned;
use telling::meters::process;
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
    let (of_fleet, of_module, of_machinery, of_role) = (facts.clone(), facts.clone(), facts.clone(), facts);
    Source {
        fleet: Box::new(move || answered(of_fleet.clone(), Facts::fleet)),
        module: Box::new(move |name| {
            let facts = of_module.clone();
            Box::pin(async move { facts.detail(&name).await.map_err(unanswered) })
        }),
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

    /// The facts about one module; none if there is no such module.
    async fn detail(self, name: &str) -> Result<Option<Detail>, Unanswered> {
        let Ok(module) = ModuleName::parse(name) else {
            return Ok(None);
        };
        let (with_global, secrets) = (false, Wanted::Masked);
        let of = || Some(module.clone());
        let values = ValuesQuery {
            module: of(),
            with_global,
            secrets,
        };
        let Ok(values) = listeners::ask(&self.doors, values).await? else {
            return Ok(None);
        };
        let section = ConfigValuesQuery {
            module: of(),
            with_global,
            secrets,
        };
        let section = listeners::ask(&self.doors, section).await?.unwrap_or_default();
        let patches = PatchesQuery { module: of(), secrets };
        let patches = listeners::ask(&self.doors, patches).await?.unwrap_or_default();
        let hooks = snapshots::hooks(&self.doors, Owner::Module(module.clone()))
            .await?
            .unwrap_or_default();
        let watched = hooks.into_iter().map(|(hook, bindings)| {
            let names = bindings.into_iter().map(|(binding, _)| binding.to_string());
            (hook.to_string(), names.collect())
        });
        let queues = listeners::ask(&self.doors, QueuesQuery).await?;
        let ours = queues
            .iter()
            .filter(|queue| queue.tasks.iter().any(|task| task.module == name));
        let detail = Detail {
            values,
            section,
            patches,
            hooks: watched.collect(),
            queues: ours.map(queue).collect(),
            objects: self.objects(name).await,
            history: self.history(name).await,
            runs: self.runs(name).await,
        };
        Ok(Some(self.masked(detail)))
    }

    async fn objects(&self, module: &str) -> Vec<facts::Object> {
        let Some(lookout) = self.lookout.get() else {
            return Vec::new();
        };
        lookout.objects_of(module).await.into_iter().map(object).collect()
    }

    async fn history(&self, module: &str) -> Vec<facts::Revision> {
        let Some(charts) = self.charts.get() else {
            return Vec::new();
        };
        let kept = history::history(&charts.cluster, module).await.into_iter();
        let told = kept.map(|kept| facts::Revision {
            number: kept.revision,
            status: kept.status.to_owned(),
            written: kept.written.try_into().unwrap_or_default(),
            config: kept.config,
        });
        told.collect()
    }

    /// The recorded runs of the module's hooks, without the contents of the records: these are shown at the debug socket alone.
    async fn runs(&self, module: &str) -> Vec<facts::Run> {
        let recorder = self.recorder.clone();
        let entries = blocking::run(move || recorder.entries()).await.unwrap_or_default();
        entries.into_iter().filter_map(|entry| run(entry, module)).collect()
    }

    async fn machinery(self) -> Result<Machinery, Unanswered> {
        let queues = listeners::ask(&self.doors, QueuesQuery).await?;
        let converges = listeners::ask(&self.doors, ConvergesQuery).await?;
        let (busy, idle): (Vec<_>, Vec<_>) = queues.iter().partition(|queue| !queue.tasks.is_empty());
        let now = Timestamp::now();
        let report = View::of(&self.channel.borrow(), Answerer::Leader, now).text(now);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a number of bytes"
        )]
        let memory = process::resident_bytes().map(|bytes| bytes as u64);
        let machinery = Machinery {
            queues: busy.into_iter().map(queue).collect(),
            idle_queues: idle.len(),
            converges: converges.into_iter().rev().map(converge).collect(),
            channel: lines(&report),
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

    /// The facts with masked secrets, whatever field they are in.
    fn masked<T: Serialize + DeserializeOwned>(&self, facts: T) -> T {
        let mut document = serde_json::to_value(facts).expect("facts are plain data with text keys");
        self.secrets.mask(&mut document);
        serde_json::from_value(document).expect("masking replaces texts by texts")
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

fn object(object: ObjectHealth) -> facts::Object {
    facts::Object {
        kind: object.kind,
        namespace: object.namespace,
        name: object.name,
        health: object.health.to_owned(),
        sentence: object.sentence,
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

/// The record of a run, if it is one of the module's hooks.
fn run(entry: Entry, module: &str) -> Option<facts::Run> {
    let run = entry.run.filter(|run| run.module.as_deref() == Some(module))?;
    Some(facts::Run {
        id: entry.id,
        hook: run.hook,
        binding: run.binding,
        began: run.began,
        seconds: run.seconds,
        end: run.end.to_string(),
        failure: run.failure,
    })
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
