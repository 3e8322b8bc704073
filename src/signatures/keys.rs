//! The public keys that may have signed an image, read once from a text that an admin wrote, each with its algorithm.
//!
//! Must never drop a key that cannot be used: a signature that counts by mistake and one that is refused by mistake are both
//! worse than a text that is refused.

mod pem;

use std::fmt;

use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P384_SHA256_ASN1, ECDSA_P384_SHA384_ASN1, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA256, UnparsedPublicKey, VerificationAlgorithm,
};
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use x509_parser::asn1_rs::Tag;
use x509_parser::oid_registry::{
    OID_EC_P256, OID_KEY_TYPE_EC_PUBLIC_KEY, OID_NIST_EC_P384, OID_PKCS1_RSAENCRYPTION, OID_SIG_ED25519, Oid,
};
use x509_parser::prelude::FromDer as _;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

use self::pem::{Block, BrokenPem};
use super::refusal::Refusal;

/// The most keys that are tried on one signature.
const MOST_KEYS: usize = 16;
/// The sizes of RSA keys, in bits. Shorter ones were broken, longer ones cost a second a signature.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// Why a text with keys cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KeysError {
    /// There is nothing in it.
    #[error("there is no public key in the text: each begins with '-----BEGIN PUBLIC KEY-----'")]
    NoKey,
    /// More than anybody has.
    #[error("there are {found} public keys in the text; more than {MOST_KEYS} are not tried")]
    TooMany {
        /// How many there are.
        found: usize,
    },
    /// One of them cannot be used; then none is.
    #[error("cannot use key {number} of the text")]
    Unusable {
        /// Counted from one.
        number: usize,
        /// Why.
        source: KeyProblem,
    },
}

/// Why a key cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KeyProblem {
    /// It is not even a block.
    #[error(transparent)]
    Pem(#[from] BrokenPem),
    /// Somebody made it public by mistake.
    #[error("it is a private key: give the public key, and make a new pair, because this private key has been exposed")]
    Private,
    /// It is something else.
    #[error("it is a '{0}', not a 'PUBLIC KEY'; openssl pkey -pubin and openssl x509 -pubkey write one")]
    Other(String),
    /// It holds something else than its name says.
    #[error("there is no public key (SubjectPublicKeyInfo) in it, or more than one")]
    Content,
    /// We cannot check what it signs.
    #[error("it is for the algorithm {0}; ECDSA on P-256 or P-384, Ed25519 and RSA can be checked")]
    Algorithm(String),
    /// We cannot check what it signs.
    #[error("it is for ECDSA on the curve {0}; P-256 and P-384 can be checked")]
    Curve(String),
    /// No such key has this form.
    #[error("it is not as long as such a key is; a point of a curve must be written uncompressed")]
    Length,
    /// Too short to be safe, or too long to be used.
    #[error("it is an RSA key of {0} bits; from 2048 to 8192 can be checked")]
    Bits(usize),
}

/// By what people and logs know a key: the SHA-256 of its DER form, as `openssl pkey -pubin -outform der | sha256sum` has it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; 32]);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyId({self})")
    }
}

/// The keys of which one must have signed an image. There is at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys(Vec<Key>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    id: KeyId,
    kind: Kind,
    /// In the form that the algorithm takes.
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    EcdsaP256,
    EcdsaP384,
    Ed25519,
    Rsa,
}

impl Keys {
    /// Reads the public keys of a text, PEM blocks with anything between them.
    pub fn parse(text: &str) -> Result<Self, KeysError> {
        let blocks = pem::blocks(text);
        if blocks.is_empty() {
            return Err(KeysError::NoKey);
        }
        if blocks.len() > MOST_KEYS {
            return Err(KeysError::TooMany { found: blocks.len() });
        }
        let keys = (1..).zip(blocks).map(|(number, block)| {
            let key = block.map_err(KeyProblem::from).and_then(|block| Key::of(&block));
            key.map_err(|source| KeysError::Unusable { number, source })
        });
        keys.collect::<Result<_, _>>().map(Self)
    }

    /// By what the keys are known, in the order of the text.
    pub fn ids(&self) -> impl Iterator<Item = &KeyId> {
        self.0.iter().map(|key| &key.id)
    }

    /// Which of them has signed these bytes.
    pub(super) fn signer(&self, message: &[u8], signature: &[u8]) -> Result<KeyId, Refusal> {
        let signer = self.0.iter().find(|key| key.has_signed(message, signature));
        signer.map(|key| key.id.clone()).ok_or(Refusal::NotByOurKeys)
    }
}

impl Key {
    fn of(block: &Block) -> Result<Self, KeyProblem> {
        let Block { label, content } = block;
        match label.as_str() {
            "PUBLIC KEY" => {}
            label if label.ends_with("PRIVATE KEY") => return Err(KeyProblem::Private),
            label => return Err(KeyProblem::Other(label.to_owned())),
        }
        let der = content.clone()?;
        let (rest, info) = SubjectPublicKeyInfo::from_der(&der).map_err(|_| KeyProblem::Content)?;
        if !rest.is_empty() {
            return Err(KeyProblem::Content);
        }
        let bytes = info.subject_public_key.data.to_vec();
        let kind = Kind::of(&info)?;
        let fits = match kind {
            // Uncompressed: a four, and both coordinates.
            Kind::EcdsaP256 => bytes.len() == 1 + 2 * 32 && bytes[0] == 4,
            Kind::EcdsaP384 => bytes.len() == 1 + 2 * 48 && bytes[0] == 4,
            Kind::Ed25519 => bytes.len() == 32,
            Kind::Rsa => true,
        };
        if !fits {
            return Err(KeyProblem::Length);
        }
        let id = KeyId(Sha256::digest(&der).into());
        Ok(Self { id, kind, bytes })
    }

    fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let mut algorithms = self.kind.algorithms().into_iter();
        algorithms.any(|algorithm| {
            let key = UnparsedPublicKey::new(algorithm, &self.bytes);
            key.verify(message, signature).is_ok()
        })
    }
}

impl Kind {
    fn of(info: &SubjectPublicKeyInfo<'_>) -> Result<Self, KeyProblem> {
        let algorithm = &info.algorithm.algorithm;
        if *algorithm == OID_SIG_ED25519 {
            return Ok(Self::Ed25519);
        }
        if *algorithm == OID_KEY_TYPE_EC_PUBLIC_KEY {
            let curve = info.algorithm.parameters.as_ref();
            let named = curve.filter(|curve| curve.tag() == Tag::Oid);
            let curve: Option<Oid<'_>> = named.and_then(|curve| curve.as_oid().ok());
            return match curve {
                Some(curve) if curve == OID_EC_P256 => Ok(Self::EcdsaP256),
                Some(curve) if curve == OID_NIST_EC_P384 => Ok(Self::EcdsaP384),
                Some(curve) => Err(KeyProblem::Curve(curve.to_id_string())),
                None => Err(KeyProblem::Curve("that is spelled out in the key".to_owned())),
            };
        }
        if *algorithm == OID_PKCS1_RSAENCRYPTION {
            let Ok(PublicKey::RSA(key)) = info.parsed() else {
                return Err(KeyProblem::Content);
            };
            let digits = key.modulus.iter().skip_while(|byte| **byte == 0);
            let unused = key.modulus.iter().find(|byte| **byte != 0);
            let bits = digits.count() * 8 - unused.map_or(0, |byte| byte.leading_zeros() as usize);
            return if RSA_BITS.contains(&bits) {
                Ok(Self::Rsa)
            } else {
                Err(KeyProblem::Bits(bits))
            };
        }
        Err(KeyProblem::Algorithm(algorithm.to_id_string()))
    }

    /// By which such a key may have signed.
    fn algorithms(self) -> Vec<&'static dyn VerificationAlgorithm> {
        match self {
            Self::EcdsaP256 => vec![&ECDSA_P256_SHA256_ASN1],
            // cosign 3 signs by the second, and wants to be told before it checks it; others know the first alone.
            Self::EcdsaP384 => vec![&ECDSA_P384_SHA256_ASN1, &ECDSA_P384_SHA384_ASN1],
            Self::Ed25519 => vec![&ED25519],
            Self::Rsa => vec![&RSA_PKCS1_2048_8192_SHA256, &RSA_PSS_2048_8192_SHA256],
        }
    }
}

#[cfg(test)]
mod tests;
