//! The C library that a program needs: a program that was linked on a system newer than the image's does not start in
//! the image.

use std::fmt;

use object::elf::{FileHeader64, VER_FLG_WEAK};
use object::endian::Endianness;
use object::read::elf::FileHeader as _;
use object::read::elf::SectionHeader as _;
use thiserror::Error;

/// A version of glibc, as in `2.36`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Glibc {
    major: u32,
    minor: u32,
}

/// The program was linked with a newer C library than the image has.
#[derive(Debug, Error)]
#[error(
    "the program needs glibc {needed}, and the image has {has}: a static program needs none, as `make operator` builds it"
)]
pub struct TooNew {
    needed: Glibc,
    has: Glibc,
}

impl Glibc {
    /// Reads the version at the beginning of a text, as in Debian's `2.36-9+deb12u14`.
    pub fn parse(text: &str) -> Option<Self> {
        let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let mut numbers = text[..end.unwrap_or(text.len())].split('.').map(str::parse);
        Some(Self {
            major: numbers.next()?.ok()?,
            minor: numbers.next()?.ok()?,
        })
    }

    /// The highest version of glibc that a program asks for; none for a static program, and for a file that is no ELF program.
    pub fn needed(program: &[u8]) -> Option<Self> {
        read(program).ok().flatten()
    }

    /// Checks that the program starts with this version of the C library.
    pub fn serves(self, program: &[u8]) -> Result<(), TooNew> {
        match Self::needed(program) {
            Some(needed) if needed > self => Err(TooNew { needed, has: self }),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Glibc {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.major, self.minor)
    }
}

fn read(program: &[u8]) -> object::Result<Option<Glibc>> {
    let header = FileHeader64::<Endianness>::parse(program)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, program)?;
    let mut highest = None;
    for section in sections.iter() {
        let Some((mut needs, strings)) = section.gnu_verneed(endian, program)? else {
            continue;
        };
        let strings = sections.strings(endian, program, strings)?;
        while let Some((_, mut versions)) = needs.next()? {
            while let Some(version) = versions.next()? {
                // If a weak version is missing, the loader only warns.
                if version.vna_flags.get(endian) & VER_FLG_WEAK != 0 {
                    continue;
                }
                let name = version.name(endian, strings)?;
                let name = str::from_utf8(name).ok().and_then(|name| name.strip_prefix("GLIBC_"));
                highest = highest.max(name.and_then(Glibc::parse));
            }
        }
    }
    Ok(highest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: Glibc = Glibc { major: 2, minor: 36 };

    /// The program of this test, and a copy that asks for a version that does not exist yet.
    fn programs() -> (Vec<u8>, Vec<u8>) {
        let program = fs_err::read(std::env::current_exe().unwrap()).unwrap();
        let asked = format!("GLIBC_{}\0", Glibc::needed(&program).unwrap());
        let later = "GLIBC_2.99\0";
        assert_eq!(asked.len(), later.len());
        let at = program.windows(asked.len()).position(|bytes| bytes == asked.as_bytes());
        let mut newer = program.clone();
        newer[at.unwrap()..][..later.len()].copy_from_slice(later.as_bytes());
        (program, newer)
    }

    #[test]
    fn a_program_that_needs_a_newer_library_is_refused_with_both_versions() {
        let (program, newer) = programs();
        let here = Glibc::needed(&program).unwrap();
        assert!(here.serves(&program).is_ok());
        assert_eq!(
            OURS.serves(&newer).unwrap_err().to_string(),
            "the program needs glibc 2.99, and the image has 2.36: a static program needs none, as `make operator` builds it"
        );
    }

    #[test]
    fn what_is_no_program_needs_no_library() {
        for bytes in [&b""[..], b"#!/bin/sh\n", b"\x7fELF\x02\x01\x01"] {
            assert_eq!(Glibc::needed(bytes), None);
        }
    }

    #[test]
    fn versions_are_numbers() {
        assert_eq!(Glibc::parse("2.36-9+deb12u14"), Some(OURS));
        assert!(Glibc::parse("2.4").unwrap() < OURS);
        assert_eq!(Glibc::parse("two"), None);
    }
}
