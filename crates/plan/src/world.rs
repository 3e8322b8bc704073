//! The outer world of plans: jobs that only ask, the foresight of releases, files that are not in use.
//!
//! Must never change anything.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use addon_core::failure::Failure;
use addon_core::operator::effect::{HookRun, Job};
use addon_core::operator::event::{Event, Finished, HookRan};
use addon_core::operator::policy::OnTrial;
use addon_core::operator::preview::Release;
use futures::future::BoxFuture;
use hooks::edits::Objections;
use names::{ModuleName, Owner};
use releases::crds;
use releases::sync::foresight::{Foreseen, Removal};
use serde_json::Value;

use crate::document::Refused;

/// The outer world of a plan.
pub trait World: fmt::Debug + Send + Sync {
    /// Does a job that changes nothing.
    fn ask(&self, job: Job) -> BoxFuture<'_, Finished>;
    /// Tries a hook that allows it; none if that is not possible.
    fn try_out(&self, run: HookRun) -> BoxFuture<'_, Result<Option<Tried>, Failure>>;
    /// Foresees a release.
    fn foresee<'a>(&'a self, release: &'a Release) -> BoxFuture<'a, Result<Foreseen, Failure>>;
    /// Foresees the removal of a release; none if nothing would be removed.
    fn foresee_removal<'a>(&'a self, release: &'a str) -> BoxFuture<'a, Result<Option<Removal>, Failure>>;
    /// Foresees the changes of a module's CRDs.
    fn foresee_crds<'a>(
        &'a self,
        module: &'a ModuleName,
        on_trial: OnTrial,
    ) -> BoxFuture<'a, Result<crds::Foreseen, Failure>>;
    /// Asks the executables that check settings about sections, each with the defaults of its schema.
    fn check<'a>(&'a self, sections: &'a [(Owner, Value)]) -> BoxFuture<'a, Objections>;
    /// Reads files of modules that are not in use; the reason if that is not possible.
    fn read<'a>(&'a self, files: &'a Files) -> BoxFuture<'a, Result<NewFiles, String>>;
}

/// The answer of a hook that was tried.
#[derive(Debug)]
pub struct Tried {
    /// The outcome for the core.
    pub ran: HookRan,
    /// The patches of objects that it asks for, a line each.
    pub patches: Vec<String>,
}

/// Files of modules that are not in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Files {
    /// The directories would be these.
    Directories {
        modules: Vec<PathBuf>,
        /// None if those in use stay.
        global_hooks: Option<PathBuf>,
    },
    /// Modules with a source would have these versions, each a tag or a digest.
    Versions(BTreeMap<ModuleName, String>),
}

/// Files of modules that were read for a plan.
#[derive(Debug, Default)]
pub struct NewFiles {
    /// The world in which modules have these files; none if no module has others.
    pub world: Option<Arc<dyn World>>,
    /// The events by which the core takes them up.
    pub events: Vec<Event>,
    /// The global values of the directories, if they are others.
    pub global_values: Option<Value>,
    /// The new files of each module, in words.
    pub told: BTreeMap<String, String>,
    /// The releases of modules that are no more.
    pub gone: Vec<String>,
    /// The modules whose files cannot be used, each with the reason.
    pub refused: Vec<Refused>,
    /// The differences that the plan leaves out.
    pub left_out: Vec<String>,
}
