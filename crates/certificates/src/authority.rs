//! A certificate authority of the operator's own, for a cluster in which no other program provides certificates.
//!
//! This module decides when a certificate must be replaced; other parts store it. The CA bundle has a new authority
//! together with the old ones that are still valid, so that clients with the bundle can verify certificates of both.

use std::fmt;

use addon_core::failure::{Class, Failure};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use thiserror::Error;

use super::material::{Validity, armoured, dns_names};

const DAY: SignedDuration = SignedDuration::from_hours(24);
/// The validity of a listener's certificate.
const LEAF_DAYS: i32 = 90;
/// A listener's certificate is replaced this long before its end.
const LEAF_SPARE_DAYS: i32 = 30;
const CA_DAYS: i32 = 730;
/// An authority is replaced this long before its end: longer than the validity of a listener's certificate, which must
/// not outlive its authority.
const CA_SPARE_DAYS: i32 = 120;

/// The certificates and keys in the Secret, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Stored {
    /// The current authority, followed by older ones that are still valid.
    pub ca: String,
    /// The key of the current authority. A Secret without it belongs to another program, which renews it.
    pub ca_key: Option<String>,
    /// The certificate of the listeners.
    pub cert: String,
    /// The key of the listeners' certificate.
    pub key: String,
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stored")
            .field("ca", &self.ca)
            .field("cert", &self.cert)
            .finish_non_exhaustive()
    }
}

/// A certificate could not be created.
#[derive(Debug, Error)]
#[error("cannot make a certificate for the webhooks")]
pub struct CannotMake(#[from] rcgen::Error);

impl From<CannotMake> for Failure {
    fn from(error: CannotMake) -> Self {
        Self::of(Class::Defect, &error)
    }
}

/// The certificates that have to replace the stored ones; none if the stored ones are good. `names` are the host names
/// of the listeners.
pub fn renewed(stored: Option<&Stored>, names: &[String], now: Timestamp) -> Result<Option<Stored>, CannotMake> {
    let Some(stored) = stored else {
        return made(&[], names, now).map(Some);
    };
    let Some(ca_key) = &stored.ca_key else {
        return Ok(None);
    };
    let authorities = valid(&stored.ca, now);
    let signs = authorities.first().filter(|der| lasts(der, now, CA_SPARE_DAYS));
    let issuer = signs.and_then(|der| Some((der, issuer(der, ca_key)?)));
    let Some((_, issuer)) = issuer else {
        return made(&authorities, names, now).map(Some);
    };
    if is_good(stored, &authorities, names, now) {
        return Ok(None);
    }
    let (cert, key) = leaf(&issuer, names, now)?;
    let ca = authorities.iter().map(armoured).collect();
    let ca_key = stored.ca_key.clone();
    Ok(Some(Stored { ca, ca_key, cert, key }))
}

/// A new authority, put before the existing ones, and a certificate signed by it.
fn made(others: &[CertificateDer<'static>], names: &[String], now: Timestamp) -> Result<Stored, CannotMake> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    // The time makes the name unique: some tools identify an authority only by its name.
    params.distinguished_name = named(&format!("addon-operator webhooks {}", now.as_second()));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    limit(&mut params, now, CA_DAYS);
    let ca = params.self_signed(&key)?;
    let issuer = Issuer::new(params, &key);
    let (cert, leaf_key) = leaf(&issuer, names, now)?;
    let older = others.iter().map(armoured);
    Ok(Stored {
        ca: std::iter::once(ca.pem()).chain(older).collect(),
        ca_key: Some(key.serialize_pem()),
        cert,
        key: leaf_key,
    })
}

fn leaf<K: rcgen::SigningKey>(
    issuer: &Issuer<'_, K>,
    names: &[String],
    now: Timestamp,
) -> Result<(String, String), CannotMake> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = named("addon-operator webhooks");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    limit(&mut params, now, LEAF_DAYS);
    let cert = params.signed_by(&key, issuer)?;
    Ok((cert.pem(), key.serialize_pem()))
}

fn named(name: &str) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    names.push(DnType::CommonName, name);
    names
}

/// Sets the validity. It begins a day ago, because clocks differ.
fn limit(params: &mut CertificateParams, now: Timestamp, days: i32) {
    let day = |time: Timestamp| {
        let date = time.to_zoned(TimeZone::UTC).date();
        date_time_ymd(
            i32::from(date.year()),
            date.month().unsigned_abs(),
            date.day().unsigned_abs(),
        )
    };
    params.not_before = day(now.saturating_sub(DAY).unwrap_or(now));
    params.not_after = day(now.saturating_add(DAY * (days + 1)).unwrap_or(now));
}

/// The issuer, if the key can be parsed and belongs to the authority.
fn issuer(der: &CertificateDer<'static>, key: &str) -> Option<Issuer<'static, KeyPair>> {
    let key = KeyPair::from_pem(key).ok()?;
    let own = belongs(&key, der);
    own.then(|| Issuer::from_ca_cert_der(der, key).ok()).flatten()
}

/// Whether the certificate is signed by one of these authorities, is for these names, lasts long enough, and has a
/// matching key.
fn is_good(stored: &Stored, authorities: &[CertificateDer<'static>], names: &[String], now: Timestamp) -> bool {
    let Ok(der) = CertificateDer::from_pem_slice(stored.cert.as_bytes()) else {
        return false;
    };
    let has = dns_names(&der);
    names.iter().all(|name| has.contains(name))
        && lasts(&der, now, LEAF_SPARE_DAYS)
        && KeyPair::from_pem(&stored.key).is_ok_and(|key| belongs(&key, &der))
        && authorities.iter().any(|authority| signed(authority, &der))
}

fn belongs(key: &KeyPair, der: &CertificateDer<'_>) -> bool {
    let certificate = x509_parser::parse_x509_certificate(der);
    certificate.is_ok_and(|(_, found)| found.public_key().subject_public_key.data.as_ref() == key.public_key_raw())
}

fn signed(authority: &CertificateDer<'_>, der: &CertificateDer<'_>) -> bool {
    let (Ok((_, authority)), Ok((_, certificate))) = (
        x509_parser::parse_x509_certificate(authority),
        x509_parser::parse_x509_certificate(der),
    ) else {
        return false;
    };
    certificate.verify_signature(Some(authority.public_key())).is_ok()
}

fn lasts(der: &CertificateDer<'_>, now: Timestamp, days: i32) -> bool {
    let then = now.saturating_add(DAY * days).unwrap_or(now);
    Validity::of(der).is_ok_and(|validity| validity.from <= now && then < validity.until)
}

/// The authorities that have not expired; unreadable ones are left out.
fn valid(pem: &str, now: Timestamp) -> Vec<CertificateDer<'static>> {
    let found = CertificateDer::pem_slice_iter(pem.as_bytes()).filter_map(Result::ok);
    let valid = found.filter(|der| lasts(der, now, 0));
    valid.collect()
}
