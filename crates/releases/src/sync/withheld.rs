//! New webhook configurations that an upgrade leaves out until their servers are up. Applied earlier, they would refuse
//! the writes of helm and of the operator. The job then fails, and a later try applies them.
//!
//! Must never leave out a configuration that is in the cluster, or one that may let the operator's own writes pass.

use std::collections::BTreeSet;

use addon_core::digest::{Builder, Digest};
use addon_core::failure::{Class, Failure};
use addon_core::release::interception::interceptors;
use addon_core::release::{Objects, Rendered, Status};
use helm::claims::Object;
use serde_json::Value;
use tracing::info;

use super::Sync;
use super::brake::objects_of;
use super::marks::checksum;
use crate::interception;
use jobs::unless;

/// Texts in a template that may render a webhook configuration. After `kind: {{` any kind may follow.
const CONFIGURATIONS: &[&str] = &["WebhookConfiguration", "kind: {{"];

/// A configuration that is left out.
#[derive(Debug, Clone)]
pub(super) struct Withheld {
    configuration: Value,
    /// The Service without a ready endpoint, with its namespace.
    service: String,
}

impl Withheld {
    fn title(&self) -> String {
        let of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        format!(
            "{}/{}",
            of(&self.configuration["kind"]),
            of(&self.configuration["metadata"]["name"])
        )
    }
}

impl Sync<'_> {
    /// Finds the configurations that the upgrade leaves out. Fails if the release has everything else already.
    pub(super) async fn withhold(&mut self) -> Result<(), Failure> {
        self.withheld.clear();
        if self.facts.unmanaged || (self.manifest.is_empty() && !self.chart.mentions(CONFIGURATIONS).await) {
            return Ok(());
        }
        if self.manifest.is_empty() {
            self.manifest = self.render().await?;
        }
        let objects = objects_of(&self.facts.release, &self.manifest)?;
        self.withheld = self.without_server(&objects).await?;
        self.facts.rendered = Some(Rendered {
            checksum: checksum(&self.manifest),
            parts: self.parts_of(&self.manifest)?,
        });
        if self.withheld.is_empty() || !self.has_all_else().await? {
            return Ok(());
        }
        self.wait_for_servers()
    }

    /// The new configurations that surely intercept the operator's writes, and whose Service has no ready endpoint.
    async fn without_server(&self, objects: &[Value]) -> Result<Vec<Withheld>, Failure> {
        let acting = unless(self.cancel, self.acting()).await?.cluster();
        let mut withheld = Vec::new();
        for found in interceptors(objects, self.tools.ground.cluster.namespace()) {
            let look = async {
                let (kind, name) = (&found.configuration["kind"], &found.configuration["metadata"]["name"]);
                let (kind, name) = (kind.as_str().unwrap_or_default(), name.as_str().unwrap_or_default());
                Ok(
                    interception::leads_nowhere(acting, found.namespace, found.service).await?
                        && !interception::is_configured(acting, kind, name).await?,
                )
            };
            if unless(self.cancel, look).await? {
                withheld.push(Withheld {
                    configuration: found.configuration.clone(),
                    service: format!("{}/{}", found.namespace, found.service),
                });
            }
        }
        Ok(withheld)
    }

    /// The digest to note on a revision without the withheld configurations. It differs from `digest`, so that the next
    /// try finds a change. If no configuration is withheld, it is `digest` itself.
    pub(super) fn partial(&self, digest: &str) -> String {
        if self.withheld.is_empty() {
            return digest.to_owned();
        }
        let titles = self.withheld.iter().map(Withheld::title);
        let all = titles.fold(Digest::builder().part(digest), Builder::part);
        all.finish().to_string()
    }

    /// Whether the release is deployed with all objects of the chart except the withheld ones.
    async fn has_all_else(&mut self) -> Result<bool, Failure> {
        let checksum = self
            .facts
            .rendered
            .as_ref()
            .map(|rendered| self.partial(&rendered.checksum));
        // As elsewhere, a checksum counts only beside a digest of inputs, because helm copies it.
        let newest = self.facts.newest.as_ref();
        let is_known = newest.is_some_and(|newest| {
            newest.status == Status::Deployed && newest.inputs.is_some() && newest.checksum == checksum
        });
        if !is_known || self.facts.torn {
            return Ok(false);
        }
        unless(self.cancel, self.look_at_objects()).await?;
        Ok(self.facts.objects == Objects::Present)
    }

    /// The objects that the post-renderer leaves out.
    pub(super) fn left_out(&self) -> BTreeSet<Object> {
        let namespace = self.tools.ground.cluster.namespace();
        let objects = self
            .withheld
            .iter()
            .filter_map(|its| Object::of(&its.configuration, namespace));
        objects.collect()
    }

    /// The failure for configurations that were left out.
    pub(super) fn wait_for_servers(&self) -> Result<(), Failure> {
        if self.withheld.is_empty() {
            return Ok(());
        }
        let release = self.facts.release.as_str();
        let each = self
            .withheld
            .iter()
            .map(|its| format!("{} (Service '{}')", its.title(), its.service));
        let each = each.collect::<Vec<_>>().join(", ");
        info!(
            release,
            configurations = each,
            "webhook configurations wait for ready endpoints"
        );
        let report = format!(
            "release '{release}' waits for ready endpoints before the last of its objects are applied: {each}; their webhooks \
             would refuse the writes of helm and the operator until then"
        );
        Err(Failure::new(Class::Unavailable, report).hint(
            "if these endpoints need more than the other objects of the release, leave the operator's namespace out in the \
             namespaceSelector of the webhook",
        ))
    }
}
