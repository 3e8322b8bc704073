//! A layer: a compressed tar archive of a tree, and its two checksums.
//!
//! The same tree gives the same bytes: entries are sorted, belong to root and have the epoch as their time, and the
//! gzip header names no system. A layer must never contain a whiteout, which would delete files of lower layers.

use std::io::{self, Read, Write};

use flate2::{Compression, GzBuilder};
use fs_err as fs;
use serde::Serialize;
use sha2::{Digest, Sha256};
use tar::{EntryType, Header};

use crate::tree::{Content, Node, Tree};

/// A layer that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Written {
    /// The checksum of the compressed bytes, in hexadecimal digits.
    pub sha256: String,
    pub packed: u64,
    /// The checksum of the archive before it was compressed.
    pub diff_sha256: String,
    pub unpacked: u64,
}

/// The modification time of all entries. No known tool refuses 0, and it is the same for ever.
const EPOCH: u64 = 0;
/// The code of the gzip header for an unknown operating system.
const UNKNOWN_SYSTEM: u8 = 255;

/// The checksum of a short byte string, in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hexadecimal(Sha256::new_with_prefix(bytes))
}

/// Writes a tree as a layer.
pub fn write(tree: &Tree, out: impl Write) -> io::Result<Written> {
    let packer = GzBuilder::new()
        .mtime(0)
        .operating_system(UNKNOWN_SYSTEM)
        .write(Tally::new(out), Compression::best());
    let mut archive = tar::Builder::new(Tally::new(packer));
    for (place, node) in tree.nodes() {
        let mut header = Header::new_gnu();
        header.set_mtime(EPOCH);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(0);
        match node {
            Node::Folder { mode } => {
                header.set_entry_type(EntryType::Directory);
                header.set_mode(*mode);
                archive.append_data(&mut header, format!("{}/", place.as_str()), io::empty())?;
            }
            Node::File { mode, content } => {
                header.set_entry_type(EntryType::Regular);
                header.set_mode(*mode);
                let (size, bytes) = open(content)?;
                header.set_size(size);
                archive.append_data(&mut header, place.as_str(), bytes)?;
            }
            Node::Link { target } => {
                header.set_entry_type(EntryType::Symlink);
                header.set_mode(0o777);
                archive.append_link(&mut header, place.as_str(), target)?;
            }
        }
    }
    let (packer, diff_sha256, unpacked) = archive.into_inner()?.finish();
    let (mut out, sha256, packed) = packer.finish()?.finish();
    out.flush()?;
    Ok(Written {
        sha256,
        packed,
        diff_sha256,
        unpacked,
    })
}

fn open(content: &Content) -> io::Result<(u64, Box<dyn Read + '_>)> {
    Ok(match content {
        Content::Bytes(bytes) => (bytes.len() as u64, Box::new(&**bytes)),
        Content::OnDisk(path) => {
            let file = fs::File::open(path)?;
            (file.metadata()?.len(), Box::new(file))
        }
    })
}

/// A writer that passes bytes on and computes their checksum and number.
struct Tally<W> {
    inner: W,
    hash: Sha256,
    length: u64,
}

impl<W: Write> Tally<W> {
    fn new(inner: W) -> Self {
        Self {
            inner,
            hash: Sha256::new(),
            length: 0,
        }
    }

    fn finish(self) -> (W, String, u64) {
        (self.inner, hexadecimal(self.hash), self.length)
    }
}

impl<W: Write> Write for Tally<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn hexadecimal(hash: Sha256) -> String {
    let digits =
        |byte: &u8| [byte >> 4, byte & 15].map(|digit| char::from_digit(u32::from(digit), 16).unwrap_or_default());
    hash.finalize().iter().flat_map(digits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::ImagePath;
    use crate::tree::Taken;
    use flate2::read::GzDecoder;

    fn tree(order: &[usize]) -> Tree {
        let long = format!("/{}/file", "long-name-of-a-folder/".repeat(8).trim_end_matches('/'));
        let nodes = [
            ("/tmp", Node::Folder { mode: 0o1777 }),
            ("/usr/bin/a", Node::program(b"#!/bin/sh\n".to_vec())),
            ("/etc/x", Node::file(b"x".to_vec())),
            (
                "/sh",
                Node::Link {
                    target: "usr/bin/a".to_owned(),
                },
            ),
            (long.as_str(), Node::file(b"long".to_vec())),
        ];
        let mut tree = Tree::default();
        for index in order {
            let (at, node) = &nodes[*index];
            tree.put(&ImagePath::absolute(at).unwrap(), node.clone(), Taken::Refused)
                .unwrap();
        }
        tree
    }

    #[test]
    fn a_tree_gives_the_same_bytes_in_whatever_order_it_grew() {
        let mut first = Vec::new();
        let mut second = Vec::new();
        let written = write(&tree(&[0, 1, 2, 3, 4]), &mut first).unwrap();
        assert_eq!(write(&tree(&[4, 2, 3, 0, 1]), &mut second).unwrap(), written);
        assert_eq!(first, second);
        assert_eq!(written.sha256, sha256(&first));
        assert_eq!(written.packed, first.len() as u64);
        let mut unpacked = Vec::new();
        GzDecoder::new(first.as_slice()).read_to_end(&mut unpacked).unwrap();
        assert_eq!(written.diff_sha256, sha256(&unpacked));
        assert_eq!(written.unpacked, unpacked.len() as u64);
    }

    #[test]
    fn what_was_put_in_comes_out_and_belongs_to_root() {
        let mut packed = Vec::new();
        write(&tree(&[0, 1, 2, 3, 4]), &mut packed).unwrap();
        let mut archive = tar::Archive::new(GzDecoder::new(packed.as_slice()));
        let mut seen = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let header = entry.header().clone();
            assert_eq!(
                (header.uid().unwrap(), header.gid().unwrap(), header.mtime().unwrap()),
                (0, 0, 0)
            );
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            let path = entry.path().unwrap().display().to_string();
            let link = entry.link_name().unwrap().map(|link| link.display().to_string());
            seen.push((path, header.mode().unwrap(), link.unwrap_or(text)));
        }
        let of = |path: &str| {
            seen.iter()
                .find(|(found, ..)| found == path)
                .map(|(_, mode, text)| (*mode, text.as_str()))
        };
        assert_eq!(of("tmp/"), Some((0o1777, "")));
        assert_eq!(of("usr/"), Some((0o755, "")));
        assert_eq!(of("usr/bin/a"), Some((0o755, "#!/bin/sh\n")));
        assert_eq!(of("etc/x"), Some((0o644, "x")));
        assert_eq!(of("sh"), Some((0o777, "usr/bin/a")));
        assert!(
            seen.iter().any(|(path, _, text)| path.len() > 100 && text == "long"),
            "{seen:?}"
        );
        let paths: Vec<&String> = seen.iter().map(|(path, ..)| path).collect();
        assert!(paths.is_sorted(), "folders stand before what they hold: {paths:?}");
    }
}
