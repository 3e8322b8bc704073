//! The page in a real Chromium, and the script as it is compiled. Without Node, its packages or Chromium the tests are left out, and say so.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use page::facts;
use tokio::net::TcpListener;

#[path = "../examples/show/routes.rs"]
mod routes;
#[path = "../examples/show/sample.rs"]
mod sample;

/// The folder of the script's source.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/script");
/// The files that name the packages.
const NAMES: [&str; 2] = ["package.json", "package-lock.json"];

/// One test at a time installs packages.
static INSTALLING: Mutex<()> = Mutex::new(());

#[expect(clippy::disallowed_methods, reason = "Node is no child of the program")]
fn command(program: &str) -> Command {
    Command::new(program)
}

fn run(command: &mut Command) -> Option<Output> {
    command.output().ok()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// A folder with the packages of the script; none if they cannot be had.
fn packages() -> Option<PathBuf> {
    let _turn = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page-packages");
    fs_err::create_dir_all(&folder).unwrap();
    let is_new = |name: &str| fs_err::read(folder.join(name)).ok() != fs_err::read(Path::new(SCRIPT).join(name)).ok();
    if NAMES.iter().any(|name| is_new(name)) || !folder.join("node_modules").is_dir() {
        for name in NAMES {
            fs_err::copy(Path::new(SCRIPT).join(name), folder.join(name)).unwrap();
        }
        let install = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
        let installed = run(command("npm").args(install).current_dir(&folder));
        if installed.is_none_or(|output| !output.status.success()) {
            fs_err::remove_file(folder.join(NAMES[0])).unwrap();
            return None;
        }
    }
    Some(folder)
}

fn leave_out(test: &str, missing: &str) {
    // Not by a macro: the line is to be seen although the test passes.
    drop(writeln!(
        io::stderr(),
        "a test of the page is left out ({test}): {missing}"
    ));
}

#[test]
fn the_script_is_the_compiled_source() {
    let Some(folder) = packages() else {
        return leave_out("the script", "npm installs no packages here");
    };
    let compiled = folder.join("compiled");
    let mut compiler = command("node_modules/.bin/tsc");
    compiler
        .args(["--project", &format!("{SCRIPT}/tsconfig.json"), "--outDir"])
        .arg(&compiled);
    let output = run(compiler.current_dir(&folder)).unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let [fresh, committed] =
        [compiled, SCRIPT.into()].map(|folder| fs_err::read_to_string(folder.join("page.js")).unwrap());
    assert_eq!(
        committed, fresh,
        "`npx tsc --project crates/page/script` renews page.js"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_finds_no_fault() {
    let chromium = Path::new("/usr/bin/chromium");
    if !chromium.exists() {
        return leave_out("a browser", "there is no /usr/bin/chromium");
    }
    let Some(folder) = packages() else {
        return leave_out("a browser", "npm installs no packages here");
    };
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (routes, _changes) = routes::routes();
    let looking = tokio::task::spawn_blocking(move || {
        let script = format!("{SCRIPT}/browser.mjs");
        run(command("node").args([&script, "check", &address]).current_dir(&folder)).unwrap()
    });
    let output = tokio::select! {
        served = axum::serve(listener, routes) => unreachable!("the server ended: {served:?}"),
        output = looking => output.unwrap(),
    };
    assert!(output.status.success(), "{}", text(&output));
}
