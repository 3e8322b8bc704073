//! Unpacks one layer of an image over the layers below it.
//!
//! A layer deletes a file by a whiteout: a file with a prefix to the name. Whiteouts never appear in the result.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use fs_err as fs;
use tar::Archive;

/// Unpacks a layer, compressed or not, into the folder with the layers below it.
pub(super) fn lay(layer: impl Read, root: &Path) -> io::Result<()> {
    let mut layer = BufReader::new(layer);
    let head = layer.fill_buf()?;
    if head.starts_with(&[0x1f, 0x8b]) {
        unpack(MultiGzDecoder::new(layer), root)
    } else if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        Err(io::Error::other("layers packed with zstd are not read here"))
    } else {
        unpack(layer, root)
    }
}

const WHITEOUT: &str = ".wh.";
const OPAQUE: &str = ".wh..wh..opq";

fn unpack(tar: impl Read, root: &Path) -> io::Result<()> {
    let mut archive = Archive::new(tar);
    archive.set_preserve_permissions(true);
    archive.set_preserve_ownerships(true);
    archive.set_overwrite(true);
    // An opaque whiteout deletes only the files of lower layers, so those of this layer are remembered.
    let mut brought = BTreeSet::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = plain(&entry.path()?);
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default()
            .to_owned();
        let Some(parent) = path.parent() else {
            // The root itself is skipped: only its mode could be of interest.
            continue;
        };
        if name == OPAQUE {
            empty(root, parent, &brought)?;
        } else if let Some(hidden) = name.strip_prefix(WHITEOUT) {
            if let Some(parent) = folder(root, parent) {
                remove(&parent.join(hidden))?;
            }
        } else {
            make_room(root, &path, entry.header().entry_type().is_dir())?;
            entry.unpack_in(root)?;
            brought.extend(path.ancestors().map(Path::to_owned));
        }
    }
    Ok(())
}

/// The path without leading dots, which some archives have.
fn plain(path: &Path) -> PathBuf {
    path.components()
        .filter(|part| matches!(part, std::path::Component::Normal(_)))
        .collect()
}

/// The path on the machine of a folder of the image; none if it is missing or a link leads out of the image.
fn folder(root: &Path, path: &Path) -> Option<PathBuf> {
    let root = fs::canonicalize(root).ok()?;
    let found = fs::canonicalize(root.join(path)).ok()?;
    (found.is_dir() && found.starts_with(&root)).then_some(found)
}

/// Removes an existing entry, because a file may replace a folder and the other way round.
fn make_room(root: &Path, path: &Path, for_folder: bool) -> io::Result<()> {
    let Some(parent) = path.parent().and_then(|parent| folder(root, parent)) else {
        return Ok(());
    };
    let Some(there) = path.file_name().map(|name| parent.join(name)) else {
        return Ok(());
    };
    match fs::symlink_metadata(&there) {
        Ok(found) if found.is_dir() && for_folder => Ok(()),
        Ok(_) => remove(&there),
        Err(_) => Ok(()),
    }
}

fn empty(root: &Path, path: &Path, brought: &BTreeSet<PathBuf>) -> io::Result<()> {
    let Some(found) = folder(root, path) else {
        return Ok(());
    };
    for entry in fs::read_dir(&found)? {
        let entry = entry?;
        if !brought.contains(&path.join(entry.file_name())) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// A layer from files and their texts. A name that ends in a slash is a folder, `a -> b` a link.
    fn layer(files: &[(&str, &str)]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, text) in files {
            let mut header = tar::Header::new_gnu();
            // Only root can change the owner of a file.
            header.set_uid(rustix::process::getuid().as_raw().into());
            header.set_gid(rustix::process::getgid().as_raw().into());
            header.set_mtime(1);
            header.set_mode(0o755);
            header.set_size(0);
            if let Some((name, to)) = name.split_once(" -> ") {
                header.set_entry_type(tar::EntryType::Symlink);
                builder.append_link(&mut header, name, to).unwrap();
            } else if name.ends_with('/') {
                header.set_entry_type(tar::EntryType::Directory);
                builder.append_data(&mut header, name, io::empty()).unwrap();
            } else {
                header.set_size(text.len() as u64);
                builder.append_data(&mut header, name, text.as_bytes()).unwrap();
            }
        }
        builder.into_inner().unwrap()
    }

    fn laid(layers: &[&[(&str, &str)]]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for files in layers {
            lay(layer(files).as_slice(), root.path()).unwrap();
        }
        root
    }

    fn listing(root: &Path) -> Vec<String> {
        let mut found: Vec<String> = fs::read_dir(root)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        found.sort();
        found
    }

    #[test]
    fn a_layer_takes_away_what_it_says_and_keeps_what_it_brings() {
        let root = laid(&[
            &[("a/", ""), ("a/old", "1"), ("a/gone", "1"), ("b/", ""), ("b/old", "1")],
            &[
                ("./a/.wh.gone", ""),
                ("b/new", "2"),
                ("b/.wh..wh..opq", ""),
                ("b/newer", "2"),
            ],
        ]);
        assert_eq!(listing(&root.path().join("a")), ["old"]);
        assert_eq!(listing(&root.path().join("b")), ["new", "newer"]);
    }

    #[test]
    fn a_file_takes_the_place_of_a_folder_and_the_other_way_round() {
        let root = laid(&[
            &[("a/", ""), ("a/x", "1"), ("b", "1")],
            &[("a", "2"), ("b/", ""), ("b/y", "2")],
        ]);
        assert_eq!(fs::read_to_string(root.path().join("a")).unwrap(), "2");
        assert_eq!(listing(&root.path().join("b")), ["y"]);
    }

    #[test]
    fn a_layer_neither_writes_nor_removes_outside_of_the_root() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("mine"), "1").unwrap();
        let link = format!("out -> {}", outside.path().display());
        let root = laid(&[&[(&link, "")]]);
        let taken = lay(layer(&[("out/.wh.mine", "")]).as_slice(), root.path());
        let written = lay(layer(&[("out/yours", "2")]).as_slice(), root.path());
        assert!(taken.is_ok(), "there is no such folder in the image: {taken:?}");
        assert!(written.is_err());
        assert_eq!(listing(outside.path()), ["mine"]);
    }

    #[test]
    fn packed_layers_are_recognised_by_their_first_bytes() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&layer(&[("a", "1")])).unwrap();
        let root = tempfile::tempdir().unwrap();
        lay(packed.finish().unwrap().as_slice(), root.path()).unwrap();
        assert_eq!(listing(root.path()), ["a"]);
        assert!(lay([0x28, 0xb5, 0x2f, 0xfd, 0].as_slice(), root.path()).is_err());
    }
}
