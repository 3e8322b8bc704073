//! Layers of registries, good and bad, unpacked into directories. No test here may use a registry.

use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;

use flate2::write::GzEncoder;
use proptest::collection::vec;
use proptest::prelude::*;
use tar::{Builder, Header};

use super::*;

/// An entry of an archive for these tests.
enum Item<'a> {
    File(&'a str, u32, &'a [u8]),
    Dir(&'a str),
    Link(&'a str, &'a str),
    Hard(&'a str, &'a str),
    Kind(&'a str, EntryType),
}

fn tar(items: &[Item<'_>]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for item in items {
        let (name, kind, mode, bytes, target): (_, _, _, &[u8], _) = match *item {
            Item::File(name, mode, bytes) => (name, EntryType::Regular, mode, bytes, ""),
            Item::Dir(name) => (name, EntryType::Directory, 0o755, &[], ""),
            Item::Link(name, target) => (name, EntryType::Symlink, 0o777, &[], target),
            Item::Hard(name, target) => (name, EntryType::Link, 0o644, &[], target),
            Item::Kind(name, kind) => (name, kind, 0o644, &[], ""),
        };
        let mut header = Header::new_gnu();
        // The library refuses bad names, so the bytes of the header are written directly.
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.as_mut_bytes()[157..157 + target.len()].copy_from_slice(target.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        builder.append(&header, bytes).unwrap();
    }
    builder.into_inner().unwrap()
}

fn plain(items: &[Item<'_>]) -> Layer {
    Layer {
        compression: Compression::None,
        bytes: tar(items).into(),
    }
}

fn gzip(bytes: &[u8]) -> Layer {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    Layer {
        compression: Compression::Gzip,
        bytes: encoder.finish().unwrap().into(),
    }
}

/// The paths of all files and links below a directory, with their contents or targets.
fn tree(dir: &Path) -> Vec<String> {
    let entries = walkdir::WalkDir::new(dir).min_depth(1).sort_by_file_name();
    let shown = entries
        .into_iter()
        .map(Result::unwrap)
        .filter(|entry| !entry.file_type().is_dir());
    let shown = shown.map(|entry| {
        let name = entry.path().strip_prefix(dir).unwrap().display().to_string();
        if entry.path_is_symlink() {
            format!("{name} -> {}", fs_err::read_link(entry.path()).unwrap().display())
        } else {
            format!("{name}: {}", fs_err::read_to_string(entry.path()).unwrap())
        }
    });
    shown.collect()
}

/// The tree that layers give, or the error.
fn unpacked(layers: &[Layer]) -> Result<Vec<String>, String> {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("module");
    fs_err::create_dir(&dir).unwrap();
    let outcome = unpack(layers, &dir);
    let around: Vec<_> = fs_err::read_dir(outer.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(around, ["module"], "nothing is written beside the directory");
    outcome.map(|()| tree(&dir)).map_err(|error| error.to_string())
}

#[test]
fn files_directories_and_links_are_written() {
    let items = [
        Item::Dir("./"),
        Item::File("./Chart.yaml", 0o600, b"name: a"),
        Item::Dir("hooks/"),
        Item::File("hooks/run.sh", 0o700, b"#!"),
        Item::Link("hooks/again.sh", "run.sh"),
        Item::Hard("hooks/third.sh", "./hooks/run.sh"),
        Item::File("/from/root", 0o644, b"of an image"),
    ];
    let wanted = [
        "Chart.yaml: name: a",
        "from/root: of an image",
        "hooks/again.sh -> run.sh",
        "hooks/run.sh: #!",
        "hooks/third.sh: #!",
    ];
    assert_eq!(unpacked(&[plain(&items)]).unwrap(), wanted);
    assert_eq!(unpacked(&[gzip(&tar(&items))]).unwrap(), wanted);
}

#[test]
fn programs_stay_programs_and_nothing_else_is_kept_of_modes() {
    let dir = tempfile::tempdir().unwrap();
    let items = [
        Item::File("run", 0o711, b""),
        Item::File("data", 0o666, b""),
        Item::File("run2", 0o755, b""),
    ];
    unpack(&[plain(&items)], dir.path()).unwrap();
    let mode = |name: &str| fs_err::metadata(dir.path().join(name)).unwrap().mode() & 0o7777;
    assert_eq!((mode("run"), mode("data"), mode("run2")), (0o755, 0o644, 0o755));
}

#[test]
fn later_layers_replace_and_hide_files_of_earlier_ones() {
    let low = [
        Item::File("gone", 0o644, b"1"),
        Item::File("changed", 0o644, b"1"),
        Item::File("dir/old", 0o644, b"1"),
        Item::File("dir/below/old", 0o644, b"1"),
        Item::File("file-then-dir", 0o644, b"1"),
        Item::File("dir-then-file/x", 0o644, b"1"),
    ];
    let high = [
        Item::File(".wh.gone", 0o644, b""),
        Item::File("changed", 0o644, b"2"),
        Item::File("dir/new", 0o644, b"2"),
        Item::File("dir/.wh..wh..opq", 0o644, b""),
        Item::File("file-then-dir/y", 0o644, b"2"),
        Item::File("dir-then-file", 0o644, b"2"),
    ];
    let wanted = ["changed: 2", "dir/new: 2", "dir-then-file: 2", "file-then-dir/y: 2"];
    let mut found = unpacked(&[plain(&low), plain(&high)]).unwrap();
    found.sort();
    let mut wanted = wanted.map(str::to_owned).to_vec();
    wanted.sort();
    assert_eq!(found, wanted);
}

#[test]
fn entries_that_lead_out_of_the_directory_are_refused() {
    let run = Item::File("run", 0o644, b"");
    for (items, wanted) in [
        (
            vec![Item::File("../out", 0o644, b"x")],
            "the entry '../out' is outside of the directory",
        ),
        (
            vec![Item::File("a/../../out", 0o644, b"x")],
            "the entry 'a/../../out' is outside of the directory",
        ),
        (
            vec![Item::Link("l", "/etc")],
            "the entry 'l' is a link to a place outside of the directory",
        ),
        (
            vec![Item::Link("l", "../x")],
            "the entry 'l' is a link to a place outside of the directory",
        ),
        (
            vec![Item::Link("b", "."), Item::Link("l", "b/..")],
            "the entry 'l' is a link to a place outside of the directory",
        ),
        (
            vec![Item::Link("l", "."), Item::File("l/x", 0o644, b"x")],
            "the entry 'l/x' is below a link",
        ),
        (
            vec![Item::Link("l", "."), Item::File("l/.wh.x", 0o644, b"")],
            "the entry 'l/.wh.x' is below a link",
        ),
        (
            vec![Item::Hard("h", "/etc/passwd")],
            "the entry 'h' is a link to an entry that is no file",
        ),
        (
            vec![Item::Hard("h", "../../etc/passwd")],
            "the entry 'h' is a link to a place outside of the directory",
        ),
        (
            vec![Item::Link("d/e", "../run"), run, Item::Hard("h", "d/e")],
            "the entry 'h' is a link to an entry that is no file",
        ),
    ] {
        assert_eq!(unpacked(&[plain(&items)]).unwrap_err(), wanted);
    }
}

#[test]
fn devices_and_programs_with_rights_of_their_owner_are_refused() {
    for (item, wanted) in [
        (
            Item::Kind("x", EntryType::Char),
            "neither a file, a directory nor a link",
        ),
        (
            Item::Kind("x", EntryType::Block),
            "neither a file, a directory nor a link",
        ),
        (
            Item::Kind("x", EntryType::Fifo),
            "neither a file, a directory nor a link",
        ),
        (
            Item::Kind("x", EntryType::GNUSparse),
            "neither a file, a directory nor a link",
        ),
        (
            Item::File("x", 0o4755, b""),
            "a program with the rights of its owner (setuid or setgid)",
        ),
        (
            Item::File("x", 0o2755, b""),
            "a program with the rights of its owner (setuid or setgid)",
        ),
    ] {
        // Nothing of an archive is written if one of its entries is bad.
        let dir = tempfile::tempdir().unwrap();
        let layers = [plain(&[Item::File("good", 0o644, b"1")]), plain(&[item])];
        let error = unpack(&layers, dir.path()).unwrap_err().to_string();
        assert_eq!(error, format!("the entry 'x' is {wanted}"));
        assert_eq!(tree(dir.path()), Vec::<String>::new());
    }
}

#[test]
fn too_much_content_is_refused_before_anything_is_written() {
    let names: Vec<String> = (0..=ENTRIES).map(|number| number.to_string()).collect();
    let many: Vec<Item<'_>> = names.iter().map(|name| Item::Dir(name)).collect();
    assert_eq!(
        unpacked(&[plain(&many)]).unwrap_err(),
        "there are more than 10000 entries"
    );
    let half = usize::try_from(UNPACKED / 2).unwrap();
    let large = vec![0; half];
    let layer = gzip(&tar(&[Item::File("large", 0o644, &large)]));
    assert!(layer.bytes.len() < 1 << 20, "it is small where it comes from");
    let wanted = "the files have more than 268435456 bytes";
    assert_eq!(unpacked(&[layer.clone(), layer.clone()]).unwrap_err(), wanted);
    // Data behind the end of the archive count as well.
    let mut behind = tar(&[Item::File("small", 0o644, b"")]);
    behind.resize(half * 2 + 1024, 0);
    assert_eq!(unpacked(&[gzip(&behind)]).unwrap_err(), wanted);
    let long = vec![b'a'; usize::try_from(DESCRIPTION).unwrap() + 1];
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::GNULongName);
    header.set_path("x").unwrap();
    header.set_size(long.len() as u64);
    header.set_cksum();
    let mut builder = Builder::new(Vec::new());
    builder.append(&header, &long[..]).unwrap();
    let layer = gzip(&builder.into_inner().unwrap());
    assert_eq!(
        unpacked(&[layer]).unwrap_err(),
        "the entry 'x' is described by more than 65536 bytes"
    );
}

#[test]
fn broken_data_are_an_error() {
    let good = tar(&[Item::File("a", 0o644, b"hello")]);
    let mut cut = gzip(&good);
    cut.bytes.truncate(cut.bytes.len() / 2);
    assert_eq!(unpacked(&[cut]).unwrap_err(), "cannot read the archive");
    let layer = Layer {
        compression: Compression::Gzip,
        bytes: good.into(),
    };
    assert_eq!(unpacked(&[layer]).unwrap_err(), "cannot read the archive");
}

#[test]
fn a_packed_directory_comes_back_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let long = "a-directory-with-a-rather-long-name/".repeat(5);
    fs_err::create_dir_all(dir.path().join(&long)).unwrap();
    fs_err::write(dir.path().join(&long).join("file"), "deep").unwrap();
    fs_err::write(dir.path().join("Chart.yaml"), "name: x").unwrap();
    symlink("Chart.yaml", dir.path().join("link")).unwrap();
    let layer = Layer {
        compression: Compression::Gzip,
        bytes: super::super::pack::pack(dir.path()).unwrap().into(),
    };
    assert_eq!(unpacked(&[layer]).unwrap(), tree(dir.path()));
}

/// Names of entries, one of them bad.
const NAMES: [&str; 8] = ["a", "b", "a/b", "b/a", "a/b/c", "b/a/c", "./a", "a/../b"];
/// Targets of links, most of them bad in some places.
const TARGETS: [&str; 8] = ["a", "b/c", "..", "../..", "a/..", "b/../..", ".", "/"];

fn item() -> impl Strategy<Value = (usize, usize, usize)> {
    (0..6_usize, 0..NAMES.len(), 0..TARGETS.len())
}

proptest! {
    /// No layer writes beside the directory, and no link in the directory leads out.
    #[test]
    fn no_layers_lead_out_of_the_directory(layers in vec(vec(item(), 0..8), 1..3)) {
        let outer = tempfile::tempdir().unwrap();
        let dir = outer.path().join("module");
        fs_err::create_dir(&dir).unwrap();
        let whiteouts: Vec<String> = NAMES.iter().map(|name| name.replacen(['a', 'b'], ".wh.a", 1)).collect();
        let layers: Vec<Layer> = layers
            .iter()
            .map(|items| {
                let items: Vec<Item<'_>> = items
                    .iter()
                    .map(|&(kind, name, target)| match kind {
                        0 => Item::File(NAMES[name], 0o644, b"x"),
                        1 => Item::Dir(NAMES[name]),
                        2 | 3 => Item::Link(NAMES[name], TARGETS[target]),
                        4 => Item::Hard(NAMES[name], TARGETS[target]),
                        _ => Item::File(&whiteouts[name], 0o644, b""),
                    })
                    .collect();
                plain(&items)
            })
            .collect();
        // Refused or not, the invariant holds.
        drop(unpack(&layers, &dir));
        let around: Vec<_> = fs_err::read_dir(outer.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        prop_assert_eq!(around, ["module"]);
        let root = fs_err::canonicalize(&dir).unwrap();
        for entry in walkdir::WalkDir::new(&dir).into_iter().map(Result::unwrap) {
            if let Ok(real) = fs_err::canonicalize(entry.path()) {
                prop_assert!(real.starts_with(&root), "{} leads to {}", entry.path().display(), real.display());
            }
        }
    }
}

/// The tree that these directories of an image give, or the error.
fn unpacked_of(layers: &[Vec<u8>], directories: &[&str]) -> Result<Vec<String>, String> {
    let outer = tempfile::tempdir().unwrap();
    let (dir, file) = (outer.path().join("root"), outer.path().join("layer"));
    fs_err::create_dir(&dir).unwrap();
    let directories: Vec<PathBuf> = directories.iter().map(PathBuf::from).collect();
    let mut part = ImagePart::new(&directories, &dir);
    for layer in layers {
        fs_err::write(&file, layer).unwrap();
        part.layer(&file, Compression::None)
            .map_err(|error| error.to_string())?;
    }
    Ok(tree(&dir))
}

#[test]
fn of_an_image_only_the_wanted_directories_are_written() {
    let system = tar(&[
        Item::File("bin/su", 0o4755, b""),
        Item::Kind("dev/null", EntryType::Char),
        Item::Link("etc/mtab", "/proc/mounts"),
        Item::File("../above", 0o644, b""),
        Item::File("a/m/old/x", 0o644, b"x"),
        Item::File("a/m/kept", 0o644, b"kept"),
        Item::File("a/other", 0o644, b""),
        Item::File("b/gone", 0o644, b""),
    ]);
    let upper = tar(&[
        Item::File("a/m/.wh.old", 0o644, b""),
        Item::File(".wh.b", 0o644, b""),
        Item::File("a/.wh.other", 0o644, b""),
    ]);
    let layers = [system, upper];
    assert_eq!(unpacked_of(&layers, &["a/m", "b"]).unwrap(), ["a/m/kept: kept"]);
    assert_eq!(unpacked_of(&layers[..1], &["b", "none"]).unwrap(), ["b/gone: "]);
    // A directory above the wanted one may be emptied.
    let opaque = tar(&[Item::File("a/.wh..wh..opq", 0o644, b"")]);
    assert_eq!(unpacked_of(&[layers[0].clone(), opaque], &["a/m"]).unwrap(), [""; 0]);
    let error = unpacked_of(&layers, &["dev"]).unwrap_err();
    assert_eq!(error, "the entry 'dev/null' is neither a file, a directory nor a link");
    let error = unpacked_of(&layers, &["etc"]).unwrap_err();
    assert!(
        error.contains("outside of the directories that are unpacked"),
        "{error}"
    );
}

#[test]
fn wanted_directories_of_an_image_are_limited() {
    let many: Vec<String> = (0..=ENTRIES).map(|number| format!("m/{number}")).collect();
    let many: Vec<Item<'_>> = many.iter().map(|name| Item::File(name, 0o644, b"")).collect();
    let layers = [tar(&many)];
    let error = unpacked_of(&layers, &["m"]).unwrap_err();
    assert_eq!(error, format!("there are more than {ENTRIES} entries"));
    assert_eq!(unpacked_of(&layers, &["other"]).unwrap(), [""; 0]);
}

#[test]
fn a_size_in_a_description_is_refused_because_readers_differ_on_it() {
    let mut builder = Builder::new(Vec::new());
    builder.append_pax_extensions([("size", b"0".as_slice())]).unwrap();
    let mut header = Header::new_ustar();
    header.set_path("Chart.yaml").unwrap();
    header.set_size(512);
    header.set_cksum();
    builder.append(&header, [7; 512].as_slice()).unwrap();
    let layer = builder.into_inner().unwrap();
    let wanted = "described with a size of its own";
    let package = Layer {
        compression: Compression::None,
        bytes: layer.clone().into(),
    };
    let error = unpacked(&[package]).unwrap_err();
    assert!(error.contains(wanted), "{error}");
    let error = unpacked_of(&[layer], &["m"]).unwrap_err();
    assert!(error.contains(wanted), "{error}");
}

#[test]
fn an_opaque_directory_hides_lower_files_at_every_depth() {
    let lower = [Item::File("m/a/old", 0o644, b""), Item::File("m/b", 0o644, b"")];
    let upper = [
        Item::File("m/a/new", 0o644, b""),
        Item::File("m/.wh..wh..opq", 0o644, b""),
    ];
    let layers = [plain(&lower), plain(&upper)];
    assert_eq!(unpacked(&layers).unwrap(), ["m/a/new: "]);
}

#[test]
fn a_hard_link_takes_no_second_place_on_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let items = [Item::File("large", 0o644, b"bytes"), Item::Hard("again", "large")];
    unpack(&[plain(&items)], dir.path()).unwrap();
    assert_eq!(fs_err::metadata(dir.path().join("again")).unwrap().nlink(), 2);
}
