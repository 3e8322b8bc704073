//! Objects that a chart renders although they existed before. Helm takes them over, but they must not be deleted when
//! the module is removed. So they are marked to be kept, in helm's stored manifest and on the object.

use std::collections::BTreeSet;

use addon_core::failure::Failure;
use addon_core::release::Rendered;
use addon_core::release::brake::Part;
use helm::claims::Object;

use super::Sync;
use super::marks::checksum;
use crate::adoption::{self, Kind};
use jobs::unless;

/// Texts in a template that may render a namespace, a volume claim or a CRD. After `kind: {{` any kind may follow.
const HOLDING: &[&str] = &[
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "kind: Namespace",
    "kind: \"Namespace",
    "kind: 'Namespace",
    "\"kind\": \"Namespace",
    "kind: {{",
];

impl Sync<'_> {
    /// The namespaces, volume claims and CRDs of the chart that existed before the release. This upgrade takes them over,
    /// or an earlier upgrade did.
    pub(super) async fn adopted(&mut self) -> Result<BTreeSet<Part>, Failure> {
        let release = self.facts.release.clone();
        let parts = if let Some(rendered) = &self.facts.rendered {
            rendered.parts.clone()
        } else if self.chart.mentions(HOLDING).await {
            let manifest = self.render().await?;
            let parts = self.parts_of(&manifest)?;
            // The checksum is computed without the marks of kept objects, so that it is equal next time.
            let checksum = checksum(&manifest);
            self.facts.rendered = Some(Rendered {
                checksum,
                parts: parts.clone(),
            });
            self.manifest = manifest;
            parts
        } else {
            BTreeSet::new()
        };
        let acting = unless(self.cancel, self.acting()).await?.cluster();
        let mut adopted = BTreeSet::new();
        for part in parts.into_iter().filter(Part::holds_others) {
            let kind = match part.kind.as_str() {
                "Namespace" => Kind::Namespace,
                "PersistentVolumeClaim" => Kind::Claim,
                _ => Kind::Crd,
            };
            let look =
                async { Ok(adoption::is_not_of(acting, &release, kind, part.namespace.as_deref(), &part.name).await?) };
            if unless(self.cancel, look).await? {
                adopted.insert(part);
            }
        }
        Ok(adopted)
    }

    /// The adopted objects in the form for the post-renderer.
    pub(super) fn kept(&self, adopted: &BTreeSet<Part>) -> BTreeSet<Object> {
        let of_release = self.tools.ground.cluster.namespace();
        let object = |part: &Part| {
            let namespace = part.namespace.as_deref().unwrap_or(of_release);
            Object::of_group(&part.group, &part.kind, namespace, &part.name)
        };
        adopted.iter().map(object).collect()
    }
}
