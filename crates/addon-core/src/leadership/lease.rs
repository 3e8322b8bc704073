//! The lease as it is read and written, and how long everything about it takes.
//! Decides nothing.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use thiserror::Error;

/// How long everything takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// How long a lease that nobody renews keeps others away.
    pub lease: Duration,
    /// How long a leader leads without a renewal; what it has started is to have ended before the lease does.
    pub deadline: Duration,
    /// How often a leader renews, and others look.
    pub retry: Duration,
}

impl Timing {
    /// The times of the original, which may hold the same lease.
    pub const ORIGINAL: Self = Self {
        lease: Duration::from_secs(35),
        deadline: Duration::from_secs(30),
        retry: Duration::from_secs(10),
    };

    /// The usual times, where none are set: short enough that nobody waits long for the next leader, and long enough
    /// for an API server that starts anew.
    pub const USUAL: Self = Self {
        lease: Duration::from_secs(18),
        deadline: Duration::from_secs(13),
        retry: Duration::from_secs(3),
    };

    /// How much of a lease is left after the deadline, to end what a leader has started.
    pub fn farewell(self) -> Duration {
        self.lease.saturating_sub(self.deadline)
    }
}

/// A version of the program, as the digest of its image names it: `sha256:` and 64 digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(String);

/// A text that names no version.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{0}' is no digest of an image: write 'sha256:' and 64 digits of 0-9 and a-f")]
pub struct NoVersion(String);

impl Version {
    /// Reads it. Digits are small letters, as everywhere in registries: one digest has one text.
    pub fn parse(text: &str) -> Result<Self, NoVersion> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        match text.strip_prefix("sha256:") {
            Some(hex) if hex.len() == 64 && hex.bytes().all(is_digit) => Ok(Self(text.to_owned())),
            Some(_) | None => Err(NoVersion(text.to_owned())),
        }
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The contents of the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The replica that holds it; empty for none.
    pub holder: String,
    /// How long it keeps others away; nothing for what is no time.
    pub lasts: Duration,
    /// When its holder came to hold it. It tells two lives of one name apart.
    pub acquired: Timestamp,
    /// When it was written last.
    pub renewed: Timestamp,
    /// How often its holder has changed.
    pub transitions: u32,
    /// The version that may take it as soon as nobody holds it; others wait until it has run out. Nothing: whoever comes.
    pub entitled: Option<Version>,
}

/// The lease as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    /// The version of the object: another one is another writing.
    pub version: String,
    /// Its contents.
    pub record: Record,
    /// The knowledge of its holder beside that.
    pub holder: Holder,
}

/// Whether the holder of a lease can be known to have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// It may live.
    Unknown,
    /// It has ended, and all that it has started: its containers have, or there is no such process on this machine.
    Gone,
}

/// One write of the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writing {
    /// Its new contents.
    pub record: Record,
    /// Over which version and no other; `None`: only if there is no lease.
    pub over: Option<String>,
    /// The part in which its writer comes out of it.
    pub aim: Aim,
}

/// The part in which the writer comes out of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// The one who leads.
    Hold,
    /// No leader: the lease is left to whoever holds it, or to nobody.
    Leave,
}

/// How a write ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// It stands there, at this version.
    Through(String),
    /// Another replica was faster: it was not written.
    Conflict,
    /// Nobody knows whether it was written.
    Unknown,
}

pub(super) fn over(sighting: &Sighting, record: Record, aim: Aim) -> Writing {
    Writing {
        record,
        over: Some(sighting.version.clone()),
        aim,
    }
}

/// As exact as the lease can hold it: what is read back has to be equal.
pub(super) fn micros(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_a_digest_and_nothing_else() {
        let hex = "0123456789abcdef".repeat(4);
        let text = format!("sha256:{hex}");
        assert_eq!(Version::parse(&text).map(|version| version.to_string()), Ok(text));
        for other in [
            String::new(),
            hex.clone(),
            format!("sha512:{hex}"),
            format!("sha256:{}", &hex[1..]),
            format!("sha256:{hex}0"),
            format!("sha256:{}", hex.to_uppercase()),
            format!("sha256:{}g", &hex[1..]),
            format!(" sha256:{hex}"),
            "sha256:v1.2.3".to_owned(),
        ] {
            assert_eq!(Version::parse(&other), Err(NoVersion(other)));
        }
    }
}
