//! The search for programs, their builds, and the messages if they cannot be found or built.
//!
//! A script takes the part of Go: these tests are about everything around a build. A real build takes minutes, and the
//! other tests cause one on a fresh machine.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use fs_err as fs;
use testbed::find::{FindError, Finder, Source, Tools};
use testbed::part::{ALIVE, BASIC, Part};
use testbed::process::{self, Bond, Bound};
use testbed::report;
use testbed::wait::wait_until;

/// A machine that has only the programs and files that a test puts there.
struct Machine {
    root: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Self {
            root: tempfile::tempdir().unwrap(),
        };
        for folder in ["assets", "path", "cache"] {
            fs::create_dir(machine.at(folder)).unwrap();
        }
        machine
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn script(&self, path: &str, body: &str) -> PathBuf {
        let file = self.at(path);
        fs::write(&file, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
        file
    }

    /// Installs a Go that runs `build` for each build. The script finds the path of the result in `$out` and the
    /// package in `$package`.
    fn go(&self, build: &str) {
        let root = self.root.path().display();
        let version = "[ \"$1\" = env ] && { echo go9.9.9; exit; }";
        let result = "for package; do [ \"$last\" = -o ] && out=$package; last=$package; done";
        let log = format!("echo \"$package\" >>{root}/builds");
        self.script("path/go", &format!("{version}\n{result}\n{log}\n{build}"));
    }

    fn builds(&self) -> Vec<String> {
        let log = fs::read_to_string(self.at("builds")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    fn finder(&self) -> Finder {
        Finder {
            assets: Some(self.at("assets")),
            path: self.at("path").into(),
            cache: Some(self.at("cache")),
        }
    }

    /// Starts `testbed build` on this machine, on which only etcd is missing.
    fn build_etcd(&self) -> Bound {
        for name in ["kube-apiserver", "kube-controller-manager", "kubectl"] {
            self.script(&format!("assets/{name}"), "exit 0");
        }
        self.script("assets/helm", "echo v3.99.0");
        let mut command = process::command(env!("CARGO_BIN_EXE_testbed"));
        command.arg("build").env_clear().env("PATH", self.at("path"));
        command
            .env("KUBEBUILDER_ASSETS", self.at("assets"))
            .env("TESTBED_CACHE", self.at("cache"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Bound::start(command, Bond::Group).unwrap()
    }
}

/// A build script that succeeds and produces a program.
const WORKS: &str = "echo '#!/bin/sh' >\"$out\"; /bin/chmod 755 \"$out\"";

fn path_of_etcd(build: &mut Bound) -> PathBuf {
    // Read to the end, because a program fails when its output is closed.
    let lines: Vec<String> = BufReader::new(build.take_stdout().unwrap())
        .lines()
        .map(Result::unwrap)
        .collect();
    let line = lines.iter().find(|line| line.starts_with("etcd ")).unwrap();
    PathBuf::from(line.split_whitespace().last().unwrap())
}

#[test]
fn assets_come_before_the_path_and_the_path_before_a_build() {
    let machine = Machine::new();
    machine.go(WORKS);
    let ours = machine.script("assets/etcd", "exit 0");
    machine.script("path/etcd", "exit 0");
    let pinned = format!("echo Kubernetes {}", Part::KubeApiserver.version());
    let theirs = machine.script("path/kube-apiserver", &pinned);
    machine.script("path/kubelet", "echo Kubernetes v1.28.2");
    let tools = machine
        .finder()
        .find(&[Part::Etcd, Part::KubeApiserver, Part::Kubelet, Part::Kwok])
        .unwrap();
    assert_eq!(
        (tools[&Part::Etcd].file.clone(), tools[&Part::Etcd].source),
        (ours, Source::Assets)
    );
    assert_eq!(
        (
            tools[&Part::KubeApiserver].file.clone(),
            tools[&Part::KubeApiserver].source
        ),
        (theirs, Source::Path)
    );
    assert_eq!(tools[&Part::Kwok].source, Source::Built);
    assert_eq!(
        machine.builds(),
        ["k8s.io/kubernetes/cmd/kubelet", "sigs.k8s.io/kwok/cmd/kwok"],
        "only what was asked for and missing, or of another version"
    );
    assert_eq!(
        machine.finder().find(&[Part::Kwok]).unwrap()[&Part::Kwok].source,
        Source::Cache
    );
}

/// `make demo` on a machine with an empty cache: the long builds are those of Kubernetes and etcd, and none of them
/// must be necessary.
#[test]
fn assets_with_all_of_a_control_plane_leave_nothing_of_it_to_be_built() {
    let machine = Machine::new();
    machine.go(WORKS);
    let of_envtest = ["etcd", "kube-apiserver", "kubectl"];
    for name in of_envtest.iter().chain(&["kube-controller-manager", "kube-scheduler"]) {
        machine.script(&format!("assets/{name}"), "exit 0");
    }
    let parts = [BASIC.as_slice(), &ALIVE].concat();
    let tools = machine.finder().find(&parts).unwrap();
    assert_eq!(
        machine.builds(),
        ["helm.sh/helm/v3/cmd/helm", "sigs.k8s.io/kwok/cmd/kwok"]
    );
    let taken = tools.values().filter(|found| found.source == Source::Assets);
    assert_eq!(taken.count(), 5);
    // envtest ships only a part of a control plane.
    fs::remove_file(machine.at("assets/kube-controller-manager")).unwrap();
    machine.finder().find(&BASIC).unwrap();
    assert_eq!(machine.builds()[2..], ["k8s.io/kubernetes/cmd/kube-controller-manager"]);
}

#[test]
fn programs_of_an_unfit_version_are_passed_over() {
    let machine = Machine::new();
    machine.go(WORKS);
    let four = machine.script("path/helm", "echo v4.3.1");
    machine.script("path/kubectl", r#"echo '{"clientVersion":{"gitVersion":"v1.20.0"}}'"#);
    let tools = machine
        .finder()
        .find(&[Part::Helm3, Part::Helm4, Part::Kubectl])
        .unwrap();
    assert_eq!(tools[&Part::Helm3].source, Source::Built);
    assert_eq!(tools[&Part::Helm4].file, four);
    assert_eq!(tools[&Part::Kubectl].source, Source::Built);
}

#[test]
fn what_is_wanted_as_pinned_is_never_what_somebody_installed() {
    let machine = Machine::new();
    machine.go(WORKS);
    machine.script("assets/helm", "echo v3.99.0");
    machine.script("path/helm", "echo v3.99.0");
    let of = |tools: &Tools| tools[&Part::Helm3].source;
    assert_eq!(of(&machine.finder().find(&[Part::Helm3]).unwrap()), Source::Assets);
    assert_eq!(of(&machine.finder().pinned(&[Part::Helm3]).unwrap()), Source::Built);
    assert_eq!(of(&machine.finder().pinned(&[Part::Helm3]).unwrap()), Source::Cache);
    assert_eq!(machine.builds(), ["helm.sh/helm/v3/cmd/helm"]);
}

#[test]
fn without_go_what_an_earlier_go_built_is_good_enough() {
    let machine = Machine::new();
    machine.go(WORKS);
    let built = machine.finder().find(&[Part::Etcd]).unwrap()[&Part::Etcd].file.clone();
    fs::remove_file(machine.at("path/go")).unwrap();
    let found = machine.finder().find(&[Part::Etcd]).unwrap();
    assert_eq!(
        (found[&Part::Etcd].file.clone(), found[&Part::Etcd].source),
        (built, Source::Cache)
    );
}

#[test]
fn two_processes_that_want_the_same_program_build_it_once() {
    let machine = Machine::new();
    let gate = machine.at("gate");
    let mut mkfifo = process::command("mkfifo");
    mkfifo.arg(&gate);
    assert!(process::run(mkfifo, None).unwrap().status.success());
    machine.go(&format!("read -r go_on <{}\n{WORKS}", gate.display()));

    let mut first = machine.build_etcd();
    wait_until(Duration::from_secs(20), "the first to build", || {
        Ok::<_, String>((machine.builds().len() == 1).then_some(()))
    })
    .unwrap();
    let mut second = machine.build_etcd();
    let mut said = BufReader::new(second.take_stderr().unwrap())
        .lines()
        .map(Result::unwrap);
    assert!(said.any(|line| line.contains("waiting for another process that builds etcd")));

    fs::write(&gate, "go on\n").unwrap();
    let (one, other) = (path_of_etcd(&mut first), path_of_etcd(&mut second));
    assert_eq!(one, other);
    assert!(first.wait().unwrap().success() && second.wait().unwrap().success());
    assert_eq!(machine.builds().len(), 1);
}

#[test]
fn a_killed_builder_leaves_neither_a_lock_nor_half_a_program() {
    let machine = Machine::new();
    machine.go(": >\"$out\"; while :; do /bin/sleep 60; done");
    let mut builder = machine.build_etcd();
    let site = wait_until(Duration::from_secs(20), "a build to begin", || {
        Ok::<_, String>(
            sites(&machine.at("cache"))
                .into_iter()
                .find(|site| site.join("etcd").exists()),
        )
    });
    let site = site.unwrap();
    process::signal(builder.id(), libc::SIGKILL);
    builder.wait().unwrap();

    machine.go(WORKS);
    let found = machine.finder().find(&[Part::Etcd]).unwrap();
    assert_eq!(found[&Part::Etcd].source, Source::Built);
    assert!(!site.exists() && sites(&machine.at("cache")).is_empty());
}

fn sites(cache: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(cache).into_iter().flatten().filter_map(Result::ok);
    entries
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().contains("/.building-"))
        .collect()
}

#[test]
fn a_build_that_fails_shows_what_go_said() {
    let machine = Machine::new();
    machine.go("echo 'go: go.mod requires go >= 1.26.0 (running go 9.9.9)' >&2; exit 1");
    let error = machine.finder().find(&[Part::Etcd]).unwrap_err();
    let text = report::chain(&error);
    let version = Part::Etcd.version().trim_start_matches('v');
    let expected = format!(
        "cannot provide etcd {version}\n  because go build failed; the end of what it said:\n\
         go: go.mod requires go >= 1.26.0 (running go 9.9.9)\n\
         hint: the Go on PATH is go9.9.9; install a newer one, or let it fetch one (unset GOTOOLCHAIN)"
    );
    assert_eq!(text, expected);
}

#[test]
fn with_neither_go_nor_programs_the_error_says_what_to_install() {
    let machine = Machine::new();
    let error = machine
        .finder()
        .find(&[Part::Etcd, Part::KubeApiserver, Part::Helm3])
        .unwrap_err();
    assert!(
        matches!(&error, FindError::Missing(parts) if parts.len() == 3),
        "{error:?}"
    );
    let text = report::chain(&error);
    let version = |part: Part| part.version().trim_start_matches('v');
    let expected = format!(
        "cannot provide etcd {}, kube-apiserver {}, helm {}: not in $KUBEBUILDER_ASSETS, not on PATH, not in the \
         cache, and there is no Go to build from source\n\
         hint: install Go 1.26.0 or newer (https://go.dev/dl); what is missing is then built once, in about six \
         minutes\n\
         hint: or set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver, kube-controller-manager, kubectl and, for pods, \
         kube-scheduler; envtest has three of them\n\
         hint: helm must be version 3; another one on PATH does not count",
        version(Part::Etcd),
        version(Part::KubeApiserver),
        version(Part::Helm3),
    );
    assert_eq!(text, expected);
}
