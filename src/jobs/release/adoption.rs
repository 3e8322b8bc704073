//! Objects that a chart renders although another maker made them: helm takes them over, but a module that goes must not take along
//! objects that were there before it. So they are marked to be kept, in the manifest that helm stores and on the object.

use std::collections::BTreeSet;

use addon_core::failure::Failure;
use addon_core::release::Rendered;
use addon_core::release::brake::Part;

use super::Sync;
use super::marks::checksum;
use crate::cluster::adoption::Kind;
use crate::helm::claims::Object;
use crate::jobs::unless;

/// Words of a template that renders objects which hold others, or whose objects cannot be told from its text.
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
    /// The objects that the upgrade would take over, or once took over, and that hold others: namespaces, claims of volumes and CRDs.
    pub(super) async fn adopted(&mut self) -> Result<BTreeSet<Part>, Failure> {
        let release = self.facts.release.clone();
        let parts = if let Some(rendered) = &self.facts.rendered {
            rendered.parts.clone()
        } else if self.chart.mentions(HOLDING).await {
            let manifest = self.render().await?;
            let parts = self.parts_of(&manifest)?;
            // Its checksum is that of the rendering without the marks of kept objects, as next time.
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
            let look = async {
                Ok(acting
                    .is_not_of(&release, kind, part.namespace.as_deref(), &part.name)
                    .await?)
            };
            if unless(self.cancel, look).await? {
                adopted.insert(part);
            }
        }
        Ok(adopted)
    }

    /// The same as the post-renderer knows them.
    pub(super) fn kept(&self, adopted: &BTreeSet<Part>) -> BTreeSet<Object> {
        let of_release = self.tools.cluster.namespace();
        let object = |part: &Part| {
            let namespace = part.namespace.as_deref().unwrap_or(of_release);
            Object::of_group(&part.group, &part.kind, namespace, &part.name)
        };
        adopted.iter().map(object).collect()
    }
}
