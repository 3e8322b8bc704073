//! The planner: lets a copy of the core go through a change, asks for what the copy has to know, and has the document written.
//!
//! One plan is made at a time, and the jobs of the operator go on meanwhile. Must never start a job that changes anything.

use std::sync::Arc;
use std::time::Duration;

use addon_core::failure::Failure;
use addon_core::operator::edit::Edited;
use addon_core::operator::event::Event;
use addon_core::operator::preview::{Passed, Preview, PreviewQuery, RunningQuery};
use addon_core::operator::query::StatusQuery;
use hooks::edits::Objections;
use listeners::{Loop, Unanswered, ask};
use masking::secret::known::Known;
use names::Owner;
use thiserror::Error;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};

use crate::course::Course;
use crate::document::{Plan, Refused};
use crate::moment::Moment;
use crate::outcome::Foresight;
use crate::world::{Files, NewFiles, World};
use crate::writer::Writer;

/// The longest wait for running jobs. A plan that is made beside them says so.
const QUIET_WITHIN: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// The longest time for a plan. The command waits a little longer.
pub(crate) const LONGEST: Duration = Duration::from_mins(4);

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
        take_up(&mut files, &mut preview);
        let world = files.world.clone().unwrap_or_else(|| Arc::clone(&self.world));
        let foresight = go(&*world, &mut preview).await?;

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
        let mut course = noted(&passed, foresight, &mut plan);
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

/// Lets the copy take up files that are not in use.
fn take_up(files: &mut NewFiles, preview: &mut Preview) {
    if let Some(values) = files.global_values.take()
        && let Err(failure) = preview.renew_global_values(values)
    {
        files.refused.push(Refused {
            name: Owner::Global.values_key(),
            reason: format!("the global values of the directories cannot be used: {failure}"),
        });
    }
    files.events.drain(..).for_each(|event| preview.take(event));
}

/// Lets the preview go to its end.
async fn go(world: &dyn World, preview: &mut Preview) -> Result<Foresight, NoPlan> {
    let mut foresight = Foresight::default();
    while let Some(job) = preview.go_on().map_err(NoPlan::Failed)? {
        let finished = foresight.outcome(world, job).await;
        preview.take(Event::JobFinished(finished));
    }
    Ok(foresight)
}

/// Notes the steps of a preview, and the modules that it refused.
pub(crate) fn noted(passed: &Passed, mut foresight: Foresight, plan: &mut Plan) -> Course {
    plan.unfinished.clone_from(&passed.unfinished);
    let mut course = Course::default();
    for step in &passed.steps {
        course.note(step, &mut plan.hooks, &mut foresight);
    }
    let refused = passed.refused.iter().map(|(module, failure)| Refused {
        name: module.to_string(),
        reason: failure.to_string(),
    });
    plan.refused.extend(refused);
    course
}
