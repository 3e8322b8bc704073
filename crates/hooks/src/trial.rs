//! A try of a hook for a plan: the hook gets the values and snapshots of the moment, and its answer is only shown.
//!
//! Only hooks that declare `dryRun: true` are tried. Must never carry out patches of objects, set metrics, or log as a run in
//! earnest.

use std::sync::Arc;

use addon_core::failure::{Class, Failure};
use addon_core::object::patch::Operation;
use addon_core::operator::effect::HookRun;
use addon_core::operator::event::HookRan;
use child::Output;
use jobs::unless;
use tokio_util::sync::CancellationToken;

use crate::failures::{no_files, tail};
use crate::{STDERR_LIMIT, Tools, Wrote, command, complaint, cut_short, prepare, wanted};

/// The variable that tells a hook that its answer is only shown.
pub const DRY_RUN: &str = "ADDON_OPERATOR_DRY_RUN";

/// The answer of a hook that was tried.
#[derive(Debug)]
pub struct Tried {
    /// The outcome for the core.
    pub ran: HookRan,
    /// The patches of objects, which are not carried out.
    pub objects: Vec<Operation>,
}

/// Tries one hook. None if it would run for bindings of which no snapshot is kept, such as those of files that are not in use.
pub async fn try_out(
    tools: &Arc<Tools>,
    mut run: HookRun,
    cancel: &CancellationToken,
) -> Result<Option<Tried>, Failure> {
    if !wanted::keep_wanted(&tools.monitors, &mut run) {
        return Ok(None);
    }
    let catalogue = tools.ground.catalogue.borrow().clone();
    let program = catalogue.hook(&run.hook)?;
    let acting = unless(cancel, tools.ground.acting(&run.hook.owner, run.deadline)).await?;
    let mut spawn = command(&acting, &catalogue, &run.hook.owner, &program, run.deadline, cancel).await?;
    let labels = run.labels.clone();
    let prepared = {
        let tools = Arc::clone(tools);
        blocking::run(move || prepare(&tools, &run, |monitors, _, ids| monitors.snapshot(ids))).await
    };
    let (files, read) = prepared.map_err(|error| no_files("no files", &error))?;
    spawn.env.extend(files.environment());
    spawn.env.push((DRY_RUN.into(), "true".into()));
    spawn.stdout = Output::captured(STDERR_LIMIT);
    spawn.stderr = Output::captured(STDERR_LIMIT);
    let finished = tools.ground.spawner.run(spawn, cancel).await;
    let finished = finished.map_err(|error| cut_short(&error, &labels))?;
    if !finished.exit.is_success() {
        let report = tail(&complaint(&finished, &program), tools.ground.spawner.secrets());
        return Err(Failure::new(Class::HookFailed, report));
    }
    let Wrote {
        values,
        metrics: _,
        response: _,
        objects,
    } = blocking::run(move || files.written()).await?;
    let ran = HookRan {
        output: values,
        read,
        ..HookRan::default()
    };
    Ok(Some(Tried { ran, objects }))
}
