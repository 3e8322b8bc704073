//! The certificates of the webhooks expire. The operator replaces them in time, and meanwhile every review gets its
//! answer.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use serde_json::{Value, json};
use testbed::wait::wait_until;

use super::stage::{PATIENCE, Stage};
use super::story::SAYS_NO;

/// How long before its end the operator replaces its authority, and likewise the server certificate.
const CA_SPARE: Duration = Duration::from_hours(120 * 24);
const CERT_SPARE: Duration = Duration::from_hours(30 * 24);
/// The time until the certificates have to be replaced. It is enough for serving them before, and less than the minute
/// after which the operator checks again.
const DUE_IN: Duration = Duration::from_secs(50);

const SECRET: &str = "addon-operator-webhook-certs";
/// The two kinds of webhooks, and the port of each in a pod.
const SIDES: [(&str, u16); 2] = [("validating", 9680), ("conversion", 9681)];

type Certificate = CertificateDer<'static>;

/// The contents of the Secret: the current authority, the earlier ones, and the served certificate.
pub(crate) struct Kept {
    authorities: Vec<Certificate>,
    served: Certificate,
}

/// Reviews go on without a failure while certificates are replaced: once because of their age, and once because a
/// person deleted the Secret.
pub(crate) fn certificates_rotate_without_a_failed_review(stage: &Stage<'_>) -> Kept {
    let (asked, enough) = (AtomicU32::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let _end = AtItsEnd(&enough);
        scope.spawn(|| {
            while !enough.load(Ordering::Relaxed) {
                review(stage);
                asked.fetch_add(1, Ordering::Relaxed);
            }
        });
        let aged = grow_old(stage);
        let renewed = are_replaced(stage, &aged);
        stage.kubectl(&format!("delete secret {SECRET}"));
        touch(stage);
        let made_anew = once_others_are_served(stage, &renewed);
        // The listeners, the CA bundles and the API server's cache change one after another, so more reviews follow.
        let more = asked.load(Ordering::Relaxed) + 20;
        let look = || Ok::<_, String>((asked.load(Ordering::Relaxed) >= more).then_some(()));
        wait_until(PATIENCE, "twenty more reviews", look).unwrap();
        made_anew
    })
}

/// Sets the flag when the scope ends, also by a panic.
struct AtItsEnd<'a>(&'a AtomicBool);

impl Drop for AtItsEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Makes one review of each kind: a mutating, a validating and a conversion webhook.
fn review(stage: &Stage<'_>) {
    let said = stage.refused("create configmap bad --dry-run=server");
    assert!(said.contains(SAYS_NO), "{said}");
    let converted = stage.kubectl("get tickets.v1.trial.example.com one --output=jsonpath={.apiVersion}");
    assert_eq!(converted, "trial.example.com/v1");
}

/// Replaces the kept certificates by ones that soon have to be replaced, and waits until the operator serves them.
fn grow_old(stage: &Stage<'_>) -> Kept {
    let texts = aged(SIDES.map(|(side, _)| host(stage, side)).to_vec());
    let patch = format!("--patch={}", json!({"stringData": texts}));
    let patch = ["patch", "secret", SECRET, "--type=merge", &patch];
    stage.namespace.kubectl(patch).unwrap();
    touch(stage);
    let aged = kept(stage).unwrap();
    wait_until_served(stage, &stage.leader(), &aged);
    aged
}

/// Waits until the operator has replaced the certificates by itself.
fn are_replaced(stage: &Stage<'_>, aged: &Kept) -> Kept {
    let renewed = once_others_are_served(stage, aged);
    let ([signs, before], [gone]) = (&renewed.authorities[..], &aged.authorities[..]) else {
        unreachable!("an authority of each time")
    };
    assert_ne!(signs, gone);
    assert_eq!(before, gone, "whoever has not heard of the new one can still verify");
    for bundle in bundles(stage) {
        for authority in &renewed.authorities {
            assert!(bundle.contains(authority), "of both, in every bundle");
        }
    }
    renewed
}

fn once_others_are_served(stage: &Stage<'_>, before: &Kept) -> Kept {
    let look = || Ok::<_, String>(kept(stage).filter(|now| now.served != before.served));
    let now = wait_until(PATIENCE, "other certificates", look).unwrap();
    wait_until_served(stage, &stage.leader(), &now);
    now
}

/// Waits until a pod serves the kept certificates to clients that trust only the current authority.
pub(crate) fn wait_until_served(stage: &Stage<'_>, pod: &str, kept: &Kept) {
    let about = stage.json(&format!("get pod {pod}"));
    let address: IpAddr = about["status"]["podIP"].as_str().unwrap().parse().unwrap();
    for (side, port) in SIDES {
        let look = || {
            let shown = shown(stage, (address, port).into(), &host(stage, side), &kept.authorities[0])?;
            Ok::<_, io::Error>((shown == kept.served).then_some(()))
        };
        wait_until(PATIENCE, &format!("its certificate for {side}"), look).unwrap();
    }
}

/// The certificate of the listener at this address, which has to be valid for the host and the authority.
fn shown(stage: &Stage<'_>, address: SocketAddr, host: &str, trusted: &Certificate) -> io::Result<Certificate> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let config = builder.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).unwrap();
    let mut connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = stage.namespace.plane().connect(address)?;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream)?;
    }
    let shown = connection.peer_certificates().unwrap();
    Ok(shown[0].clone().into_owned())
}

fn host(stage: &Stage<'_>, side: &str) -> String {
    format!("ao-addon-operator-{side}-svc.{}.svc", stage.namespace.name())
}

/// Changes objects that the operator watches, so that it checks them at once.
fn touch(stage: &Stage<'_>) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    stage.kubectl(&format!(
        "annotate validatingwebhookconfigurations --all --overwrite trial.example.com/touched=at-{now}"
    ));
}

fn kept(stage: &Stage<'_>) -> Option<Kept> {
    let get = ["get", "secret", SECRET, "--ignore-not-found", "--output=json"];
    let secret: Value = serde_json::from_str(&stage.namespace.kubectl(get).unwrap()).ok()?;
    let all = |key: &str| certificates(&secret["data"][key]);
    Some(Kept {
        authorities: all("ca.crt"),
        served: all("tls.crt").remove(0),
    })
}

/// Parses certificates from the PEM in an object's field.
fn certificates(bytes: &Value) -> Vec<Certificate> {
    let pem = STANDARD.decode(bytes.as_str().unwrap()).unwrap();
    CertificateDer::pem_slice_iter(&pem).map(Result::unwrap).collect()
}

/// The CA bundles of all webhooks: the authorities that the API server trusts.
fn bundles(stage: &Stage<'_>) -> Vec<Vec<Certificate>> {
    let configurations = stage.json("get validatingwebhookconfigurations,mutatingwebhookconfigurations");
    let configurations = configurations["items"].as_array().unwrap().iter();
    let webhooks = configurations.flat_map(|found| found["webhooks"].as_array().unwrap());
    let reviews = webhooks.map(|webhook| certificates(&webhook["clientConfig"]["caBundle"]));
    let tickets = stage.json("get crd tickets.trial.example.com");
    let conversion = tickets.pointer("/spec/conversion/webhook/clientConfig/caBundle");
    let all: Vec<_> = reviews.chain(conversion.map(certificates)).collect();
    assert_eq!(all.len(), 4, "hooks of both kinds, edits and conversions");
    all
}

/// Certificates like the operator's own, but with another end of validity.
fn aged(hosts: Vec<String>) -> Value {
    let due = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + DUE_IN;
    let until = |spare: Duration| date_time_ymd(1970, 1, 1) + due + spare;
    let (ca_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, "addon-operator webhooks, of old");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.not_after = until(CA_SPARE);
    let ca = params.self_signed(&ca_key).unwrap();
    let issuer = Issuer::new(params, &ca_key);
    let mut params = CertificateParams::new(hosts).unwrap();
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    params.not_after = until(CERT_SPARE);
    let cert = params.signed_by(&key, &issuer).unwrap();
    json!({
        "ca.crt": ca.pem(),
        "ca.key": ca_key.serialize_pem(),
        "tls.crt": cert.pem(),
        "tls.key": key.serialize_pem(),
    })
}
