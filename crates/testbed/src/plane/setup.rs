//! Writes the files that a control plane needs before its programs start.
//!
//! The tokens are constants. They are worthless outside of one control plane on loopback, and must never be used
//! elsewhere.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use fs_err as fs;
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose, SanType};
use serde_json::json;

use super::caller;
use super::{DISCOVERY, PROGRAMS, User};
use crate::certificate::{Authority, named};
use crate::find::Tools;
use crate::port::KeptPort;

pub(super) const TOKENS: &str = "tokens.csv";
pub(super) const POLICY: &str = "audit-policy.json";
pub(super) const KWOK: &str = "kwok.yaml";
pub(super) const CERTIFICATES: &str = "certificates";

/// The users that are parts of the control plane, in addition to the public ones of [`User`].
#[derive(Clone, Copy)]
pub(super) enum Inmate {
    Controllers,
    Scheduler,
    Kwok,
    Node,
}

impl Inmate {
    pub(super) fn kubeconfig(self, folder: &Path) -> PathBuf {
        folder.join(match self {
            Self::Controllers => "kube-controller-manager.kubeconfig",
            Self::Scheduler => "kube-scheduler.kubeconfig",
            Self::Kwok => "kwok.kubeconfig",
            Self::Node => "node.kubeconfig",
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Controllers => "system:kube-controller-manager",
            Self::Scheduler => "system:kube-scheduler",
            Self::Kwok => "testbed:kwok",
            Self::Node => "testbed:node",
        }
    }
}

const INMATES: [Inmate; 4] = [Inmate::Controllers, Inmate::Scheduler, Inmate::Kwok, Inmate::Node];

/// The ports on which the programs of a control plane listen.
#[derive(Debug)]
pub(super) struct Ports {
    pub(super) store: KeptPort,
    pub(super) store_peer: KeptPort,
    pub(super) server: KeptPort,
    pub(super) registry: KeptPort,
}

impl Ports {
    pub(super) fn keep() -> io::Result<Self> {
        Ok(Self {
            store: KeptPort::keep()?,
            store_peer: KeptPort::keep()?,
            server: KeptPort::keep()?,
            registry: KeptPort::keep()?,
        })
    }
}

/// `advertised` is the address at which pods reach the API server.
pub(super) fn write(folder: &Path, tools: &Tools, server: &str, advertised: Ipv4Addr) -> io::Result<()> {
    fs::create_dir(folder.join(PROGRAMS))?;
    fs::create_dir(folder.join(DISCOVERY))?;
    link(folder, tools)?;
    fs::write(folder.join(TOKENS), tokens())?;
    fs::write(folder.join(POLICY), policy().to_string())?;
    caller::write(folder)?;
    write_certificate(folder, advertised)?;
    fs::write(folder.join(KWOK), include_str!("../../parts/kwok/stages.yaml"))?;
    for user in [User::Admin, User::Operator] {
        fs::write(folder.join(user.file()), kubeconfig(folder, server, user.name(), None))?;
    }
    for inmate in INMATES {
        fs::write(
            inmate.kubeconfig(folder),
            kubeconfig(folder, server, inmate.name(), None),
        )?;
    }
    Ok(())
}

/// Links the programs by the names of their parts. A program that is linked already stays.
pub(super) fn link(folder: &Path, tools: &Tools) -> io::Result<()> {
    for (part, found) in tools {
        match symlink(&found.file, folder.join(PROGRAMS).join(part.name())) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The first address of the range for Services: that of the API server.
const SERVICE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

/// Writes the API server's certificate and key, and the public key that checks tokens of service accounts. The tokens
/// are signed with the API server's key, so that no second key has to be made.
fn write_certificate(folder: &Path, advertised: Ipv4Addr) -> io::Result<()> {
    let (authority, key) = (
        Authority::new("testbed").map_err(io::Error::other)?,
        KeyPair::generate().map_err(io::Error::other)?,
    );
    let names = [
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
    ];
    let mut params = CertificateParams::new(names.map(str::to_owned)).map_err(io::Error::other)?;
    let addresses = [Ipv4Addr::LOCALHOST, SERVICE, advertised];
    params
        .subject_alt_names
        .extend(addresses.map(|address| SanType::IpAddress(IpAddr::V4(address))));
    params.distinguished_name = named("kube-apiserver");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let certificate = authority.sign(&params, &key).map_err(io::Error::other)?;
    let place = folder.join(CERTIFICATES);
    fs::create_dir(&place)?;
    fs::write(place.join("apiserver.crt"), certificate.pem() + authority.pem())?;
    fs::write(place.join("apiserver.key"), key.serialize_pem())?;
    fs::write(place.join("apiserver.pub"), key.public_key_pem())
}

/// One line per user: token, name, id, groups.
fn tokens() -> String {
    let masters = [
        User::Admin.name(),
        Inmate::Controllers.name(),
        Inmate::Kwok.name(),
        Inmate::Node.name(),
    ];
    let others = [User::Operator.name(), Inmate::Scheduler.name()];
    let line = |name: &str, group: &str| format!("{0},{name},{name}{group}\n", token(name));
    let masters = masters.map(|name| line(name, ",system:masters"));
    masters.into_iter().chain(others.map(|name| line(name, ""))).collect()
}

pub(super) fn token(name: &str) -> String {
    name.replace(':', "-") + "-token"
}

/// The audit policy: each request is logged once, after its answer.
fn policy() -> serde_json::Value {
    json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{ "level": "Metadata" }],
    })
}

/// The file with the API server's certificate and the authority that signed it.
pub(super) fn authority(folder: &Path) -> PathBuf {
    folder.join(CERTIFICATES).join("apiserver.crt")
}

/// The text of a kubeconfig. It is written as JSON, which is valid YAML and needs no care with quotes.
pub(crate) fn kubeconfig(folder: &Path, server: &str, name: &str, namespace: Option<&str>) -> String {
    let authority = authority(folder);
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "testbed", "cluster": { "server": server, "certificate-authority": authority } }],
        "users": [{ "name": name, "user": { "token": token(name) } }],
        "contexts": [{
            "name": "testbed",
            "context": { "cluster": "testbed", "user": name, "namespace": namespace.unwrap_or("default") },
        }],
        "current-context": "testbed",
    });
    format!("{config:#}\n")
}
