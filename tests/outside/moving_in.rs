//! A release of helm whose pods run on a real node moves in, and no pod notices.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use fs_err as fs;
use serde_json::Value;
use testbed::files::put;
use testbed::namespace::Namespace;
use testbed::part::Part;
use testbed::plane::User;
use testbed::process::{self, Bond, Bound};
use testbed::reader::Only;
use testbed::wait::wait_until;

use super::{PATIENCE, PROGRAM, World};

const SHOP: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: main, image: IMAGE, command: [sleep, '100000']}
";

/// The uid and the restarts of each pod of the release, by name. An error until two are ready.
fn pods(namespace: &Namespace<'_>) -> Result<Option<BTreeMap<String, String>>, String> {
    let pods = namespace.objects("pods", Only::Labels("app=shop")).unwrap();
    let of = |pod: &Value| {
        let state = &pod["status"]["containerStatuses"][0];
        let told = format!("{} {}", pod["metadata"]["uid"], state["restartCount"]);
        (state["ready"] == true).then(|| (pod["metadata"]["name"].to_string(), told))
    };
    let ready: BTreeMap<String, String> = pods.iter().filter_map(of).collect();
    if ready.len() == 2 && pods.len() == 2 {
        Ok(Some(ready))
    } else {
        Err(format!("{pods:?}"))
    }
}

/// A folder with the programs of a person, and the variables of an operator that uses it.
struct Place {
    folder: PathBuf,
    environment: BTreeMap<&'static str, OsString>,
}

impl Place {
    fn make(folder: PathBuf, namespace: &Namespace<'_>) -> Self {
        let helm = namespace.plane().program(Part::Helm3);
        let (bin, port) = (folder.join("bin"), namespace.port().unwrap().to_string());
        fs::create_dir_all(&bin).unwrap();
        fs::create_dir_all(folder.join("global-hooks")).unwrap();
        let kubectl = namespace.plane().program(Part::Kubectl);
        for (name, program) in [
            ("helm", &helm),
            ("kubectl", &kubectl),
            ("addon-operator", &PROGRAM.into()),
        ] {
            fs::os::unix::fs::symlink(program, bin.join(name)).unwrap();
        }
        let own = |name: &str| folder.join(name).into_os_string();
        let environment = BTreeMap::from([
            ("PATH", format!("{}:/usr/bin:/bin", bin.display()).into()),
            ("HOME", own("home")),
            ("KUBECONFIG", namespace.kubeconfig(User::Admin).into()),
            ("HELM_BIN", helm.into()),
            ("ADDON_OPERATOR_NAMESPACE", namespace.name().into()),
            ("MODULES_DIR", own("plan/modules")),
            ("GLOBAL_HOOKS_DIR", own("global-hooks")),
            ("ADDON_OPERATOR_TMP_DIR", own("tmp")),
            ("ADDON_OPERATOR_LISTEN_ADDRESS", "127.0.0.1".into()),
            ("ADDON_OPERATOR_LISTEN_PORT", port.into()),
            ("DEBUG_UNIX_SOCKET", own("debug.socket")),
        ]);
        Self { folder, environment }
    }

    fn run(&self, line: &str) -> String {
        let mut command = process::command("/bin/sh");
        command.args(["-euc", line]).current_dir(&self.folder);
        command.env_clear().envs(&self.environment);
        let output = process::run(command, None).unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(output.status.success(), "{line}: {said}");
        said
    }

    fn start(&self, namespace: &Namespace<'_>) -> Bound {
        let path = self.folder.join("log");
        namespace.show_on_panic("operator", &path);
        let log = fs::File::create(path).unwrap().into_parts().0;
        let mut operator = process::command(PROGRAM);
        operator.arg("start").env_clear().envs(&self.environment);
        operator.stdout(log.try_clone().unwrap()).stderr(log);
        Bound::start(operator, Bond::Group).unwrap()
    }
}

impl World<'_> {
    /// Installs a release with helm, has it handed over by the commands of a plan, and starts an operator with it.
    pub(super) fn move_in(&self, namespace: &Namespace<'_>) {
        let place = Place::make(self.folder.path().join("moving"), namespace);
        let files = [
            ("shop/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 0.1.0\n"),
            ("shop/templates/a.yaml", &SHOP.replace("IMAGE", &self.image)),
        ];
        for (name, text) in files {
            put(&place.folder, name, text).unwrap();
        }
        place.run("helm install shop ./shop");
        let before = wait_until(PATIENCE, "two pods of the release", || pods(namespace)).unwrap();

        let within = namespace.name();
        place.run(&format!(
            "addon-operator migrate from helm shop --namespace {within} --operator-namespace {within} --output-dir plan"
        ));
        // The others restart an operator that runs in a Deployment.
        place.run("cd plan && grep -E '^    kubectl apply|handed-over=true' STEPS.md | sh -eu");
        let _operator = place.start(namespace);
        let ready = || {
            let said = place.run("addon-operator why shop || true");
            let is_ready = said.contains("state: Ready");
            is_ready.then_some(Some(())).ok_or(said)
        };
        wait_until(PATIENCE, "the module to be ready", ready).unwrap();
        let history = place.run("helm history shop");
        assert!(history.contains("\n2 "), "the operator has no revision: {history}");
        assert_eq!(pods(namespace).unwrap(), Some(before));
    }
}
