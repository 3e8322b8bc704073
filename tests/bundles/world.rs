//! An operator with the module bundles, namespaces with Bundles, and charts in a registry. All tests share the operator and the
//! registry.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use testbed::kubectl::KubectlError;
use testbed::namespace::Namespace;
use testbed::part::Part;
use testbed::process;
use testbed::reader::Only;
use testbed::registry::Registry;
use testbed::registry::push::Repository;
use testbed::shared;
use testbed::wait::wait_until;

use super::life::{Operator, apply, path};

/// Far longer than any step takes on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_mins(3);
const MODULE: &str = "modules/600-bundles";
const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
const CONTENT: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// The address of the registry of all tests.
pub(super) fn registry() -> &'static str {
    static REAL: OnceLock<Registry> = OnceLock::new();
    REAL.get_or_init(|| Registry::start().unwrap()).address()
}

pub(super) fn operator() -> &'static Operator {
    static OPERATOR: OnceLock<Operator> = OnceLock::new();
    OPERATOR.get_or_init(|| {
        let mut operator = Operator::new("bundles");
        let kubectl = shared::program(Part::Kubectl);
        let programs = format!("{}:{}", kubectl.parent().unwrap().display(), testbed::jq::search_path());
        let own = |name: &str| operator.folder().join(name).into_os_string();
        operator.variables = [
            ("PATH", programs.into()),
            ("KUBECONFIG", own("kubeconfig")),
            ("HELM_BIN", own("helm")),
            ("ADDON_OPERATOR_PROGRAM", own("program")),
        ]
        .into();
        operator.become_an_account();
        operator.put_before_helm("");
        operator.give_program();
        operator.hasten();
        operator.start();
        operator.configure(&json!({}));
        operator
    })
}

impl Operator {
    /// Gives the operator an account with full rights in its own namespace, and elsewhere only those that `rbac generate` finds for
    /// the module, besides the right to act as `deployer`.
    fn become_an_account(&self) {
        let mut command = process::command(env!("CARGO_BIN_EXE_addon-operator"));
        command
            .args(["rbac", "generate", "--module=bundles", "--output=json"])
            .arg(path("modules"))
            .env("HELM_BIN", shared::program(Part::Helm3))
            .env("FRAMEWORK_DIR", path("frameworks/shell"));
        let output = process::run(command, None).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut rules = found["rbac"]["moduleRules"]["cluster"].as_array().unwrap().clone();
        rules.push(
            json!({"apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": ["deployer"], "verbs": ["impersonate"]}),
        );
        let (name, group) = (self.namespace.name(), "rbac.authorization.k8s.io");
        let version = format!("{group}/v1");
        let subject = json!({"kind": "ServiceAccount", "namespace": name, "name": "operator"});
        let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
        self.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "operator"}}));
        for (kind, rules) in [("ClusterRole", json!(rules)), ("Role", all)] {
            let role = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "rules": rules});
            let binding = json!({"apiVersion": version, "kind": format!("{kind}Binding"), "metadata": {"name": name},
                "roleRef": {"apiGroup": group, "kind": kind, "name": name}, "subjects": [subject]});
            self.apply(&role);
            self.apply(&binding);
        }
        let token = self
            .namespace
            .kubectl(["create", "token", "operator", "--duration=24h"])
            .unwrap();
        let config = self
            .namespace
            .kubectl(["config", "view", "--raw", "--output=json"])
            .unwrap();
        let mut config: Value = serde_json::from_str(&config).unwrap();
        config["users"][0]["user"] = json!({"token": token.trim()});
        fs_err::write(self.folder().join("kubeconfig"), config.to_string()).unwrap();
    }

    /// Where hooks find the operator's own program.
    pub(super) fn program(&self) -> PathBuf {
        self.folder().join("program")
    }

    pub(super) fn give_program(&self) {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_addon-operator"), self.program()).unwrap();
    }

    /// A program that stands in the way of helm: it may do anything, and calls the real helm at `$HELM`.
    pub(super) fn put_before_helm(&self, script: &str) {
        let helm = shared::program(Part::Helm3);
        let text = format!(
            "#!/bin/bash\nHELM={}\n{script}\nexec \"$HELM\" \"$@\"\n",
            helm.display()
        );
        let (new, file) = (self.folder().join("new-helm"), self.folder().join("helm"));
        fs_err::write(&new, text).unwrap();
        fs_err::set_permissions(&new, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        fs_err::rename(new, file).unwrap();
    }

    /// Puts a copy of the module before the shipped one, whose hooks look every two seconds, and not every ten to thirty: most
    /// of the time of a test would be such a wait.
    fn hasten(&self) {
        let (from, to) = (path(MODULE), self.folder().join("modules/600-bundles"));
        let mut copy = process::command("cp");
        copy.arg("-r").arg(&from).arg(&to);
        assert!(process::run(copy, None).unwrap().status.success());
        let usual = [
            ("deploy.sh", "*/30 *"),
            ("follow.sh", "*/15 *"),
            ("look.sh", "*/10 *"),
            ("poll.sh", "*/10 *"),
        ];
        for (hook, usual) in usual {
            let file = to.join("hooks").join(hook);
            let text = fs_err::read_to_string(&file).unwrap();
            assert!(text.contains(usual), "{hook} has another schedule");
            fs_err::write(&file, text.replace(usual, "*/2 *")).unwrap();
        }
        let file = to.join("hooks/lib/look.jq");
        let text = fs_err::read_to_string(&file).unwrap();
        let pause = "if known.error then 30 elif is_healthy then 60";
        assert!(text.contains(pause), "look.jq has other pauses");
        fs_err::write(&file, text.replace(pause, "if known.error or is_healthy then 4")).unwrap();
    }

    /// Sets values of the module. Registries are asked every five seconds.
    pub(super) fn configure(&self, values: &Value) {
        let mut section = json!({"interval": 5, "nearRegistries": ["127.0.0.1", "localhost"]});
        section
            .as_object_mut()
            .unwrap()
            .extend(values.as_object().unwrap().clone());
        self.switch("true", &section);
    }

    pub(super) fn switch(&self, flag: &str, section: &Value) {
        self.set(&json!({"bundlesEnabled": flag, "bundles": section.to_string()}));
    }
}

/// A namespace with Bundles, and the account that deploys in it.
pub(super) struct Home {
    pub(super) namespace: Namespace<'static>,
}

impl Home {
    /// A namespace in which the account `werf` may do everything.
    pub(super) fn new() -> Self {
        let home = Self::without_account();
        home.account("werf");
        home
    }

    pub(super) fn without_account() -> Self {
        let namespace = shared::plane().namespace("shop").unwrap();
        namespace.show_on_panic("operator", &operator().log());
        let served = || namespace.kubectl(["get", "bundles.operator.werf.dev"]).map(Some);
        wait_until(PATIENCE, "the CRD of Bundles", served).unwrap();
        Self { namespace }
    }

    pub(super) fn name(&self) -> &str {
        self.namespace.name()
    }

    /// An account of this namespace that may do everything in it.
    pub(super) fn account(&self, name: &str) {
        self.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}));
        self.admit(self.name(), name);
    }

    /// Lets an account of another namespace do everything in this one.
    pub(super) fn admit(&self, namespace: &str, account: &str) {
        let name = format!("{namespace}-{account}");
        self.apply(
            &json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name},
            "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}),
        );
        self.apply(
            &json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": account}]}),
        );
    }

    /// Waits until the API server has learnt that an account may not change anything here.
    pub(super) fn wait_until_forbidden(&self, account: &str) {
        let account = format!("--as=system:serviceaccount:{}:{account}", self.name());
        let look = || match self.namespace.kubectl(["auth", "can-i", "delete", "secrets", &account]) {
            Ok(said) => Err(said),
            Err(_) => Ok(Some(())),
        };
        wait_until(PATIENCE, "the account has no rights", look).unwrap();
    }

    pub(super) fn apply(&self, object: &Value) {
        apply(&self.namespace, object).unwrap();
    }

    pub(super) fn try_apply(&self, object: &Value) -> Result<String, KubectlError> {
        apply(&self.namespace, object)
    }

    /// Creates or changes a Bundle of the registry of the tests.
    pub(super) fn bundle(&self, name: &str, repo: &str, version: &str, more: &Value) {
        let mut spec = json!({"registry": registry(), "repo": repo, "version": version});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.apply(
            &json!({"apiVersion": "operator.werf.dev/v1", "kind": "Bundle", "metadata": {"name": name}, "spec": spec}),
        );
    }

    /// Waits as people do, until the Bundle is ready.
    pub(super) fn wait_ready(&self, name: &str) -> Value {
        let look = || {
            let wait = ["wait", "--for=condition=Ready", "--timeout=2s", "bndl", name];
            match self.namespace.kubectl(wait) {
                Ok(_) => Ok(Some(())),
                Err(_) => Err(self.seen(name)["status"].to_string()),
            }
        };
        wait_until(PATIENCE, &format!("Bundle {name} is ready"), look).unwrap();
        self.seen(name)
    }

    /// Waits until the condition of a Bundle has this reason, and returns the Bundle.
    pub(super) fn wait_for_reason(&self, name: &str, reason: &str) -> Value {
        self.wait_for(name, |bundle| ready_of(bundle)["reason"] == reason)
    }

    pub(super) fn wait_for(&self, name: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let look = || {
            let bundle = self.seen(name);
            if fits(&bundle) {
                Ok(Some(bundle))
            } else {
                Err(bundle.to_string())
            }
        };
        wait_until(PATIENCE, &format!("Bundle {name} fits"), look).unwrap()
    }

    /// A Bundle, or null.
    pub(super) fn seen(&self, name: &str) -> Value {
        self.namespace.object("bundle", name).unwrap().unwrap_or_default()
    }

    /// Waits until an object of the release has this text.
    pub(super) fn wait_for_text(&self, config_map: &str, text: &str) -> Value {
        let look = || match self.namespace.object("configmap", config_map).unwrap() {
            Some(object) if object["data"]["text"] == text => Ok(Some(object)),
            found => Err(format!("{found:?}")),
        };
        wait_until(PATIENCE, &format!("ConfigMap {config_map} says {text}"), look).unwrap()
    }

    pub(super) fn wait_until_gone(&self, kind: &str, name: &str) {
        let look = || match self.namespace.object(kind, name).unwrap() {
            None => Ok(Some(())),
            Some(found) => Err(found.to_string()),
        };
        wait_until(PATIENCE, &format!("{kind} {name} is gone"), look).unwrap();
    }

    /// Waits until there is an Event about a Bundle with this reason, and returns its message.
    pub(super) fn wait_for_event(&self, bundle: &str, reason: &str) -> String {
        let look = || {
            let events = self.namespace.objects("events", Only::All).unwrap();
            let of_bundle = |event: &&Value| {
                event["involvedObject"]["name"] == bundle && event["involvedObject"]["kind"] == "Bundle"
            };
            let all: Vec<&Value> = events.iter().filter(of_bundle).collect();
            match all.iter().find(|event| event["reason"] == reason) {
                Some(event) => Ok(Some(event["message"].as_str().unwrap().to_owned())),
                None => Err(format!(
                    "{:?}",
                    all.iter().map(|event| event["reason"].to_string()).collect::<Vec<_>>()
                )),
            }
        };
        wait_until(PATIENCE, &format!("an Event {reason} of {bundle}"), look).unwrap()
    }
}

/// The condition Ready of a Bundle.
pub(super) fn ready_of(bundle: &Value) -> &Value {
    &bundle["status"]["conditions"][0]
}

/// Pushes a chart as `helm push` does, under any tag: one ConfigMap with the release's name, whose text is that of the version and of
/// the value `more`. Returns the digest.
pub(super) fn push(repo: &str, tag: &str, text: &str) -> String {
    let template = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {{{{ .Release.Name }}}}}}\ndata:\n  text: {{{{ printf \"{text}%s\" (.Values.more | default \"\") | quote }}}}\n"
    );
    push_template(repo, tag, &template)
}

/// Deletes a tag.
pub(super) fn untag(repo: &str, tag: &str) {
    in_registry(async { Repository::at(registry(), repo).untag(tag).await });
}

fn in_registry<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(work)
}

pub(super) fn push_template(repo: &str, tag: &str, template: &str) -> String {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, content) in [
        ("app/Chart.yaml", "apiVersion: v2\nname: app\nversion: 1.0.0\n"),
        ("app/templates/all.yaml", template),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, content.as_bytes()).unwrap();
    }
    let layer = archive.into_inner().unwrap().finish().unwrap();
    let repository = Repository::at(registry(), repo);
    in_registry(async {
        let config = br#"{"name":"app","version":"1.0.0","apiVersion":"v2"}"#;
        let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST,
            "config": {"mediaType": CONFIG, "digest": repository.upload(config).await, "size": config.len()},
            "layers": [{"mediaType": CONTENT, "digest": repository.upload(&layer).await, "size": layer.len()}]});
        repository.put(tag, MANIFEST, &manifest).await
    })
}
