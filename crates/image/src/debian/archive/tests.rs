use std::collections::BTreeSet;
use std::os::unix::fs::{PermissionsExt, symlink};

use fs_err as fs;

use super::*;

/// A package built by the real dpkg-deb.
fn package(folder: &Path, fill: impl FnOnce(&Path)) -> PathBuf {
    let root = folder.join("root");
    fs::create_dir_all(root.join("DEBIAN")).unwrap();
    let control = "Package: small\nVersion: 1\nArchitecture: all\nMaintainer: a <a@example.org>\nDescription: small\n";
    fs::write(root.join("DEBIAN/control"), control).unwrap();
    fill(&root);
    let file = folder.join("small.deb");
    let mut command = process::command("dpkg-deb");
    command.arg("--build").arg(&root).arg(&file);
    let output = process::run(command, None).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    file
}

fn write(file: &Path, text: &str, mode: u32) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
    fs::set_permissions(file, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn place(text: &str) -> ImagePath {
    ImagePath::absolute(text).unwrap()
}

fn text(tree: &Tree, at: &str) -> (u32, String) {
    match tree.get(&place(at)) {
        Some(Node::File {
            mode,
            content: Content::Bytes(bytes),
        }) => (*mode, String::from_utf8(bytes.to_vec()).unwrap()),
        other => panic!("{at} is {other:?}"),
    }
}

#[test]
fn a_package_brings_its_files_and_a_note_of_itself() {
    let folder = tempfile::tempdir().unwrap();
    let file = package(folder.path(), |root| {
        write(&root.join("bin/tool"), "tool", 0o4755);
        fs::hard_link(root.join("bin/tool"), root.join("bin/twin")).unwrap();
        symlink("tool", root.join("bin/alias")).unwrap();
        write(&root.join("usr/share/doc/small/copyright"), "free", 0o644);
        write(&root.join("usr/share/doc/small/changelog"), "long", 0o644);
    });
    let wishes = Debian {
        leave_out: vec![place("/usr/share/doc")],
        keep: BTreeSet::from(["copyright".to_owned()]),
        ..Debian::default()
    };
    let mut tree = Tree::default();
    tree.put(
        &place("/bin"),
        Node::Link {
            target: "usr/bin".to_owned(),
        },
        Taken::Refused,
    )
    .unwrap();
    unpack(&file, "small", &wishes, &mut tree).unwrap();
    // The setuid bit is removed, and the file is in the folder that the image has for programs.
    assert_eq!(text(&tree, "/usr/bin/tool"), (0o755, "tool".to_owned()));
    assert_eq!(text(&tree, "/usr/bin/twin"), (0o755, "tool".to_owned()));
    assert_eq!(
        tree.get(&place("/usr/bin/alias")),
        Some(&Node::Link {
            target: "tool".to_owned()
        })
    );
    assert_eq!(text(&tree, "/usr/share/doc/small/copyright").1, "free");
    assert_eq!(tree.get(&place("/usr/share/doc/small/changelog")), None);
    let (_, known) = text(&tree, "/var/lib/dpkg/status.d/small");
    assert!(known.starts_with("Package: small\nVersion: 1\n"), "{known}");
}

#[test]
fn a_file_that_is_no_package_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("broken.deb");
    fs::write(&file, "!<arch>\n").unwrap();
    let error = unpack(&file, "broken", &Debian::default(), &mut Tree::default()).unwrap_err();
    assert!(matches!(error, ArchiveError::Failed { .. }), "{error}");
}
