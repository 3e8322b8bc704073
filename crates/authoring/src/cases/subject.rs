//! The module that a set of cases is about, or the global hooks: values from files, hooks with their configurations, and
//! resource definitions.
//!
//! Every hook is asked for its configuration once, and not for each case.

use addon_core::failure::Failure;
use addon_core::hook::config::{HookConfig, Stage};
use addon_core::values::{Rejected, Store};
use disk::{Found, FoundModule, HookFile};
use futures::StreamExt as _;
use futures::stream;
use helm_yaml::yaml;
use hooks::config::Said;
use jobs::catalogue::Program;
use names::{GLOBAL_KEY, HookId, ModuleName, Owner};
use serde_json::Value;

use super::case::Mistake;
use crate::offline::Offline;

/// A hook that can be run.
pub(super) struct Known {
    pub(super) id: HookId,
    pub(super) program: Program,
    pub(super) config: HookConfig,
}

pub(super) struct Subject<'a> {
    /// The module; none for global hooks.
    pub(super) module: Option<&'a FoundModule>,
    pub(super) owner: Owner,
    /// The values of files, with schemas.
    pub(super) store: Store,
    /// The documents in the module's directory `crds`.
    pub(super) crds: Vec<Value>,
    hooks: Vec<Known>,
    /// Hooks that gave no valid configuration, by the names of their files.
    broken: Vec<(String, Failure)>,
}

impl<'a> Subject<'a> {
    /// Reads the values, and asks the hooks for their configurations, a few at a time.
    pub(super) async fn of(
        module: Option<&'a FoundModule>,
        found: &'a Found,
        offline: &Offline<'_>,
        at_once: usize,
    ) -> Result<Self, Rejected> {
        let owner = module.map_or(Owner::Global, |module| Owner::Module(module.name.clone()));
        let crds = module.map_or(&[][..], |module| &module.crds);
        let files = module.map_or(&found.global_hooks, |module| &module.hooks);
        let home = module.map(|module| module.path.as_path());
        let mut subject = Self {
            store: store(module, found, &owner)?,
            crds: crds.iter().flat_map(|path| documents(path)).collect(),
            hooks: Vec::new(),
            broken: Vec::new(),
            module,
            owner,
        };
        let owner = &subject.owner;
        let asked = |file| async move { (file, offline.ask(owner, home, file).await) };
        let answers: Vec<(&HookFile, _)> = stream::iter(files).map(asked).buffered(at_once).collect().await;
        for (file, answer) in answers {
            match answer {
                Ok(said) => subject.take(file, said),
                Err(failure) => subject.broken.push((file.name.as_str().to_owned(), failure)),
            }
        }
        Ok(subject)
    }

    /// The name of the module, or the key of global values.
    pub(super) fn title(&self) -> &str {
        self.owner.module().map_or(GLOBAL_KEY, ModuleName::as_str)
    }

    /// The module, for a field that needs one.
    pub(super) fn module(&self, field: &str) -> Result<&'a FoundModule, Mistake> {
        self.module
            .ok_or_else(|| Mistake::new(field, "global hooks have no chart and no script 'enabled'"))
    }

    fn take(&mut self, file: &HookFile, said: Said) {
        let id = |name| HookId {
            owner: self.owner.clone(),
            name,
        };
        let program = |call| Program {
            path: file.path.clone(),
            call,
        };
        match said {
            Said::Single(config) => self.hooks.push(Known {
                id: id(file.name.clone()),
                program: program(None),
                config,
            }),
            Said::Several(listed) => self.hooks.extend(listed.hooks.into_iter().map(|one| Known {
                id: id(one.name),
                program: program(Some(one.call)),
                config: one.config,
            })),
        }
    }

    /// The hook with this name.
    pub(super) fn hook(&self, name: &str) -> Result<&Known, Mistake> {
        if let Some(hook) = self.hooks.iter().find(|hook| hook.id.name.as_str() == name) {
            return Ok(hook);
        }
        if let Some((_, failure)) = self.broken.iter().find(|(file, _)| file == name) {
            return Err(Mistake::new("hook", told(failure)));
        }
        let names: Vec<&str> = self.hooks.iter().map(|hook| hook.id.name.as_str()).collect();
        let problem = match names.as_slice() {
            [] => format!("there is no hook '{name}': there are none at all"),
            names => format!("there is no hook '{name}', only: {}", names.join(", ")),
        };
        Err(Mistake::new("hook", problem))
    }

    /// The hooks of a stage, in the order in which an operator runs them.
    pub(super) fn at_stage(&self, stage: Stage) -> Result<Vec<&Known>, Mistake> {
        if let Some((_, failure)) = self.broken.first() {
            return Err(Mistake::new("on", told(failure)));
        }
        let with_order = |hook| Some((Known::order(hook, stage)?, hook));
        let mut ordered: Vec<(i64, &Known)> = self.hooks.iter().filter_map(with_order).collect();
        ordered.sort_by(|(one, a), (other, b)| (one, &a.id.name).cmp(&(other, &b.id.name)));
        if ordered.is_empty() {
            return Err(Mistake::new("on", format!("no hook has the binding {}", stage.key())));
        }
        Ok(ordered.into_iter().map(|(_, hook)| hook).collect())
    }
}

impl Known {
    fn order(&self, stage: Stage) -> Option<i64> {
        self.config.order(stage)
    }
}

fn told(failure: &Failure) -> String {
    let hints = failure.hints.iter().map(|hint| format!("\nhint: {hint}"));
    std::iter::once(failure.report.clone()).chain(hints).collect()
}

/// The values of the files, as an operator starts with them.
fn store(module: Option<&FoundModule>, found: &Found, owner: &Owner) -> Result<Store, Rejected> {
    let mut store = Store::new();
    store.set_schemas(&Owner::Global, found.global_schemas.clone())?;
    store.set_static(&Owner::Global, found.global_values.clone())?;
    if let Some(module) = module {
        store.set_schemas(owner, module.schemas.clone())?;
        store.set_static(owner, module.values.clone())?;
    }
    Ok(store)
}

/// The documents of a file with resource definitions. The check of modules reports mistakes in it.
fn documents(path: &std::path::Path) -> Vec<Value> {
    let text = fs_err::read_to_string(path).unwrap_or_default();
    yaml::documents_v2(&text).unwrap_or_default()
}
