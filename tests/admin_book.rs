//! The page about commands (book for admins). Each command on it is run beside an operator with the modules of
//! `examples/admin`, on a real API server, and its output must equal the page. `UPDATE=1 cargo test --test admin_book`
//! renews the page.
#![expect(clippy::unwrap_used, reason = "a test may, and so may what only tests call")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use addon_operator::app::switch::Plan;
use regex::Regex;
use serde_json::{Value, json};
use settings::{Environment, StartArgs};
use tempfile::TempDir;
use testbed::namespace::Namespace;
use testbed::part::Part;
use testbed::plane::User;
use testbed::process::{self, Bond, Bound};
use testbed::wait::wait_until;

#[path = "book/page.rs"]
mod page;

const PAGE: &str = "docs/guides/admin.md";
const OPERATOR: &str = env!("CARGO_BIN_EXE_addon-operator");
const PATIENCE: Duration = Duration::from_mins(1);

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A namespace with the ConfigMap of the examples, and a folder in which the operator and the commands run.
struct Stage {
    namespace: Namespace<'static>,
    folder: TempDir,
    /// The address at which the API server reaches the operator's webhooks.
    webhooks: SocketAddr,
}

impl Stage {
    fn build() -> Self {
        let plane = testbed::shared::plane();
        let namespace = plane.namespace("admin").unwrap();
        // In the folder of the control plane, which the next start removes even after a kill.
        let folder = tempfile::Builder::new()
            .prefix("admin-")
            .tempdir_in(plane.folder())
            .unwrap();
        let examples = root().join("examples/admin");
        for entry in fs_err::read_dir(&examples).unwrap() {
            let entry = entry.unwrap();
            symlink(entry.path(), folder.path().join(entry.file_name())).unwrap();
        }
        fs_err::create_dir(folder.path().join("bin")).unwrap();
        symlink(OPERATOR, folder.path().join("bin/addon-operator")).unwrap();
        let config_map = examples.join("config-map.yaml");
        let apply = [OsString::from("apply"), "--filename".into(), config_map.into()];
        namespace.kubectl(apply).unwrap();
        let webhooks = namespace.service_to_us("addon-operator-validating-svc").unwrap();
        Self {
            namespace,
            folder,
            webhooks,
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
            ("ADDON_OPERATOR_TMP_DIR", own("tmp").into()),
            ("ADDON_OPERATOR_LISTEN_ADDRESS", "127.0.0.1".into()),
            (
                "ADDON_OPERATOR_LISTEN_PORT",
                self.namespace.port().unwrap().to_string().into(),
            ),
            ("DEBUG_UNIX_SOCKET", own("debug.socket").into()),
            (
                "VALIDATING_WEBHOOK_LISTEN_ADDRESS",
                self.webhooks.ip().to_string().into(),
            ),
            (
                "VALIDATING_WEBHOOK_LISTEN_PORT",
                self.webhooks.port().to_string().into(),
            ),
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

    /// The output of a command, both streams in the order of their writes.
    fn printed(&self, command: &str) -> String {
        let mut bash = process::command("bash");
        bash.args(["-c", &format!("{command} 2>&1")])
            .current_dir(self.folder.path())
            .env_clear()
            .envs(self.environment());
        let output = process::run(bash, None).unwrap();
        self.evened(&String::from_utf8(output.stdout).unwrap())
    }

    /// The text with constants in place of the parts that differ between runs.
    fn evened(&self, text: &str) -> String {
        let rows = [
            (r"\b\d+[smhd] ago", "5m ago"),
            // The width of a column depends on the longest age in it.
            (r"RELEASE +WAITS", "RELEASE    WAITS"),
            (r"5m ago +(\S)", "5m ago  $1"),
            (r"- +the next try", "-          the next try"),
            (r"(next try in|sleep after fail for) \d+s", "$1 8s"),
            (r"after \d+ failures", "after 3 failures"),
            (r":failures \d+:", ":failures 3:"),
            (r"deployed: \d+", "deployed: 1767225600"),
            (r"https://127\.0\.0\.1:\d+", "https://10.0.0.1:6443"),
            (r"(creationTimestamp: ).*", "$1\"2026-01-01T00:00:00Z\""),
            (r"(resourceVersion: ).*", "$1\"1000\""),
            (r"(uid: ).*", "${1}8f6c5b2e-0000-4000-8000-000000000000"),
        ];
        // Absolute paths contain the place of this clone.
        let here = format!("{}/", root().join("examples/admin").display());
        let text = text
            .replace(self.namespace.name(), "addon-operator")
            .replace(&here, "/srv/");
        rows.iter().fold(text, |text, (pattern, instead)| {
            Regex::new(pattern).unwrap().replace_all(&text, *instead).into_owned()
        })
    }

    /// Waits until two modules are healthy and the one between them has failed.
    fn wait_for_modules(&self) {
        let look = || {
            let list = self.printed("addon-operator module list -o wide");
            let is_there = list.matches("Healthy").count() == 2 && list.contains("failures");
            if is_there { Ok(Some(())) } else { Err(list) }
        };
        wait_until(PATIENCE, "the modules", look).unwrap();
    }

    /// Waits until the API server calls the webhook for edits.
    fn wait_for_webhooks(&self) {
        let patch = r#"{"data": {"databaseEnabled": "on"}}"#;
        let look = || {
            let edit =
                format!("kubectl patch configmap addon-operator --dry-run=server --type merge --patch '{patch}'");
            let said = self.printed(&edit);
            let is_refused = said.contains("denied the request");
            if is_refused { Ok(Some(())) } else { Err(said) }
        };
        wait_until(PATIENCE, "the webhooks", look).unwrap();
    }
}

#[test]
fn the_page_shows_what_the_commands_print() {
    let stage = Stage::build();
    let _operator = stage.start();
    stage.wait_for_modules();
    stage.wait_for_webhooks();
    page::check(root(), PAGE, |command| stage.printed(command));
}

#[test]
fn a_flag_that_somebody_else_changes_meanwhile_is_left_alone_and_other_keys_stay() {
    let stage = Stage::build();
    let environment: Environment = stage.environment().into_iter().collect();
    let plan = |wanted| Plan::new(&StartArgs::default(), &environment, "database", wanted).unwrap();
    let edit = |data: Value| {
        let kubectl = stage.namespace.kubectl_as(User::Admin);
        kubectl
            .merge("configmap", "addon-operator", &json!({"data": data}))
            .unwrap();
    };
    let said = |key: &str| {
        let path = format!("-o=jsonpath={{.data.{key}}}");
        stage
            .namespace
            .kubectl(["get", "configmap", "addon-operator", &path])
            .unwrap()
    };

    let off = plan(false);
    assert_eq!(
        (off.edit().current().as_str(), off.release.is_none()),
        ("not there", true)
    );
    edit(json!({"databaseEnabled": "true"}));
    let refused = off.carry_out().unwrap_err();
    assert_eq!(
        refused.to_string(),
        "databaseEnabled was changed meanwhile by another writer, to 'true'"
    );
    assert_eq!(said("databaseEnabled"), "true");
    assert!(plan(true).edit().is_done());

    let off = plan(false);
    edit(json!({"site": "replicas: 3"}));
    off.carry_out().unwrap();
    assert_eq!(
        (said("databaseEnabled"), said("site")),
        ("false".to_owned(), "replicas: 3".to_owned())
    );

    stage
        .namespace
        .kubectl(["delete", "configmap", "addon-operator"])
        .unwrap();
    let gone = Plan::new(&StartArgs::default(), &environment, "database", true).unwrap_err();
    assert!(
        gone.to_string()
            .starts_with("there is no ConfigMap 'addon-operator' in namespace"),
        "{gone}"
    );
}
