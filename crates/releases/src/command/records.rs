//! Shows a person the damage among helm's records of a module's release, and repairs it. It works without the running
//! operator; a record that changes meanwhile is left alone.
//!
//! Never touches an object of the release.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use addon_core::failure::Failure;
use addon_core::release::foreign;
use addon_core::release::records::{Examined, OtherHelm, Purpose, Record, Remedy, examine};
use command::edit::EditError;
use command::reach;
use helm_yaml::yaml;
use kube_access::Cluster;
use kube_access::error::RequestError;
use objects::key::{self, Identity, ObjectKey, flat, key_of};
use settings::{Environment, StartArgs};
use tokio::runtime::Runtime;

use crate::revisions::records::Stored;
use crate::revisions::records::made::Made;
use crate::revisions::records::made::all_made_for;

/// The records of a release, with their damage.
#[derive(Debug)]
pub(crate) struct RecordRepair {
    /// The damage and the remedies.
    pub examined: Examined,
    /// The objects that helm has made for the release and that no record names, if the newest record is lost.
    left: Made,
    release: String,
    stored: Vec<Stored>,
    cluster: Cluster,
    runtime: Runtime,
}

impl RecordRepair {
    /// Reads the records of a module's release; `None` if it has none. Changes nothing.
    pub(crate) fn find(args: &StartArgs, environment: &Environment, module: &str) -> Result<Option<Self>, EditError> {
        let (module, _, runtime, cluster) = reach::with_module(args, environment, module)?;
        let release = module.as_str().to_owned();
        let stored = runtime
            .block_on(crate::revisions::records::records(&cluster, &release))
            .map_err(failed)?;
        let Some(newest) = stored.last() else {
            return Ok(None);
        };
        if !newest.is_ours {
            return Err(EditError::Cluster(foreign(&release)));
        }
        let records: Vec<Record> = stored.iter().map(|stored| stored.record.clone()).collect();
        // A person cannot see, either, whether another helm is at work.
        let examined = examine(&release, &records, Purpose::Removal, OtherHelm::Possible);
        let left = if examined.is_lossy {
            runtime
                .block_on(left(&cluster, &release, &stored))
                .map_err(EditError::Cluster)?
        } else {
            Made::default()
        };
        Ok(Some(Self {
            examined,
            left,
            release,
            stored,
            cluster,
            runtime,
        }))
    }

    /// All records, in words.
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |stored: &Stored| {
            let tag = &stored.record.tag;
            let mut findings = self.examined.findings.iter();
            match (
                findings.find(|finding| finding.secret == tag.secret),
                &stored.record.payload,
            ) {
                (Some(finding), _) => format!("{}: {}; it is {}", tag.secret, finding.flaw, finding.remedy),
                (None, Ok(payload)) => format!("{}: {}", tag.secret, payload.status),
                (None, Err(problem)) => format!("{}: {problem}", tag.secret),
            }
        };
        self.stored.iter().map(line).collect()
    }

    /// The objects that stay, each with the command that deletes it, and the kinds that could not be listed, in words.
    pub(crate) fn left(&self) -> Vec<String> {
        let Made { objects, unlisted } = &self.left;
        let mut lines = Vec::new();
        if !objects.is_empty() {
            let title = "Objects that no other record names, and that stay unless the chart renders them. A person deletes them by:";
            lines.push(title.to_owned());
            lines.extend(
                objects
                    .iter()
                    .map(|object| format!("  {object}: `{}`", deletion(object))),
            );
        }
        if !unlisted.is_empty() {
            let kinds = unlisted.join(", ");
            lines.push(format!(
                "More objects may stay, of kinds that could not be listed: {kinds}"
            ));
        }
        lines
    }

    /// Whether there is something to do.
    pub(crate) fn is_needed(&self) -> bool {
        self.examined
            .findings
            .iter()
            .any(|finding| finding.remedy != Remedy::Wait)
    }

    /// Carries out the remedies.
    pub(crate) fn carry_out(&self) -> Result<(), EditError> {
        let repair = async {
            let apis = self.cluster.apis().await?;
            for finding in &self.examined.findings {
                crate::revisions::records::mend(&self.cluster, &self.release, &self.stored, finding, &apis).await?;
            }
            Ok::<_, Failure>(())
        };
        self.runtime.block_on(repair).map_err(EditError::Cluster)
    }
}

fn failed(error: RequestError) -> EditError {
    EditError::Cluster(Failure::from(error))
}

/// The objects of the release that no record names.
async fn left(cluster: &Cluster, release: &str, stored: &[Stored]) -> Result<Made, Failure> {
    let apis = cluster.apis().await?;
    let manifests = stored.iter().filter_map(Stored::manifest);
    let documents = manifests.filter_map(|manifest| yaml::documents_v2(&manifest).ok());
    let objects = documents.flatten().flat_map(flat);
    let named: BTreeSet<Identity> = objects
        .filter_map(|object| Some(key::identity(cluster, &key_of(&object)?, &apis)))
        .collect();
    let mut made = all_made_for(cluster, release, &apis).await;
    made.objects
        .retain(|key| !named.contains(&key::identity(cluster, key, &apis)));
    Ok(made)
}

/// The command by which a person deletes an object.
fn deletion(object: &ObjectKey) -> String {
    let mut command = format!("kubectl delete {}", object.kind.to_lowercase());
    if let Some((group, _)) = object.api_version.split_once('/') {
        let _ = write!(command, ".{group}");
    }
    let _ = write!(command, " {}", object.name);
    if let Some(namespace) = &object.namespace {
        let _ = write!(command, " --namespace {namespace}");
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_names_group_and_namespace_if_there_are_any() {
        let command = |api_version: &str, kind: &str, namespace: Option<&str>| {
            deletion(&ObjectKey {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
                namespace: namespace.map(str::to_owned),
                name: "a".to_owned(),
            })
        };
        assert_eq!(
            command("v1", "ConfigMap", Some("n")),
            "kubectl delete configmap a --namespace n"
        );
        assert_eq!(
            command("rbac.authorization.k8s.io/v1", "ClusterRole", None),
            "kubectl delete clusterrole.rbac.authorization.k8s.io a"
        );
    }
}
