//! The planner: lets a copy of the core go through an edit, asks for what the copy has to know, and writes the document.
//!
//! One plan is made at a time, and the jobs of the operator go on meanwhile. Must never start a job that changes anything.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use addon_core::failure::Failure;
use addon_core::operator::Operator;
use addon_core::operator::effect::{HookRun, Job};
use addon_core::operator::event::{Event, Finished, HookRan};
use addon_core::operator::preview::{Preview, PreviewQuery, Release, RunningQuery, Step};
use addon_core::operator::query::{HeldRemoval, ModuleReport, ModulesQuery, Secrets, StatusQuery, ValuesQuery};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use listeners::{Loop, Unanswered, ask};
use masking::secret::known::Known;
use names::{HookId, ModuleName, Owner};
use releases::sync::foresight::{Change, Foreseen};
use serde_json::Value;
use thiserror::Error;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};

use crate::document::{Act, HookPlan, ModulePlan, Plan, Refused, ValuesOf};
use crate::fields::{self, Field, Shown};
use crate::objects;

/// The longest wait for running jobs. A plan that is made beside them says so.
const QUIET_WITHIN: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// The longest time for a plan. The command waits a little longer.
const LONGEST: Duration = Duration::from_mins(4);
/// The number of releases that are foreseen at the same time: each renders a chart.
const AT_ONCE: usize = 2;

/// The outer world of a plan: jobs that only ask, and the foresight of releases.
pub trait World: Send + Sync {
    /// Does a job that changes nothing.
    fn ask(&self, job: Job) -> BoxFuture<'_, Finished>;
    /// Tries a hook that allows it.
    fn try_out(&self, run: HookRun) -> BoxFuture<'_, Result<Tried, Failure>>;
    /// Foresees a release.
    fn foresee<'a>(&'a self, release: &'a Release) -> BoxFuture<'a, Result<Foreseen, Failure>>;
    /// Foresees the removal of a release.
    fn foresee_removal<'a>(&'a self, release: &'a str) -> BoxFuture<'a, Result<Vec<Change>, Failure>>;
}

/// The answer of a hook that was tried.
#[derive(Debug, Default)]
pub struct Tried {
    /// The outcome for the core.
    pub ran: HookRan,
    /// The patches of objects that it asks for, a line each.
    pub patches: Vec<String>,
}

/// The patches of objects that tried hooks ask for.
type Patches = BTreeMap<HookId, Vec<String>>;

/// Makes plans, one at a time.
#[derive(Clone)]
pub struct Planner {
    doors: Loop,
    world: Arc<dyn World>,
    turn: Arc<Mutex<()>>,
}

impl fmt::Debug for Planner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Planner").finish_non_exhaustive()
    }
}

/// Why there is no plan.
#[derive(Debug, Error)]
pub enum NoPlan {
    /// The loop did not answer.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    /// A job that the plan needs failed.
    #[error("the plan cannot be made: {0}")]
    Failed(Failure),
    /// Another plan is being made.
    #[error("another plan is being made: try again when it is there")]
    Busy,
    /// The plan was not made in time.
    #[error("the plan is not made within {} s", LONGEST.as_secs())]
    Late,
    /// The operator has not finished its first converge.
    #[error("the operator is still starting: a plan can be made after its first converge")]
    Starting,
}

impl Planner {
    /// A planner that copies the core behind these doors.
    pub fn new(doors: Loop, world: impl World + 'static) -> Self {
        Self {
            doors,
            world: Arc::new(world),
            turn: Arc::default(),
        }
    }

    /// The plan of an edit after which the ConfigMap has these keys, and the secrets that the edit brings. The plan may hold these.
    pub async fn edit(&self, data: BTreeMap<String, String>) -> Result<(Plan, Arc<Known>), NoPlan> {
        let Ok(_turn) = self.turn.try_lock() else {
            return Err(NoPlan::Busy);
        };
        timeout(LONGEST, self.made(data)).await.map_err(|_| NoPlan::Late)?
    }

    async fn made(&self, data: BTreeMap<String, String>) -> Result<(Plan, Arc<Known>), NoPlan> {
        let mut preview = self.preview().await?;
        let before = Moment::of(Box::new(preview.copy().clone()));
        preview.edit(data);
        let mut patches = Patches::new();
        while let Some(job) = preview.go_on().map_err(NoPlan::Failed)? {
            let finished = match job {
                Job::RunHook(run, ticket) => {
                    let hook = run.hook.clone();
                    let tried = self.world.try_out(run).await;
                    patches.extend(tried.iter().map(|tried| (hook.clone(), tried.patches.clone())));
                    Finished::HookRan(ticket, tried.map(|tried| tried.ran))
                }
                job => self.world.ask(job).await,
            };
            preview.take(Event::JobFinished(finished));
        }
        let unfinished = preview.unfinished();
        let (copy, steps, secrets) = preview.end();
        let mut plan = self.written(&before, &Moment::of(copy), &steps, &patches).await?;
        plan.unfinished = unfinished;
        Ok((plan, secrets))
    }

    /// A copy of the core, made at a quiet moment if one comes soon.
    async fn preview(&self) -> Result<Preview, NoPlan> {
        let until = Instant::now() + QUIET_WITHIN;
        while !ask(&self.doors, RunningQuery).await?.is_empty() && Instant::now() < until {
            sleep(LOOK_AGAIN).await;
        }
        if !ask(&self.doors, StatusQuery).await?.ready {
            return Err(NoPlan::Starting);
        }
        Ok(ask(&self.doors, PreviewQuery).await?)
    }

    async fn written(
        &self,
        before: &Moment,
        after: &Moment,
        steps: &[Step],
        patches: &Patches,
    ) -> Result<Plan, NoPlan> {
        let mut plan = Plan {
            global: changes(&before.section(None), &after.section(None)),
            refused: refused(&before.problems, &after.problems),
            held: held(&before.held, &after.held),
            ..Plan::default()
        };
        let mut course = Course::default();
        for step in steps {
            course.note(step, &mut plan.hooks, patches);
        }
        for name in after.waiting(before) {
            course.at(&name);
        }
        let of = |name: &String| self.module(name.clone(), &course.of[name], before, after).boxed();
        let planned: Vec<BoxFuture<'_, _>> = course.order.iter().map(of).collect();
        plan.modules = stream::iter(planned).buffered(AT_ONCE).try_collect().await?;
        Ok(plan)
    }

    async fn module(
        &self,
        name: String,
        course: &OfModule,
        before: &Moment,
        after: &Moment,
    ) -> Result<ModulePlan, NoPlan> {
        let (was, is) = (before.modules.get(&name), after.modules.get(&name));
        let mut plan = ModulePlan {
            name,
            act: Act::Wait,
            because: is.map(|report| report.enabled_by.clone()).unwrap_or_default(),
            values: Vec::new(),
            hooks: course.hooks.clone(),
            release: None,
            waits_for: is.map(|report| report.waits_for.clone()).unwrap_or_default(),
            error: is.and_then(|report| report.error.clone()),
        };
        if let Some(release) = &course.release {
            if was.is_some_and(|report| report.enabled) {
                plan.act = Act::Run;
            } else {
                plan.act = Act::SwitchOn;
                plan.hooks.iter_mut().for_each(HookPlan::has_not_run);
            }
            let owner = Some(&release.module);
            plan.values = changes(&before.section(owner), &after.section(owner));
            let foreseen = self.world.foresee(release).await.map_err(NoPlan::Failed)?;
            plan.release = Some(objects::release(foreseen));
        } else if course.is_removed {
            plan.act = Act::Remove;
            let gone = self.world.foresee_removal(&plan.name).await.map_err(NoPlan::Failed)?;
            plan.release = Some(objects::removal(gone));
        }
        Ok(plan)
    }
}

/// The state of the operator before the edit, or after it.
struct Moment {
    operator: Box<Operator>,
    modules: BTreeMap<String, ModuleReport>,
    problems: BTreeMap<String, String>,
    held: Vec<HeldRemoval>,
}

impl Moment {
    fn of(operator: Box<Operator>) -> Self {
        let status = operator.answer(&StatusQuery);
        let reports = operator.answer(&ModulesQuery).into_iter();
        Self {
            operator,
            modules: reports.map(|report| (report.name.clone(), report)).collect(),
            problems: status.config_problems,
            held: status.held,
        }
    }

    /// The effective values of a module, or the global ones; then the same with masked secrets.
    fn section(&self, module: Option<&ModuleName>) -> [Value; 2] {
        [Secrets::Shown, Secrets::Masked].map(|secrets| {
            let query = ValuesQuery {
                module: module.cloned(),
                with_global: false,
                secrets,
            };
            self.operator.answer(&query).unwrap_or_default()
        })
    }

    /// The modules that wait or fail now, and did not so before.
    fn waiting(&self, before: &Self) -> Vec<String> {
        let is_news = |report: &&ModuleReport| {
            let was = before.modules.get(&report.name);
            let told = |report: &ModuleReport| (report.enabled, report.waits_for.clone(), report.error.clone());
            report.enabled && was.map(told) != Some(told(report))
        };
        self.modules
            .values()
            .filter(is_news)
            .map(|report| report.name.clone())
            .collect()
    }
}

/// The steps of a preview by module.
#[derive(Default)]
struct Course {
    order: Vec<String>,
    of: BTreeMap<String, OfModule>,
}

#[derive(Default)]
struct OfModule {
    hooks: Vec<HookPlan>,
    release: Option<Box<Release>>,
    is_removed: bool,
}

impl Course {
    fn at(&mut self, module: &str) -> &mut OfModule {
        if !self.of.contains_key(module) {
            self.order.push(module.to_owned());
        }
        self.of.entry(module.to_owned()).or_default()
    }

    fn note(&mut self, step: &Step, of_all: &mut Vec<HookPlan>, patches: &Patches) {
        match step {
            Step::Hook { hook, cause, is_tried } => {
                let plan = HookPlan {
                    hook: hook.name.to_string(),
                    binding: cause.to_string(),
                    values: if *is_tried { ValuesOf::Try } else { ValuesOf::LastRun },
                    patches: patches.get(hook).cloned().unwrap_or_default(),
                };
                let hooks = match &hook.owner {
                    Owner::Global => of_all,
                    Owner::Module(module) => &mut self.at(module.as_str()).hooks,
                };
                if !hooks.contains(&plan) {
                    hooks.push(plan);
                }
            }
            Step::Release(release) => self.at(release.module.as_str()).release = Some(release.clone()),
            Step::Removal(release) => self.at(release).is_removed = true,
        }
    }
}

fn changes([before, masked_before]: &[Value; 2], [after, masked_after]: &[Value; 2]) -> Vec<Field> {
    let side = |whole, masked| Shown { whole, masked };
    fields::changed_between(side(before, masked_before), side(after, masked_after))
}

/// The problems of the second moment that the first did not have.
fn refused(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<Refused> {
    let news = after.iter().filter(|(key, reason)| before.get(*key) != Some(reason));
    news.map(|(key, reason)| Refused {
        name: key.clone(),
        reason: reason.clone(),
    })
    .collect()
}

/// The removals that are held at the second moment and were not at the first.
fn held(before: &[HeldRemoval], after: &[HeldRemoval]) -> Vec<Refused> {
    let is_news = |held: &&HeldRemoval| before.iter().all(|known| known.release != held.release);
    let tell = |held: &HeldRemoval| Refused {
        name: held.release.clone(),
        reason: held.reason.clone(),
    };
    after.iter().filter(is_news).map(tell).collect()
}
