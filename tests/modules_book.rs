//! The page about modules: its files must equal those of `examples/modules`. An operator runs them on a real API
//! server, and the outputs of the commands must equal the page. `UPDATE=1 cargo test --test modules_book` renews the
//! page.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use regex::Regex;
use tempfile::TempDir;
use testbed::namespace::Namespace;
use testbed::part::Part;
use testbed::plane::User;
use testbed::process::{self, Bond, Bound};
use testbed::wait::wait_until;

#[path = "book/page.rs"]
mod page;

const PAGE: &str = "docs/guides/modules.md";
const OPERATOR: &str = env!("CARGO_BIN_EXE_addon-operator");
const PATIENCE: Duration = Duration::from_mins(1);

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A folder like a checkout, in which the operator and the commands run.
struct Stage {
    namespace: Namespace<'static>,
    folder: TempDir,
    port: u16,
}

impl Stage {
    fn build() -> Self {
        let plane = testbed::shared::plane();
        // In the folder of the control plane, which the next start removes even after a kill.
        let folder = tempfile::Builder::new()
            .prefix("modules-")
            .tempdir_in(plane.folder())
            .unwrap();
        for name in ["examples", "frameworks"] {
            symlink(root().join(name), folder.path().join(name)).unwrap();
        }
        for name in ["bin", "global-hooks"] {
            fs_err::create_dir(folder.path().join(name)).unwrap();
        }
        symlink(OPERATOR, folder.path().join("bin/addon-operator")).unwrap();
        let namespace = plane.namespace("modules").unwrap();
        Self {
            port: namespace.port().unwrap(),
            namespace,
            folder,
        }
    }

    fn environment(&self) -> BTreeMap<&'static str, OsString> {
        let plane = self.namespace.plane();
        let own = |name: &str| -> PathBuf { self.folder.path().join(name) };
        let path = [own("bin"), plane.programs(), "/usr/bin".into(), "/bin".into()];
        BTreeMap::from([
            ("PATH", std::env::join_paths(path).unwrap()),
            ("HOME", own("home").into()),
            ("KUBECONFIG", self.namespace.kubeconfig(User::Admin).into()),
            ("HELM_BIN", plane.program(Part::Helm3).into()),
            ("ADDON_OPERATOR_NAMESPACE", self.namespace.name().into()),
            ("ADDON_OPERATOR_MODULES_DIR", "examples/modules".into()),
            ("ADDON_OPERATOR_TMP_DIR", own("tmp").into()),
            ("ADDON_OPERATOR_LISTEN_ADDRESS", "127.0.0.1".into()),
            ("ADDON_OPERATOR_LISTEN_PORT", self.port.to_string().into()),
            ("DEBUG_UNIX_SOCKET", own("debug.socket").into()),
        ])
    }

    fn start(&self) -> Bound {
        let log = self.folder.path().join("operator.log");
        self.namespace.show_on_panic("operator", &log);
        let output = fs_err::File::create(&log).unwrap().into_parts().0;
        let mut command = process::command(OPERATOR);
        command
            .arg("start")
            .current_dir(self.folder.path())
            .env_clear()
            .envs(self.environment());
        command.stdout(output.try_clone().unwrap()).stderr(output);
        Bound::start(command, Bond::Group).unwrap()
    }

    /// The output of a command, both streams in the order of their writes, with constants in place of the parts that
    /// differ between runs.
    fn printed(&self, command: &str) -> String {
        let mut bash = process::command("bash");
        bash.args(["-c", &format!("exec 2>&1; {command}")])
            .current_dir(self.folder.path())
            .env_clear()
            .envs(self.environment());
        let output = process::run(bash, None).unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let age = Regex::new(r"\b\d+[smhd] ago").unwrap();
        let text = age.replace_all(&text, "5s ago");
        // An age of two digits widens its column.
        let head = Regex::new("RELEASE +WAITS FOR").unwrap();
        head.replace_all(&text, "RELEASE    WAITS FOR").into_owned()
    }

    fn wait_for_modules(&self) {
        let look = || {
            let list = self.printed("addon-operator module list -o wide");
            let is_there = list.matches("Healthy").count() == 2;
            if is_there { Ok(Some(())) } else { Err(list) }
        };
        wait_until(PATIENCE, "the modules", look).unwrap();
    }
}

#[test]
fn the_page_shows_the_files_and_what_the_commands_print() {
    let stage = Stage::build();
    let _operator = stage.start();
    stage.wait_for_modules();
    page::check(root(), PAGE, |command| stage.printed(command));
}

/// The page must show every file of the example.
#[test]
fn each_file_of_the_guestbook_is_shown() {
    let page = fs_err::read_to_string(root().join(PAGE)).unwrap();
    let folder = root().join("examples/modules/100-guestbook");
    let files = walkdir::WalkDir::new(folder).into_iter().map(Result::unwrap);
    let files: Vec<_> = files.filter(|entry| entry.file_type().is_file()).collect();
    assert!(files.len() >= 9);
    for file in files.iter().filter(|file| file.file_name() != "Chart.yaml") {
        let name = file.path().strip_prefix(root()).unwrap().display().to_string();
        assert!(page.contains(&format!("<!-- {name} -->")), "{name} is not shown");
    }
}
