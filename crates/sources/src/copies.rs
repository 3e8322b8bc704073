//! Secrets with the modules that came from registries: a record for each source, and the packed files of its versions.
//!
//! If no registry answers and the disk is empty, the operator starts from these Secrets. A part of a copy must never
//! count as the whole: a copy counts if all of its parts are there.

use std::collections::BTreeMap;

use channel_core::reference::ImageDigest;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::core::ObjectMeta;
use kube_access::Cluster;
use kube_access::error::RequestError;
use names::ModuleName;

/// The label of all Secrets of one source, with the name of its module.
const LABEL: &str = "addon-operator/module-source";
/// The annotation with the digest of the version whose files a Secret holds.
const DIGEST: &str = "addon-operator/digest";
/// The annotation with the number of Secrets that hold the files together.
const PARTS: &str = "addon-operator/parts";
const PREFIX: &str = "addon-operator-source-";
const RECORD: &str = "record";
const FILES: &str = "files";
/// The number of bytes in one Secret. The API server accepts a little more.
const PART: usize = 1_000_000;
/// The number of bytes of packed files up to which a version is kept.
pub(super) const LARGEST: usize = 4 << 20;

/// Whether records and files are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    /// They are kept in Secrets.
    InSecrets,
    /// Nothing is written: a plan wants to know the versions that a start would take.
    Nowhere,
}

/// The Secrets of all sources.
#[derive(Debug, Clone)]
pub(super) struct Copies {
    pub(super) cluster: Cluster,
    pub(super) keeping: Keeping,
}

impl Copies {
    /// The record of a source, as it was written last.
    pub(super) async fn record(&self, module: &ModuleName) -> Result<Option<Vec<u8>>, RequestError> {
        let name = record_name(module);
        let attempt = self.cluster.attempt("get", "secrets", &name);
        let found = self.cluster.ask(attempt, self.cluster.secrets().get_opt(&name)).await?;
        let data = found.and_then(|found| found.data);
        Ok(data.and_then(|mut data| data.remove(RECORD)).map(|record| record.0))
    }

    /// Writes the record of a source.
    pub(super) async fn write_record(&self, module: &ModuleName, record: Vec<u8>) -> Result<(), RequestError> {
        let data = [(RECORD.to_owned(), ByteString(record))].into();
        self.put(secret(record_name(module), module, BTreeMap::new(), data))
            .await
    }

    /// The packed files of a version, if they are kept.
    pub(super) async fn files(
        &self,
        module: &ModuleName,
        digest: &ImageDigest,
    ) -> Result<Option<Vec<u8>>, RequestError> {
        let cluster = &self.cluster;
        let mut files = Vec::new();
        let mut number = 0;
        loop {
            let name = part_name(module, digest, number);
            let attempt = cluster.attempt("get", "secrets", &name);
            let Some(found) = cluster.ask(attempt, cluster.secrets().get_opt(&name)).await? else {
                return Ok(None);
            };
            let annotations = found.metadata.annotations.unwrap_or_default();
            let parts = annotations.get(PARTS).and_then(|parts| parts.parse::<usize>().ok());
            let part = found.data.and_then(|mut data| data.remove(FILES));
            let (Some(parts), Some(part)) = (parts, part) else {
                return Ok(None);
            };
            if annotations.get(DIGEST).map(String::as_str) != Some(digest.as_str()) {
                return Ok(None);
            }
            files.extend(part.0);
            number += 1;
            if number >= parts {
                return Ok(Some(files));
            }
        }
    }

    /// Keeps the packed files of a version.
    pub(super) async fn keep_files(
        &self,
        module: &ModuleName,
        digest: &ImageDigest,
        files: &[u8],
    ) -> Result<(), RequestError> {
        let parts = files.chunks(PART).count();
        for (number, part) in files.chunks(PART).enumerate() {
            let annotations = [
                (DIGEST.to_owned(), digest.as_str().to_owned()),
                (PARTS.to_owned(), parts.to_string()),
            ];
            let data = [(FILES.to_owned(), ByteString(part.to_vec()))].into();
            let name = part_name(module, digest, number);
            self.put(secret(name, module, annotations.into(), data)).await?;
        }
        Ok(())
    }

    /// Deletes the Secrets of sources for which `is_needed` is false. `is_needed` gets the module and the digest of the
    /// version whose files the Secret holds; the digest is none for the record.
    pub(super) async fn sweep(
        &self,
        is_needed: impl Fn(&str, Option<&str>) -> bool + Send + Sync,
    ) -> Result<(), RequestError> {
        if self.keeping == Keeping::Nowhere {
            return Ok(());
        }
        let cluster = &self.cluster;
        let params = ListParams::default().labels(LABEL);
        let attempt = cluster.attempt("list", "secrets", "");
        let secrets = cluster.secrets();
        for found in cluster.ask(attempt, secrets.list_metadata(&params)).await? {
            let metadata = found.metadata;
            let annotations = metadata.annotations.unwrap_or_default();
            let labels = metadata.labels.unwrap_or_default();
            let (Some(module), Some(name)) = (labels.get(LABEL), metadata.name) else {
                continue;
            };
            if is_needed(module, annotations.get(DIGEST).map(String::as_str)) {
                continue;
            }
            let attempt = cluster.attempt("delete", "secrets", &name);
            match cluster
                .ask(attempt, secrets.delete(&name, &DeleteParams::default()))
                .await
            {
                Err(error) if !error.is_not_found() => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Creates a Secret, or replaces the one with its name.
    async fn put(&self, secret: Secret) -> Result<(), RequestError> {
        if self.keeping == Keeping::Nowhere {
            return Ok(());
        }
        let cluster = &self.cluster;
        let name = secret.metadata.name.clone().unwrap_or_default();
        let secrets = cluster.secrets();
        let params = PostParams::default();
        let attempt = cluster.attempt("update", "secrets", &name);
        match cluster.ask(attempt, secrets.replace(&name, &params, &secret)).await {
            Err(error) if error.is_not_found() => {
                let attempt = cluster.attempt("create", "secrets", &name);
                cluster.ask(attempt, secrets.create(&params, &secret)).await.map(drop)
            }
            written => written.map(drop),
        }
    }
}

/// A Secret of the operator's namespace, for a login.
pub(super) async fn login_secret(
    cluster: &Cluster,
    name: &str,
) -> Result<Option<BTreeMap<String, Vec<u8>>>, RequestError> {
    let attempt = cluster.attempt("get", "secrets", name);
    let found = cluster.ask(attempt, cluster.secrets().get_opt(name)).await?;
    let data = |found: Secret| {
        found
            .data
            .unwrap_or_default()
            .into_iter()
            .map(|(key, value)| (key, value.0))
    };
    Ok(found.map(|found| data(found).collect()))
}

/// The texts of a ConfigMap with values files.
pub(super) async fn values_files(
    cluster: &Cluster,
    name: &str,
) -> Result<Option<BTreeMap<String, String>>, RequestError> {
    let attempt = cluster.attempt("get", "configmaps", name);
    let found: Option<ConfigMap> = cluster.ask(attempt, cluster.config_maps().get_opt(name)).await?;
    Ok(found.map(|found| found.data.unwrap_or_default()))
}

fn record_name(module: &ModuleName) -> String {
    format!("{PREFIX}{module}")
}

fn part_name(module: &ModuleName, digest: &ImageDigest, number: usize) -> String {
    let digits = digest.as_str().rsplit(':').next().unwrap_or_default();
    let short: String = digits.chars().take(12).collect();
    format!("{PREFIX}{module}.{short}.{number}")
}

fn secret(
    name: String,
    module: &ModuleName,
    annotations: BTreeMap<String, String>,
    data: BTreeMap<String, ByteString>,
) -> Secret {
    Secret {
        metadata: ObjectMeta {
            name: Some(name),
            labels: Some([(LABEL.to_owned(), module.to_string())].into()),
            annotations: (!annotations.is_empty()).then_some(annotations),
            ..ObjectMeta::default()
        },
        data: Some(data),
        ..Secret::default()
    }
}
