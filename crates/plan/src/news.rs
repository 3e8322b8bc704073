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
    /// Those of its CRDs that are there before all releases.
    pub(crate) early: Vec<Brought>,
    /// Those of its other CRDs, which are there before its own release.
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
    /// The news before the first release.
    pub(crate) fn of_early<'a>(all: impl Iterator<Item = &'a Kinds>) -> Self {
        Self {
            kinds: all.flat_map(|kinds| &kinds.early).cloned().collect(),
            namespaces: BTreeSet::new(),
        }
    }

    /// Corrects the plan of a module by the news of those before it, and adds its own.
    pub(crate) fn meet(&mut self, module: &mut ModulePlan, kinds: Kinds) {
        self.kinds.extend(kinds.of_crds);
        let objects = module.release.iter_mut().flat_map(|release| &mut release.objects);
        let mut objects: Vec<&mut ObjectPlan> = objects.collect();
        // Helm makes namespaces before all other objects.
        let created = objects.iter().filter(|object| object.act == ObjectAct::Create);
        let namespaces = created.filter(|object| object.kind == "Namespace" && object.api_version == "v1");
        let own: BTreeSet<String> = namespaces.map(|object| object.name.clone()).collect();
        let has = |namespace: &String| own.contains(namespace) || self.namespaces.contains(namespace);
        for object in &mut objects {
            let reason = match object.act {
                ObjectAct::Unserved if self.kinds.contains(&kind_of(object)) => "a CRD of this plan brings its kind",
                ObjectAct::NoNamespace if object.namespace.as_ref().is_some_and(has) => "in a namespace of this plan",
                _ => continue,
            };
            object.act = ObjectAct::Create;
            reason.clone_into(&mut object.reason);
        }
        // Helm looks for all kinds before it makes the first object.
        if objects.iter().all(|object| object.act != ObjectAct::Unserved) {
            self.kinds.extend(kinds.of_chart);
            self.namespaces.extend(own);
        }
    }
}

fn kind_of(object: &ObjectPlan) -> Brought {
    Brought {
        api_version: object.api_version.clone(),
        kind: object.kind.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Act, End, ReleasePlan};

    fn object(api_version: &str, kind: &str, namespace: Option<&str>, name: &str, act: ObjectAct) -> ObjectPlan {
        ObjectPlan {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
            act,
            fields: Vec::new(),
            reason: String::new(),
        }
    }

    fn module(objects: Vec<ObjectPlan>) -> ModulePlan {
        ModulePlan {
            name: "a".to_owned(),
            act: Act::Run,
            because: String::new(),
            files: None,
            values: Vec::new(),
            crds: Vec::new(),
            hooks: Vec::new(),
            release: Some(ReleasePlan {
                end: End::Upgrade,
                reason: String::new(),
                hints: Vec::new(),
                objects,
                chart_hooks: Vec::new(),
            }),
            waits_for: String::new(),
            error: None,
            hints: Vec::new(),
        }
    }

    /// The acts on the objects of modules that begin in this order.
    fn acts(modules: Vec<(Vec<ObjectPlan>, Kinds)>) -> Vec<ObjectAct> {
        let mut news = News::of_early(modules.iter().map(|(_, kinds)| kinds));
        let mut acts = Vec::new();
        for (objects, kinds) in modules {
            let mut module = module(objects);
            news.meet(&mut module, kinds);
            acts.extend(module.release.unwrap().objects.iter().map(|object| object.act));
        }
        acts
    }

    fn gadgets(versions: &[&str]) -> Vec<Brought> {
        let brought = versions.iter().map(|version| Brought {
            api_version: format!("g.example/{version}"),
            kind: "Gadget".to_owned(),
        });
        brought.collect()
    }

    #[test]
    fn a_kind_counts_from_the_step_on_that_brings_it() {
        use ObjectAct::{Create, Unserved};
        let gadget = |version: &str| vec![object(version, "Gadget", None, "x", Unserved)];
        let of_crds = |are_early| Kinds {
            early: if are_early { gadgets(&["v1"]) } else { Vec::new() },
            of_crds: gadgets(&["v1"]),
            ..Kinds::default()
        };
        let none = Kinds::default;
        // The CRDs of all modules come before the first release, or those of a module before its own.
        assert_eq!(
            acts(vec![(gadget("g.example/v1"), none()), (Vec::new(), of_crds(true))]),
            [Create]
        );
        assert_eq!(
            acts(vec![(gadget("g.example/v1"), none()), (Vec::new(), of_crds(false))]),
            [Unserved]
        );
        assert_eq!(acts(vec![(gadget("g.example/v1"), of_crds(false))]), [Create]);
        assert_eq!(acts(vec![(gadget("g.example/v2"), of_crds(true))]), [Unserved]);
        // Helm does not find a kind of its own chart, and then makes nothing.
        let rendered = || Kinds {
            of_chart: gadgets(&["v1"]),
            ..Kinds::default()
        };
        let both = vec![(gadget("g.example/v1"), rendered()), (gadget("g.example/v1"), none())];
        assert_eq!(acts(both), [Unserved, Unserved]);
        let later = vec![(Vec::new(), rendered()), (gadget("g.example/v1"), none())];
        assert_eq!(acts(later), [Create]);
    }

    #[test]
    fn a_namespace_counts_in_its_own_chart_and_later() {
        use ObjectAct::{Create, NoNamespace};
        let inside = || object("v1", "ConfigMap", Some("new"), "x", NoNamespace);
        let namespace = object("v1", "Namespace", None, "new", Create);
        let modules = vec![
            (vec![inside()], Kinds::default()),
            (vec![inside(), namespace], Kinds::default()),
            (vec![inside()], Kinds::default()),
        ];
        assert_eq!(acts(modules), [NoNamespace, Create, Create, Create]);
    }
}
