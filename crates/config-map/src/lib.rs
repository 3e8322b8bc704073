//! The one `ConfigMap` that people edit: watched, and written one key at a time.
//!
//! Only an answer of the API server can show that the ConfigMap is missing: after an error, a refusal or silence
//! nothing is known. A write changes one key, and only if that key still has the text that the writer knows.
//!
//! ```text
//!   edit of a person --> watch --> Event::ConfigChanged --> the core
//!   Job::SaveConfig, Job::SettleSections --> section --> one key, if it still has the known text
//!                                               |
//!                                               +--> saved-state   the earlier text, while a version is on trial
//! ```
//!
//! Begin with `watch.rs`, then `section.rs`.

mod history;
pub mod rollback;
pub mod section;
pub mod watch;

use addon_core::operator::event::{ConfigRead, Saved};
use addon_core::operator::provenance::{self, Provenance};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use kube::core::ObjectMeta;
use kube_access::Cluster;
use kube_access::error::RequestError;

/// The contents of the `ConfigMap` at this moment.
pub async fn read_config(cluster: &Cluster, name: &str) -> Result<ConfigRead, RequestError> {
    let config_map = cluster
        .ask(
            cluster.attempt("get", "configmaps", name),
            cluster.config_maps().get_opt(name),
        )
        .await?;
    Ok(config_map.as_ref().map_or(ConfigRead::Missing, present))
}

/// Replaces one key, if it still has the text `base`; `None` stands for an absent key. A missing ConfigMap is only
/// created with `create`: a ConfigMap with only this key would withdraw all other settings of people.
pub async fn save_config(
    cluster: &Cluster,
    name: &str,
    key: &str,
    text: String,
    base: Option<&str>,
    create: bool,
) -> Result<Saved, RequestError> {
    change_config(cluster, name, key, Some(text), base, create).await
}

/// Like `save_config`, but removes the key if `text` is none.
pub async fn change_config(
    cluster: &Cluster,
    name: &str,
    key: &str,
    text: Option<String>,
    base: Option<&str>,
    create: bool,
) -> Result<Saved, RequestError> {
    let api = cluster.config_maps();
    let found = cluster
        .ask(cluster.attempt("get", "configmaps", name), api.get_opt(name))
        .await?;
    let current = found
        .as_ref()
        .and_then(|found| found.data.as_ref()?.get(key))
        .map(String::as_str);
    if current != base || found.is_none() && !create {
        return Ok(Saved::Conflict(found.as_ref().map_or(ConfigRead::Missing, present)));
    }
    let params = PostParams::default();
    let created = found.is_none();
    let written = if let Some(mut config_map) = found {
        put(&mut config_map, key, text);
        cluster
            .ask(
                cluster.attempt("update", "configmaps", name),
                api.replace(name, &params, &config_map),
            )
            .await
    } else {
        let mut config_map = ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            data: Some(text.map(|text| (key.to_owned(), text)).into_iter().collect()),
            ..ConfigMap::default()
        };
        note_as_made(&mut config_map);
        cluster
            .ask(
                cluster.attempt("create", "configmaps", name),
                api.create(&params, &config_map),
            )
            .await
    };
    match written {
        Ok(config_map) => Ok(Saved::Written {
            version: version(&config_map),
            created,
        }),
        // If the ConfigMap was deleted between the two requests, the update answers "not found".
        Err(error) if error.is_conflict() || error.is_not_found() => {
            Ok(Saved::Conflict(read_config(cluster, name).await?))
        }
        Err(error) => Err(error),
    }
}

fn present(config_map: &ConfigMap) -> ConfigRead {
    ConfigRead::Present {
        version: version(config_map),
        data: config_map.data.clone().unwrap_or_default(),
        provenance: provenance(config_map),
    }
}

fn provenance(config_map: &ConfigMap) -> Provenance {
    let metadata = &config_map.metadata;
    Provenance::read(metadata.uid.as_deref(), metadata.annotations.as_ref())
}

/// Sets or removes the key.
fn put(config_map: &mut ConfigMap, key: &str, text: Option<String>) {
    let as_made = provenance(config_map).is_as_made(config_map.data.get_or_insert_default());
    let data = config_map.data.get_or_insert_default();
    match text {
        Some(text) => data.insert(key.to_owned(), text),
        None => data.remove(key),
    };
    if as_made {
        note_as_made(config_map);
    }
}

/// Marks a new ConfigMap as made by the operator: a key that it lacks is no decision of a person.
fn note_as_made(config_map: &mut ConfigMap) {
    let digest = provenance::digest(config_map.data.get_or_insert_default());
    let annotations = config_map.metadata.annotations.get_or_insert_default();
    annotations.insert(provenance::MADE_WITH.to_owned(), digest);
}

fn version(config_map: &ConfigMap) -> u64 {
    number(config_map.metadata.resource_version.as_deref().unwrap_or_default())
}

/// A resource version as a number; 0 if the text is no number.
fn number(version: &str) -> u64 {
    version.parse().unwrap_or(0)
}
