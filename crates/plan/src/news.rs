//! Kinds and namespaces that a plan brings: the API server does not know them when the plan is made, and knows them when their turn has
//! come.
//!
//! Must never count one for objects that come before it.

use std::collections::BTreeSet;

use releases::crd::foresight::Brought;

use crate::document::{ModulePlan, ObjectAct, ObjectPlan};

/// The kinds that a module brings.
#[derive(Debug, Default)]
pub(crate) struct Kinds {
    /// Those of its CRDs, which are there before its release.
    pub(crate) of_crds: Vec<Brought>,
    /// Those of the CRDs that its chart renders. Helm finds them after the release.
    pub(crate) of_chart: Vec<Brought>,
}

/// Kinds and namespaces that the modules so far bring.
#[derive(Debug, Default)]
pub(crate) struct News {
    kinds: BTreeSet<Brought>,
    namespaces: BTreeSet<String>,
}

impl News {
    /// Corrects the plan of a module by the news of those before it, and adds its own.
    pub(crate) fn meet(&mut self, module: &mut ModulePlan, kinds: Kinds) {
        self.kinds.extend(kinds.of_crds);
        let objects = module.release.iter_mut().flat_map(|release| &mut release.objects);
        let mut objects: Vec<&mut ObjectPlan> = objects.collect();
        // Helm makes namespaces before all other objects.
        let created = objects.iter().filter(|object| object.act == ObjectAct::Create);
        let namespaces = created.filter(|object| object.kind == "Namespace" && object.api_version == "v1");
        self.namespaces.extend(namespaces.map(|object| object.name.clone()));
        for object in &mut objects {
            let reason = match object.act {
                ObjectAct::Unserved if self.kinds.contains(&kind_of(object)) => "a CRD of this plan brings its kind",
                ObjectAct::NoNamespace if self.has_namespace(object) => "in a namespace of this plan",
                _ => continue,
            };
            object.act = ObjectAct::Create;
            reason.clone_into(&mut object.reason);
        }
        self.kinds.extend(kinds.of_chart);
    }

    fn has_namespace(&self, object: &ObjectPlan) -> bool {
        let namespace = object.namespace.as_ref();
        namespace.is_some_and(|namespace| self.namespaces.contains(namespace))
    }
}

fn kind_of(object: &ObjectPlan) -> Brought {
    let group = object.api_version.split_once('/').map_or("", |(group, _)| group);
    Brought {
        group: group.to_owned(),
        kind: object.kind.clone(),
    }
}
