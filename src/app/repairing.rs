//! Shows a person the damage among helm's records of a module's release, and repairs it. It works without the running
//! operator; a record that changes meanwhile is left alone.
//!
//! Never touches an object of the release.

use std::collections::BTreeSet;

use addon_core::failure::Failure;
use addon_core::release::foreign;
use addon_core::release::records::{Examined, OtherHelm, Purpose, Record, Remedy, examine};
use helm_yaml::yaml;
use tokio::runtime::Runtime;

use super::switch::{SwitchError, reach};
use crate::cluster::Cluster;
use crate::cluster::drift::{ObjectKey, flat, key_of};
use crate::cluster::error::RequestError;
use crate::cluster::releases::records::Stored;
use crate::settings::{Environment, StartArgs};

/// The records of a release, with their damage.
#[derive(Debug)]
pub struct RecordRepair {
    /// The damage and the remedies.
    pub examined: Examined,
    /// The objects that helm has made for the release and that no record names, if the newest record is lost.
    pub left: BTreeSet<ObjectKey>,
    release: String,
    stored: Vec<Stored>,
    cluster: Cluster,
    runtime: Runtime,
}

impl RecordRepair {
    /// Reads the records of a module's release; `None` if it has none. Changes nothing.
    pub fn find(args: &StartArgs, environment: &Environment, module: &str) -> Result<Option<Self>, SwitchError> {
        let (module, _, runtime, cluster) = reach(args, environment, module)?;
        let release = module.as_str().to_owned();
        let stored = runtime.block_on(cluster.records(&release)).map_err(failed)?;
        let Some(newest) = stored.last() else {
            return Ok(None);
        };
        if !newest.is_ours {
            return Err(SwitchError::Cluster(foreign(&release)));
        }
        let records: Vec<Record> = stored.iter().map(|stored| stored.record.clone()).collect();
        // A person does not see another helm, either.
        let examined = examine(&release, &records, Purpose::Removal, OtherHelm::Possible);
        let left = if examined.is_lossy {
            runtime
                .block_on(left(&cluster, &release, &stored))
                .map_err(SwitchError::Cluster)?
        } else {
            BTreeSet::new()
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
    pub fn lines(&self) -> Vec<String> {
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

    /// Whether there is something to do.
    pub fn is_needed(&self) -> bool {
        self.examined
            .findings
            .iter()
            .any(|finding| finding.remedy != Remedy::Wait)
    }

    /// Carries out the remedies.
    pub fn carry_out(&self) -> Result<(), SwitchError> {
        let repair = async {
            let apis = self.cluster.apis().await?;
            for finding in &self.examined.findings {
                self.cluster.mend(&self.release, &self.stored, finding, &apis).await?;
            }
            Ok::<_, Failure>(())
        };
        self.runtime.block_on(repair).map_err(SwitchError::Cluster)
    }
}

fn failed(error: RequestError) -> SwitchError {
    SwitchError::Cluster(Failure::from(error))
}

/// The objects of the release that no record names, of the kinds in the records.
async fn left(cluster: &Cluster, release: &str, stored: &[Stored]) -> Result<BTreeSet<ObjectKey>, Failure> {
    let manifests = stored.iter().filter_map(Stored::manifest);
    let documents = manifests.filter_map(|manifest| yaml::documents_v2(&manifest).ok());
    let named: BTreeSet<ObjectKey> = documents
        .flatten()
        .flat_map(flat)
        .filter_map(|object| key_of(&object))
        .collect();
    let kinds = named
        .iter()
        .map(|key| (key.api_version.clone(), key.kind.clone()))
        .collect();
    let apis = cluster.apis().await?;
    let mut made = cluster.made_for(release, &kinds, &apis).await?;
    for key in &named {
        let with = |namespace: Option<String>| ObjectKey {
            namespace,
            ..key.clone()
        };
        made.remove(&with(None));
        made.remove(&with(
            key.namespace.clone().or_else(|| Some(cluster.namespace().to_owned())),
        ));
    }
    Ok(made)
}
