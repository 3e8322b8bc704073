//! Certificates for tests: an authority that only the test trusts, and certificates that it signs.
//!
//! All keys are made anew for each use. No code outside of the testbed may use this module.

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType, Error, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// An authority that signs.
pub(crate) struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Result<Self, Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = named(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let pem = params.self_signed(&key)?.pem();
        let issuer = Issuer::new(params, key);
        Ok(Self { pem, issuer })
    }

    /// The authority's own certificate as PEM; clients have to trust it.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// Signs a certificate for the holder of a key.
    pub(crate) fn sign(&self, params: &CertificateParams, key: &KeyPair) -> Result<Certificate, Error> {
        params.signed_by(key, &self.issuer)
    }
}

pub(crate) fn named(name: &str) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    names.push(DnType::CommonName, name);
    names
}
