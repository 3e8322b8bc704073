//! The modules from registries in the plan of a start: their files come while the start is rehearsed.
//!
//! Must never keep a version: what a start would take is not taken by its plan.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use addon_core::module::Edition;
use futures::future::BoxFuture;
use names::ModuleName;

/// The part that brings files from registries.
pub trait Supply: fmt::Debug + Send + Sync {
    /// Uses the files of a reading for all that begins from now on.
    fn take_up(&self, module: &ModuleName, edition: Edition);
    /// Waits until the registry of each module has been asked. Returns the modules for which no version was learned, each with what a start
    /// would do then, and the reason.
    fn settled<'a>(&'a self, modules: &'a BTreeSet<ModuleName>) -> BoxFuture<'a, BTreeMap<ModuleName, String>>;
}
