//! The snapshots of hooks' bindings, and the counts of their changes.

use addon_core::object::snapshot::Operations;
use addon_core::operator::query::{HookMonitors, MonitorsQuery, Secrets as Wanted};
use axum::http::StatusCode;
use listeners::reply::{Format, Reply, document, text};
use listeners::{Loop, Unanswered};
use masking::secret::{self, MASK, object};
use names::{BindingName, ModuleName, MonitorId, Owner};
use serde_json::{Map, Value, json};
use watches::Monitors;

/// The hooks of an owner. `None`: there is no such module.
pub async fn hooks(doors: &Loop, owner: Owner) -> Result<Option<HookMonitors>, Unanswered> {
    Ok(listeners::ask(doors, MonitorsQuery(owner)).await?.ok())
}

/// The names of the hooks that belong to no module.
pub async fn hook_list(doors: &Loop, format: Format) -> Result<Reply, Unanswered> {
    let hooks = hooks(doors, Owner::Global).await?.unwrap_or_default();
    Ok(document(format, &hooks.keys().collect::<Vec<_>>()))
}

/// The sources of snapshots, and the way in which secrets are shown.
#[derive(Debug, Clone, Copy)]
pub struct Snapshots<'a> {
    pub doors: &'a Loop,
    /// None before the cluster is connected.
    pub monitors: Option<&'a Monitors>,
    /// How secrets are shown.
    pub secrets: Wanted,
}

impl Snapshots<'_> {
    /// The snapshots of the global hooks. Hooks without a snapshot are left out here, but not among a module's hooks.
    pub async fn of_global_hooks(&self, format: Format) -> Result<Reply, Unanswered> {
        let mut hooks = hooks(self.doors, Owner::Global).await?.unwrap_or_default();
        hooks.retain(|_, bindings| !bindings.is_empty());
        Ok(document(format, &self.snapshots_by_hook(hooks)))
    }

    /// The snapshots of one hook.
    pub async fn of_hook(&self, name: &str, format: Format) -> Result<Reply, Unanswered> {
        let hooks = hooks(self.doors, Owner::Global).await?.unwrap_or_default();
        let hook = hooks.into_iter().find(|(hook, _)| hook.as_str() == name);
        Ok(match hook {
            Some((_, bindings)) => document(format, &self.snapshots(bindings)),
            None => text(StatusCode::BAD_REQUEST, format!("hook '{name}' is not exist\n")),
        })
    }

    /// The snapshots of a module's hooks.
    pub async fn of_module(&self, name: &str, format: Format) -> Result<Reply, Unanswered> {
        let hooks = match ModuleName::parse(name) {
            Ok(module) => hooks(self.doors, Owner::Module(module)).await?,
            Err(_) => None,
        };
        Ok(match hooks {
            Some(hooks) => document(format, &self.snapshots_by_hook(hooks)),
            None => text(StatusCode::INTERNAL_SERVER_ERROR, "module not found\n"),
        })
    }

    /// The snapshots of each hook; null for a hook without a binding.
    fn snapshots_by_hook(&self, hooks: HookMonitors) -> Value {
        let shown = hooks.into_iter().map(|(hook, bindings)| {
            let snapshots = if bindings.is_empty() {
                Value::Null
            } else {
                self.snapshots(bindings)
            };
            (hook.to_string(), snapshots)
        });
        Value::Object(shown.collect())
    }

    fn snapshots(&self, bindings: Vec<(BindingName, MonitorId)>) -> Value {
        let mut shown = Map::new();
        for (binding, id) in bindings {
            let monitor = self.monitors.and_then(|monitors| monitors.describe(id));
            // If several bindings have the same name, only the first is shown.
            if let Some(monitor) = monitor
                && !shown.contains_key(binding.as_str())
            {
                let mut objects = json!(monitor.reading.objects);
                if self.secrets == Wanted::Masked {
                    hide(&mut objects, monitor.of_secrets);
                }
                let entry = json!({
                    "operations": {
                        "sinceLastExecution": operations(monitor.since_run),
                        "sinceStart": operations(monitor.since_start),
                    },
                    "snapshot": objects,
                });
                shown.insert(binding.to_string(), entry);
            }
        }
        Value::Object(shown)
    }
}

/// Masks secrets in objects and filter results. A filter may have changed the data of a Secret, so its result is hidden
/// completely.
fn hide(views: &mut Value, of_secrets: bool) {
    for view in views.as_array_mut().into_iter().flatten() {
        if let Some(object) = view.get_mut("object") {
            *object = if of_secrets {
                object::masked_secret(object)
            } else {
                object::masked(object)
            };
        }
        if let Some(filtered) = view.get_mut("filterResult") {
            *filtered = if of_secrets {
                MASK.into()
            } else {
                secret::masked(filtered)
            };
        }
    }
}

fn operations(counted: Operations) -> Value {
    let Operations {
        count,
        added,
        deleted,
        modified,
        cleaned,
    } = counted;
    json!({ "added": added, "cleaned": cleaned, "count": count, "deleted": deleted, "modified": modified })
}
