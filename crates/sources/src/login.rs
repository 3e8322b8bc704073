//! The login for the registry of one source: a Secret that the source names, or the logins of the operator's pod.
//!
//! Must never show any part of the login.

use addon_core::failure::{Class, Failure};
use channel_core::reference::Repository;
use kube_access::Cluster;
use registry::credentials::{Credentials, ReadCredentials};
use report::Chain;
use serde_json::json;

use crate::copies;

const CONFIG: &str = ".dockerconfigjson";
const USER: &str = "username";
const PASSWORD: &str = "password";

/// A reader of the Secret with the login for this repository.
pub(super) fn of_secret(cluster: Cluster, name: String, repository: &Repository) -> ReadCredentials {
    let host = repository.registry().to_owned();
    Box::new(move || {
        let (cluster, name, host) = (cluster.clone(), name.clone(), host.clone());
        Box::pin(async move { read(&cluster, &name, &host).await })
    })
}

async fn read(cluster: &Cluster, name: &str, host: &str) -> Result<Credentials, Failure> {
    let invalid = |problem: String| Failure::new(Class::Invalid, format!("cannot use the Secret '{name}': {problem}"));
    let data = copies::login_secret(cluster, name).await?;
    let data = data.ok_or_else(|| invalid("it does not exist in the namespace of the operator".to_owned()))?;
    let config = match (data.get(CONFIG), data.get(USER), data.get(PASSWORD)) {
        (Some(config), _, _) => config.clone(),
        (None, Some(user), Some(password)) => {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
            let login = json!({ "username": text(user), "password": text(password) });
            json!({ "auths": { host: login } }).to_string().into_bytes()
        }
        _ => return Err(invalid(format!("it has neither {CONFIG} nor {USER} and {PASSWORD}"))),
    };
    Credentials::config(&config).map_err(|error| invalid(Chain(&error).to_string()))
}
