//! The contents of volumes that come from objects of the cluster.

use std::collections::BTreeMap;

use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{DownwardAPIVolumeFile, KeyToPath, Pod, ServiceAccountTokenProjection, Volume};
use k8s_openapi::api::core::v1::{ServiceAccount, VolumeProjection};
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt as _};

use super::{File, VolumeError, unknown};
use crate::node::environment::{self, EnvironmentError};

/// Files by path.
type Files = BTreeMap<String, File>;

/// The default mode of a file. The mode of a token lets only its owner and the pod's group read it.
const MODE: u32 = 0o644;

/// The current contents of the volume. A token is requested only once, because it lasts longer than the pods of tests;
/// `again` says that it was requested before.
pub(super) async fn files(
    client: &Client,
    pod: &Pod,
    volume: &Volume,
    again: bool,
) -> Result<Option<Files>, VolumeError> {
    let content = |source| VolumeError::Content {
        volume: volume.name.clone(),
        source,
    };
    if let Some(from) = &volume.config_map {
        let data = environment::config_map(client, pod, &from.name, from.optional == Some(true)).await;
        let mode = mode(from.default_mode);
        return Ok(Some(chosen(&data.map_err(content)?, from.items.as_deref(), mode)));
    }
    if let Some(from) = &volume.secret {
        let name = from.secret_name.as_deref().unwrap_or_default();
        let data = environment::secret(client, pod, name, from.optional == Some(true)).await;
        let mode = mode(from.default_mode);
        return Ok(Some(chosen(&data.map_err(content)?, from.items.as_deref(), mode)));
    }
    if let Some(from) = &volume.downward_api {
        let items = from.items.as_deref().unwrap_or_default();
        return Ok(Some(fields(pod, items, mode(from.default_mode)).map_err(content)?));
    }
    let Some(from) = &volume.projected else {
        return Err(unknown(volume));
    };
    let mode = mode(from.default_mode);
    let mut files = Files::new();
    for source in from.sources.iter().flatten() {
        if let Some(asked) = &source.service_account_token {
            if again {
                return Ok(None);
            }
            files.insert(asked.path.clone(), token(client, pod, volume, asked, mode).await?);
        } else {
            files.append(&mut part(client, pod, volume, source, mode).await?);
        }
    }
    Ok(Some(files))
}

/// The files of one source of a projected volume.
async fn part(
    client: &Client,
    pod: &Pod,
    volume: &Volume,
    source: &VolumeProjection,
    mode: u32,
) -> Result<Files, VolumeError> {
    let content = |source| VolumeError::Content {
        volume: volume.name.clone(),
        source,
    };
    if let Some(from) = &source.config_map {
        let data = environment::config_map(client, pod, &from.name, from.optional == Some(true)).await;
        return Ok(chosen(&data.map_err(content)?, from.items.as_deref(), mode));
    }
    if let Some(from) = &source.secret {
        let data = environment::secret(client, pod, &from.name, from.optional == Some(true)).await;
        return Ok(chosen(&data.map_err(content)?, from.items.as_deref(), mode));
    }
    if let Some(from) = &source.downward_api {
        return fields(pod, from.items.as_deref().unwrap_or_default(), mode).map_err(content);
    }
    Err(unknown(volume))
}

fn mode(asked: Option<i32>) -> u32 {
    asked.and_then(|mode| u32::try_from(mode).ok()).unwrap_or(MODE)
}

/// The files for the keys of an object: all keys, or the items that the volume names, under their paths.
fn chosen(data: &BTreeMap<String, Vec<u8>>, items: Option<&[KeyToPath]>, mode: u32) -> Files {
    let file = |content: &Vec<u8>, mode: u32| File {
        content: content.clone(),
        mode,
    };
    match items.filter(|items| !items.is_empty()) {
        None => data
            .iter()
            .map(|(key, content)| (key.clone(), file(content, mode)))
            .collect(),
        Some(items) => {
            let wanted = items.iter().filter_map(|item| {
                let own = item.mode.and_then(|own| u32::try_from(own).ok());
                Some((item.path.clone(), file(data.get(&item.key)?, own.unwrap_or(mode))))
            });
            wanted.collect()
        }
    }
}

fn fields(pod: &Pod, items: &[DownwardAPIVolumeFile], mode: u32) -> Result<Files, EnvironmentError> {
    let mut files = Files::new();
    for item in items {
        let selector = item.field_ref.as_ref();
        let selector = selector.ok_or_else(|| EnvironmentError::Source(item.path.clone()))?;
        let content = environment::field(pod, selector, None)?.into_bytes();
        files.insert(item.path.clone(), File { content, mode });
    }
    Ok(files)
}

async fn token(
    client: &Client,
    pod: &Pod,
    volume: &Volume,
    asked: &ServiceAccountTokenProjection,
    mode: u32,
) -> Result<File, VolumeError> {
    let spec = pod.spec.clone().unwrap_or_default();
    let account = spec.service_account_name.unwrap_or_else(|| "default".to_owned());
    let request = TokenRequest {
        spec: TokenRequestSpec {
            audiences: asked.audience.clone().into_iter().collect(),
            expiration_seconds: Some(asked.expiration_seconds.unwrap_or(3600).max(LIFE)),
            bound_object_ref: Some(BoundObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Pod".to_owned()),
                name: Some(pod.name_any()),
                uid: pod.uid(),
            }),
        },
        ..TokenRequest::default()
    };
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &environment::namespace(pod));
    let answer = accounts
        .create_token_request(&account, &PostParams::default(), &request)
        .await;
    let answer = answer.map_err(|source| VolumeError::Token {
        volume: volume.name.clone(),
        source: Box::new(source),
    })?;
    let content = answer
        .status
        .map(|status| status.token)
        .unwrap_or_default()
        .into_bytes();
    Ok(File { content, mode })
}

/// Longer than any control plane of the testbed lives, so that no token has to be renewed.
const LIFE: i64 = 24 * 3600;
