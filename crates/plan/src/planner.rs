//! The planner: lets a copy of the core go through a change, asks for what the copy has to know, and writes the document.
//!
//! One plan is made at a time, and the jobs of the operator go on meanwhile. Must never start a job that changes anything.

use std::mem::take;
use std::sync::Arc;
use std::time::Duration;

use addon_core::failure::Failure;
use addon_core::operator::edit::Edited;
use addon_core::operator::effect::Job;
use addon_core::operator::event::{Event, Finished, HookRan};
use addon_core::operator::preview::{Passed, Preview, PreviewQuery, RunningQuery};
use addon_core::operator::query::StatusQuery;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use hooks::edits::Objections;
use listeners::{Loop, Unanswered, ask};
use masking::secret::known::Known;
use names::Owner;
use releases::sync::foresight::Foreseen;
use thiserror::Error;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};

use crate::course::{Course, OfModule, Patches};
use crate::document::{Act, HookPlan, ModulePlan, Plan, Refused};
use crate::moment::Moment;
use crate::news::{Kinds, News};
use crate::objects;
use crate::world::{Files, NewFiles, World};

/// The longest wait for running jobs. A plan that is made beside them says so.
const QUIET_WITHIN: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// The longest time for a plan. The command waits a little longer.
pub(crate) const LONGEST: Duration = Duration::from_mins(4);
/// The number of releases that are foreseen at the same time: each renders a chart.
const AT_ONCE: usize = 2;

/// The change whose effects a plan shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The ConfigMap would have these keys.
    Edit(Edited),
    /// Modules would have other files.
    Files(Files),
}

/// The time that a plan may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// A person has asked for the plan.
    Patient,
    /// A person waits for the judgement of an edit.
    Soon,
}

impl Pace {
    fn quiet_within(self) -> Duration {
        match self {
            Self::Patient => QUIET_WITHIN,
            Self::Soon => Duration::ZERO,
        }
    }
}

/// Makes plans, one at a time.
#[derive(Debug, Clone)]
pub struct Planner {
    doors: Loop,
    world: Arc<dyn World>,
    turn: Arc<Mutex<()>>,
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
    /// The files of the change cannot be read.
    #[error("{0}")]
    Unread(String),
    /// Another plan is being made.
    #[error("another plan is being made: try again when it is there")]
    Busy,
    /// The plan was not made in time.
    #[error("the plan is not made within {} s", .0.as_secs())]
    Late(Duration),
    /// The first converge of a start does not begin.
    #[error("the first converge does not begin: {}", .0.join("; "))]
    NotBegun(Vec<String>),
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

    /// The plan of a change, and the secrets that the change brings. The plan may hold these.
    pub async fn plan(&self, change: Change) -> Result<(Plan, Arc<Known>), NoPlan> {
        let Ok(_turn) = self.turn.try_lock() else {
            return Err(NoPlan::Busy);
        };
        timeout(LONGEST, self.made(change, Pace::Patient))
            .await
            .map_err(|_| NoPlan::Late(LONGEST))?
    }

    /// The same for a person who waits for the judgement of an edit, within this time: without a wait for running jobs, and without
    /// the checks of settings, which belong to the judgement.
    pub async fn plan_soon(&self, change: Change, within: Duration) -> Result<(Plan, Arc<Known>), NoPlan> {
        let Ok(_turn) = self.turn.try_lock() else {
            return Err(NoPlan::Busy);
        };
        timeout(within, self.made(change, Pace::Soon))
            .await
            .map_err(|_| NoPlan::Late(within))?
    }

    async fn made(&self, change: Change, pace: Pace) -> Result<(Plan, Arc<Known>), NoPlan> {
        let mut files = match &change {
            Change::Edit(_) => NewFiles::default(),
            Change::Files(wanted) => self.world.read(wanted).await.map_err(NoPlan::Unread)?,
        };
        let mut preview = self.preview(pace).await?;
        let before = Moment::of(Box::new(preview.copy().clone()));
        let mut objections = Objections::default();
        if let Change::Edit(edited) = change {
            if pace == Pace::Patient {
                let sections = preview.changed_sections(&edited.data);
                objections = self.world.check(&sections).await;
            }
            preview.edit(edited.data, edited.confirms);
        }
        if let Some(values) = files.global_values.take()
            && let Err(failure) = preview.renew_global_values(values)
        {
            files.refused.push(Refused {
                name: Owner::Global.values_key(),
                reason: format!("the global values of the directories cannot be used: {failure}"),
            });
        }
        files.events.drain(..).for_each(|event| preview.take(event));
        let world = files.world.clone().unwrap_or_else(|| Arc::clone(&self.world));
        let patches = go(&*world, &mut preview).await?;

        let gone: Vec<&String> = files.gone.iter().filter(|name| before.has_on(name)).collect();
        let holds_gone = preview.copy().would_hold(gone.iter().copied());
        let passed = preview.end();
        let objected = objections.refusals.into_iter().map(|(owner, reason)| Refused {
            name: owner.values_key(),
            reason: format!("the check of its settings, which the webhook asks, refuses it: {reason}"),
        });
        let mut plan = Plan {
            warnings: objections.warnings,
            refused: files.refused.iter().cloned().chain(objected).collect(),
            ..Plan::default()
        };
        let mut course = noted(&passed, &patches, &mut plan);
        for release in gone {
            if holds_gone {
                plan.held.push(Refused {
                    name: release.clone(),
                    reason: "its directory is gone, and so are those of many others".to_owned(),
                });
            } else {
                course.at(release).is_removed = true;
            }
        }
        let after = Moment::of(passed.copy);
        let writer = Writer {
            world: &*world,
            files: &files,
            before: &before,
            after: &after,
            is_start: false,
        };
        writer.write(&mut plan, course).await?;
        Ok((plan, passed.secrets))
    }

    /// A copy of the core, made at a quiet moment if one comes soon.
    async fn preview(&self, pace: Pace) -> Result<Preview, NoPlan> {
        let until = Instant::now() + pace.quiet_within();
        while !ask(&self.doors, RunningQuery).await?.is_empty() && Instant::now() < until {
            sleep(LOOK_AGAIN).await;
        }
        if !ask(&self.doors, StatusQuery).await?.ready {
            return Err(NoPlan::Starting);
        }
        Ok(ask(&self.doors, PreviewQuery).await?)
    }
}

/// Lets the preview go to its end. Returns the patches of the hooks that were tried.
async fn go(world: &dyn World, preview: &mut Preview) -> Result<Patches, NoPlan> {
    let mut patches = Patches::new();
    while let Some(job) = preview.go_on().map_err(NoPlan::Failed)? {
        let finished = outcome(world, job, &mut patches).await;
        preview.take(Event::JobFinished(finished));
    }
    Ok(patches)
}

/// The outcome of a job that a preview leaves to the asker. Notes the patches of a hook that is tried.
pub(crate) async fn outcome(world: &dyn World, job: Job, patches: &mut Patches) -> Finished {
    match job {
        Job::RunHook(run, ticket) => {
            let hook = run.hook.clone();
            let ran = world.try_out(run).await.map(|tried| match tried {
                Some(tried) => {
                    patches.insert(hook, tried.patches);
                    tried.ran
                }
                None => HookRan::default(),
            });
            Finished::HookRan(ticket, ran)
        }
        job => world.ask(job).await,
    }
}

/// Notes the steps of a preview, and the modules that it refused.
pub(crate) fn noted(passed: &Passed, patches: &Patches, plan: &mut Plan) -> Course {
    plan.unfinished.clone_from(&passed.unfinished);
    let mut course = Course::default();
    for step in &passed.steps {
        course.note(step, &mut plan.hooks, patches);
    }
    let refused = passed.refused.iter().map(|(module, failure)| Refused {
        name: module.to_string(),
        reason: failure.to_string(),
    });
    plan.refused.extend(refused);
    course
}

/// Writes the document of a plan.
pub(crate) struct Writer<'a> {
    pub(crate) world: &'a dyn World,
    pub(crate) files: &'a NewFiles,
    pub(crate) before: &'a Moment,
    pub(crate) after: &'a Moment,
    /// Whether no operator runs: then nothing is known of the values before.
    pub(crate) is_start: bool,
}

impl Writer<'_> {
    pub(crate) async fn write(&self, plan: &mut Plan, mut course: Course) -> Result<(), NoPlan> {
        let (before, after) = (self.before, self.after);
        for name in after.waiting(before) {
            course.at(&name);
        }
        for name in before.switched_off(after) {
            course.at(name).is_off = true;
        }
        if !self.is_start {
            plan.global = after.changed_values(before, None);
        }
        plan.refused.extend(after.refused(before));
        plan.held.extend(after.held(before));
        plan.left_out.extend(self.files.left_out.iter().cloned());
        let gone = &self.files.gone;
        plan.left_out.extend(after.in_need_of(gone));
        let gone: Vec<&str> = gone
            .iter()
            .map(String::as_str)
            .filter(|name| before.has_on(name))
            .collect();
        if !gone.is_empty() {
            let gone = gone.join(", ");
            let enabled = "the list of enabled modules that hooks and charts see";
            plan.left_out
                .push(format!("{enabled} still has those that are gone ({gone})"));
        }
        let of = |name: &String| self.module(name.clone(), &course.of[name]).boxed();
        let planned: Vec<BoxFuture<'_, _>> = course.order.iter().map(of).collect();
        let planned: Vec<_> = stream::iter(planned).buffered(AT_ONCE).try_collect().await?;
        let mut news = News::default();
        for (mut module, kinds) in planned {
            news.meet(&mut module, kinds);
            plan.modules.push(module);
        }
        Ok(())
    }

    async fn module(&self, name: String, course: &OfModule) -> Result<(ModulePlan, Kinds), NoPlan> {
        let (was, is) = (self.before.modules.get(&name), self.after.modules.get(&name));
        let mut plan = ModulePlan {
            files: self.files.told.get(&name).cloned(),
            name,
            act: Act::Wait,
            because: is.map(|report| report.enabled_by.clone()).unwrap_or_default(),
            values: Vec::new(),
            crds: Vec::new(),
            hooks: course.hooks.clone(),
            release: None,
            waits_for: is.map(|report| report.waits_for.clone()).unwrap_or_default(),
            error: is.and_then(|report| report.error.clone()),
        };
        let mut kinds = Kinds::default();
        if course.is_removed {
            plan.act = Act::Remove;
            if self.files.gone.contains(&plan.name) {
                "its directory is gone".clone_into(&mut plan.because);
            }
            let gone = self.world.foresee_removal(&plan.name).await.map_err(NoPlan::Failed)?;
            plan.release = Some(objects::removal(gone));
            return Ok((plan, kinds));
        }
        if course.is_off {
            plan.act = Act::Remove;
            return Ok((plan, kinds));
        }
        if let Some(module) = &course.crds {
            match self.world.foresee_crds(module).await {
                Ok(foreseen) => {
                    plan.crds = foreseen.changes.into_iter().map(objects::object).collect();
                    kinds.of_crds = foreseen.brought;
                }
                Err(failure) => plan.error = plan.error.or(Some(failure.to_string())),
            }
        }
        // A module without a chart has hooks alone.
        if course.release.is_some() || (!course.hooks.is_empty() && plan.waits_for.is_empty()) {
            if self.is_start || was.is_some_and(|report| report.enabled) {
                plan.act = Act::Run;
            } else {
                plan.act = Act::SwitchOn;
                plan.hooks.iter_mut().for_each(HookPlan::has_not_run);
            }
        }
        if let Some(release) = &course.release {
            if !self.is_start {
                plan.values = self.after.changed_values(self.before, Some(&release.module));
            }
            let mut foreseen = self.world.foresee(release).await.map_err(NoPlan::Failed)?;
            if let Foreseen::Upgrade { brought, .. } = &mut foreseen {
                kinds.of_chart = take(brought);
            }
            plan.release = Some(objects::release(foreseen));
        }
        Ok((plan, kinds))
    }
}
