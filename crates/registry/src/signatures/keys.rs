//! The public keys that may have signed an image, parsed once from an admin's text, each with its algorithm.
//!
//! A key that cannot be used must never be ignored: a wrongly accepted or refused signature would be worse than a
//! refused text.

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

/// The largest number of keys, which are all tried on each signature.
const MOST_KEYS: usize = 16;
/// The allowed sizes of RSA keys in bits. Shorter ones are unsafe, and longer ones need a second for each signature.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// Why a text with keys cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KeysError {
    /// The text contains no key.
    #[error("there is no public key in the text: each begins with '-----BEGIN PUBLIC KEY-----'")]
    NoKey,
    /// The text contains too many keys.
    #[error("there are {found} public keys in the text; more than {MOST_KEYS} are not tried")]
    TooMany {
        /// The number of keys.
        found: usize,
    },
    /// One of the keys cannot be used, so no key is used.
    #[error("cannot use key {number} of the text")]
    Unusable {
        /// The number of the key, from 1.
        number: usize,
        /// The reason why the key cannot be used.
        source: KeyProblem,
    },
}

/// Why a key cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KeyProblem {
    /// The key is not a valid PEM block.
    #[error(transparent)]
    Pem(#[from] BrokenPem),
    /// The key is private, and was published by mistake.
    #[error("it is a private key: give the public key, and make a new pair, because this private key has been exposed")]
    Private,
    /// The PEM block is of another kind.
    #[error("it is a '{0}', not a 'PUBLIC KEY'; openssl pkey -pubin and openssl x509 -pubkey write one")]
    Other(String),
    /// The contents do not match the block's name.
    #[error("there is no public key (SubjectPublicKeyInfo) in it, or more than one")]
    Content,
    /// The algorithm is not supported.
    #[error("it is for the algorithm {0}; ECDSA on P-256 or P-384, Ed25519 and RSA can be checked")]
    Algorithm(String),
    /// The curve is not supported.
    #[error("it is for ECDSA on the curve {0}; P-256 and P-384 can be checked")]
    Curve(String),
    /// The length of the key is invalid.
    #[error("it is not as long as such a key is; a point of a curve must be written uncompressed")]
    Length,
    /// The key is too short to be safe, or too long to be used.
    #[error("it is an RSA key of {0} bits; from 2048 to 8192 can be checked")]
    Bits(usize),
}

/// The identifier of a key for people and logs: the SHA-256 of its DER form, as printed by `openssl pkey -pubin
/// -outform der | sha256sum`.
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

/// The keys, of which one must have signed an image. There is at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys(Vec<Key>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    id: KeyId,
    kind: Kind,
    /// The key in the form that the algorithm needs.
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
    /// Parses the public keys in a text: PEM blocks with any text between them.
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

    /// The identifiers of the keys, in the order of the text.
    pub fn ids(&self) -> impl Iterator<Item = &KeyId> {
        self.0.iter().map(|key| &key.id)
    }

    /// The key that has signed the given bytes.
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
            // Uncompressed: the byte 4 and both coordinates.
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

    /// The algorithms with which a key of this kind may have signed.
    fn algorithms(self) -> Vec<&'static dyn VerificationAlgorithm> {
        match self {
            Self::EcdsaP256 => vec![&ECDSA_P256_SHA256_ASN1],
            // cosign 3 signs with the second, but checks it only with a flag; other tools know only the first.
            Self::EcdsaP384 => vec![&ECDSA_P384_SHA256_ASN1, &ECDSA_P384_SHA384_ASN1],
            Self::Ed25519 => vec![&ED25519],
            Self::Rsa => vec![&RSA_PKCS1_2048_8192_SHA256, &RSA_PSS_2048_8192_SHA256],
        }
    }
}

#[cfg(test)]
mod tests;
