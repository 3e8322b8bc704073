//! Digests that show whether something changed.
//!
//! Two values with the same meaning have the same digest, however their numbers are written. Digests guard against
//! accidents, not against attackers.

use std::fmt;
use std::io;

use helm_yaml::number;
use md5::{Digest as _, Md5};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

/// An md5 sum, shown in hex.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 16]);

/// The error for a text that is no digest.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{0}' is no digest of 32 hex digits")]
pub struct NoDigest(String);

impl Digest {
    /// The digest of a value's canonical JSON: sorted keys, whole numbers without a point.
    pub fn of(value: &Value) -> Self {
        let mut hash = HashWriter(Md5::new());
        let mut serializer = serde_json::Serializer::with_formatter(&mut hash, Canonical);
        value
            .serialize(&mut serializer)
            .expect("a JSON value has only text keys and the sink accepts all bytes");
        Self(hash.0.finalize().into())
    }

    /// The digest of the bytes without any framing.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(Md5::digest(bytes).into())
    }

    /// Starts a digest of several parts.
    pub fn builder() -> Builder {
        Builder(Md5::new())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl TryFrom<String> for Digest {
    type Error = NoDigest;

    fn try_from(text: String) -> Result<Self, NoDigest> {
        let mut bytes = [0; 16];
        let hex = text.as_bytes();
        if hex.len() != 2 * bytes.len() || !hex.iter().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(c)) {
            return Err(NoDigest(text));
        }
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks(2)) {
            *byte = pair.iter().fold(0, |sum, c| {
                sum * 16 + if c.is_ascii_digit() { c - b'0' } else { c - b'a' + 10 }
            });
        }
        Ok(Self(bytes))
    }
}

/// A digest that is built part by part. The length of each part is hashed before it, so that two different lists of parts
/// differ.
#[derive(Debug, Clone)]
pub struct Builder(Md5);

impl Builder {
    /// Adds bytes as one part.
    #[must_use]
    pub fn part(mut self, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
        self
    }

    /// Adds a value as one part.
    #[must_use]
    pub fn value(self, value: &Value) -> Self {
        self.part(Digest::of(value).0)
    }

    /// The digest of all parts.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

/// A writer that passes JSON on to the hash.
struct HashWriter(Md5);

impl io::Write for HashWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes compact JSON in which a whole float looks like the equal integer.
struct Canonical;

impl serde_json::ser::Formatter for Canonical {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, float: f64) -> io::Result<()> {
        match number::from_float(float) {
            Some(number) => write!(writer, "{number}"),
            None => write!(writer, "{float}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_meaning_has_equal_digest() {
        assert_eq!(
            Digest::of(&json!({"a": 1.0, "b": [2]})),
            Digest::of(&json!({"b": [2], "a": 1}))
        );
        assert_ne!(Digest::of(&json!({"a": 1})), Digest::of(&json!({"a": "1"})));
        assert_ne!(Digest::of(&json!({"a": null})), Digest::of(&json!({})));
    }

    #[test]
    fn known_sum_is_shown_in_hex_and_read_back() {
        let digest = Digest::of(&json!({"b": true, "a": 1.0}));
        assert_eq!(digest, Digest::of_bytes(br#"{"a":1,"b":true}"#));
        assert_eq!(Digest::of_bytes(b"").to_string(), "d41d8cd98f00b204e9800998ecf8427e");
        let text = serde_json::to_string(&digest).unwrap();
        assert_eq!(serde_json::from_str::<Digest>(&text).unwrap(), digest);
        for bad in [
            "",
            "d41d",
            "D41D8CD98F00B204E9800998ECF8427E",
            "g41d8cd98f00b204e9800998ecf8427e",
        ] {
            assert!(Digest::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }

    #[test]
    fn parts_do_not_run_together() {
        let join = |parts: &[&str]| parts.iter().fold(Digest::builder(), Builder::part).finish();
        assert_ne!(join(&["ab", "c"]), join(&["a", "bc"]));
        assert_ne!(join(&["a", ""]), join(&["a"]));
        assert_eq!(join(&["a", "b"]), join(&["a", "b"]));
        let value = |value| Digest::builder().part("x").value(&value).finish();
        assert_ne!(value(json!(1)), value(json!(2)));
        assert_eq!(value(json!(1)), value(json!(1.0)));
    }
}
