//! As whom the API server asks webhooks: it shows a certificate to all of them, and those look at it that care.
//!
//! Only to webhooks for admission. For the conversion of resources it has no such setting.

use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use serde_json::json;

const FOLDER: &str = "caller";

/// The authority that signed the certificate which the API server shows.
pub(super) fn authority(folder: &Path) -> PathBuf {
    folder.join(FOLDER).join("ca.crt")
}

/// The file that the API server is told to read.
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
        // For every webhook.
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

/// An authority, a certificate of it, and that one's key.
fn made() -> Result<(String, String, String), rcgen::Error> {
    let named = |name: &str| {
        let mut names = DistinguishedName::new();
        names.push(DnType::CommonName, name);
        names
    };
    let (ca_key, key) = (KeyPair::generate()?, KeyPair::generate()?);
    let mut ca = CertificateParams::default();
    ca.distinguished_name = named("testbed callers");
    ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let ca_pem = ca.self_signed(&ca_key)?.pem();
    let mut params = CertificateParams::default();
    params.distinguished_name = named("kube-apiserver");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let cert = params.signed_by(&key, &Issuer::new(ca, &ca_key))?;
    Ok((ca_pem, cert.pem(), key.serialize_pem()))
}
