//! Snapshots of objects that are given, without an API server and without changes: for tests of modules.
//!
//! Must never show an object in another way than a watch: the lens and the order are those of monitors.

use std::sync::Arc;

use addon_core::failure::{Class, Failure};
use addon_core::hook::config::KubernetesBinding;
use addon_core::object::snapshot::{PartId, Sighting, Snapshot};
use addon_core::object::{ObjectName, ObjectView};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;

use super::lens::{self, Compile, Item, Lens, Text, Trace};

/// The only part of a snapshot without watches.
const PART: PartId = PartId(0);

/// The view of a binding on objects. The caller must pass only objects that the binding selects.
pub struct Still {
    lens: Arc<Lens>,
    binding: String,
}

impl std::fmt::Debug for Still {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Still")
            .field("binding", &self.binding)
            .finish_non_exhaustive()
    }
}

impl Still {
    /// Compiles the filter of the binding.
    pub fn of(binding: &KubernetesBinding, compile: Compile) -> Result<Self, Failure> {
        Ok(Self {
            lens: Arc::new(Lens::of(binding, compile)?),
            binding: binding.name.as_str().to_owned(),
        })
    }

    /// The snapshot with these objects, in the order that the contract defines. A filter that fails is a failure here;
    /// an operator reports it and leaves the object out.
    pub fn snapshot<'a>(&self, objects: impl IntoIterator<Item = &'a Value>) -> Result<Vec<ObjectView>, Failure> {
        let mut snapshot = Snapshot::new(self.lens.order());
        snapshot.add_part(PART);
        for object in objects {
            snapshot.fill(PART, self.sighting(object)?);
        }
        Ok(snapshot.objects())
    }

    /// One object as the binding shows it.
    pub fn view(&self, object: &Value) -> Result<ObjectView, Failure> {
        self.sighting(object).map(|sighting| sighting.view)
    }

    fn sighting(&self, object: &Value) -> Result<Sighting, Failure> {
        let name = ObjectName::of(object);
        let item = Item {
            name: Arc::new(name.clone()),
            text: Text::Sent(object.to_string().into_bytes().into()),
            trace: Trace::default(),
        };
        // The objects name their kind and version themselves.
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "", ""));
        let seen = lens::look(&item, &resource, &[Arc::clone(&self.lens)]).pop();
        match seen.map(|look| look.seen) {
            Some(Ok(sighting)) => Ok(sighting),
            Some(Err(error)) => {
                let report = format!("jqFilter of binding '{}' fails for {name}: {error}", self.binding);
                Err(Failure::new(Class::HookFailed, report))
            }
            None => Err(Failure::defect("a lens shows nothing")),
        }
    }
}
