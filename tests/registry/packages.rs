//! `module push` and `module pull` by the program, against the real registry, also behind a guard with TLS and tokens.
#![expect(clippy::disallowed_methods, reason = "the program under test is a process")]
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use testbed::part::Part;
use testbed::registry::guard::{Aim, Guard, Lock, Trouble};
use testbed::registry::push::{digest, layer};

use super::stage::{guard, real, repository, told};

const PROGRAM: &str = env!("CARGO_BIN_EXE_addon-operator");
const LOGIN: &str = "Basic dXNlcjpvbGQ=";
const IMAGE_LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Runs the program without a home, so that no login of this machine is sent.
fn run(args: &[&str]) -> Output {
    Command::new(PROGRAM).args(args).env_clear().output().unwrap()
}

/// The output of a command that must succeed.
fn done(args: &[&str]) -> String {
    let output = run(args);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {told}");
    assert_eq!(told, "");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// The error of a command that must fail.
fn failed(args: &[&str]) -> String {
    let output = run(args);
    assert_eq!(output.status.code(), Some(1), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// All files below a directory with their contents and whether they are programs; links with their targets.
fn tree(dir: &Path) -> Vec<(String, Vec<u8>, bool)> {
    use std::os::unix::fs::PermissionsExt as _;
    let entries = walkdir::WalkDir::new(dir).min_depth(1).sort_by_file_name();
    let entries = entries.into_iter().map(Result::unwrap);
    let files = entries.filter(|entry| !entry.file_type().is_dir()).map(|entry| {
        let name = entry.path().strip_prefix(dir).unwrap().display().to_string();
        if entry.path_is_symlink() {
            let target = std::fs::read_link(entry.path()).unwrap();
            return (name, target.as_os_str().as_encoded_bytes().to_vec(), false);
        }
        let mode = std::fs::metadata(entry.path()).unwrap().permissions().mode();
        (name, std::fs::read(entry.path()).unwrap(), mode & 0o111 != 0)
    });
    files.collect()
}

fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("modules").join(name)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[tokio::test]
async fn a_module_comes_back_as_it_was_pushed() {
    let (folder, module) = (tempfile::tempdir().unwrap(), shipped("100-sysctl-tuner"));
    let guard = Guard::start_plain(real()).unwrap();
    let reference = format!("{}/packages/tuner:1.0", guard.address());
    let pushed = done(&["module", "push", text(&module), &reference]);
    let (repository_of, digest) = pushed.split_once('@').unwrap();
    assert_eq!(repository_of, format!("{}/packages/tuner", guard.address()));
    let manifest: Value = serde_json::from_str(&repository("packages/tuner").manifest(digest).await).unwrap();
    assert_eq!(
        manifest["artifactType"],
        "application/vnd.addon-operator.module.v1+json"
    );
    assert_eq!(
        manifest["annotations"]["org.opencontainers.image.title"],
        "sysctl-tuner"
    );
    assert_eq!(manifest["annotations"]["org.opencontainers.image.version"], "0.1.0");
    let by_tag = folder.path().join("new/100-sysctl-tuner");
    assert_eq!(
        done(&["module", "pull", &reference, text(&by_tag)]),
        format!("{pushed}  module")
    );
    assert_eq!(tree(&by_tag), tree(&module));
    let by_digest = folder.path().join("100-by-digest");
    done(&["module", "pull", &pushed, text(&by_digest)]);
    assert_eq!(tree(&by_digest), tree(&module));
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 2, "nothing else is left: {left:?}");
    // The same files make the same artifact, and its blobs are not sent again.
    guard.seen();
    assert_eq!(
        done(&["module", "push", text(&by_tag), &format!("{repository_of}:1.1")]),
        pushed.clone()
    );
    let wanted = [
        "HEAD packages/tuner/blobs",
        "HEAD packages/tuner/blobs",
        "PUT packages/tuner/manifests/1.1",
    ];
    let seen: Vec<String> = told(&guard.seen());
    let seen: Vec<&str> = seen.iter().map(|line| line.split("/sha256").next().unwrap()).collect();
    assert_eq!(seen, wanted);
}

#[tokio::test]
async fn a_registry_with_tokens_and_an_authority_of_its_own_is_reached() {
    let (folder, module) = (tempfile::tempdir().unwrap(), shipped("300-sysctl-audit"));
    let guard = guard();
    guard.lock(Lock::tokens(Some(LOGIN)));
    let (logins, authority) = (folder.path().join("logins"), folder.path().join("authority"));
    let entry = json!({ "auths": { guard.address().to_string(): { "username": "user", "password": "old" } } });
    std::fs::write(&logins, entry.to_string()).unwrap();
    std::fs::write(&authority, guard.authority()).unwrap();
    let reference = format!("{}/packages/locked:1", guard.address());
    let way = ["--authority", text(&authority), "--credentials", text(&logins)];
    let (push, pull) = (
        ["module", "push", text(&module), &reference],
        folder.path().join("300-audit"),
    );
    let refused = failed(&[&push[..], &way[..2]].concat());
    assert!(refused.starts_with("error: cannot send blob sha256:"), "{refused}");
    assert!(refused.contains("hint: log in to "), "{refused}");
    done(&[&push[..], &way].concat());
    let asked = guard.seen();
    assert!(asked.iter().any(|seen| seen.path.contains("pull%2Cpush")), "{asked:?}");
    done(&[&["module", "pull", &reference, text(&pull)][..], &way].concat());
    assert_eq!(tree(&pull), tree(&module));
}

#[tokio::test]
async fn signatures_are_made_and_demanded() {
    let (folder, module) = (tempfile::tempdir().unwrap(), shipped("300-sysctl-audit"));
    let keys = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/signatures/keys");
    let (private, public) = (keys.join("p256.key"), keys.join("p256.pub"));
    let guard = Guard::start_plain(real()).unwrap();
    let reference = format!("{}/packages/signed:1", guard.address());
    let pull = |name: &str, key: &Path| {
        let dir = folder.path().join(name);
        (
            ["module", "pull", &reference, text(&dir), "--keys", text(key)].map(str::to_owned),
            dir,
        )
    };
    done(&["module", "push", text(&module), &reference]);
    let (args, dir) = pull("unsigned", &public);
    guard.seen();
    let refused = failed(&args.each_ref().map(String::as_str));
    assert!(refused.contains("is not signed by a key of"), "{refused}");
    let asked = told(&guard.seen());
    assert!(
        !asked.iter().any(|line| line.contains("/blobs/")),
        "no content before its signature: {asked:?}"
    );
    assert!(refused.contains("no signature lies beside it"), "{refused}");
    assert!(!dir.exists());
    let signed = ["module", "push", text(&module), &reference, "--key", text(&private)];
    let digest = done(&signed);
    let (args, dir) = pull("signed", &public);
    done(&args.each_ref().map(String::as_str));
    assert_eq!(tree(&dir), tree(&module));
    let (args, dir) = pull("others", &keys.join("ed25519.pub"));
    assert!(failed(&args.each_ref().map(String::as_str)).contains("is not signed by a key of"));
    assert!(!dir.exists());
    // One signature of each form, however often the module is pushed.
    assert_eq!(done(&signed), digest);
    let digest = digest.split_once('@').unwrap().1.to_owned();
    let tag = digest.replace(':', "-") + ".sig";
    let signatures = repository("packages/signed");
    let simple = signatures.resolve(&tag).await.unwrap();
    let simple: Value = serde_json::from_str(&signatures.manifest(&simple).await).unwrap();
    assert_eq!(simple["layers"].as_array().unwrap().len(), 1);
    // By another key there are two.
    let other = keys.join("ed25519.key");
    done(&["module", "push", text(&module), &reference, "--key", text(&other)]);
    let simple = signatures.resolve(&tag).await.unwrap();
    let simple: Value = serde_json::from_str(&signatures.manifest(&simple).await).unwrap();
    assert_eq!(simple["layers"].as_array().unwrap().len(), 2);
    let (args, dir) = pull("both", &keys.join("ed25519.pub"));
    done(&args.each_ref().map(String::as_str));
    assert_eq!(tree(&dir), tree(&module));
}

#[tokio::test]
async fn images_and_charts_are_modules_too() {
    let folder = tempfile::tempdir().unwrap();
    // An image as `FROM scratch` and two `COPY` make it.
    let layers = [
        layer(&[("hooks/run.sh", b"#!/bin/sh\n"), ("old", b"")]),
        layer(&[(".wh.old", b""), ("Chart.yaml", b"name: from-image\n")]),
    ];
    repository("packages/image").push("1", &json!({}), &layers).await;
    let dir = folder.path().join("image");
    let reference = format!("{}/packages/image:1", real());
    assert!(done(&["module", "pull", &reference, text(&dir)]).ends_with("  image"));
    let names: Vec<String> = tree(&dir).into_iter().map(|(name, _, _)| name).collect();
    assert_eq!(names, ["Chart.yaml", "hooks/run.sh"]);
    // A chart that helm itself packs and pushes.
    let chart = folder.path().join("plain");
    let helm = |args: &[&str]| {
        let mut command = Command::new(testbed::shared::program(Part::Helm3));
        command.args(args).env("HOME", folder.path()).current_dir(folder.path());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    helm(&["create", "plain"]);
    helm(&["package", "plain"]);
    helm(&[
        "push",
        "plain-0.1.0.tgz",
        &format!("oci://{}/packages", real()),
        "--plain-http",
    ]);
    let dir = folder.path().join("chart");
    let reference = format!("{}/packages/plain:0.1.0", real());
    assert!(done(&["module", "pull", &reference, text(&dir)]).ends_with("  chart"));
    let names = |dir: &Path| tree(dir).into_iter().map(|(name, _, _)| name).collect::<Vec<_>>();
    assert_eq!(names(&dir), names(&chart));
}

#[tokio::test]
async fn content_that_is_no_module_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let place = repository("packages/bad");
    let upload = async |tag: &str, layer: Value, config: &str| {
        let empty = place.upload(b"{}").await;
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "layers": [layer],
            "config": { "mediaType": config, "digest": empty, "size": 2 },
        });
        place.put(tag, MANIFEST, &manifest).await;
    };
    let described = |bytes: &[u8]| json!({ "mediaType": IMAGE_LAYER, "digest": digest(bytes), "size": bytes.len() });
    let image = "application/vnd.oci.image.config.v1+json";
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    builder.append_link(&mut header, "hooks", "/etc").unwrap();
    let escape = builder.into_inner().unwrap();
    place.upload(&escape).await;
    upload("escape", described(&escape), image).await;
    place.upload(b"no archive").await;
    upload("broken", described(b"no archive"), image).await;
    upload("foreign", described(b"no archive"), "application/vnd.example").await;
    for (tag, wanted) in [
        (
            "escape",
            "the entry 'hooks' is a link to a place outside of the directory",
        ),
        ("broken", "cannot read the archive"),
        (
            "foreign",
            "its type is 'application/vnd.example': a module, an image or a chart of Helm is needed",
        ),
        ("nothing", "it is not there"),
    ] {
        let dir = folder.path().join(tag);
        let reference = format!("{}/packages/bad:{tag}", real());
        let error = failed(&["module", "pull", &reference, text(&dir)]);
        assert!(error.contains(wanted), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{tag}");
    }
    let (there, reference) = (tempfile::tempdir().unwrap(), format!("{}/packages/bad:escape", real()));
    let error = failed(&["module", "pull", &reference, text(there.path())]);
    assert!(error.contains("exists already"), "{error}");
}

#[tokio::test]
async fn faults_of_registry_and_caller_are_named() {
    let module = shipped("300-sysctl-audit");
    let guard = Guard::start_plain(real()).unwrap();
    let reference = format!("{}/packages/faults:1", guard.address());
    let push = ["module", "push", text(&module), &reference];
    guard.impose(vec![Aim::at("uploads", Trouble::Without("location"))]);
    assert!(failed(&push).contains("that is no address for a blob"));
    guard.impose(vec![Aim::at("manifests", Trouble::Status(500, None))]);
    assert!(failed(&push).contains("cannot send tag '1' of "));
    assert_eq!(repository("packages/faults").resolve("1").await, None);
    guard.impose(Vec::new());
    done(&push);
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("300-audit");
    guard.impose(vec![Aim::at("blobs", Trouble::Alter)]);
    let error = failed(&["module", "pull", &reference, text(&dir)]);
    assert!(error.contains("the content has the digest "), "{error}");
    assert!(!dir.exists());
    for (dir, reference, wanted) in [
        ("/nowhere", "registry.example/a:1", "/nowhere is no module"),
        (text(folder.path()), "registry.example/a:1", "is no module"),
        (
            text(&module),
            "registry.example/A:1",
            "'registry.example/A:1' is no name of an image",
        ),
    ] {
        let error = failed(&["module", "push", dir, reference]);
        assert!(error.contains(wanted), "{error}");
    }
    let digest = format!("registry.example/a@sha256:{}", "0".repeat(64));
    assert!(failed(&["module", "push", text(&module), &digest]).contains("a module is pushed under a tag"));
}
