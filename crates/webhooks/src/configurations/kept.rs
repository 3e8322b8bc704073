//! The operator's own certificates in a Secret, from which all replicas, including later ones, serve.
//!
//! The first replica makes the certificates, and the others use them. A Secret without the key of its authority belongs
//! to another program: it is used, and never written.

use addon_core::failure::{Class, Failure};
use certificates::authority::{Stored, renewed};
use certificates::material::{Pem, Texts};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::core::ObjectMeta;
use kube_access::Cluster;

use super::{MANAGED_BY, ROUNDS};

const CERT: &str = "tls.crt";
const KEY: &str = "tls.key";
const CA: &str = "ca.crt";
const CA_KEY: &str = "ca.key";

/// The certificates in the Secret, after any necessary renewal.
pub async fn webhook_certificates(
    cluster: &Cluster,
    secret: &str,
    names: &[String],
    now: Timestamp,
) -> Result<Stored, Failure> {
    let api = cluster.secrets();
    let params = PostParams::default();
    let attempt = |verb| cluster.attempt(verb, "secrets", secret);
    for _ in 0..ROUNDS {
        let found = cluster.ask(attempt("get"), api.get_opt(secret)).await?;
        let stored = found.as_ref().map(|found| stored(secret, found)).transpose()?.flatten();
        let Some(new) = renewed(stored.as_ref(), names, now)? else {
            return stored.ok_or_else(|| Failure::defect("certificates that are absent were taken for good"));
        };
        let written = if let Some(mut found) = found {
            found.data.get_or_insert_default().extend(data(&new));
            cluster
                .ask(attempt("update"), api.replace(secret, &params, &found))
                .await
        } else {
            cluster
                .ask(attempt("create"), api.create(&params, &object(secret, &new)))
                .await
        };
        match written {
            Ok(_) => return Ok(new),
            Err(error) if error.is_conflict() || error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
    }
    let report = format!("cannot keep certificates: secrets '{secret}' is changed again and again");
    Err(Failure::new(Class::Unavailable, report))
}

/// The certificates as texts whose errors name the Secret.
pub fn texts_of(cluster: &Cluster, secret: &str, stored: &Stored) -> Texts {
    let pem = |key: &str, text: &str| Pem {
        place: format!("'{key}' of secrets '{secret}' in namespace '{}'", cluster.namespace()),
        text: text.into(),
    };
    Texts {
        cert: pem(CERT, &stored.cert),
        key: pem(KEY, &stored.key),
        ca: pem(CA, &stored.ca),
    }
}

/// The certificates in a Secret; none if it is empty, as the chart creates it.
fn stored(name: &str, secret: &Secret) -> Result<Option<Stored>, Failure> {
    let text = |key| {
        let bytes = secret.data.as_ref()?.get(key)?;
        let text = String::from_utf8_lossy(&bytes.0).into_owned();
        (!text.is_empty()).then_some(text)
    };
    let missing = |key| {
        let report = format!("cannot use the certificates in secrets '{name}': it has no '{key}'");
        Failure::new(Class::Invalid, report)
            .hint("delete the Secret to have new certificates made, or complete it with your own")
    };
    match (text(CA), text(CERT), text(KEY), text(CA_KEY)) {
        (None, None, None, None) => Ok(None),
        // The Secret has the authority's key, so missing parts can be made again.
        (ca, cert, key, Some(ca_key)) => Ok(Some(Stored {
            ca: ca.unwrap_or_default(),
            ca_key: Some(ca_key),
            cert: cert.unwrap_or_default(),
            key: key.unwrap_or_default(),
        })),
        (ca, cert, key, None) => Ok(Some(Stored {
            ca: ca.ok_or_else(|| missing(CA))?,
            ca_key: None,
            cert: cert.ok_or_else(|| missing(CERT))?,
            key: key.ok_or_else(|| missing(KEY))?,
        })),
    }
}

fn data(stored: &Stored) -> impl Iterator<Item = (String, ByteString)> {
    let Stored { ca, ca_key, cert, key } = stored;
    let texts = [
        (CA, Some(ca)),
        (CA_KEY, ca_key.as_ref()),
        (CERT, Some(cert)),
        (KEY, Some(key)),
    ];
    let texts = texts.into_iter().filter_map(|(key, text)| Some((key, text?)));
    texts.map(|(key, text)| (key.to_owned(), ByteString(text.clone().into_bytes())))
}

fn object(name: &str, stored: &Stored) -> Secret {
    let (key, value) = MANAGED_BY;
    Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some([(key.to_owned(), value.to_owned())].into()),
            ..ObjectMeta::default()
        },
        data: Some(data(stored).collect()),
        ..Secret::default()
    }
}
