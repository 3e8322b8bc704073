//! `make release` in a clone of the last commit: all files of a release, the same each time, and what it refuses.
#![expect(clippy::unwrap_used, reason = "a test has no better way to end")]

use std::path::{Path, PathBuf};
use std::process::Output;

use fs_err as fs;
use tempfile::TempDir;
use testbed::process;

const VERSION: &str = env!("CARGO_PKG_VERSION");

struct Clone {
    folder: TempDir,
}

impl Clone {
    /// A clone whose changelog has a section for the present version.
    fn new() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let clone = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let place = clone.tree();
        run(
            "git",
            &["clone", "--quiet", root.to_str().unwrap(), place.to_str().unwrap()],
            &root,
        );
        let file = place.join("CHANGELOG.md");
        // The version may have a section already.
        let text = fs::read_to_string(&file).unwrap();
        let text = text.replace(&format!("## {VERSION} "), "## 0.0.2 ");
        let section = format!("## {VERSION} (a day)\n\n- It is tested.\n\n## 0.0.1\n\n- Nothing.\n\n");
        fs::write(&file, text.replacen("## ", &format!("{section}## "), 1)).unwrap();
        clone.commit();
        clone
    }

    fn tree(&self) -> PathBuf {
        self.folder.path().join("tree")
    }

    fn commit(&self) {
        let identity = ["-c", "user.name=test", "-c", "user.email=test@example.com"];
        let commit = ["commit", "--quiet", "--all", "--message=Change it for a test"];
        run("git", &[&identity[..], &commit].concat(), &self.tree());
    }

    fn release(&self, version: &str, to: &str, key: Option<&Path>) -> Output {
        let words = [
            "release".to_owned(),
            format!("VERSION={version}"),
            format!("RELEASE={}", self.folder.path().join(to).display()),
            "OPERATOR=/bin/true".to_owned(),
            format!("ASSEMBLER={}", env!("CARGO_BIN_EXE_image")),
            "PAGE=https://example.com/v".to_owned(),
            format!("KEY={}", key.map(|key| key.display().to_string()).unwrap_or_default()),
        ];
        let words: Vec<&str> = ["--silent"]
            .into_iter()
            .chain(words.iter().map(String::as_str))
            .collect();
        output("make", &words, &self.tree())
    }

    fn refusal(&self, version: &str, to: &str) -> String {
        let output = self.release(version, to, None);
        assert!(!output.status.success(), "{}", text(&output.stdout));
        text(&output.stderr)
    }
}

fn run(program: &str, arguments: &[&str], folder: &Path) -> Output {
    let ran = output(program, arguments, folder);
    assert!(ran.status.success(), "{program} {arguments:?}: {}", text(&ran.stderr));
    ran
}

fn output(program: &str, arguments: &[&str], folder: &Path) -> Output {
    let mut command = process::command(program);
    command.args(arguments).current_dir(folder).env_remove("MAKEFLAGS");
    process::run(command, None).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_release_has_all_files_and_they_can_be_checked() {
    let clone = Clone::new();
    let at = |name: &str| clone.folder.path().join(name);
    let (key, public) = (at("key.pem"), at("public.pem"));
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    for line in [
        format!(
            "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out {}",
            key.display()
        ),
        format!("pkey -in {} -pubout -out {}", key.display(), public.display()),
    ] {
        let words = words(&line);
        run(
            "openssl",
            &words.iter().map(String::as_str).collect::<Vec<_>>(),
            &clone.tree(),
        );
    }
    let output = clone.release(VERSION, "out", Some(&key));
    assert!(
        output.status.success(),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    let said = text(&output.stdout);
    for command in ["make image-push IMAGE=", "helm push ", "cosign verify-blob"] {
        assert!(said.contains(command), "{said}");
    }
    let out = at("out");
    run("sha256sum", &["--quiet", "--check", "SHA256SUMS"], &out);
    let sums = fs::read_to_string(out.join("SHA256SUMS")).unwrap();
    for part in [
        "addon-operator-linux-",
        "contents.spdx.json",
        "origin.intoto.json",
        "image/index.json",
        ".tgz",
        "NOTES.md",
        "addons.yaml",
        "kubectl-addons-linux-",
    ] {
        assert!(sums.contains(part), "{part} is not summed up:\n{sums}");
    }
    assert_eq!(
        fs::read_to_string(out.join("NOTES.md")).unwrap().trim(),
        "- It is tested."
    );
    let origin = fs::read_to_string(out.join("origin.intoto.json")).unwrap();
    let commit = run("git", &["rev-parse", "HEAD"], &clone.tree());
    assert!(origin.contains(text(&commit.stdout).trim()), "{origin}");
    // kubectl finds the plugin by the manifest: the archive lies at the address, and has the sum and the program.
    let manifest = fs::read_to_string(out.join("addons.yaml")).unwrap();
    let of = |field: &str| {
        let line = manifest.lines().find_map(|line| line.trim().strip_prefix(field));
        line.unwrap_or_else(|| panic!("{field} {manifest}")).trim().to_owned()
    };
    let archive = of("uri: https://example.com/v/");
    assert!(
        sums.contains(&format!("{}  {archive}\n", of("sha256:"))),
        "{manifest}{sums}"
    );
    let entries = text(&run("tar", &["--list", "--file", &archive], &out).stdout);
    assert!(
        entries.lines().any(|entry| entry == format!("./{}", of("bin:"))),
        "{entries}"
    );
    let signature = format!(
        "base64 --decode SHA256SUMS.sig | openssl dgst -sha256 -verify {} -signature /dev/stdin SHA256SUMS",
        public.display()
    );
    run("bash", &["-c", &signature], &out);
}

#[test]
fn what_is_no_release_is_refused_with_the_file_to_change() {
    let clone = Clone::new();
    assert!(clone.refusal("1.0", "out").contains("'1.0' is no version"));
    let other = clone.refusal("9.9.9", "out");
    assert!(other.contains(&format!("Cargo.toml has version {VERSION}")), "{other}");
    fs::create_dir(clone.folder.path().join("full")).unwrap();
    fs::write(clone.folder.path().join("full/file"), "").unwrap();
    assert!(clone.refusal(VERSION, "full").contains("full has other files"));

    let file = clone.tree().join("CHANGELOG.md");
    let changelog = fs::read_to_string(&file).unwrap();
    fs::write(&file, changelog.replace(&format!("## {VERSION} "), "## 0.0.2 ")).unwrap();
    assert!(
        clone
            .refusal(VERSION, "out")
            .contains("CHANGELOG.md differs from the commit")
    );
    clone.commit();
    let missing = clone.refusal(VERSION, "out");
    assert!(
        missing.contains(&format!("CHANGELOG.md has no section {VERSION}")),
        "{missing}"
    );
    assert!(!clone.folder.path().join("out").exists(), "nothing is left");
}
