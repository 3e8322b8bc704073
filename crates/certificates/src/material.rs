//! A certificate with its key and its authorities, parsed and checked.

use std::fmt;
use std::sync::Arc;

use addon_core::failure::{Class, Failure};
use addon_core::review::registration::CaBundle;
use jiff::Timestamp;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, RootCertStore};
use thiserror::Error;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// A PEM text, and the place that errors name.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem {
    /// A file, or a key of a Secret.
    pub place: String,
    /// The PEM text.
    pub text: Vec<u8>,
}

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pem")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

/// The three texts of a listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Texts {
    /// The certificate and the intermediate ones.
    pub cert: Pem,
    /// The private key of the certificate.
    pub key: Pem,
    /// The authorities that may have signed the certificate.
    pub ca: Pem,
}

/// Why a text cannot be used.
#[derive(Debug, Error)]
#[error("cannot use {place}")]
pub struct BadCertificate {
    place: String,
    #[source]
    problem: Problem,
}

/// The mistake in a text.
#[derive(Debug, Error)]
pub enum Problem {
    #[error("it holds no certificate in PEM form")]
    NoCertificate,
    #[error("it holds no private key in PEM form")]
    NoKey,
    #[error("it is not PEM text: {0}")]
    Pem(&'static str),
    #[error("its certificate {number} cannot be read: {why}")]
    Unreadable { number: usize, why: String },
    #[error("its certificate {number} is valid only from {from} on")]
    NotYet { number: usize, from: Timestamp },
    #[error("its certificate {number} was valid until {until}")]
    Expired { number: usize, until: Timestamp },
    #[error("it is not the key of the certificate")]
    OtherKey,
    #[error("its key is encrypted, and only unencrypted keys can be used")]
    Encrypted,
    #[error("its key cannot be used: {0}")]
    Key(String),
}

impl From<pem::Error> for Problem {
    fn from(error: pem::Error) -> Self {
        Self::Pem(match error {
            pem::Error::MissingSectionEnd { .. } => "a section has no last line",
            pem::Error::IllegalSectionStart { .. } => "a section has no proper first line",
            pem::Error::Base64Decode(_) => "a section is not base64",
            _ => "it cannot be read",
        })
    }
}

impl From<BadCertificate> for Failure {
    fn from(error: BadCertificate) -> Self {
        Self::of(Class::Invalid, &error)
    }
}

impl Pem {
    fn bad(&self, problem: Problem) -> BadCertificate {
        BadCertificate {
            place: self.place.clone(),
            problem,
        }
    }

    /// All certificates of the text, in their order; at least one.
    pub fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, BadCertificate> {
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.text).collect();
        let found = found.map_err(|error| self.bad(error.into()))?;
        if found.is_empty() {
            return Err(self.bad(Problem::NoCertificate));
        }
        for (place, der) in found.iter().enumerate() {
            Validity::of(der).map_err(|why| self.bad(Problem::Unreadable { number: place + 1, why }))?;
        }
        Ok(found)
    }

    fn private_key(&self) -> Result<PrivateKeyDer<'static>, BadCertificate> {
        PrivateKeyDer::from_pem_slice(&self.text).map_err(|error| {
            let text = String::from_utf8_lossy(&self.text);
            self.bad(match error {
                _ if text.contains("ENCRYPTED") => Problem::Encrypted,
                pem::Error::NoItemsFound => Problem::NoKey,
                other => other.into(),
            })
        })
    }

    /// The certificates as trusted roots.
    pub fn roots(&self) -> Result<RootCertStore, BadCertificate> {
        let mut roots = RootCertStore::empty();
        for (place, der) in self.certificates()?.into_iter().enumerate() {
            let why = |error: rustls::Error| error.to_string();
            let added = roots.add(der).map_err(why);
            added.map_err(|why| self.bad(Problem::Unreadable { number: place + 1, why }))?;
        }
        Ok(roots)
    }
}

/// The time in which a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// The beginning of the validity.
    pub from: Timestamp,
    /// The end of the validity.
    pub until: Timestamp,
}

impl Validity {
    /// Reads the validity of a certificate.
    pub fn of(der: &CertificateDer<'_>) -> Result<Self, String> {
        let parsed = X509Certificate::from_der(der).ok().filter(|(rest, _)| rest.is_empty());
        let (_, certificate) = parsed.ok_or("it is not in the form of X.509")?;
        let validity = certificate.validity();
        let time = |seconds| Timestamp::from_second(seconds).map_err(|error| error.to_string());
        Ok(Self {
            from: time(validity.not_before.timestamp())?,
            until: time(validity.not_after.timestamp())?,
        })
    }

    fn check(self, number: usize, now: Timestamp) -> Result<(), Problem> {
        if now < self.from {
            let from = self.from;
            return Err(Problem::NotYet { number, from });
        }
        if now > self.until {
            let until = self.until;
            return Err(Problem::Expired { number, until });
        }
        Ok(())
    }
}

/// The DNS names of a certificate; none if it cannot be parsed.
pub fn dns_names(der: &CertificateDer<'_>) -> Vec<String> {
    let Ok((_, certificate)) = X509Certificate::from_der(der) else {
        return Vec::new();
    };
    let Ok(Some(names)) = certificate.subject_alternative_name() else {
        return Vec::new();
    };
    let names = names.value.general_names.iter();
    let names = names.filter_map(|name| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        _ => None,
    });
    names.collect()
}

/// The certificate of a listener, and the CA bundle for the API server.
#[derive(Clone)]
pub struct Material {
    key: Arc<CertifiedKey>,
    authorities: Vec<CertificateDer<'static>>,
    expires: Timestamp,
}

impl fmt::Debug for Material {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Material")
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}

impl PartialEq for Material {
    /// The key is not compared, because it follows from the certificate.
    fn eq(&self, other: &Self) -> bool {
        self.key.cert == other.key.cert && self.authorities == other.authorities
    }
}

impl Material {
    /// Checks that the texts can be parsed, match and are valid now. Expired authorities are left out, as long as one
    /// remains.
    pub fn read(texts: &Texts, now: Timestamp) -> Result<Self, BadCertificate> {
        let Texts { cert, key, ca } = texts;
        let chain = cert.certificates()?;
        let mut expires = Timestamp::MAX;
        for (place, der) in chain.iter().enumerate() {
            let number = place + 1;
            let validity = Validity::of(der).map_err(|why| cert.bad(Problem::Unreadable { number, why }))?;
            validity.check(number, now).map_err(|problem| cert.bad(problem))?;
            expires = expires.min(validity.until);
        }
        ca.roots()?;
        let mut authorities = ca.certificates()?;
        let checked = authorities.iter().enumerate().map(|(place, der)| {
            let number = place + 1;
            let validity = Validity::of(der).map_err(|why| Problem::Unreadable { number, why })?;
            validity.check(number, now)
        });
        if let Some(Err(problem)) = checked.min_by_key(Result::is_err) {
            return Err(ca.bad(problem));
        }
        authorities.retain(|der| Validity::of(der).is_ok_and(|validity| validity.check(1, now).is_ok()));
        let certified = CertifiedKey::from_der(chain, key.private_key()?, &ring::default_provider());
        let certified = certified.map_err(|error| match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => key.bad(Problem::OtherKey),
            rustls::Error::InvalidCertificate(error) => cert.bad(Problem::Unreadable {
                number: 1,
                why: error.to_string(),
            }),
            other => key.bad(Problem::Key(other.to_string())),
        })?;
        Ok(Self {
            key: Arc::new(certified),
            authorities,
            expires,
        })
    }

    /// The certificate with its key.
    pub(super) fn key(&self) -> &Arc<CertifiedKey> {
        &self.key
    }

    /// The earliest end of validity in the certificate's chain.
    pub fn expires(&self) -> Timestamp {
        self.expires
    }

    /// The authorities that may have signed the certificate.
    pub fn authorities(&self) -> &[CertificateDer<'static>] {
        &self.authorities
    }
}

/// A CA bundle as the API server takes it, with each certificate once.
pub fn bundle<'a>(authorities: impl IntoIterator<Item = &'a CertificateDer<'static>>) -> Option<CaBundle> {
    let mut once: Vec<&CertificateDer<'static>> = Vec::new();
    for authority in authorities {
        if !once.contains(&authority) {
            once.push(authority);
        }
    }
    let text: String = once.into_iter().map(|der| armoured(der)).collect();
    CaBundle::new(text).ok()
}

/// A certificate as PEM.
pub(super) fn armoured(der: &CertificateDer<'_>) -> String {
    use base64::Engine as _;
    const WIDTH: usize = 64;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let mut pem = "-----BEGIN CERTIFICATE-----\n".to_owned();
    for line in text.as_bytes().chunks(WIDTH) {
        pem.push_str(&String::from_utf8_lossy(line));
        pem.push('\n');
    }
    pem + "-----END CERTIFICATE-----\n"
}
