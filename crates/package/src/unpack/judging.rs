//! Judges the entries of layers before one is written.
//!
//! Must never let an entry pass that the writing reader would see otherwise.

use std::io::{self, Read};

use tar::{Archive, Entry, EntryType, PaxExtensions};

use super::{EntryFault, UnpackError};
use crate::ENTRIES;

/// The size limit of an entry that describes the next one, such as a long name. The reader keeps it in memory.
pub(super) const DESCRIPTION: u64 = 64 << 10;
/// The bits by which a program gets the rights of its owner or group.
const SET_ID: u32 = 0o6000;

/// Judges a layer, and refuses more bytes than are left.
pub(super) fn limited<'a>(
    bytes: Box<dyn Read + 'a>,
    left: &mut u64,
    limit: u64,
    judge: impl FnOnce(&mut dyn Read) -> Result<(), UnpackError>,
) -> Result<(), UnpackError> {
    // One byte more than allowed shows that there is too much.
    let mut bytes = bytes.take(*left + 1);
    let outcome = judge(&mut bytes);
    // The archive may end before the compressed data do.
    let rest = io::copy(&mut bytes, &mut io::sink());
    *left = bytes.limit().checked_sub(1).ok_or(UnpackError::Large(limit))?;
    outcome?;
    rest.map(drop).map_err(UnpackError::Archive)
}

/// Refuses entries that no module needs.
pub(super) fn judge_layer(bytes: &mut dyn Read, entries: &mut usize) -> Result<(), UnpackError> {
    let mut archive = Archive::new(bytes);
    for entry in archive.entries().map_err(UnpackError::Archive)?.raw(true) {
        let entry = entry.map_err(UnpackError::Archive)?;
        let header = entry.header();
        let kind = header.entry_type();
        let refused = |fault| UnpackError::Entry {
            name: String::from_utf8_lossy(&entry.path_bytes()).into_owned(),
            fault,
        };
        match kind {
            kind if is_description(kind) => {
                judge_description(entry)?;
                continue;
            }
            EntryType::Regular | EntryType::Continuous => {
                if header.mode().map_err(UnpackError::Archive)? & SET_ID != 0 {
                    return Err(refused(EntryFault::SetId));
                }
            }
            kind if is_wanted(kind) => {}
            _ => return Err(refused(EntryFault::Special)),
        }
        *entries += 1;
        if *entries > ENTRIES {
            return Err(UnpackError::Many);
        }
    }
    Ok(())
}

/// Refuses entries that would fill the memory of the reader.
pub(super) fn judge_descriptions(bytes: &mut dyn Read) -> Result<(), UnpackError> {
    let mut archive = Archive::new(bytes);
    for entry in archive.entries().map_err(UnpackError::Archive)?.raw(true) {
        let entry = entry.map_err(UnpackError::Archive)?;
        match entry.header().entry_type() {
            kind if is_description(kind) => judge_description(entry)?,
            // Behind this header the writing reader skips blocks, and the judging reader does not.
            EntryType::GNUSparse => {
                let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
                let fault = EntryFault::Special;
                return Err(UnpackError::Entry { name, fault });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Refuses a description that is too long, or that gives the next entry a size. The reader that writes heeds that size, and the one that
/// judges does not, so that each would see other entries.
fn judge_description(mut entry: Entry<'_, impl Read>) -> Result<(), UnpackError> {
    let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
    let refused = |fault| UnpackError::Entry { name, fault };
    if entry.header().entry_size().map_err(UnpackError::Archive)? > DESCRIPTION {
        return Err(refused(EntryFault::Description));
    }
    if entry.header().entry_type() != EntryType::XHeader {
        return Ok(());
    }
    let mut text = Vec::new();
    entry.read_to_end(&mut text).map_err(UnpackError::Archive)?;
    // A value with a line break ends the reading, also that of the reader that writes.
    let mut known = PaxExtensions::new(&text).map_while(Result::ok);
    if known.any(|extension| extension.key_bytes() == b"size") {
        return Err(refused(EntryFault::Size));
    }
    Ok(())
}

/// Whether an entry is a file, a directory or a link.
pub(super) fn is_wanted(kind: EntryType) -> bool {
    let is_file = matches!(kind, EntryType::Regular | EntryType::Continuous);
    is_file || matches!(kind, EntryType::Directory | EntryType::Symlink | EntryType::Link)
}

/// Whether an entry describes the next one.
fn is_description(kind: EntryType) -> bool {
    matches!(
        kind,
        EntryType::GNULongName | EntryType::GNULongLink | EntryType::XHeader | EntryType::XGlobalHeader
    )
}
