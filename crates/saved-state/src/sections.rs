//! The storage of last good sections: short ones as text, larger ones compressed.
//!
//! Older versions of the operator read only the text. A section that does not fit is left out and reported; the others
//! are still stored.

use std::collections::BTreeMap;
use std::io::{self, Read as _};

use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use flate2::{Compression, Crc};
use serde::{Deserialize, Serialize};

pub(super) type Sections = BTreeMap<String, String>;

/// The limit of the text, which leaves room for compressed sections.
const PLAIN: usize = 384 * 1024;
/// The limit of all sections. A Secret holds 1 MiB, and has other contents too.
const ROOM: usize = 960 * 1024;
/// More than any ConfigMap has. Data that expands to more was not compressed by the operator.
const UNPACKED: u64 = 64 << 20;

/// The sections in their stored form.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) plain: String,
    pub(super) packed: Option<Vec<u8>>,
    /// The keys of sections for which the Secret has no room.
    pub(super) left_out: Vec<String>,
}

/// The compressed sections, and a checksum of the text that was written with them. A version that does not know
/// compressed sections would rewrite the text alone.
#[derive(Debug, Serialize, Deserialize)]
struct Packed {
    beside: u32,
    sections: Sections,
}

/// Stores the sections: short ones as text, the others compressed. If there is no room, the longest are left out first.
pub(super) fn store(sections: &Sections) -> Stored {
    let (mut plain, mut long) = (Sections::new(), Vec::new());
    let mut by_length: Vec<_> = sections.iter().collect();
    by_length.sort_by_key(|(key, text)| (length(key, text), *key));
    let mut used = 2;
    for (key, text) in by_length {
        used += length(key, text);
        if used <= PLAIN {
            plain.insert(key.clone(), text.clone());
        } else {
            long.push((key.clone(), text.clone()));
        }
    }
    let plain = text_of(&plain);
    let mut left_out = Vec::new();
    let packed = loop {
        if long.is_empty() {
            break None;
        }
        let packed = pack(&Packed {
            beside: checksum(&plain),
            sections: long.iter().cloned().collect(),
        });
        if plain.len() + packed.len() <= ROOM {
            break Some(packed);
        }
        left_out.extend(long.pop().map(|(key, _)| key));
    };
    left_out.sort();
    Stored {
        plain,
        packed,
        left_out,
    }
}

/// The compressed sections; empty if the text has been rewritten since.
pub(super) fn unpack(packed: &[u8], plain: &[u8]) -> io::Result<Sections> {
    let mut text = Vec::new();
    GzDecoder::new(packed).take(UNPACKED).read_to_end(&mut text)?;
    let Packed { beside, sections } = serde_json::from_slice(&text)?;
    let is_current = beside == checksum(plain);
    Ok(if is_current { sections } else { Sections::new() })
}

fn pack(packed: &Packed) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    serde_json::to_writer(&mut gzip, packed)
        .map_err(io::Error::from)
        .and_then(|()| gzip.finish())
        .expect("memory takes whatever is written")
}

fn checksum(text: impl AsRef<[u8]>) -> u32 {
    let mut sum = Crc::new();
    sum.update(text.as_ref());
    sum.sum()
}

fn text_of(sections: &Sections) -> String {
    serde_json::to_string(sections).expect("a map of texts is JSON")
}

/// The length of an entry in the text, with comma and colon.
fn length(key: &str, text: &str) -> usize {
    let quoted = |text: &str| serde_json::to_string(text).map_or(0, |quoted| quoted.len());
    quoted(key) + quoted(text) + 2
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Base64 text that compresses to no less than three quarters of its length.
    fn noise(seed: u64, length: usize) -> String {
        let mut state = seed | 1;
        let mut letter = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[(state >> 58) as usize]
        };
        (0..length).map(|_| char::from(letter())).collect()
    }

    fn sections(lengths: &[usize]) -> Sections {
        let numbered = (1_u64..).zip(lengths);
        numbered
            .map(|(seed, length)| (format!("s{seed}"), noise(seed, *length)))
            .collect()
    }

    fn read(stored: &Stored) -> Sections {
        let mut all: Sections = serde_json::from_str(&stored.plain).unwrap();
        all.extend(
            stored
                .packed
                .iter()
                .flat_map(|packed| unpack(packed, stored.plain.as_bytes()).unwrap()),
        );
        all
    }

    #[test]
    fn what_is_short_stays_as_every_version_reads_it() {
        let few = sections(&[10, 300_000]);
        let stored = store(&few);
        assert_eq!(stored.plain, serde_json::to_string(&few).unwrap());
        assert_eq!((stored.packed, stored.left_out), (None, Vec::new()));
        assert_eq!(store(&Sections::new()).plain, "{}");
    }

    #[test]
    fn a_full_config_map_finds_room() {
        for lengths in [&[1_040_000][..], &[500_000, 540_000], &[1_000; 1_000], &[20, 1_030_000]] {
            let all = sections(lengths);
            let stored = store(&all);
            assert_eq!(stored.left_out, [""; 0], "{lengths:?}");
            assert_eq!(read(&stored), all, "{lengths:?}");
            let whole = stored.plain.len() + stored.packed.map_or(0, |packed| packed.len());
            assert!(whole <= ROOM, "{whole}");
        }
    }

    #[test]
    fn what_finds_no_room_costs_nobody_else() {
        let all = sections(&[10, 1_500_000, 600_000]);
        let stored = store(&all);
        assert_eq!(stored.left_out, ["s2"]);
        let kept = read(&stored);
        assert_eq!(kept.keys().collect::<Vec<_>>(), ["s1", "s3"]);
    }

    #[test]
    fn what_was_packed_beside_another_text_is_old() {
        let packed = store(&sections(&[10, 500_000])).packed.unwrap();
        assert_eq!(unpack(&packed, b"{}").unwrap(), Sections::new());
    }

    #[test]
    fn what_is_not_packed_sections_is_an_error() {
        let packed = store(&sections(&[500_000])).packed.unwrap();
        for bytes in [&b"{}"[..], b"", &packed[..packed.len() / 2]] {
            assert!(unpack(bytes, b"{}").is_err());
        }
    }
}
