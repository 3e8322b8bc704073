//! The demo must fail with an operator that does nothing, and must leave nothing behind.
//!
//! Runs the built example as `make demo` does. The claims about the real operator are checked by the tour itself.
#![expect(clippy::unwrap_used, reason = "a test has no better way to end")]

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fs_err as fs;
use tempfile::TempDir;
use testbed::process::{self, Bond, Bound};
use testbed::wait::wait_until;

#[path = "../examples/demo/life.rs"]
#[expect(dead_code, reason = "only the search for processes is needed here")]
mod life;

/// Long enough to start the control plane on a busy machine and, in the worst case, to build its programs.
const PATIENCE: Duration = Duration::from_mins(10);

/// Long enough to kill all processes and delete all files on a busy machine.
const SOON: Duration = Duration::from_mins(1);

/// The exit code of a program that Ctrl-C ended, as a shell reports it.
const INTERRUPTED: u8 = 128 + 2;

/// A demo with an operator that only sleeps, except for the commands by which a person writes modules. All its files are below one folder, and all its processes have the
/// folder's name in their environment or command line.
struct Demo {
    bound: Bound,
    folder: TempDir,
    /// Only one demo runs at a time, to spare the memory of a small machine.
    _turn: MutexGuard<'static, ()>,
}

static TURN: Mutex<()> = Mutex::new(());

impl Demo {
    /// Starts the demo without the chapters on a node, which its operator never reaches.
    fn start(patience: &str) -> Self {
        let operator = env!("CARGO_BIN_EXE_addon-operator");
        Self::start_with(&format!("[ \"$1\" = module ] && exec {operator} \"$@\"\n"), patience)
    }

    /// Starts the demo with an operator that first does this.
    fn start_with(first: &str, patience: &str) -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::Builder::new().prefix("demo-").tempdir().unwrap();
        let sleeper = folder.path().join("sleeper");
        fs::write(&sleeper, format!("#!/bin/sh\n{first}exec sleep 600\n")).unwrap();
        fs::set_permissions(&sleeper, PermissionsExt::from_mode(0o755)).unwrap();
        let said = File::create(folder.path().join("said")).unwrap();
        let mut command = process::command(built());
        command.args(["--without-node", "--patience", patience, "--operator"]);
        command.arg(&sleeper);
        command
            .env("TMPDIR", folder.path())
            .stdout(said.try_clone().unwrap())
            .stderr(said);
        let bound = Bound::start(command, Bond::PoliteGroup(libc::SIGTERM)).unwrap();
        Self {
            bound,
            folder,
            _turn: turn,
        }
    }

    fn said(&self) -> String {
        let mut text = String::new();
        let mut file = File::open(self.folder.path().join("said")).unwrap();
        file.read_to_string(&mut text).unwrap();
        text
    }

    /// Waits for a condition, as long as the demo runs.
    fn wait_for(&mut self, what: &str, check: impl Fn(&Self) -> bool) {
        let outcome = wait_until(PATIENCE, what, || match self.bound.ended() {
            Ok(None) => Ok(check(self).then_some(true)),
            // The demo has ended, so the condition cannot come true any more.
            Ok(Some(_)) => Ok(Some(false)),
            Err(error) => Err(error),
        });
        assert!(outcome.unwrap(), "the demo ended before {what}:\n{}", self.said());
    }

    /// Whether a process of the demo has these words in its command line.
    fn runs(&self, words: &str) -> bool {
        let running = life::marked(self.folder.path());
        running.iter().any(|(_, command)| command.contains(words))
    }

    /// Waits for the end of the demo, and returns its exit code.
    fn code(&mut self, patience: Duration) -> u8 {
        let ended = wait_until(patience, "the end of the demo", || self.bound.ended());
        let code = ended.map(process::exit_code);
        assert!(code.is_ok(), "{code:?}\n{}", self.said());
        code.unwrap()
    }

    fn assert_nothing_is_left(&self) {
        let left = life::marked(self.folder.path());
        assert!(left.is_empty(), "processes that still run: {left:?}");
        let files = walk(self.folder.path());
        let strange: Vec<_> = files.iter().filter(|file| !is_known(file)).collect();
        assert!(strange.is_empty(), "files that were left: {strange:?}");
    }
}

/// The path of the example, in a folder below that of the operator.
fn built() -> PathBuf {
    let operator = Path::new(env!("CARGO_BIN_EXE_addon-operator"));
    let demo = operator.with_file_name("examples").join("demo");
    assert!(
        demo.is_file(),
        "{} is not built: run `cargo build --examples`",
        demo.display()
    );
    demo
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        found.push(entry.path());
        if entry.file_type().unwrap().is_dir() {
            found.extend(walk(&entry.path()));
        }
    }
    found
}

/// Whether a file is one of this test's, or the testbed's own empty folder or lock.
fn is_known(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    ["sleeper", "said", "lock"].contains(&&*name) || name.starts_with("addon-operator-testbed-")
}

#[test]
fn an_operator_that_sleeps_fails_the_demo_which_says_at_which_check() {
    let mut demo = Demo::start("2");
    assert_eq!(demo.code(PATIENCE), 1, "{}", demo.said());
    let said = demo.said();
    assert!(said.contains("FAILED all four releases are deployed"), "{said}");
    assert!(said.contains("waited 2 s; seen: no release"), "{said}");
    demo.assert_nothing_is_left();
}

#[test]
fn an_interrupt_in_the_middle_leaves_nothing() {
    let mut demo = Demo::start("600");
    demo.wait_for("the operator sleeps", |demo| demo.runs("sleep 600"));
    process::signal(demo.bound.id(), libc::SIGINT);
    assert_eq!(demo.code(SOON), INTERRUPTED, "{}", demo.said());
    demo.assert_nothing_is_left();
}

#[test]
fn an_interrupt_ends_a_command_that_hangs() {
    let mut demo = Demo::start_with("", "600");
    demo.wait_for("the command sleeps", |demo| demo.runs("sleep 600"));
    process::signal(demo.bound.id(), libc::SIGINT);
    assert_eq!(demo.code(SOON), INTERRUPTED, "{}", demo.said());
    demo.assert_nothing_is_left();
}

#[test]
fn an_interrupt_while_the_control_plane_starts_leaves_nothing() {
    let mut demo = Demo::start("600");
    demo.wait_for("etcd runs", |demo| demo.runs("/etcd "));
    process::signal(demo.bound.id(), libc::SIGINT);
    assert_eq!(demo.code(SOON), INTERRUPTED, "{}", demo.said());
    demo.assert_nothing_is_left();
}
