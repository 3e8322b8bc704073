//! The snapshots of hooks' bindings, and the counts of their changes.

use addon_core::object::snapshot::Operations;
use addon_core::operator::query::{HookMonitors, MonitorsQuery};
use axum::http::StatusCode;
use masking::secret::{self, MASK, object};
use names::{BindingName, ModuleName, MonitorId, Owner};
use serde_json::{Map, Value, json};

use super::reply::{Reply, document, text};
use super::route::Format;
use super::{Debug, Unanswered, Wanted};

impl Debug {
    /// The hooks of an owner. `None`: there is no such module.
    pub(super) async fn hooks(&self, owner: Owner) -> Result<Option<HookMonitors>, Unanswered> {
        Ok(listeners::ask(&self.doors, MonitorsQuery(owner)).await?.ok())
    }

    /// The names of the hooks that belong to no module.
    pub(super) async fn hook_list(&self, format: Format) -> Result<Reply, Unanswered> {
        let hooks = self.hooks(Owner::Global).await?.unwrap_or_default();
        Ok(document(format, &hooks.keys().collect::<Vec<_>>()))
    }

    /// The snapshots of the global hooks. Hooks of modules are all shown, these only with a snapshot.
    pub(super) async fn global_snapshots(&self, format: Format, secrets: Wanted) -> Result<Reply, Unanswered> {
        let mut hooks = self.hooks(Owner::Global).await?.unwrap_or_default();
        hooks.retain(|_, bindings| !bindings.is_empty());
        Ok(document(format, &self.snapshots_by_hook(hooks, secrets)))
    }

    /// The snapshots of one hook.
    pub(super) async fn hook_snapshots(
        &self,
        name: &str,
        format: Format,
        secrets: Wanted,
    ) -> Result<Reply, Unanswered> {
        let hooks = self.hooks(Owner::Global).await?.unwrap_or_default();
        let hook = hooks.into_iter().find(|(hook, _)| hook.as_str() == name);
        Ok(match hook {
            Some((_, bindings)) => document(format, &self.snapshots(bindings, secrets)),
            None => text(StatusCode::BAD_REQUEST, format!("hook '{name}' is not exist\n")),
        })
    }

    /// The snapshots of a module's hooks.
    pub(super) async fn module_snapshots(
        &self,
        name: &str,
        format: Format,
        secrets: Wanted,
    ) -> Result<Reply, Unanswered> {
        let hooks = match ModuleName::parse(name) {
            Ok(module) => self.hooks(Owner::Module(module)).await?,
            Err(_) => None,
        };
        Ok(match hooks {
            Some(hooks) => document(format, &self.snapshots_by_hook(hooks, secrets)),
            None => text(StatusCode::INTERNAL_SERVER_ERROR, "module not found\n"),
        })
    }

    /// A hook without a binding has none, which is shown as null.
    fn snapshots_by_hook(&self, hooks: HookMonitors, secrets: Wanted) -> Value {
        let shown = hooks.into_iter().map(|(hook, bindings)| {
            let snapshots = if bindings.is_empty() {
                Value::Null
            } else {
                self.snapshots(bindings, secrets)
            };
            (hook.to_string(), snapshots)
        });
        Value::Object(shown.collect())
    }

    fn snapshots(&self, bindings: Vec<(BindingName, MonitorId)>, secrets: Wanted) -> Value {
        let mut shown = Map::new();
        for (binding, id) in bindings {
            let monitor = self.monitors.get().and_then(|monitors| monitors.describe(id));
            // Of bindings with the same name the first is shown.
            if let Some(monitor) = monitor
                && !shown.contains_key(binding.as_str())
            {
                let mut objects = json!(monitor.reading.objects);
                if secrets == Wanted::Masked {
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
