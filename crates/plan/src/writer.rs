//! The writer of a plan: the document about each module, from the steps of a preview and the foresight of releases.
//!
//! Must never start a job that changes anything.

use std::mem;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use releases::sync::foresight::Foreseen;

use crate::course::{Course, Crds, OfModule};
use crate::document::{Act, HookPlan, ModulePlan, Plan};
use crate::moment::Moment;
use crate::news::{Kinds, News};
use crate::objects;
use crate::planner::NoPlan;
use crate::world::{NewFiles, World};

/// The number of releases that are foreseen at the same time: each renders a chart.
const AT_ONCE: usize = 2;

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
        let mut crds = mem::take(&mut course.crds);
        // A module with CRDs alone has no other step.
        for name in crds.keys() {
            course.at(name);
        }
        let of = |name: &String| self.module(name.clone(), &course.of[name], crds.remove(name)).boxed();
        let planned: Vec<BoxFuture<'_, _>> = course.order.iter().map(of).collect();
        let planned: Vec<_> = stream::iter(planned).buffered(AT_ONCE).try_collect().await?;
        let mut news = News::of_early(planned.iter().map(|(_, kinds)| kinds));
        for (mut module, kinds) in planned {
            news.meet(&mut module, kinds);
            if !module.is_empty() {
                plan.modules.push(module);
            }
        }
        Ok(())
    }

    async fn removal(&self, plan: &mut ModulePlan) -> Result<(), NoPlan> {
        plan.act = Act::Remove;
        if self.files.gone.contains(&plan.name) {
            "its directory is gone".clone_into(&mut plan.because);
        }
        let gone = self.world.foresee_removal(&plan.name).await.map_err(NoPlan::Failed)?;
        plan.release = gone.map(objects::removal);
        Ok(())
    }

    /// Tells whether the module runs, and whether it is switched on by that.
    fn begin(&self, plan: &mut ModulePlan, has_release: bool) {
        let is_on_in = |moment: &Moment| moment.has_on(&plan.name);
        let (was_on, is_on) = (is_on_in(self.before), is_on_in(self.after));
        // A module without a chart has hooks or CRDs alone, or nothing.
        let has_others = !plan.hooks.is_empty() || !plan.crds.is_empty() || is_on && !was_on;
        let is_free = plan.waits_for.is_empty() && plan.error.is_none();
        let runs = has_release || (has_others && is_free);
        if !runs {
            return;
        }
        if self.is_start || was_on {
            plan.act = Act::Run;
        } else {
            plan.act = Act::SwitchOn;
            plan.hooks.iter_mut().for_each(HookPlan::has_not_run);
        }
    }

    async fn module(&self, name: String, course: &OfModule, crds: Option<Crds>) -> Result<(ModulePlan, Kinds), NoPlan> {
        let is = self.after.modules.get(&name);
        // Of a module that is tried again the error is told, not the time.
        let waits = is.filter(|report| report.failures == 0);
        let mut plan = ModulePlan {
            files: self.files.told.get(&name).cloned(),
            name,
            act: Act::Wait,
            because: is.map(|report| report.enabled_by.clone()).unwrap_or_default(),
            values: Vec::new(),
            crds: Vec::new(),
            hooks: course.hooks.clone(),
            release: None,
            waits_for: waits.map(|report| report.waits_for.clone()).unwrap_or_default(),
            error: is.and_then(|report| report.error.clone()),
            hints: is.map(|report| report.hints.clone()).unwrap_or_default(),
        };
        let mut kinds = Kinds::default();
        if course.is_removed {
            self.removal(&mut plan).await?;
            return Ok((plan, kinds));
        }
        if course.is_off {
            plan.act = Act::Remove;
            return Ok((plan, kinds));
        }
        if let Some(Crds { changes, early, late }) = crds {
            plan.crds = changes.into_iter().map(objects::object).collect();
            (kinds.early, kinds.of_crds) = (early, late);
        }
        self.begin(&mut plan, course.release.is_some());
        if let Some(release) = &course.release {
            if !self.is_start {
                plan.values = self.after.changed_values(self.before, Some(&release.module));
            }
            let mut foreseen = self.world.foresee(release).await.map_err(NoPlan::Failed)?;
            if let Foreseen::Upgrade { brought, .. } = &mut foreseen {
                kinds.of_chart = mem::take(brought);
            }
            plan.release = Some(objects::release(foreseen));
        }
        Ok((plan, kinds))
    }
}
