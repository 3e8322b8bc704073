//! Client certificates, for listeners that demand them.
//!
//! The original accepts X.509 certificates of version 1, which openssl still makes if no extension is asked for. The
//! TLS library knows only version 3, so certificates of older versions are checked here. Must never accept a
//! certificate that no authority has signed.

use std::path::PathBuf;
use std::sync::Arc;

use addon_core::failure::{Class, Failure};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{WebPkiSupportedAlgorithms, ring, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerMisbehaved, RootCertStore, SignatureScheme,
};
use thiserror::Error as ThisError;
use x509_parser::oid_registry::{OID_PKCS1_SHA1WITHRSA, OID_SHA1_WITH_RSA};
use x509_parser::prelude::{ASN1Time, FromDer as _, X509Certificate, X509Version};

use super::files::{Unread, read};
use super::material::BadCertificate;

/// Why client certificates cannot be checked.
#[derive(Debug, ThisError)]
pub enum ClientsError {
    #[error(transparent)]
    Unread(#[from] Unread),
    #[error(transparent)]
    Bad(#[from] BadCertificate),
}

impl From<ClientsError> for Failure {
    fn from(error: ClientsError) -> Self {
        Self::of(Class::Invalid, &error)
    }
}

/// The authorities of client certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clients {
    authorities: Vec<CertificateDer<'static>>,
}

impl Clients {
    /// Reads the files; none if there are no paths, and then every client may connect.
    pub fn read(paths: &[PathBuf]) -> Result<Option<Self>, ClientsError> {
        let mut authorities = Vec::new();
        for path in paths {
            let pem = read("client CA", path)?;
            pem.roots()?;
            authorities.extend(pem.certificates()?);
        }
        Ok((!authorities.is_empty()).then_some(Self { authorities }))
    }

    /// A verifier that demands a certificate signed by one of the authorities.
    pub(super) fn verifier(&self) -> Result<Arc<dyn ClientCertVerifier>, VerifierBuilderError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(self.authorities.iter().cloned());
        let provider = Arc::new(ring::default_provider());
        let algorithms = provider.signature_verification_algorithms;
        Ok(Arc::new(Verifier {
            usual: WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build()?,
            authorities: self.authorities.clone(),
            algorithms,
        }))
    }
}

#[derive(Debug)]
struct Verifier {
    usual: Arc<dyn ClientCertVerifier>,
    authorities: Vec<CertificateDer<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for Verifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.usual.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        match old(end_entity) {
            Some(certificate) => self.verify_old(&certificate, now),
            None => self.usual.verify_client_cert(end_entity, intermediates, now),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let Some(certificate) = old(cert) else {
            return self.usual.verify_tls12_signature(message, cert, signed);
        };
        let known = self
            .algorithms
            .mapping
            .iter()
            .find(|(scheme, _)| *scheme == signed.scheme);
        let (_, algorithms) = known.ok_or(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme)?;
        let key = &certificate.public_key().subject_public_key.data;
        let good = algorithms
            .iter()
            .any(|algorithm| algorithm.verify_signature(key, message, signed.signature()).is_ok());
        if good {
            Ok(HandshakeSignatureValid::assertion())
        } else {
            Err(CertificateError::BadSignature.into())
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let Some(certificate) = old(cert) else {
            return self.usual.verify_tls13_signature(message, cert, signed);
        };
        let key = SubjectPublicKeyInfoDer::from(certificate.public_key().raw);
        verify_tls13_signature_with_raw_key(message, &key, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

impl Verifier {
    /// Checks that a version 1 certificate is valid now, and signed by an authority that is valid now.
    fn verify_old(&self, certificate: &X509Certificate<'_>, now: UnixTime) -> Result<ClientCertVerified, Error> {
        let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let now = ASN1Time::from_timestamp(seconds).map_err(|_| CertificateError::BadEncoding)?;
        if !certificate.validity().is_valid_at(now) {
            return Err(CertificateError::Expired.into());
        }
        if [OID_PKCS1_SHA1WITHRSA, OID_SHA1_WITH_RSA].contains(&certificate.signature_algorithm.algorithm) {
            return Err(CertificateError::BadSignature.into());
        }
        let known = self.authorities.iter().any(|der| {
            X509Certificate::from_der(der).is_ok_and(|(_, authority)| {
                authority.validity().is_valid_at(now)
                    && authority.subject().as_raw() == certificate.issuer().as_raw()
                    && certificate.verify_signature(Some(authority.public_key())).is_ok()
            })
        });
        if known {
            Ok(ClientCertVerified::assertion())
        } else {
            Err(CertificateError::UnknownIssuer.into())
        }
    }
}

/// The parsed certificate, if it is of version 1.
fn old<'a>(der: &'a CertificateDer<'_>) -> Option<X509Certificate<'a>> {
    let (rest, certificate) = X509Certificate::from_der(der).ok()?;
    (rest.is_empty() && [X509Version::V1, X509Version::V2].contains(&certificate.version())).then_some(certificate)
}
