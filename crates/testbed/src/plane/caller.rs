//! The client certificate that the API server shows to webhooks. All admission webhooks get the same certificate, and a
//! webhook may check it.
//!
//! Only admission webhooks get it. For conversion webhooks the API server has no such setting.

use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose};
use serde_json::json;

use crate::certificate::{Authority, named};

const FOLDER: &str = "caller";

/// The file with the authority that signed the client certificate.
pub(super) fn authority(folder: &Path) -> PathBuf {
    folder.join(FOLDER).join("ca.crt")
}

/// The admission configuration that the API server is started with.
pub(super) fn configuration(folder: &Path) -> PathBuf {
    folder.join(FOLDER).join("admission.json")
}

pub(super) fn write(folder: &Path) -> io::Result<()> {
    fs::create_dir(folder.join(FOLDER))?;
    let file = |name: &str| folder.join(FOLDER).join(name);
    let (ca, cert, key) = made().map_err(io::Error::other)?;
    fs::write(authority(folder), ca)?;
    fs::write(file("tls.crt"), cert)?;
    fs::write(file("tls.key"), key)?;
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        // The name `*` stands for every webhook.
        "users": [{"name": "*", "user": {"client-certificate": file("tls.crt"), "client-key": file("tls.key")}}],
    });
    fs::write(file("kubeconfig.json"), kubeconfig.to_string())?;
    let plugin = |name: &str| {
        json!({
            "name": name,
            "configuration": {
                "apiVersion": "apiserver.config.k8s.io/v1",
                "kind": "WebhookAdmissionConfiguration",
                "kubeConfigFile": file("kubeconfig.json"),
            },
        })
    };
    let configuration_of_all = json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": [plugin("ValidatingAdmissionWebhook"), plugin("MutatingAdmissionWebhook")],
    });
    fs::write(configuration(folder), configuration_of_all.to_string())
}

/// An authority, a certificate that it signed, and the certificate's key.
fn made() -> Result<(String, String, String), rcgen::Error> {
    let (authority, key) = (Authority::new("testbed callers")?, KeyPair::generate()?);
    let mut params = CertificateParams::default();
    params.distinguished_name = named("kube-apiserver");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let cert = authority.sign(&params, &key)?;
    Ok((authority.pem().to_owned(), cert.pem(), key.serialize_pem()))
}
