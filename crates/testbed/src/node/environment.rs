//! The environment variables and the command line of a container, from the pod, the image and the objects they refer
//! to.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Container, EnvVarSource, ObjectFieldSelector, Pod, Secret};
use kube::{Api, Client, ResourceExt as _};
use thiserror::Error;

use super::images::Config;
use super::network;

#[derive(Debug, Error)]
pub(super) enum EnvironmentError {
    #[error("couldn't find key {key} in {kind} {name}")]
    Key {
        kind: &'static str,
        name: String,
        key: String,
    },
    #[error("{kind} \"{name}\" not found")]
    Object { kind: &'static str, name: String },
    #[error("cannot read {kind} {name}")]
    Read {
        kind: &'static str,
        name: String,
        source: Box<kube::Error>,
    },
    #[error("the field {0} is not known here")]
    Field(String),
    #[error("the variable {0} has a source that is not known here")]
    Source(String),
}

pub(super) type Variables = BTreeMap<String, String>;

/// The data of a ConfigMap; nothing if it is optional and missing.
pub(super) async fn config_map(
    client: &Client,
    pod: &Pod,
    name: &str,
    optional: bool,
) -> Result<BTreeMap<String, Vec<u8>>, EnvironmentError> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace(pod));
    let read = api.get_opt(name).await;
    let Some(object) = found("configmap", name, optional, read)? else {
        return Ok(BTreeMap::new());
    };
    let text = object
        .data
        .into_iter()
        .flatten()
        .map(|(key, text)| (key, text.into_bytes()));
    let bytes = object
        .binary_data
        .into_iter()
        .flatten()
        .map(|(key, ByteString(bytes))| (key, bytes));
    Ok(text.chain(bytes).collect())
}

pub(super) async fn secret(
    client: &Client,
    pod: &Pod,
    name: &str,
    optional: bool,
) -> Result<BTreeMap<String, Vec<u8>>, EnvironmentError> {
    let api: Api<Secret> = Api::namespaced(client.clone(), &namespace(pod));
    let object = found("secret", name, optional, api.get_opt(name).await)?;
    let data = object.and_then(|object| object.data).unwrap_or_default();
    Ok(data.into_iter().map(|(key, ByteString(bytes))| (key, bytes)).collect())
}

fn found<T>(
    kind: &'static str,
    name: &str,
    optional: bool,
    read: Result<Option<T>, kube::Error>,
) -> Result<Option<T>, EnvironmentError> {
    let name = name.to_owned();
    match read {
        Ok(None) if !optional => Err(EnvironmentError::Object { kind, name }),
        Ok(object) => Ok(object),
        Err(source) => Err(EnvironmentError::Read {
            kind,
            name,
            source: Box::new(source),
        }),
    }
}

pub(super) fn namespace(pod: &Pod) -> String {
    pod.namespace().unwrap_or_default()
}

/// All environment variables: the image's, those with the address of the API server, and the pod's.
pub(super) async fn variables(
    client: &Client,
    pod: &Pod,
    container: &Container,
    address: Ipv4Addr,
    image: &Config,
) -> Result<Variables, EnvironmentError> {
    let mut variables = image.environment();
    let port = network::SERVER_PORT.to_string();
    for (name, value) in [
        ("HOSTNAME", pod.name_any()),
        ("KUBERNETES_SERVICE_HOST", network::SERVER.to_string()),
        ("KUBERNETES_SERVICE_PORT", port.clone()),
        ("KUBERNETES_SERVICE_PORT_HTTPS", port.clone()),
        ("KUBERNETES_PORT", format!("tcp://{}:{port}", network::SERVER)),
    ] {
        variables.insert(name.to_owned(), value);
    }
    for source in container.env_from.iter().flatten() {
        let mut data = BTreeMap::new();
        if let Some(from) = &source.config_map_ref {
            data.append(&mut config_map(client, pod, &from.name, from.optional == Some(true)).await?);
        }
        if let Some(from) = &source.secret_ref {
            data.append(&mut secret(client, pod, &from.name, from.optional == Some(true)).await?);
        }
        let prefix = source.prefix.as_deref().unwrap_or_default();
        variables.extend(
            data.into_iter()
                .map(|(key, value)| (format!("{prefix}{key}"), text(&value))),
        );
    }
    for variable in container.env.iter().flatten() {
        let value = match (&variable.value, &variable.value_from) {
            (_, Some(source)) => referred(client, pod, address, &variable.name, source).await?,
            (Some(value), None) => Some(expand(value, &variables)),
            (None, None) => Some(String::new()),
        };
        variables.extend(value.map(|value| (variable.name.clone(), value)));
    }
    Ok(variables)
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

async fn referred(
    client: &Client,
    pod: &Pod,
    address: Ipv4Addr,
    variable: &str,
    source: &EnvVarSource,
) -> Result<Option<String>, EnvironmentError> {
    let (kind, name, key, optional, mut data) = if let Some(from) = &source.config_map_key_ref {
        let optional = from.optional == Some(true);
        let data = config_map(client, pod, &from.name, optional).await?;
        ("ConfigMap", &from.name, &from.key, optional, data)
    } else if let Some(from) = &source.secret_key_ref {
        let optional = from.optional == Some(true);
        let data = secret(client, pod, &from.name, optional).await?;
        ("Secret", &from.name, &from.key, optional, data)
    } else if let Some(from) = &source.field_ref {
        return field(pod, from, Some(address)).map(Some);
    } else {
        return Err(EnvironmentError::Source(variable.to_owned()));
    };
    match data.remove(key) {
        Some(value) => Ok(Some(text(&value))),
        None if optional => Ok(None),
        None => Err(EnvironmentError::Key {
            kind,
            name: name.clone(),
            key: key.clone(),
        }),
    }
}

/// A field of the pod, as the downward API offers it.
pub(super) fn field(
    pod: &Pod,
    selector: &ObjectFieldSelector,
    address: Option<Ipv4Addr>,
) -> Result<String, EnvironmentError> {
    let path = selector.field_path.as_str();
    let spec = pod.spec.clone().unwrap_or_default();
    let lines = |map: &BTreeMap<String, String>| {
        let lines: Vec<String> = map.iter().map(|(key, value)| format!("{key}={value:?}")).collect();
        lines.join("\n")
    };
    if let Some((map, rest)) = path.split_once("['") {
        let key = rest.trim_end_matches("']");
        let found = match map {
            "metadata.labels" => pod.labels().get(key),
            "metadata.annotations" => pod.annotations().get(key),
            _ => return Err(EnvironmentError::Field(path.to_owned())),
        };
        return Ok(found.cloned().unwrap_or_default());
    }
    Ok(match path {
        "metadata.name" => pod.name_any(),
        "metadata.namespace" => namespace(pod),
        "metadata.uid" => pod.uid().unwrap_or_default(),
        "metadata.labels" => lines(pod.labels()),
        "metadata.annotations" => lines(pod.annotations()),
        "spec.nodeName" => spec.node_name.unwrap_or_default(),
        "spec.serviceAccountName" => spec.service_account_name.unwrap_or_default(),
        "status.podIP" | "status.podIPs" => address.map(|address| address.to_string()).unwrap_or_default(),
        "status.hostIP" | "status.hostIPs" => network::NODE.to_string(),
        _ => return Err(EnvironmentError::Field(path.to_owned())),
    })
}

/// The command line: the pod's, or the image's where the pod has none.
pub(super) fn words(container: &Container, image: &Config, variables: &Variables) -> Vec<String> {
    let own = |words: &Option<Vec<String>>| {
        let words = words.as_ref().filter(|words| !words.is_empty())?;
        Some(words.iter().map(|word| expand(word, variables)).collect::<Vec<_>>())
    };
    match (own(&container.command), own(&container.args)) {
        (Some(command), arguments) => [command, arguments.unwrap_or_default()].concat(),
        (None, Some(arguments)) => [image.entrypoint.clone(), arguments].concat(),
        (None, None) => [image.entrypoint.clone(), image.cmd.clone()].concat(),
    }
}

/// Expands `$(NAME)` if the variable exists, and `$$` to a dollar sign.
fn expand(text: &str, variables: &Variables) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        let named = after.strip_prefix('(').and_then(|inner| inner.split_once(')'));
        if let Some(after) = after.strip_prefix('$') {
            expanded.push('$');
            rest = after;
        } else if let Some((value, after)) = named.and_then(|(name, after)| Some((variables.get(name)?, after))) {
            expanded.push_str(value);
            rest = after;
        } else {
            expanded.push('$');
            rest = after;
        }
    }
    expanded + rest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn variables_stand_in_for_their_names() {
        let variables = Variables::from([("A".to_owned(), "1".to_owned())]);
        let expanded = |text: &str| expand(text, &variables);
        assert_eq!(expanded("x$(A)y$(A)"), "x1y1");
        assert_eq!(expanded("$$(A) $(B) $A $("), "$(A) $(B) $A $(");
    }

    #[test]
    fn a_command_replaces_what_the_image_runs_and_arguments_only_its_arguments() {
        let image = Config {
            entrypoint: vec!["run".to_owned()],
            cmd: vec!["all".to_owned()],
            ..Config::default()
        };
        let said = |container: serde_json::Value| {
            let container: Container = serde_json::from_value(container).unwrap();
            words(&container, &image, &Variables::new()).join(" ")
        };
        assert_eq!(said(json!({ "name": "c" })), "run all");
        assert_eq!(said(json!({ "name": "c", "args": ["one"] })), "run one");
        assert_eq!(said(json!({ "name": "c", "command": ["sh"] })), "sh");
        assert_eq!(said(json!({ "name": "c", "command": ["sh"], "args": ["-c"] })), "sh -c");
    }
}
